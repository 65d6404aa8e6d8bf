"""Intervals: Wilson's for independent rows, and ends for few clusters.

A percentile bootstrap is too narrow with few clusters, and a point where all clusters
agree. The rules here replace it there (`design/metrics.md` has their coverage):

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
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal, TypeAlias

import numpy as np

from jobs.kit.metrics.cluster_statistics import Range, Support
from jobs.kit.metrics.columns import Floats

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


_MARK = "; interval by "


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """The ends of an interval; None where it is undefined."""

    lo: float | None
    hi: float | None
    b: int = 0  #: bootstrap replicates asked for; 0: not a bootstrap interval
    b_used: int = 0  #: of them, those in which the statistic had a value
    flagged: bool = False  #: more than `DROPPED_SHARE` of them had none
    how: str = ""  #: how it was made, for a definition; empty: it is of another kind

    @property
    def dropped(self) -> str:
        """A note that many replicates had no value; empty where they had one."""
        return f"undefined in {self.b - self.b_used} replicates" if self.flagged else ""


def with_interval(definition: str, interval: Interval) -> str:
    """A metric's definition with how its interval was made."""
    return f"{definition}; {interval.how}" if interval.how else definition


def without_interval(definition: str) -> str:
    """The definition of the value alone: what two models must share."""
    return definition.partition(_MARK)[0]


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
    """Return the jackknife spread of a statistic, from its values without each cluster.

    Degrees of freedom are Satterthwaite's, from how unevenly clusters add to the
    variance: a few that hold all misses tell little of how far others vary.
    """
    defined = without[~np.isnan(without)]
    m = len(defined)
    distances = defined - value
    # the fourth power of 1e100 is no number; a power of two changes no digit
    _, exponent = math.frexp(float(np.abs(distances).max(initial=0.0)))
    scale = math.ldexp(1.0, exponent - 1)
    squares = (distances / scale) ** 2
    total = math.fsum(squares)
    apart = math.fsum(squares**2) - total**2 / m if m else 0.0
    df = max(0.0, support.effective - 1)
    if apart > 0 and total > 0:
        df = min(df, 2 * total**2 / apart)
    se = scale * math.sqrt(total * (m - 1) / m) if m else 0.0
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
