"""Replicates as one: who is included by the mean of the scores that there are."""

from __future__ import annotations

from collections.abc import Sequence

from jobs.metrics import mean
from jobs.review_benchmark.gathering.course import Course, Scored
from jobs.review_benchmark.rebuilt import Candidate, Outcome
from jobs.review_benchmark.settings import Settings

_NEAREST: tuple[Outcome, ...] = (
    "scored",
    "unparsed",
    "failed",
    "too_long",
    "no_text",
    "open",
)
"""What came of a candidate, by how near it is to a score."""


def candidates(courses: Sequence[Course], settings: Settings) -> tuple[Candidate, ...]:
    """The candidates of all replicates, by their best rank, then by id."""
    ranks: dict[int, int] = {}
    for course in courses:
        for rank, number in enumerate(course.candidates, start=1):
            ranks[number] = min(rank, ranks.get(number, rank))
    order = sorted(ranks, key=lambda number: (ranks[number], number))
    return tuple(
        _candidate(
            number,
            rank,
            [course.scored.get(number) for course in courses],
            settings,
        )
        for rank, number in enumerate(order, start=1)
    )


def _candidate(
    number: int, rank: int, scored: Sequence[Scored | None], settings: Settings
) -> Candidate:
    scores = tuple(None if own is None else own.score for own in scored)
    score = mean(scores)
    nearest = min(
        (own for own in scored if own is not None),
        key=lambda own: _NEAREST.index(own.outcome),
    )
    return Candidate(
        document=str(number),
        rank=rank,
        included=settings.includes(score),
        outcome=nearest.outcome,
        failure=nearest.failure,
        score=score,
        scores=scores,
        votes=tuple(own is not None and settings.includes(own.score) for own in scored),
        rationale=nearest.rationale,
    )
