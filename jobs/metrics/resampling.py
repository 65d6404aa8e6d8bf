"""Statistics resampled by cluster, and interval ends for few clusters.

A statistic knows its range and the clusters that it rests on, so that an interval can
be made where drawing again says too little.

A percentile bootstrap is too narrow with few clusters, and a point where all clusters
agree. The rules here replace it there (`design/intervals.md` has their coverage):

exact      Nothing varies between the clusters. By Markov's inequality the mean of k
           independent values of at least v, in a range from 0, is at least
           v * (alpha / 2) ** (1 / k). For k of k this is Clopper and Pearson's bound.
effective  Wilson's score interval at the effective size n = x (1 - x) / se**2, with
           the t quantile of the clusters instead of the normal one.
rare       As before, but with fewer than 5 effective hits or misses the ends reach at
           least to Clopper and Pearson's at that size (Korn and Graubard, 1998).
t          Value and standard error of a number without a range, such as a mean length.

Every statistic has a range; it is brought to 0..1 first, a difference of rates from
-1..1. The clusters are taken as independent, and as alike in what they may hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from jobs.metrics.columns import ExactColumn, Floats, quotient, ratio

Rule: TypeAlias = Literal["exact", "effective", "rare", "t"]

RARE = 5.0
"""Effective hits or misses below which the ends reach to the exact ones."""

UNSEEN = 0.25
"""The weight of a cluster that nobody has seen, beside each of those at hand.

A rate that is nearly the same in a few clusters may be all wrong in the next. The
variance between clusters counts a quarter of a cluster more, which varies as far as
the range allows.
"""

_ROUNDING_SHARE = 1e-9
"""A standard error that is rounding, as a share of the range."""

_MOST_QUANTILE = 1e6
"""A larger t quantile gives the whole range too, without an overflow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """The values that a statistic can take."""

    lowest: float
    highest: float

    @property
    def is_bounded(self) -> bool:
        """Whether both ends are finite."""
        return math.isfinite(self.lowest) and math.isfinite(self.highest)

    @property
    def width(self) -> float:
        """From end to end."""
        return self.highest - self.lowest

    def cut(self, value: float) -> float:
        """*value*, or the nearest value of the range."""
        return min(self.highest, max(self.lowest, value))


SHARE = Range(lowest=0.0, highest=1.0)
PER_THOUSAND = Range(lowest=0.0, highest=1000.0)
SIGNED = Range(lowest=-1.0, highest=1.0)
"""Of correlations, and of differences of shares."""
ANY = Range(lowest=-math.inf, highest=math.inf)
NOT_NEGATIVE = Range(lowest=0.0, highest=math.inf)


@dataclass(frozen=True, slots=True, kw_only=True)
class Support:
    """The clusters that a statistic rests on."""

    effective: float
    """Kish's number, the square of the sum of weights by the sum of their squares: one
    paper with nearly all predictions counts as little more than one cluster."""
    independent: int  #: values that bound it where none varies

    @classmethod
    def of(cls, weights: Floats | Sequence[float]) -> Support:
        """Of a mean or a ratio, from what each cluster adds to the denominator."""
        column = np.abs(np.asarray(weights, dtype=np.float64))
        return cls(effective=_kish(column), independent=int(np.count_nonzero(column)))

    @classmethod
    def of_classes(cls, positives: Floats, negatives: Floats) -> Support:
        """Of a statistic of two classes, such as an area under a ROC curve.

        A pair of clusters, one with a positive and one with a negative, gives one
        independent comparison; no cluster is in two pairs.
        """
        has = positives > 0, negatives > 0
        return cls(
            effective=min(_kish(positives), _kish(negatives)),
            independent=min(
                int(has[0].sum()), int(has[1].sum()), int((has[0] | has[1]).sum()) // 2
            ),
        )

    def both(self, other: Support) -> Support:
        """Of a difference: what both sides rest on at least."""
        return Support(
            effective=min(self.effective, other.effective),
            independent=min(self.independent, other.independent),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSample:
    """A statistic of some clusters, and how far it varies between them."""

    value: float
    se: float  #: standard error that respects the clusters
    df: float  #: degrees of freedom of the standard error
    support: Support
    range: Range

    @property
    def varies(self) -> bool:
        """Whether clusters differ at all."""
        scale = self.range.width if self.range.is_bounded else max(1.0, abs(self.value))
        return self.se > _ROUNDING_SHARE * scale

    @property
    def rarer(self) -> float:
        """Effective number of hits or of misses, whichever is smaller."""
        x = self.share
        return x * (1 - x) / (self.se / self.range.width) ** 2 * min(x, 1 - x)

    @property
    def share(self) -> float:
        """The value as a share of its range."""
        return (self.range.cut(self.value) - self.range.lowest) / self.range.width


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalEnds:
    """The ends of an interval, and the rule that made them."""

    lo: float
    hi: float
    rule: Rule


def interval_ends(sample: ClusterSample, level: float) -> IntervalEnds | None:
    """The interval of a statistic; None where nothing bounds it."""
    bounded = sample.range.is_bounded
    if not sample.varies or sample.df <= 0 or (bounded and not sample.rarer):
        return _exact(sample, level) if bounded else None
    if not bounded:
        half = _quantile(sample.df, level) * sample.se
        lo, hi = sample.value - half, sample.value + half
        return IntervalEnds(lo=sample.range.cut(lo), hi=sample.range.cut(hi), rule="t")
    return _effective(sample, level)


def clopper_pearson(k: float, n: float, level: float = 0.95) -> tuple[float, float]:
    """The exact interval of *k* of *n*; both may be effective numbers."""
    from scipy.special import betaincinv  # noqa: PLC0415 - slow to load

    tail = (1 - level) / 2
    lo = 0.0 if k <= 0 else float(betaincinv(k, n - k + 1, tail))
    hi = 1.0 if k >= n else float(betaincinv(k + 1, n - k, 1 - tail))
    return lo, hi


def jackknife(
    value: float, without: Floats, support: Support, within: Range
) -> ClusterSample:
    """How far a statistic varies, from its value without each cluster in turn.

    Degrees of freedom are Satterthwaite's, from how unevenly clusters add to the
    variance: a few that hold all misses tell little of how far others vary.
    """
    defined = without[~np.isnan(without)]
    m = len(defined)
    squares = (defined - value) ** 2
    total = math.fsum(squares)
    apart = math.fsum(squares**2) - total**2 / m if m else 0.0
    df = max(0.0, support.effective - 1)
    if apart > 0 and total > 0:
        df = min(df, 2 * total**2 / apart)
    se = math.sqrt(total * (m - 1) / m) if m else 0.0
    return ClusterSample(value=value, se=se, df=df, support=support, range=within)


def _exact(sample: ClusterSample, level: float) -> IntervalEnds:
    within, value = sample.range, sample.value
    k = sample.support.independent if not sample.varies else 1
    factor = ((1 - level) / 2) ** (1 / k) if k else 0.0
    return IntervalEnds(
        lo=within.lowest + (value - within.lowest) * factor,
        hi=within.highest - (within.highest - value) * factor,
        rule="exact",
    )


def _effective(sample: ClusterSample, level: float) -> IntervalEnds:
    within, x = sample.range, sample.share
    m = sample.support.effective
    variance = (sample.se / within.width) ** 2
    if within.lowest == 0:
        variance = (m * variance + UNSEEN * x * (1 - x) / m) / (m + UNSEEN)
    t = _quantile(sample.df, level)
    n = x * (1 - x) / variance
    lo, hi = _wilson(x, n, t)
    size = n * (NormalDist().inv_cdf(0.5 + level / 2) / t) ** 2
    rule: Rule = "effective"
    if size * min(x, 1 - x) < RARE:
        exact = clopper_pearson(x * size, size, level)
        lo, hi, rule = min(lo, exact[0]), max(hi, exact[1]), "rare"
    return IntervalEnds(
        lo=within.lowest + within.width * lo,
        hi=within.lowest + within.width * hi,
        rule=rule,
    )


def _wilson(x: float, n: float, t: float) -> tuple[float, float]:
    """Wilson's interval of a share of effective size, with any quantile."""
    scale = n + t * t
    centre = (n * x + t * t / 2) / scale
    half = t / scale * math.sqrt(n * x * (1 - x) + t * t / 4)
    return max(0.0, centre - half), min(1.0, centre + half)


def _quantile(df: float, level: float) -> float:
    from scipy.special import stdtrit  # noqa: PLC0415 - as above

    return min(_MOST_QUANTILE, float(stdtrit(df, 0.5 + level / 2)))


def _kish(weights: Floats) -> float:
    squares = math.fsum(weights**2)
    return math.fsum(weights) ** 2 / squares if squares else 0.0


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
class ResampledDifference:
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
        (left, left_without), (right, right_without) = (
            side.left_out(order) for side in (self.left, self.right)
        )
        return (
            None if left is None or right is None else left - right,
            left_without - right_without,
        )


Statistic: TypeAlias = Ratio | ResampledDifference


@dataclass(frozen=True, slots=True)
class ResampledStatistic:
    """A statistic that is no ratio of sums, such as an area under a curve."""

    value_of: Callable[[Counts], Floats]
    """Its value under each row of a block of multiplicities; NaN where it has none."""
    support: Support
    range: Range = SHARE

    def __call__(self, block: Counts) -> Floats:
        """The value under each row of *block*."""
        return self.value_of(block)

    def minus(self, other: ResampledStatistic) -> ResampledStatistic:
        """The difference of two on the same replicates."""
        return ResampledStatistic(
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


class SummedColumns:
    """The distinct columns of many statistics, each summed once a block.

    The means of a table share their denominators, so columns are told apart by being
    the same object.
    """

    def __init__(self, order: Order) -> None:
        self._order = order
        self._exact: dict[int, ExactColumn] = {}
        self._referenced: list[
            Sequence[float] | Floats
        ] = []  # so that no id is used twice

    def sums(self, counts: Floats) -> dict[int, Floats]:
        """Each column's sum under each row of *counts*."""
        return {key: column.sums(counts) for key, column in self._exact.items()}

    def compiled(self, statistic: Statistic) -> Callable[[dict[int, Floats]], Floats]:
        """The statistic's values from the sums; NaN where it has none."""
        if isinstance(statistic, ResampledDifference):
            left, right = map(self.compiled, (statistic.left, statistic.right))
            return lambda sums: left(sums) - right(sums)
        above = self._added("numerators", statistic.numerators)
        below = self._added("denominators", statistic.denominators)
        return lambda sums: quotient(sums[above], sums[below])

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
