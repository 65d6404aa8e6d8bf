"""What is asked: a search plan a review, its candidates, and a conclusion.

Pure and lazy but for reading the database, which is part of the run's identity; the
truth is never looked at. The plan of a run is derived again from data and stored
replies whenever it is resumed or scored, so the same inputs must yield the same specs
in the same order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobs.lengths import is_longer
from jobs.review_benchmark.answered import Relevance, SearchPlan
from jobs.review_benchmark.asking import keys
from jobs.review_benchmark.asking import request as asking
from jobs.review_benchmark.asking.deterministic import planned
from jobs.review_benchmark.database.paper import Paper
from jobs.review_benchmark.dataset import Dataset
from jobs.review_benchmark.review import Review
from jobs.review_benchmark.search.found import Found, found
from jobs.review_benchmark.search.query import Query
from runner.errors import DatasetError
from runner.task import Answer, TaskSpec


def plan(dataset: Dataset) -> Iterator[TaskSpec]:
    """A search plan for each review."""
    for review in dataset.reviews:
        is_long = is_longer(
            asking.plan(dataset, review), dataset.settings.max_prompt_tokens
        )
        yield TaskSpec(
            stage="plan", key=review.id, skip="too_long" if is_long else None
        )


def follow_up(dataset: Dataset, group: tuple[Answer, ...]) -> Iterator[TaskSpec]:
    """What follows: the candidates of a search plan, and then their conclusion."""
    match group[0].task.stage:
        case "plan":
            yield from _candidates(dataset, group[0])
        case "score":
            yield from _conclusion(dataset, group)
        case _:
            return


def wanted(dataset: Dataset) -> frozenset[str]:
    """The stages that the settings and the reviews ask for."""
    asked = {"plan", "score"}
    return frozenset({*asked, "conclude"} if wants_conclusion(dataset) else asked)


def wants_conclusion(dataset: Dataset) -> bool:
    """Whether conclusions are asked for at all."""
    verdict = dataset.settings.verdict
    if verdict is None:
        return any(review.conclusion for review in dataset.reviews)
    return verdict != "off"


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


def _candidates(dataset: Dataset, answer: Answer) -> Iterator[TaskSpec]:
    """The papers to be scored; what cannot be is skipped with its reason."""
    review = dataset.find(answer.task.key)
    if review is None or answer.skip is not None or answer.reply is None:
        return
    candidates = searched(dataset, review, answer.parsed).candidates
    if not candidates:
        yield TaskSpec(stage="score", key=review.id, skip="no_candidates")
        return
    group = review.id if wants_conclusion(dataset) else None
    for number in candidates:
        yield TaskSpec(
            stage="score",
            key=keys.paper_key(review.id, number),
            skip=_skip(dataset, review, asking.paper(dataset, number)),
            group=group,
        )


def _skip(dataset: Dataset, review: Review, paper: Paper) -> str | None:
    if not paper.has_text:
        return "no_text"
    request = asking.score(dataset, review, paper)
    return (
        "too_long" if is_longer(request, dataset.settings.max_prompt_tokens) else None
    )


def _conclusion(dataset: Dataset, group: Sequence[Answer]) -> Iterator[TaskSpec]:
    """One conclusion from what one replicate of a model includes, best papers first."""
    review = dataset.find(keys.paper_of_key(group[0].task.key)[0])
    if review is None:
        return
    least = dataset.settings.least_score
    kept = [
        (-answer.parsed.score, place, keys.paper_of_key(answer.task.key)[1])
        for place, answer in enumerate(group)
        if isinstance(answer.parsed, Relevance) and answer.parsed.score >= least
    ]
    shown = [number for _, _, number in sorted(kept)]
    shown = shown[: dataset.settings.conclude_papers]
    yield TaskSpec(
        stage="conclude",
        key=keys.conclusion_key(review.id, shown),
        skip=_unconcluded(dataset, review, shown),
        context=asking.carrying(shown),
    )


def _unconcluded(dataset: Dataset, review: Review, shown: Sequence[int]) -> str | None:
    if not review.conclusion:
        return "no_truth_conclusion"
    if not shown:
        return "nothing_included"
    papers = [asking.paper(dataset, number) for number in shown]
    request = asking.conclude(dataset, review, papers)
    return (
        "too_long" if is_longer(request, dataset.settings.max_prompt_tokens) else None
    )
