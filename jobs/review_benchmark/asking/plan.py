"""What is asked: a search plan a review, its candidates, a conclusion, its likeness.

Pure and lazy but for reading the database, which is part of the run's identity; the
truth is never looked at. The plan of a run is derived again from data and stored
replies whenever it is resumed or scored, so the same inputs must yield the same specs
in the same order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from jobs.chat import is_longer_than
from jobs.review_benchmark.answered import Conclusion, Relevance, SearchPlan
from jobs.review_benchmark.asking import comparing, keys
from jobs.review_benchmark.asking import request as asking
from jobs.review_benchmark.asking.deterministic import planned
from jobs.review_benchmark.dataset import Dataset
from jobs.review_benchmark.review import Review
from jobs.review_benchmark.search.found import Found, found
from jobs.review_benchmark.search.query import Query
from jobs.review_benchmark.settings import VerdictKind
from runner.errors import DatasetError
from runner.job import Answer, TaskSpec
from runner.messages import ChatRequest

_COMPARING: Mapping[VerdictKind, tuple[str, ...]] = {
    "judge": ("judge",),
    "embedding": ("embed",),
}
"""The stages that compare conclusions; words are compared by no model."""


def plan(dataset: Dataset) -> Iterator[TaskSpec]:
    """A search plan for each review, and what its authors' conclusion is known by."""
    for review in dataset.reviews:
        is_long = _is_long(dataset, asking.plan(dataset, review))
        yield TaskSpec(
            stage="plan", key=review.id, skip="too_long" if is_long else None
        )
    yield from comparing.truths(dataset)


def follow_up(dataset: Dataset, group: tuple[Answer, ...]) -> Iterator[TaskSpec]:
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


def wanted(dataset: Dataset) -> frozenset[str]:
    """The stages that the settings and the reviews ask for."""
    asked = {"plan", "score"}
    if wants_conclusion(dataset):
        asked |= {"conclude", *_COMPARING.get(dataset.verdict, ())}
    return frozenset(asked)


def wants_conclusion(dataset: Dataset) -> bool:
    """Whether conclusions are asked for at all."""
    return dataset.verdict != "off"


def queries(review: Review, parsed: object, most: int) -> tuple[Query, ...]:
    """What is searched after an answer; where it is of no use, the fixed plan."""
    if isinstance(parsed, SearchPlan):
        return parsed.queries
    return planned(review)[:most]


def searched(dataset: Dataset, review: Review, parsed: object) -> Found:
    """The papers that an answer's queries find."""
    if dataset.database is None:
        raise DatasetError("There is no paper database (name one with --database).")
    asked = queries(review, parsed, dataset.settings.queries)
    return found(review, asked, dataset.database, dataset.settings)


def conclusion(
    dataset: Dataset, review: Review, scores: Mapping[int, float | None]
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
    if not wants_conclusion(dataset):
        return None
    settings = dataset.settings
    best = sorted(
        (-math.inf if score is None else score, -place, number)
        for place, (number, score) in enumerate(scores.items())
        if settings.includes(score)
    )
    # a run may be scored with other papers than it was asked about
    there = (number for _, _, number in reversed(best) if _has(dataset, number))
    shown = list(islice(there, settings.conclude_papers))
    return TaskSpec(
        stage="conclude",
        key=keys.conclusion_key(review.id, shown),
        skip=_unconcluded(dataset, review, shown),
        context=asking.carrying(shown),
    )


def _candidates(dataset: Dataset, answer: Answer) -> Iterator[TaskSpec]:
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
        nothing = conclusion(dataset, review, {})
        yield from () if nothing is None else (nothing,)


def _score(dataset: Dataset, review: Review, number: int) -> TaskSpec:
    paper = asking.paper(dataset, number)
    skip = None
    if not paper.has_text:
        skip = "no_text"
    elif _is_long(dataset, asking.score(dataset, review, paper)):
        skip = "too_long"
    return TaskSpec(
        stage="score",
        key=keys.paper_key(review.id, number),
        skip=skip,
        # whether conclusions are wanted may change from one resume to the next
        group=review.id,
    )


def _gathered(dataset: Dataset, group: tuple[Answer, ...]) -> Iterator[TaskSpec]:
    review = dataset.find(keys.paper_of_key(group[0].task.key)[0])
    if review is None:
        return
    scores = {
        keys.paper_of_key(answer.task.key)[1]: (
            answer.parsed.score if isinstance(answer.parsed, Relevance) else None
        )
        for answer in group
        if answer.skip is None
    }
    spec = conclusion(dataset, review, scores)
    if spec is not None:
        yield spec


def _compared(dataset: Dataset, answer: Answer) -> Iterator[TaskSpec]:
    review = dataset.find(keys.review_of_key(answer.task.key))
    if review is None or not isinstance(answer.parsed, Conclusion):
        return
    yield from comparing.compared(
        dataset, review, answer.parsed.text, answer.task.model
    )


def _unconcluded(dataset: Dataset, review: Review, shown: Sequence[int]) -> str | None:
    if not review.conclusion:
        return "no_truth_conclusion"
    if not shown:
        return "nothing_included"
    papers = [asking.paper(dataset, number) for number in shown]
    request = asking.conclude(dataset, review, papers)
    return "too_long" if _is_long(dataset, request) else None


def _has(dataset: Dataset, number: int) -> bool:
    database = dataset.database
    return database is not None and database.paper(number) is not None


def _is_long(dataset: Dataset, request: ChatRequest) -> bool:
    return is_longer_than(request, dataset.settings.max_prompt_tokens)
