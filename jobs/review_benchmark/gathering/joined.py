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


def candidates(
    courses: Sequence[Course], replicates: int, settings: Settings
) -> tuple[Candidate, ...]:
    """The candidates of all replicates, by their best rank, then by id.

    Args:
        courses: of the replicates that have begun.
        replicates: how many there are to be.
        settings: of the run.
    """
    begun = {course.replicate: course.scored for course in courses}
    scored = [begun.get(number, {}) for number in range(1, replicates + 1)]
    ranks: dict[int, int] = {}
    for course in courses:
        for rank, number in enumerate(course.candidates, start=1):
            ranks[number] = min(rank, ranks.get(number, rank))
    order = sorted(ranks, key=lambda number: (ranks[number], number))
    return tuple(
        _candidate(
            number,
            rank,
            [own.get(number) for own in scored],
            settings,
        )
        for rank, number in enumerate(order, start=1)
    )


def _candidate(
    number: int, rank: int, scored: Sequence[Scored | None], settings: Settings
) -> Candidate:
    score = mean(None if own is None else own.score for own in scored)
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
        votes=tuple(own is not None and settings.includes(own.score) for own in scored),
        rationale=nearest.rationale,
    )
