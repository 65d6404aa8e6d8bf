"""A search plan and all that came of it: a family of answers, by the present rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from jobs.review_benchmark import reading
from jobs.review_benchmark.answered import Conclusion, Relevance, SearchPlan
from jobs.review_benchmark.asking import keys
from jobs.review_benchmark.asking.plan import conclusion, queries, searched
from jobs.review_benchmark.dataset import Dataset
from jobs.review_benchmark.gathering.compared import STAGES, compared
from jobs.review_benchmark.gathering.spending import spent
from jobs.review_benchmark.rebuilt import Concluded, Outcome, Searched, Spent
from jobs.review_benchmark.review import Review
from jobs.review_benchmark.search.query import Query, expression
from runner.job import Answer
from runner.messages import ParseFailure

_SKIPS: Mapping[str, Outcome] = {"no_text": "no_text", "too_long": "too_long"}

_ANSWERED: frozenset[Outcome] = frozenset({"scored", "unparsed"})
_ASKED = _ANSWERED | {"failed"}
"""Outcomes of a paper that has a reply, and of one that was asked about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """What became of one candidate."""

    outcome: Outcome
    score: float | None = None
    rationale: str = ""
    failure: str = ""  #: class of the failure, or reason of the parse failure


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drawn:
    """The conclusion that was drawn from the papers that are included now."""

    concluded: Concluded
    missing: int = 0  #: it was never asked for
    stale: int = 0  #: others, drawn from papers that were included under other rules


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
    concluded: Concluded
    is_open: bool = False  #: the search plan is still to come
    missing: int = 0
    """Candidates, a conclusion and what compares it: never asked for."""
    stale: int = 0
    """Answers about papers that are no candidates, or not included, now, and those
    that compare other conclusions."""


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
            concluded=Concluded(failure=failure),
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
        number: answers.get(number, Scored(outcome="open"))
        for number in found.candidates
    }
    drawn = _drawn(dataset, review, answers, family)
    beside = compared(dataset, review, task.model, drawn.concluded, family)
    return Course(
        review=review.id,
        model=task.model,
        replicate=task.replicate,
        searched=_searched(dataset, review, parsed, found.cut, task.replicate),
        candidates=found.candidates,
        ranked=found.ranked,
        spent=spent(own for own in family if own.task.stage not in STAGES),
        scored=scored,
        concluded=beside.concluded,
        missing=sum(number not in answers for number in found.candidates)
        + drawn.missing
        + beside.missing,
        stale=sum(
            own.outcome in _ANSWERED and number not in scored
            for number, own in answers.items()
        )
        + drawn.stale
        + beside.stale,
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
        hits=tuple(n_hits(dataset, query) for query in asked),
        cut=cut,
        is_fallback=isinstance(parsed, ParseFailure),
    )


def n_hits(dataset: Dataset, query: Query) -> int:
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


def _drawn(
    dataset: Dataset,
    review: Review,
    answers: Mapping[int, Scored],
    family: Sequence[Answer],
) -> _Drawn:
    """The conclusion from what is included now, in the order of the plan.

    While a score is still to come, nobody knows what will be included.
    """
    asked = [answer for answer in family if answer.task.stage == "conclude"]
    if any(own.outcome == "open" and not own.failure for own in answers.values()):
        return _Drawn(concluded=Concluded(failure="open"))
    scores = {
        number: own.score for number, own in answers.items() if own.outcome in _ASKED
    }
    spec = conclusion(dataset, review, scores) if answers else None
    due = [] if spec is None else [own for own in asked if own.task.key == spec.key]
    stale = sum(own.reply is not None for own in asked if own not in due)
    if spec is None or spec.skip is not None:
        why = "no_candidates" if spec is None or spec.skip is None else spec.skip
        return _Drawn(concluded=Concluded(failure=why), stale=stale)
    if not due:
        return _Drawn(concluded=Concluded(failure="open"), missing=1, stale=stale)
    (answer,) = due
    return _Drawn(concluded=_concluded(dataset, answer), stale=stale)


def _concluded(dataset: Dataset, answer: Answer) -> Concluded:
    if answer.chat is None:
        return Concluded(failure=answer.error or answer.skip or "open")
    parsed = reading.read_conclusion(dataset, answer.task, answer.chat)
    if isinstance(parsed, Conclusion):
        return Concluded(
            text=parsed.text, direction=parsed.direction, certainty=parsed.certainty
        )
    return Concluded(failure=parsed.reason)
