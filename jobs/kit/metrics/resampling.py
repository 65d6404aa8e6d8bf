"""Intervals over clusters: the percentile bootstrap, adjusted where that is too narrow.

Rows of one document are not independent, so what is drawn with replacement is always
the document, the cluster. One `Resamples` serves all statistics of a table and both
sides of a difference: each replicate says how often every cluster was drawn, and a
statistic is a ratio of sums over clusters, or the difference of two.

A percentile interval of few clusters, or of a rate near 0 or 1, covers less than it
says; one of clusters that all agree is a point. `intervals` has the rules for those.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Literal, TypeAlias
from weakref import WeakValueDictionary

import numpy as np

from jobs.kit.metrics.cluster_statistics import (
    ANY,
    SHARE,
    Counts,
    Order,
    Range,
    Ratio,
    ResampledDifference,
    ResampledStatistic,
    Statistic,
    mean_of,
)
from jobs.kit.metrics.columns import ExactColumn, Floats, as_value, quotient
from jobs.kit.metrics.intervals import (
    ClusterSample,
    Interval,
    Rule,
    interval_ends,
    jackknife,
    round12,
)

Form: TypeAlias = Literal["adjusted", "percentile"]
"""Kind of interval: `adjusted` to the sample, or always `percentile`."""


#: No matrix of replicates x clusters takes more bytes than this.
MATRIX_BYTES = 64 << 20


#: With fewer clusters than this an interval is given with a warning: so few say little
#: of others.
FEW_CLUSTERS = 10


#: An interval is flagged if more replicates than this share had no value.
DROPPED_SHARE = 0.05


#: Effective clusters from which a percentile interval covers its level, unless
#: hits or misses are fewer than `COMMON`.
MANY_CLUSTERS = 200


#: Effective hits and misses from which the percentiles of many clusters are kept.
COMMON = 30


# Where a statistic is no ratio, leaving out more clusters one by one takes too long.
_MOST_LEFT_OUT = 500


# Turned into doubles at a time; larger blocks fall out of the processor's cache.
_BLOCK_BYTES = 4 << 20


# With one cluster every replicate is the sample itself.
_MIN_CLUSTERS = 2


class Resamples:
    """*b* draws of all clusters with replacement, the same for every statistic.

    One generator (`numpy.random.default_rng(seed)`) makes one draw per replicate,
    `integers(0, m, m)`, over the clusters in ascending order of their keys as text.
    Statistics give their numbers in the order of *keys*, whatever that is.

    With *form* "percentile" ends are percentiles, linear between neighbours, and
    undefined with fewer than two clusters. With "adjusted" they are percentiles where
    many clusters and common hits and misses allow it, and come from `interval_ends`
    elsewhere. Both are stored at 12 significant digits; *b* = 0 asks for none.
    """

    def __init__(
        self,
        keys: Sequence[str],
        b: int = 2000,
        seed: int = 20260118,
        *,
        level: float = 0.95,
        cluster: str = "cluster",
        form: Form = "adjusted",
    ) -> None:
        self._order = np.array(
            sorted(range(len(keys)), key=keys.__getitem__), dtype=np.intp
        )
        for left, right in itertools.pairwise(self._order.tolist()):
            if keys[left] == keys[right]:
                raise ValueError(f"keys names {keys[right]!r} twice, at index {right}.")
        self._seed = seed
        self._level = level
        self._requested = b
        self._b = b if len(keys) >= _MIN_CLUSTERS else 0
        self._cluster = cluster
        self._form = form

    @classmethod
    def of_rows(
        cls,
        n: int,
        b: int = 2000,
        seed: int = 20260118,
        *,
        level: float = 0.95,
        form: Form = "adjusted",
    ) -> Resamples:
        """Draws of single rows in file order, as if they were independent."""
        width = len(str(n))
        keys = [f"{row:0{width}}" for row in range(n)]
        return cls(keys, b, seed, level=level, cluster="row", form=form)

    def mean(self, values: Sequence[float | None], within: Range = SHARE) -> Interval:
        """The interval of the mean over the clusters whose value is not None."""
        return self.intervals([mean_of(values, within)])[0]

    def ratio(
        self, numerators: Sequence[float], denominators: Sequence[float]
    ) -> Interval:
        """The interval of a sum over clusters divided by another."""
        return self.intervals([Ratio(numerators, denominators)])[0]

    def difference(
        self, left: Sequence[float | None], right: Sequence[float | None]
    ) -> Interval:
        """The interval of *left*'s mean minus *right*'s, on the same replicates."""
        return self.intervals([ResampledDifference(mean_of(left), mean_of(right))])[0]

    def intervals(
        self, statistics: Sequence[Statistic | ResampledStatistic]
    ) -> tuple[Interval, ...]:
        """The intervals of many statistics, from one pass over the replicates.

        Raises:
            ValueError: where a column is not as long as the keys, or holds a number
                that is not finite.
        """
        columns = SummedColumns(self._order)
        adjusts = self._form == "adjusted" and bool(self._requested)
        leaves_out = adjusts and len(self._order) <= _MOST_LEFT_OUT
        is_resampled = [
            statistic.support.effective >= MANY_CLUSTERS
            or not (
                leaves_out if isinstance(statistic, ResampledStatistic) else adjusts
            )
            for statistic in statistics
        ]
        evaluate = [columns.compiled(statistic) for statistic in statistics]
        values = np.empty((sum(is_resampled), self._b))
        start = 0
        for block in self.multiplicities() if any(is_resampled) else ():
            sums = columns.sums(block)
            end = start + len(block)
            resampled = itertools.compress(evaluate, is_resampled)
            for row, values_of in zip(values, resampled, strict=True):
                row[start:end] = values_of(block, sums)
            start = end
        rows = iter(values)
        return tuple(
            self._interval(statistic, next(rows) if has_values else None)
            for statistic, has_values in zip(statistics, is_resampled, strict=True)
        )

    def interval_of(self, statistic: Statistic | ResampledStatistic) -> Interval:
        """The interval of one statistic."""
        return self.intervals([statistic])[0]

    def band_of(
        self, value_of: Callable[[Counts], Floats], width: int
    ) -> tuple[Interval, ...]:
        """The percentiles of *width* numbers that one statistic yields side by side.

        For the band around a curve in a picture.
        """
        values = [value_of(block) for block in self.multiplicities()]
        columns = np.concatenate([np.empty((0, width)), *values])
        return tuple(map(self._percentiles, columns.T))

    def multiplicities(self) -> Iterator[Counts]:
        """Yield how often each cluster was drawn, in blocks of replicates x clusters.

        Clusters stand in ascending order of their keys. For statistics that are no
        ratio of sums.
        """
        if self._b * len(self._order) <= MATRIX_BYTES:
            yield from self._draws.blocks
        else:
            yield from self._draws.drawn()

    @cached_property
    def _draws(self) -> _Draws:
        return _draws_of(self._seed, self._b, len(self._order))

    def _interval(
        self, statistic: Statistic | ResampledStatistic, values: Floats | None
    ) -> Interval:
        if values is not None and not self._adjusts(statistic, values):
            return self._percentiles(values)
        if not isinstance(statistic, ResampledStatistic):
            value, without = statistic.left_out(self._order)
            return self._adjusted(value, statistic, without)
        m = len(self._order)
        value = _whole(statistic, m)
        if values is not None:
            return self._adjusted(value, statistic, spread=_spread(values))
        block = np.ones((m, m), dtype=np.uint8)
        np.fill_diagonal(block, 0)
        without = statistic.value_of(block) if m > 1 else np.full(m, np.nan)
        return self._adjusted(value, statistic, without)

    def _adjusts(
        self, statistic: Statistic | ResampledStatistic, values: Floats
    ) -> bool:
        """Whether the percentiles of these replicates are to be replaced."""
        if self._form == "percentile" or not self._requested:
            return False
        middle, se = _spread(values)
        if middle is None:
            return False
        sample = ClusterSample(
            value=middle,
            se=se,
            df=1.0,
            support=statistic.support,
            range=_within(middle, statistic.range),
        )
        if not sample.varies or statistic.support.effective < MANY_CLUSTERS:
            return True
        return sample.range.is_bounded and sample.rarer < COMMON

    def _adjusted(
        self,
        value: float | None,
        statistic: Statistic | ResampledStatistic,
        without: Floats | None = None,
        spread: tuple[float | None, float] = (None, 0.0),
    ) -> Interval:
        """The interval from values without each cluster, or from the replicates'."""
        by = f"interval by {self._cluster}"
        if value is None:
            return Interval(lo=None, hi=None, how=f"{by}: none, no value")
        support, within = statistic.support, _within(value, statistic.range)
        if without is not None:
            sample = jackknife(value, without, support, within)
        else:
            df = support.effective - 1
            sample = ClusterSample(
                value=value, se=spread[1], df=df, support=support, range=within
            )
        ends = interval_ends(sample, self._level)
        if ends is None:
            return Interval(lo=None, hi=None, how=f"{by}: none, nothing varies")
        return Interval(
            lo=round12(ends.lo),
            hi=round12(ends.hi),
            how=f"{by}: {_RULES[ends.rule](sample)}, level={self._level}",
        )

    def _percentiles(self, values: Floats) -> Interval:
        used = values[~np.isnan(values)]
        flagged = len(used) < (1 - DROPPED_SHARE) * len(values)
        lo = hi = None
        if len(used):
            tail = 50 * (1 - self._level)
            lo, hi = (round12(end) for end in np.percentile(used, (tail, 100 - tail)))
        return Interval(
            lo=lo,
            hi=hi,
            b=self._requested,
            b_used=len(used),
            flagged=bool(flagged),
            how=f"interval by {self._cluster}: percentile bootstrap, "
            f"B={self._requested}, seed={self._seed}, level={self._level}, "
            f"B_used={len(used)}",
        )


class _Draws:
    """Multiplicities of *m* clusters; they depend on nothing but these numbers."""

    def __init__(self, seed: int, b: int, m: int) -> None:
        self._seed = seed
        self._b = b
        self._m = m

    @cached_property
    def blocks(self) -> tuple[Counts, ...]:
        """All of them, drawn once."""
        return tuple(self.drawn())

    def drawn(self) -> Iterator[Counts]:
        """Draws them; each block is forgotten when the next one is made."""
        rng = np.random.default_rng(self._seed)
        m = self._m
        rows = max(1, _BLOCK_BYTES // (8 * m)) if m else 1
        for start in range(0, self._b, rows):
            # A byte is enough: that one of more than 255 clusters is drawn more often
            # than 255 times has a chance below 1e-500.
            block = np.empty((min(rows, self._b - start), m), dtype=np.uint8)
            for row in block:
                row[:] = np.bincount(rng.integers(0, m, m), minlength=m)
            yield block


_IN_USE: WeakValueDictionary[tuple[int, int, int], _Draws] = WeakValueDictionary()
"""The draws that some resamples hold: a run's table and its comparisons share them."""


def _draws_of(seed: int, b: int, m: int) -> _Draws:
    key = seed, b, m
    draws = _IN_USE.get(key)
    if draws is None:
        draws = _IN_USE[key] = _Draws(seed, b, m)
    return draws


_RULES: Mapping[Rule, Callable[[ClusterSample], str]] = {
    "exact": lambda sample: (
        f"exact bound of {sample.support.independent} that do not vary"
        if not sample.varies
        else "exact bound of 1"
    ),
    "effective": lambda sample: (
        f"Wilson at the effective size, t with {sample.df:.3g} df"
    ),
    "rare": lambda sample: (
        f"Clopper-Pearson at the effective size, t with {sample.df:.3g} df"
    ),
    "t": lambda sample: f"t with {sample.df:.3g} df",
}
"""Words for each rule of `intervals`."""


def _within(value: float, stated: Range) -> Range:
    """The stated range, unless the value shows that it is another."""
    slack = 1e-9
    holds = stated.lowest - slack <= value <= stated.highest + slack
    return stated if holds else ANY


def _whole(statistic: ResampledStatistic, m: int) -> float | None:
    """The statistic of the sample itself."""
    return as_value(statistic.value_of(np.ones((1, m), dtype=np.uint8))[0])


def _spread(values: Floats) -> tuple[float | None, float]:
    """The middle of the replicates and their standard deviation."""
    used = values[~np.isnan(values)]
    if not len(used):
        return None, 0.0
    middle = math.fsum(used) / len(used)
    return middle, math.sqrt(math.fsum((used - middle) ** 2) / len(used))


class SummedColumns:
    """The distinct columns of many statistics, each summed once a block.

    The means of a table share their denominators, so columns are distinguished by being
    the same object.
    """

    def __init__(self, order: Order) -> None:
        self._order = order
        self._exact: dict[int, ExactColumn] = {}
        self._referenced: list[
            Sequence[float] | Floats
        ] = []  # so that no id is used twice

    def sums(self, block: Counts) -> dict[int, Floats]:
        """Each column's sum under each row of *block*."""
        counts = block.astype(np.float64) if self._exact else np.empty(0)
        return {key: column.sums(counts) for key, column in self._exact.items()}

    def compiled(
        self, statistic: Statistic | ResampledStatistic
    ) -> Callable[[Counts, dict[int, Floats]], Floats]:
        """The statistic's values from a block and its sums; NaN where it has none."""
        if isinstance(statistic, ResampledStatistic):
            return lambda block, _: statistic.value_of(block)
        if isinstance(statistic, ResampledDifference):
            left, right = map(self.compiled, (statistic.left, statistic.right))
            return lambda block, sums: left(block, sums) - right(block, sums)
        above = self._added("numerators", statistic.numerators)
        below = self._added("denominators", statistic.denominators)
        return lambda _, sums: quotient(sums[above], sums[below])

    def _added(self, name: str, values: Sequence[float] | Floats) -> int:
        key = id(values)
        if key not in self._exact:
            self._exact[key] = self._exact_column(name, values)
            self._referenced.append(values)
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
