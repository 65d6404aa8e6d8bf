"""Plans a run's tasks: search plan, candidates, conclusion and its comparison.

Pure and lazy but for reading the database, which is part of the run's identity; the
truth is never looked at. The plan of a run is derived again from data and stored
replies whenever it is resumed or scored, so the same inputs must yield the same specs
in the same order.

A judge is shown the conclusion with the authors' own, and with those of a few other
reviews: a threshold is drawn from how alike conclusions are that do not belong
together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import islice

from jobs.kit.chat import is_longer_than
from jobs.review_benchmark import requests
from jobs.review_benchmark.data import (
    Conclusion,
    Relevance,
    Review,
    SearchPlan,
    SearchQuery,
)
from jobs.review_benchmark.inputs import ReviewDataset
from jobs.review_benchmark.requests import ConclusionText
from jobs.review_benchmark.search import (
    SearchHits,
    deterministic_queries,
    search_database,
)
from jobs.review_benchmark.settings import VerdictKind
from runner.job import Answer, TaskSpec
from runner.messages import EmbedRequest, Request


def truth_vectors(dataset: ReviewDataset) -> Iterator[TaskSpec]:
    """The vectors of what authors concluded; none unless vectors are compared."""
    if dataset.verdict != "embedding":
        return
    for review in dataset.concluded:
        yield TaskSpec(
            stage="embed",
            key=requests.truth_key(review.id, review.conclusion),
            skip=_skip(dataset, EmbedRequest(texts=(review.conclusion,))),
        )


def comparison_tasks(
    dataset: ReviewDataset, review: Review, text: str, model: str
) -> Iterator[TaskSpec]:
    """What compares a conclusion; nothing where its words do."""
    match dataset.verdict:
        case "judge":
            for truth in (review, *mismatched_reviews(dataset, review)):
                yield _judge(dataset, review, truth, text, model)
        case "embedding":
            yield TaskSpec(
                stage="embed",
                key=requests.compared_key(review.id, text, model),
                skip=_skip(dataset, EmbedRequest(texts=(text,))),
                context=requests.conclusion_to_context(ConclusionText(text=text)),
            )
        case _:
            return


def mismatched_reviews(dataset: ReviewDataset, review: Review) -> list[Review]:
    """The other reviews whose authors a conclusion is held against, by hash order."""
    others = (other for other in dataset.concluded if other.id != review.id)
    return sorted(
        others,
        key=lambda other: sha256(f"{review.id}\0{other.id}".encode()).digest(),
    )[: dataset.settings.null_pairs]


def _judge(
    dataset: ReviewDataset, review: Review, truth: Review, text: str, model: str
) -> TaskSpec:
    key = requests.judged_key(review.id, truth.id, (text, truth.conclusion), model)
    return TaskSpec(
        stage="judge",
        key=key,
        skip=_skip(dataset, requests.judge(dataset, key, text, truth.conclusion)),
        context=requests.conclusion_to_context(
            ConclusionText(text=text, truth=truth.id)
        ),
    )


def _skip(dataset: ReviewDataset, request: Request) -> str | None:
    """Why a request is not sent; None where it is."""
    is_long = is_longer_than(request, dataset.settings.max_prompt_tokens)
    return "too_long" if is_long else None


_COMPARING: Mapping[VerdictKind, tuple[str, ...]] = {
    "judge": ("judge",),
    "embedding": ("embed",),
}
"""The stages that compare conclusions; words are compared by no model."""


def plan(dataset: ReviewDataset) -> Iterator[TaskSpec]:
    """A search plan for each review, and what its authors' conclusion is known by."""
    for review in dataset.reviews:
        skip = _skip(dataset, requests.plan(dataset, review))
        yield TaskSpec(stage="plan", key=review.id, skip=skip)
    yield from truth_vectors(dataset)


def titles(dataset: ReviewDataset) -> Iterator[tuple[str, str]]:
    """The reviews with their titles."""
    return ((review.id, review.title) for review in dataset.reviews)


def follow_up(dataset: ReviewDataset, group: tuple[Answer, ...]) -> Iterator[TaskSpec]:
    """The candidates of a search plan, their conclusion, and what compares it."""
    match group[0].task.stage:
        case "plan":
            yield from _candidates(dataset, group[0])
        case "score":
            yield from _gathered(dataset, group)
        case "conclude":
            yield from _compared(dataset, group[0])
        case _:
            return


def planned_stages(dataset: ReviewDataset) -> frozenset[str]:
    """The stages that the settings and the reviews ask for."""
    stages = {"plan", "score"}
    if dataset.concludes:
        stages |= {"conclude", *_COMPARING.get(dataset.verdict, ())}
    return frozenset(stages)


def queries(review: Review, parsed: object, most: int) -> tuple[SearchQuery, ...]:
    """What is searched after an answer; where it is of no use, the fixed plan."""
    if isinstance(parsed, SearchPlan):
        return parsed.queries
    return deterministic_queries(review)[:most]


def searched(dataset: ReviewDataset, review: Review, parsed: object) -> SearchHits:
    """The papers that an answer's queries find."""
    planned_queries = queries(review, parsed, dataset.settings.queries)
    return search_database(review, planned_queries, dataset.papers, dataset.settings)


def conclusion(
    dataset: ReviewDataset, review: Review, scores: Mapping[int, float | None]
) -> TaskSpec | None:
    """The conclusion from what one replicate of a model includes, best papers first.

    Its key says which papers those are, so that scoring can tell whether an answer was
    drawn from the papers that are included now. None where none is asked for.

    Args:
        dataset: reviews, papers and settings.
        review: what is concluded about.
        scores: of the papers that were asked about, in the order of the plan; None: no
            readable score. What was skipped is not among them.
    """
    if not dataset.concludes:
        return None
    settings = dataset.settings
    best = sorted(
        (-math.inf if score is None else score, -index, number)
        for index, (number, score) in enumerate(scores.items())
        if settings.includes(score)
    )
    # a run may be scored with other papers than it was asked about
    available = (number for _, _, number in reversed(best) if _has(dataset, number))
    paper_numbers = list(islice(available, settings.conclude_papers))
    return TaskSpec(
        stage="conclude",
        key=requests.conclusion_key(review.id, paper_numbers),
        skip=_unconcluded(dataset, review, paper_numbers),
        context=requests.documents_to_context(paper_numbers),
    )


def _candidates(dataset: ReviewDataset, answer: Answer) -> Iterator[TaskSpec]:
    """The papers to be scored; what cannot be is skipped with its reason."""
    review = dataset.find(answer.task.key)
    if review is None:
        return
    candidates = searched(dataset, review, answer.parsed).candidates
    if not candidates:
        yield TaskSpec(stage="score", key=review.id, skip="no_candidates")
        return
    specs = [_score(dataset, review, number) for number in candidates]
    yield from specs
    if all(spec.skip is not None for spec in specs):
        # a group of which nothing is ever asked never becomes final
        conclusion_spec = conclusion(dataset, review, {})
        yield from () if conclusion_spec is None else (conclusion_spec,)


def _score(dataset: ReviewDataset, review: Review, number: int) -> TaskSpec:
    paper = requests.paper(dataset, number)
    request = requests.score(dataset, review, paper)
    return TaskSpec(
        stage="score",
        key=requests.paper_key(review.id, number),
        skip=_skip(dataset, request) if paper.has_text else "no_text",
        # whether conclusions are wanted may change from one resume to the next
        group=review.id,
    )


def _gathered(dataset: ReviewDataset, group: tuple[Answer, ...]) -> Iterator[TaskSpec]:
    review = dataset.find(requests.paper_of_key(group[0].task.key)[0])
    if review is None:
        return
    scores = {
        requests.paper_of_key(answer.task.key)[1]: (
            answer.parsed.score if isinstance(answer.parsed, Relevance) else None
        )
        for answer in group
        if answer.skip is None
    }
    spec = conclusion(dataset, review, scores)
    if spec is not None:
        yield spec


def _compared(dataset: ReviewDataset, answer: Answer) -> Iterator[TaskSpec]:
    review = dataset.find(requests.review_of_key(answer.task.key))
    if review is None or not isinstance(answer.parsed, Conclusion):
        return
    yield from comparison_tasks(dataset, review, answer.parsed.text, answer.task.model)


def _unconcluded(
    dataset: ReviewDataset, review: Review, paper_numbers: Sequence[int]
) -> str | None:
    if not review.conclusion and not dataset.settings.asks_question:
        return "no_truth_conclusion"
    if not paper_numbers:
        return "nothing_included"
    papers = [requests.paper(dataset, number) for number in paper_numbers]
    return _skip(dataset, requests.conclude(dataset, review, papers))


def _has(dataset: ReviewDataset, number: int) -> bool:
    database = dataset.database
    return database is not None and database.paper(number) is not None
