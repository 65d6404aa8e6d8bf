"""Which scoring of a run is meant."""

from __future__ import annotations

from collections.abc import Sequence

from runner.errors import UsageError
from store.events import ScoringRecorded


def chosen(
    run_id: str, made: Sequence[ScoringRecorded], number: int | None
) -> ScoringRecorded:
    """The scoring of that number, or the newest.

    Args:
        run_id: the run, for sentences.
        made: its scorings, oldest first.
        number: of the one that is meant; None: the newest.

    Raises:
        UsageError: there is none, or none of that number.
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
