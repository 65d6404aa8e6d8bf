"""Which of a run's scorings a person means."""

from __future__ import annotations

from collections.abc import Sequence

from runner.errors import UsageError
from store.events import ScoringRecorded


def chosen(
    run_id: str, made: Sequence[ScoringRecorded], number: int | None
) -> ScoringRecorded:
    """The scoring of that number; without one, the newest.

    Raises:
        UsageError: there is none.
    """
    if not made:
        raise UsageError(
            f"Run {run_id} has no scoring; make one with: siftlog score {run_id}"
        )
    by_number = {each.number: each for each in made}
    if number is None:
        return made[-1]
    if number not in by_number:
        raise UsageError(
            f"Run {run_id} has no scoring {number}; its newest is {len(made)}."
        )
    return by_number[number]
