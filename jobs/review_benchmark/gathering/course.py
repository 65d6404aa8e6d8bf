"""A search plan and all that came of it: a family of answers, by the present rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from jobs.review_benchmark import reading
from jobs.review_benchmark.answered import Conclusion, Relevance, SearchPlan
from jobs.review_benchmark.asking import keys
from jobs.review_benchmark.asking.plan import queries, searched
from jobs.review_benchmark.dataset import Dataset
from jobs.review_benchmark.gathering.spending import spent
from jobs.review_benchmark.rebuilt import Outcome, Searched, Spent
from jobs.review_benchmark.review import Review
from jobs.review_benchmark.search.query import Query, expression
from runner.reply import ParseFailure
from runner.task import Answer

_SKIPS: Mapping[str, Outcome] = {"no_text": "no_text", "too_long": "too_long"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """What became of one candidate."""

    outcome: Outcome
    score: float | None = None
    rationale: str = ""
    failure: str = ""  #: class of the failure, or reason of the parse failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What one replicate of a model made of one review."""

    review: str
    model: str
    replicate: int
    failure: str = ""  #: why there is no search: class, skip, or `open`
    searched: Searched | None = None
    candidates: tuple[int, ...] = ()  #: best first
    ranked: tuple[int, ...] = ()  #: all papers that were found; candidates first
    spent: Spent = field(default_factory=Spent)
    scored: Mapping[int, Scored] = field(default_factory=dict)  #: of the candidates
    conclusion: Conclusion | None = None
    is_open: bool = False  #: the search plan is still to come
    missing: int = 0  #: candidates that were never asked about
    stale: int = 0  #: answers about papers that are no candidates any more


def course(dataset: Dataset, family: Sequence[Answer]) -> Course | None:
    """What a family comes to; None where the data has lost its review."""
    first = family[0]
    task = first.task
    review = dataset.find(task.key)
    if review is None:
        return None
    if first.chat is None:
        failure = first.error or first.skip or "open"
        return Course(
            review=review.id,
            model=task.model,
            replicate=task.replicate,
            failure=failure,
            is_open=first.is_open,
            missing=int(first.is_open),
            spent=spent(family),
        )
    parsed = reading.read_plan(dataset, task, first.chat)
    found = searched(dataset, review, parsed)
    answers = {
        keys.paper_of_key(answer.task.key)[1]: _scored(dataset, answer)
        for answer in family
        if answer.task.stage == "score" and answer.skip != "no_candidates"
    }
    scored = {
        number: answers.pop(number, Scored(outcome="open"))
        for number in found.candidates
    }
    return Course(
        review=review.id,
        model=task.model,
        replicate=task.replicate,
        searched=_searched(dataset, review, parsed, found.cut, task.replicate),
        candidates=found.candidates,
        ranked=found.ranked,
        spent=spent(family),
        scored=scored,
        conclusion=_conclusion(dataset, family),
        missing=sum(each.outcome == "open" for each in scored.values()),
        stale=len(answers),
    )


def _searched(
    dataset: Dataset,
    review: Review,
    parsed: SearchPlan | ParseFailure,
    cut: int,
    replicate: int,
) -> Searched:
    asked = queries(review, parsed, dataset.settings.queries)
    return Searched(
        replicate=replicate,
        queries=asked,
        hits=tuple(_hits(dataset, query) for query in asked),
        cut=cut,
        is_fallback=isinstance(parsed, ParseFailure),
    )


def _hits(dataset: Dataset, query: Query) -> int:
    """How many papers fit a query, of any year."""
    database = dataset.database
    return 0 if database is None else database.n_hits(expression(query))


def _scored(dataset: Dataset, answer: Answer) -> Scored:
    if answer.skip is not None:
        return Scored(outcome=_SKIPS.get(answer.skip, "open"), failure=answer.skip)
    if answer.error is not None:
        return Scored(outcome="failed", failure=answer.error)
    if answer.chat is None:
        return Scored(outcome="open")
    parsed = reading.read_score(dataset, answer.task, answer.chat)
    if isinstance(parsed, Relevance):
        return Scored(outcome="scored", score=parsed.score, rationale=parsed.rationale)
    return Scored(outcome="unparsed", failure=parsed.reason)


def _conclusion(dataset: Dataset, family: Sequence[Answer]) -> Conclusion | None:
    for answer in family:
        if answer.task.stage == "conclude" and answer.chat is not None:
            parsed = reading.read_conclusion(dataset, answer.task, answer.chat)
            return parsed if isinstance(parsed, Conclusion) else None
    return None
