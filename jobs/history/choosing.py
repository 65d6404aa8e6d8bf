"""What the newest run is held against: the last, the best or a named run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jobs.history.comparison import Comparison, with_best
from jobs.history.history import History
from jobs.history.reading import Remembered, rows
from runner.errors import UsageError

LAST, BEST = "last", "best"


def chosen(
    own: History, every: Sequence[Remembered], against: str, *, across: bool
) -> Mapping[str, Comparison | None]:
    """Each model of the newest run beside what is meant; None: nothing comparable.

    Args:
        own: what belongs to the newest run.
        every: all runs of the job, oldest first.
        against: `last`, `best`, the id of a run or its beginning.
        across: whether other data may have been searched.

    Raises:
        UsageError: the word means no run, several, or the newest one.
    """
    if against == LAST:
        return {line.row.model: line.previous for line in own.now}
    earlier = own.earlier if against == BEST else rows([_named(own, every, against)])
    return {
        line.row.model: with_best(line.row, earlier, across=across) for line in own.now
    }


def _named(own: History, every: Sequence[Remembered], name: str) -> Remembered:
    newest = own.newest.folder.run_id
    named = [run for run in every if run.folder.run_id == name] or [
        run for run in every if run.folder.run_id.startswith(name)
    ]
    if len(named) != 1:
        raise UsageError(
            f"--against {name} names {len(named)} of the scored runs: type the id of "
            f"one, or {LAST}, or {BEST}."
        )
    if named[0].folder.run_id == newest:
        raise UsageError(f"{newest} is the newest run itself; name an earlier one.")
    return named[0]


def why_nothing(own: History) -> str:
    """What stands in the way where a model of the newest run has nothing beside it."""
    if own.newest.milestone.partial:
        return "the run is unfinished (siftlog resume, then siftlog score)"
    if any(line.data_changed for line in own.lines):
        return "runs searched another database (--across-databases lets them in)"
    return "no other finished run of it asked for the same"
