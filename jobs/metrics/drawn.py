"""What is drawn again: ratios of sums over clusters, their differences, and curves.

A statistic knows its range and the clusters that it rests on, so that an interval can
be made where drawing again says too little.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from jobs.metrics.adjusted import ANY, SHARE, SIGNED, Range, Support
from jobs.metrics.aggregate import ratio
from jobs.metrics.columns import quotient
from jobs.metrics.exact import ExactColumn, Floats

Counts: TypeAlias = npt.NDArray[np.uint8]
"""How often each cluster was drawn: replicates x clusters."""

Order: TypeAlias = npt.NDArray[np.intp]
"""Places of the clusters, by their keys ascending."""

_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Ratio:
    """A sum over clusters divided by another, one number of each per cluster."""

    numerators: Sequence[float] | Floats
    denominators: Sequence[float] | Floats
    range: Range = SHARE  #: the values that the ratio can take

    @property
    def support(self) -> Support:
        """The clusters with a denominator."""
        return Support.of(self.denominators)

    def left_out(self, order: Order) -> tuple[float | None, Floats]:
        """The ratio, and what it is without each cluster; NaN where it has none."""
        above, below = (
            np.asarray(column, dtype=np.float64)[order]
            for column in (self.numerators, self.denominators)
        )
        a, b = math.fsum(above), math.fsum(below)
        rest = quotient(a - above, b - below)
        # what is left of a sum may be rounding alone
        rest[np.abs(b - below) <= _ROUNDING * abs(b)] = np.nan
        return ratio(a, b), rest


@dataclass(frozen=True, slots=True)
class Difference:
    """*left* minus *right* on the same replicates."""

    left: Ratio
    right: Ratio

    @property
    def range(self) -> Range:
        """-1 to 1 for two shares."""
        sides = self.left.range, self.right.range
        return SIGNED if sides == (SHARE, SHARE) else ANY

    @property
    def support(self) -> Support:
        """What both sides rest on."""
        return self.left.support.both(self.right.support)

    def left_out(self, order: Order) -> tuple[float | None, Floats]:
        """The difference, and what it is without each cluster."""
        (left, ours), (right, theirs) = (
            side.left_out(order) for side in (self.left, self.right)
        )
        return None if left is None or right is None else left - right, ours - theirs


Statistic: TypeAlias = Ratio | Difference


@dataclass(frozen=True, slots=True)
class Redrawn:
    """A statistic that is no ratio of sums, such as an area under a curve."""

    value_of: Callable[[Counts], Floats]
    """Its value under each row of a block of multiplicities; NaN where it has none."""
    support: Support
    range: Range = SHARE

    def __call__(self, block: Counts) -> Floats:
        """The value under each row of *block*."""
        return self.value_of(block)

    def minus(self, other: Redrawn) -> Redrawn:
        """The difference of two on the same replicates."""
        return Redrawn(
            lambda counts: self.value_of(counts) - other.value_of(counts),
            self.support.both(other.support),
            SIGNED if (self.range, other.range) == (SHARE, SHARE) else ANY,
        )


def mean_of(values: Sequence[float | None], within: Range = SHARE) -> Ratio:
    """The mean over the clusters whose value is not None."""
    return Ratio(
        [0.0 if value is None else value for value in values],
        [value is not None for value in values],
        within,
    )


class Columns:
    """The distinct columns of many statistics, each summed once a block.

    The means of a table share their denominators, so columns are told apart by being
    the same object.
    """

    def __init__(self, order: Order) -> None:
        self._order = order
        self._exact: dict[int, ExactColumn] = {}
        self._held: list[Sequence[float] | Floats] = []  # so that no id is used twice

    def sums(self, counts: Floats) -> dict[int, Floats]:
        """Each column's sum under each row of *counts*."""
        return {key: column.sums(counts) for key, column in self._exact.items()}

    def compiled(self, statistic: Statistic) -> Callable[[dict[int, Floats]], Floats]:
        """The statistic's values from the sums; NaN where it has none."""
        if isinstance(statistic, Difference):
            left, right = map(self.compiled, (statistic.left, statistic.right))
            return lambda sums: left(sums) - right(sums)
        above = self._added("numerators", statistic.numerators)
        below = self._added("denominators", statistic.denominators)
        return lambda sums: quotient(sums[above], sums[below])

    def _added(self, name: str, values: Sequence[float] | Floats) -> int:
        key = id(values)
        if key not in self._exact:
            self._exact[key] = self._exact_column(name, values)
            self._held.append(values)
        return key

    def _exact_column(self, name: str, values: Sequence[float] | Floats) -> ExactColumn:
        m = len(self._order)
        column = np.asarray(values, dtype=np.float64)
        if len(column) != m:
            raise ValueError(f"{name} has {len(column)} values for {m} keys.")
        if (wrong := ~np.isfinite(column)).any():
            index = int(np.argmax(wrong))
            raise ValueError(f"{name} holds {column[index]} at index {index}.")
        return ExactColumn(column[self._order], total_count=m)
