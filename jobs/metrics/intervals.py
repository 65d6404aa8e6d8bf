"""Intervals: Wilson's for one proportion, and the bootstrap over clusters.

Rows of one document are not independent, so what is drawn with replacement is always
the document, the cluster. One `Resamples` serves all statistics of a table and both
sides of a difference: each replicate says how often every cluster was drawn, and a
statistic is a ratio of sums over clusters, or the difference of two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from jobs.metrics.exact import ExactColumn, Floats

Counts: TypeAlias = npt.NDArray[np.uint8]

#: No matrix of replicates x clusters takes more bytes than this.
MATRIX_BYTES = 64 << 20

#: With fewer clusters than this an interval is given with a warning: so few say little
#: of others.
FEW_CLUSTERS = 10

#: An interval is flagged if more replicates than this share had no value.
DROPPED_SHARE = 0.05

# Turned into doubles at a time; larger blocks fall out of the processor's cache.
_BLOCK_BYTES = 4 << 20

# With one cluster every replicate is the sample itself.
_MIN_CLUSTERS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """The ends of an interval; None where it is undefined."""

    lo: float | None
    hi: float | None
    b: int = 0  #: bootstrap replicates asked for; 0: not a bootstrap interval
    b_used: int = 0  #: of them, those in which the statistic had a value
    flagged: bool = False  #: more than `DROPPED_SHARE` of them had none


@dataclass(frozen=True, slots=True)
class Ratio:
    """A sum over clusters divided by another, one number of each per cluster."""

    numerators: Sequence[float] | Floats
    denominators: Sequence[float] | Floats


@dataclass(frozen=True, slots=True)
class Difference:
    """*left* minus *right* on the same replicates."""

    left: Ratio
    right: Ratio


Statistic: TypeAlias = Ratio | Difference


def mean_of(values: Sequence[float | None]) -> Ratio:
    """The mean over the clusters whose value is not None."""
    return Ratio(
        [0.0 if value is None else value for value in values],
        [value is not None for value in values],
    )


def round12(value: float) -> float:
    """*value* at the 12 significant digits with which interval ends are stored."""
    return float(f"{value:.12g}") + 0.0  # turns -0.0 into 0.0


def wilson(k: int, n: int, level: float = 0.95) -> Interval:
    """Wilson's score interval for *k* of *n*, without continuity correction.

    It assumes independent rows. Undefined where *n* is 0.

    Raises:
        ValueError: unless 0 <= k <= n and 0 < level < 1.
    """
    if not 0 <= k <= n:
        raise ValueError(f"k must lie between 0 and n, not at {k} of {n}.")
    if n == 0:
        return Interval(lo=None, hi=None)
    z = NormalDist().inv_cdf(0.5 + level / 2)
    share, scale = k / n, 1 + z * z / n
    centre = (share + z * z / (2 * n)) / scale
    half = z / scale * math.sqrt(share * (1 - share) / n + (z / (2 * n)) ** 2)
    return Interval(
        lo=0.0 if k == 0 else max(0.0, centre - half),
        hi=1.0 if k == n else min(1.0, centre + half),
    )


class Resamples:
    """*b* draws of all clusters with replacement, the same for every statistic.

    One generator (`numpy.random.default_rng(seed)`) makes one draw per replicate,
    `integers(0, m, m)`, over the clusters in ascending order of their keys as text.
    Statistics give their numbers in the order of *keys*, whatever that is.

    Ends are percentiles, linear between neighbours, at 12 significant digits. Fewer
    than two clusters, or *b* = 0, give an undefined interval.
    """

    def __init__(
        self,
        keys: Sequence[str],
        b: int = 2000,
        seed: int = 20260118,
        *,
        level: float = 0.95,
        cluster: str = "cluster",
    ) -> None:
        self._order = sorted(range(len(keys)), key=keys.__getitem__)
        for left, right in zip(self._order, self._order[1:], strict=False):
            if keys[left] == keys[right]:
                raise ValueError(f"keys names {keys[right]!r} twice, at index {right}.")
        self._seed = seed
        self._level = level
        self._asked = b
        self._b = b if len(keys) >= _MIN_CLUSTERS else 0
        self._cluster = cluster
        is_small = self._b * len(keys) <= MATRIX_BYTES
        self._kept = tuple(self._drawn()) if is_small else None

    @classmethod
    def of_rows(
        cls, n: int, b: int = 2000, seed: int = 20260118, *, level: float = 0.95
    ) -> Resamples:
        """Draws of single rows in file order, as if they were independent."""
        width = len(str(n))
        keys = [f"{row:0{width}}" for row in range(n)]
        return cls(keys, b, seed, level=level, cluster="row")

    @property
    def definition(self) -> str:
        """How the intervals were made, for a metric's definition."""
        return (
            f"percentile bootstrap by {self._cluster}, B={self._asked}, "
            f"seed={self._seed}, level={self._level}"
        )

    def mean(self, values: Sequence[float | None]) -> Interval:
        """The interval of the mean over the clusters whose value is not None."""
        return self.intervals([mean_of(values)])[0]

    def ratio(
        self, numerators: Sequence[float], denominators: Sequence[float]
    ) -> Interval:
        """The interval of a sum over clusters divided by another."""
        return self.intervals([Ratio(numerators, denominators)])[0]

    def difference(
        self, left: Sequence[float | None], right: Sequence[float | None]
    ) -> Interval:
        """The interval of *left*'s mean minus *right*'s, on the same replicates."""
        return self.intervals([Difference(mean_of(left), mean_of(right))])[0]

    def intervals(self, statistics: Sequence[Statistic]) -> tuple[Interval, ...]:
        """The intervals of many statistics from one pass over the replicates.

        Raises:
            ValueError: where a column is not as long as the keys, or holds a number
                that is not finite.
        """
        columns = _Columns(self._order)
        evaluate = [columns.compiled(statistic) for statistic in statistics]
        values = np.empty((len(evaluate), self._b))
        start = 0
        for block in self.multiplicities():
            sums = columns.sums(block.astype(np.float64))
            end = start + len(block)
            for row, value_of in zip(values, evaluate, strict=True):
                row[start:end] = value_of(sums)
            start = end
        return tuple(map(self._interval, values))

    def interval_of(self, value_of: Callable[[Counts], Floats]) -> Interval:
        """The interval of a statistic that is no ratio of sums.

        Args:
            value_of: its value under each row of a block of `multiplicities`; NaN
                where it has none.
        """
        return self.intervals_of([value_of])[0]

    def intervals_of(
        self, values_of: Sequence[Callable[[Counts], Floats]]
    ) -> tuple[Interval, ...]:
        """The intervals of many such statistics from one pass over the replicates."""
        values = np.empty((len(values_of), self._b))
        start = 0
        for block in self.multiplicities():
            end = start + len(block)
            for row, value_of in zip(values, values_of, strict=True):
                row[start:end] = value_of(block)
            start = end
        return tuple(map(self._interval, values))

    def band_of(
        self, value_of: Callable[[Counts], Floats], width: int
    ) -> tuple[Interval, ...]:
        """The intervals of *width* numbers that one statistic yields side by side."""
        values = [value_of(block) for block in self.multiplicities()]
        columns = np.concatenate([np.empty((0, width)), *values])
        return tuple(map(self._interval, columns.T))

    def multiplicities(self) -> Iterator[Counts]:
        """How often each cluster was drawn, in blocks of replicates x clusters.

        Clusters stand in ascending order of their keys. For statistics that are no
        ratio of sums.
        """
        yield from self._drawn() if self._kept is None else self._kept

    def _drawn(self) -> Iterator[Counts]:
        rng = np.random.default_rng(self._seed)
        m = len(self._order)
        rows = max(1, _BLOCK_BYTES // (8 * m)) if m else 1
        for start in range(0, self._b, rows):
            # A byte is enough: that one of more than 255 clusters is drawn more often
            # than 255 times has a chance below 1e-500.
            block = np.empty((min(rows, self._b - start), m), dtype=np.uint8)
            for row in block:
                row[:] = np.bincount(rng.integers(0, m, m), minlength=m)
            yield block

    def _interval(self, values: Floats) -> Interval:
        used = values[~np.isnan(values)]
        flagged = len(used) < (1 - DROPPED_SHARE) * len(values)
        lo = hi = None
        if len(used):
            tail = 50 * (1 - self._level)
            lo, hi = (round12(end) for end in np.percentile(used, (tail, 100 - tail)))
        return Interval(
            lo=lo, hi=hi, b=self._asked, b_used=len(used), flagged=bool(flagged)
        )


class _Columns:
    """The distinct columns of many statistics, each summed once a block.

    The means of a table share their denominators, so columns are told apart by being
    the same object.
    """

    def __init__(self, order: Sequence[int]) -> None:
        self._order = np.asarray(order, dtype=np.intp)
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
        return lambda sums: _quotients(sums[above], sums[below])

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


def _quotients(above: Floats, below: Floats) -> Floats:
    undefined = np.full_like(above, np.nan)
    return np.divide(above, below, out=undefined, where=below != 0)
