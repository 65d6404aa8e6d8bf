"""Plans a run's tasks: search plan, candidates, conclusion and its comparison.

Pure and lazy except for reading the database, which is part of the run's identity; it
never uses the truth. The plan of a run is derived again from data and stored replies
whenever it is resumed or scored, so the same inputs must yield the same specs in the
same order.

A judge compares the conclusion with the authors' conclusion, and with those of a few
other reviews: their similarities give the threshold.
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
    """Yield tasks for the vectors of authors' conclusions, if vectors are compared."""
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
    """Yield the tasks that compare a conclusion; none if its words are compared."""
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
    """Return the other reviews that a conclusion is compared with, by hash order."""
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
    """Return why a request is not sent; None if it is."""
    is_long = is_longer_than(request, dataset.settings.max_prompt_tokens)
    return "too_long" if is_long else None


_COMPARING: Mapping[VerdictKind, tuple[str, ...]] = {
    "judge": ("judge",),
    "embedding": ("embed",),
}
"""Stages that compare conclusions; comparing words needs no model."""


def plan(dataset: ReviewDataset) -> Iterator[TaskSpec]:
    """Yield a search plan for each review, then the vectors of authors' conclusions."""
    for review in dataset.reviews:
        skip = _skip(dataset, requests.plan(dataset, review))
        yield TaskSpec(stage="plan", key=review.id, skip=skip)
    yield from truth_vectors(dataset)


def titles(dataset: ReviewDataset) -> Iterator[tuple[str, str]]:
    """Yield the reviews with their titles."""
    return ((review.id, review.title) for review in dataset.reviews)


def follow_up(dataset: ReviewDataset, group: tuple[Answer, ...]) -> Iterator[TaskSpec]:
    """Yield the candidates of a search plan, their conclusion, or its comparison."""
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
    """Return the stages that the settings and the reviews need."""
    stages = {"plan", "score"}
    if dataset.concludes:
        stages |= {"conclude", *_COMPARING.get(dataset.verdict, ())}
    return frozenset(stages)


def queries(review: Review, parsed: object, most: int) -> tuple[SearchQuery, ...]:
    """Return the queries of an answer; those of the fixed plan if it is unusable."""
    if isinstance(parsed, SearchPlan):
        return parsed.queries
    return deterministic_queries(review)[:most]


def searched(dataset: ReviewDataset, review: Review, parsed: object) -> SearchHits:
    """Return the papers that an answer's queries find."""
    planned_queries = queries(review, parsed, dataset.settings.queries)
    return search_database(review, planned_queries, dataset.papers, dataset.settings)


def conclusion(
    dataset: ReviewDataset, review: Review, scores: Mapping[int, float | None]
) -> TaskSpec | None:
    """Return the task of one replicate's conclusion from the included papers.

    Its key identifies the papers, best first, so that scoring can tell whether an
    answer was drawn from the papers that are included now. None if no conclusion is
    needed.

    Args:
        dataset: reviews, papers and settings.
        review: subject of the conclusion.
        scores: of the requested papers, in the order of the plan; None: no readable
            score. Skipped papers are left out.
    """
    if not dataset.concludes:
        return None
    settings = dataset.settings
    best = sorted(
        (-math.inf if score is None else score, -index, number)
        for index, (number, score) in enumerate(scores.items())
        if settings.includes(score)
    )
    # a run may be scored with other papers than it used
    available = (number for _, _, number in reversed(best) if _has(dataset, number))
    paper_numbers = list(islice(available, settings.conclude_papers))
    return TaskSpec(
        stage="conclude",
        key=requests.conclusion_key(review.id, paper_numbers),
        skip=_unconcluded(dataset, review, paper_numbers),
        context=requests.documents_to_context(paper_numbers),
    )


def _candidates(dataset: ReviewDataset, answer: Answer) -> Iterator[TaskSpec]:
    """Yield the tasks that score papers; a task without a call has a skip reason."""
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
        # a group without any call never becomes final
        conclusion_spec = conclusion(dataset, review, {})
        yield from () if conclusion_spec is None else (conclusion_spec,)


def _score(dataset: ReviewDataset, review: Review, number: int) -> TaskSpec:
    paper = requests.paper(dataset, number)
    request = requests.score(dataset, review, paper)
    return TaskSpec(
        stage="score",
        key=requests.paper_key(review.id, number),
        skip=_skip(dataset, request) if paper.has_text else "no_text",
        # the need for conclusions may change between two resumes
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
