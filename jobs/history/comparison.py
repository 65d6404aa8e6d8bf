"""Two rows on the items that both have: what fell, and whether that is an alert."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jobs.history.past import common, paired
from jobs.history.row import Row

NOISE = 1e-9
"""A fall of no more is one of rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A row beside an earlier one."""

    now: Row
    then: Row
    items: tuple[str, ...]  #: those on which they are comparable; at least one

    @property
    def delta(self) -> float | None:
        """What the mean value rose by, over the common items."""
        return self._delta(self.items)

    @property
    def spread(self) -> float:
        """How far replicates of one run lie apart, over the common items."""
        return self._spread(self.items)

    @property
    def failed(self) -> tuple[str, ...]:
        """The items that passed and do not any more."""
        now, then = self.now.standings, self.then.standings
        return tuple(
            item for item in self.items if then[item].passed and not now[item].passed
        )

    def alerts(self, max_drop: float) -> Iterator[str]:
        """A sentence for each alert.

        Where a run has replicates, a fall inside of their range is none.

        Args:
            max_drop: by how much the mean value may fall.
        """
        measure, item = self.now.milestone.measure, self.now.milestone.item
        drop = self._drop(self.items)
        if drop > max(max_drop, self.spread) + NOISE:
            yield (
                f"macro {measure} of {self.now.model} fell by {drop:.4f} since "
                f"{self.then.run}, where {max_drop:g} is the most."
            )
        for name in self.failed:
            if self._drop((name,)) > self._spread((name,)) + NOISE:
                yield (
                    f"the {item} {name} passed in {self.then.run} and fails with "
                    f"{self.now.model} in {self.now.run}."
                )

    def _drop(self, items: Sequence[str]) -> float:
        return -(self._delta(items) or 0.0)

    def _delta(self, items: Sequence[str]) -> float | None:
        now, then = self.now.macro(items), self.then.macro(items)
        return None if now is None or then is None else now - then

    def _spread(self, items: Sequence[str]) -> float:
        ranges = [0.0]
        for row in (self.now, self.then):
            tries = [value for value in row.tries(items) if value is not None]
            if tries:
                ranges.append(max(tries) - min(tries))
        return max(ranges)


def compared(now: Row, then: Row, *, across: bool) -> Comparison | None:
    """Two rows beside each other; None where they share no comparable item."""
    items = common(now, then, across=across)
    return Comparison(now=now, then=then, items=items) if items else None


def with_best(now: Row, earlier: Sequence[Row], *, across: bool) -> Comparison | None:
    """A row beside that which was best on the common items, by the mean value.

    Of equals it is that with most items in common, and then the last.

    Args:
        now: the row.
        earlier: rows of earlier runs, in order of time.
        across: whether other data may have been searched.
    """
    fit = tuple(row for row in earlier if common(now, row, across=across))
    made = (compared(now, row, across=across) for row in reversed(paired(now, fit)))
    return max(
        (each for each in made if each is not None),
        key=lambda each: (each.then.macro(each.items) or 0.0, len(each.items)),
        default=None,
    )
