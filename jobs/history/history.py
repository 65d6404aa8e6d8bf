"""The rows that belong together, oldest first, each beside the one before it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from jobs.history.comparison import Comparison, compared
from jobs.history.past import akin, with_previous
from jobs.history.reading import Remembered, rows
from jobs.history.row import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A row with what is said beside it."""

    row: Row
    previous: Comparison | None  #: beside the last comparable row
    data_changed: bool  #: other data were searched than by the newest run


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Everything that has to do with the newest run of a job."""

    runs: tuple[Remembered, ...]  #: oldest first; at least one
    lines: tuple[Line, ...]  #: a row each
    left_out: int  #: runs that ask for something else on every item

    @property
    def newest(self) -> Remembered:
        """The run that is looked at."""
        return self.runs[-1]

    @property
    def now(self) -> Sequence[Line]:
        """The lines of the newest run."""
        return [line for line in self.lines if line.row.run == self._run]

    @property
    def earlier(self) -> Sequence[Row]:
        """The rows of all runs before it."""
        return [line.row for line in self.lines if line.row.run != self._run]

    @property
    def series(self) -> Mapping[str, Mapping[str, float]]:
        """By model, the mean value in each run."""
        found: dict[str, dict[str, float]] = {}
        for line in self.lines:
            value = line.row.macro()
            if value is not None:
                found.setdefault(line.row.model, {})[line.row.run] = value
        return found

    @property
    def _run(self) -> str:
        return self.newest.folder.run_id


def history(every: Sequence[Remembered], *, across: bool) -> History:
    """What belongs to the newest of some runs.

    Args:
        every: runs of one job, oldest first; at least one.
        across: whether runs over other data are comparable too.
    """
    newest = every[-1].milestone
    runs = tuple(
        own for own in every if own is every[-1] or akin(newest, own.milestone)
    )
    return History(
        runs=runs,
        lines=tuple(_lines(rows(runs), newest.data, across=across)),
        left_out=len(every) - len(runs),
    )


def _lines(own: Sequence[Row], data: str, *, across: bool) -> Iterator[Line]:
    for row, before in with_previous(own, across=across):
        yield Line(
            row=row,
            previous=None if before is None else compared(row, before, across=across),
            data_changed=row.milestone.data != data,
        )
