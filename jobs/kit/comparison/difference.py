"""The difference of a metric between two models: estimate, interval, test, verdict.

One table gives each kind of metric its statistic and its one test. The test respects
clusters. A test that assumes independent items is the metric's own only where every
item is a cluster of its own; elsewhere it is shown beside and never decides.

For a winner three things must hold: the comparison has enough clusters, the interval of
the paired difference leaves 0 out, and the p-value of the metric's test, corrected by
Holm's method, is at most 1 - level. An interval and a permutation test can disagree at
the margin; the word is then `undecided`, as it is where a metric lacks an interval or a
test.

Every part of the program that says better or worse calls `VerdictRule.verdict`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from jobs.kit.comparison.pairing import (
    RIGHT_OR_WRONG,
    OutcomeCounts,
    Overlap,
    PairedItems,
    SideValues,
)
from jobs.kit.metrics import (
    ANY,
    FEW_CLUSTERS,
    SHARE,
    Agreement,
    Interval,
    Range,
    Ratio,
    ResampledDifference,
    ResampledStatistic,
    Resamples,
    agreement,
    auprc,
    auprc_of,
    auroc,
    auroc_of,
    bootstrap_p,
    delong_paired,
    mcnemar,
    mean,
    ratio,
    round12,
    sign_flip,
    swap_sides,
)
from jobs.kit.metrics.columns import Floats

SideVerdict: TypeAlias = Literal["better", "worse", "undecided", "too few"]
"""Verdict on one model against another."""

OPPOSITE: Mapping[SideVerdict, SideVerdict] = {
    "better": "worse",
    "worse": "better",
    "undecided": "undecided",
    "too few": "too few",
}
"""The word on A against B, by that on B against A."""

MIN_CLUSTERS = FEW_CLUSTERS
"""Clusters (10) below which a comparison has no winner, unless set otherwise.

With five clusters the smallest two-sided p of a permutation test is 1/16, so that no
result could count; at ten it is 1/512, and percentile intervals begin to hold.
"""

_BY_SIDE: Mapping[tuple[bool, bool], SideVerdict] = {
    (True, False): "better",
    (True, True): "worse",
    (False, False): "worse",
    (False, True): "better",
}
"""By whether the interval lies above 0, and whether lower values are better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRule:
    """Rule that decides whether a difference has a winner."""

    level: float = 0.95  #: of the interval; 1 - level bounds the corrected p
    min_clusters: int = MIN_CLUSTERS

    def verdict(
        self,
        interval: Interval | None,
        p_holm: float | None,
        clusters: int,
        *,
        lower_is_better: bool,
    ) -> SideVerdict:
        """The word for a difference, of the side that it was not subtracted from.

        Args:
            interval: of the paired difference.
            p_holm: of the metric's own test, corrected for its family.
            clusters: that the compared items are part of.
            lower_is_better: whether lower values of the metric are better.
        """
        if clusters < self.min_clusters:
            return "too few"
        lo, hi = (None, None) if interval is None else (interval.lo, interval.hi)
        if lo is None or hi is None or p_holm is None or lo <= 0 <= hi:
            return "undecided"
        if p_holm > self.alpha:
            return "undecided"
        return _BY_SIDE[lo > 0, lower_is_better]

    @property
    def alpha(self) -> float:
        """The largest corrected p that decides."""
        # 1 - 0.95 is 0.050000000000000044 in doubles, and p = 0.05 must decide
        return round(1 - self.level, 12)

    def sentence(self, cluster: str) -> str:
        """The rule as a reader should know it.

        >>> VerdictRule(min_clusters=3).sentence("paper").partition("; ")[2]
        'too few: fewer than 3 papers'
        """
        return (
            f"better, worse: the {100 * self.level:.4g}% interval leaves 0 out and "
            f"p (Holm) <= {self.alpha:.4g}; too few: fewer than {self.min_clusters} "
            f"{cluster}s"
        )


def outcome_words(wins: int, losses: int, ties: int) -> str:
    """Items by outcome, in the one order that is used everywhere.

    >>> outcome_words(6, 1, 1)
    'won 6, lost 1, tied 1'
    """
    return f"won {wins:,}, lost {losses:,}, tied {ties:,}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """B minus A; None where a side has no value."""

    a: float | None
    b: float | None
    value: float | None
    interval: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class PValue:
    """A test of no difference."""

    name: str
    p: float  #: two-sided, at 12 significant digits


@dataclass(frozen=True, slots=True, kw_only=True)
class PValues:
    """The tests of one metric."""

    primary: PValue | None = None  #: respects the clusters; the one that Holm corrects
    independent: PValue | None = None  #: assumes independent items, though they are not


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedMetric:
    """One metric of two models."""

    path: str
    definition: str
    cluster: str  #: what intervals are drawn by, such as "paper"
    lower_is_better: bool
    overlap: Overlap
    gap: Gap
    outcomes: OutcomeCounts | None  #: None: no item has a value by itself
    p_values: PValues
    agreement: Agreement | None  #: None: items are not right or wrong
    family: str = ""  #: metrics whose tests are corrected together; "": the rest
    p_holm: float | None = None  #: of `p_values.own`, over the family
    verdict: SideVerdict = "undecided"  #: of B against A

    @property
    def is_from_few(self) -> bool:
        """Whether there are too few clusters for a winner."""
        return self.verdict == "too few"


def gap(paired: PairedItems, resamples: Resamples) -> Gap:
    """The difference with its interval, on resamples of the pairing's clusters."""
    kind = _KINDS[paired.values.kind]
    a, b = kind.value(paired.a), kind.value(paired.b)
    value = None if a is None or b is None else b - a
    if paired.b.second is None:
        # of a mean: exactly rounded once, and not each side's for itself
        value = mean(paired.b.first - paired.a.first)
    interval = kind.interval((paired.a, paired.b), _resampled_items(paired), resamples)
    return Gap(a=a, b=b, value=value, interval=interval)


@dataclass(frozen=True, slots=True, kw_only=True)
class SideEstimate:
    """Estimate of one side by itself."""

    value: float | None
    interval: Interval


def side_estimate(paired: PairedItems, resamples: Resamples) -> SideEstimate:
    """B by itself on the paired items, on the resamples that `gap` is drawn on."""
    kind = _KINDS[paired.values.kind]
    interval = kind.interval((paired.b,), _resampled_items(paired), resamples)
    return SideEstimate(value=kind.value(paired.b), interval=interval)


def outcome_agreement(paired: PairedItems) -> Agreement | None:
    """Return the agreement of both sides in being right; None where none is 0 or 1."""
    if not (paired.items and paired.is_right_or_wrong):
        return None
    return agreement(paired.a.first.tolist(), paired.b.first.tolist(), RIGHT_OR_WRONG)


def _resampled_items(paired: PairedItems) -> _ResampledItems:
    positions = {
        cluster: index for index, cluster in enumerate(paired.resampled_clusters)
    }
    at = np.array([positions[cluster] for cluster in paired.clusters], dtype=np.intp)
    return _ResampledItems(at=at, clusters=len(paired.resampled_clusters))


def p_values(
    paired: PairedItems, seed: int, resamples: Resamples | None = None
) -> PValues:
    """The tests of the metric's kind; none where no item is paired.

    Args:
        paired: both sides of the metric.
        seed: of permutations that are drawn.
        resamples: of the pairing's clusters, for kinds that are tested with them.
    """
    if not paired.items:
        return PValues()
    by_cluster, by_item = _KINDS[paired.values.kind].tests
    independent = by_item(paired) if by_item else None
    if independent is not None and not paired.is_clustered:
        return PValues(primary=independent)
    return PValues(primary=by_cluster(paired, seed, resamples), independent=independent)


def _ratio(columns: SideValues) -> float | None:
    return ratio(math.fsum(columns.first), math.fsum(_below(columns)))


def _below(columns: SideValues) -> Floats:
    """Return each item's denominator: 1 in a mean."""
    return np.ones(len(columns.first)) if columns.second is None else columns.second


@dataclass(frozen=True, slots=True, kw_only=True)
class _ResampledItems:
    """Positions of the paired items among the resampled clusters."""

    at: npt.NDArray[np.intp]  #: the cluster of each item
    clusters: int

    def sums(self, column: Floats) -> list[float]:
        """The column's exactly rounded sum in each cluster."""
        groups: list[list[float]] = [[] for _ in range(self.clusters)]
        for index, value in zip(self.at.tolist(), column.tolist(), strict=True):
            groups[index].append(value)
        return [math.fsum(group) for group in groups]


_Sides: TypeAlias = tuple[SideValues] | tuple[SideValues, SideValues]
"""One side by itself; or A and B, for B minus A."""


def _sums_interval(
    sides: _Sides, resampled: _ResampledItems, resamples: Resamples
) -> Interval:
    within = _range(sides)
    *before, last = (
        Ratio(resampled.sums(columns.first), resampled.sums(_below(columns)), within)
        for columns in sides
    )
    statistic = ResampledDifference(last, before[0]) if before else last
    return resamples.intervals([statistic])[0]


def _range(sides: _Sides) -> Range:
    """0 to 1 where no item of any side lies outside; else nobody knows."""
    is_share = all(
        bool(((columns.first >= 0) & (columns.first <= _below(columns))).all())
        for columns in sides
    )
    return SHARE if is_share else ANY


def _sign_flips(paired: PairedItems, seed: int, resamples: Resamples | None) -> PValue:
    del resamples
    gaps = (paired.b.first - paired.a.first).tolist()
    return PValue(
        name=f"sign flips by {paired.values.cluster}",
        p=round12(sign_flip(gaps, paired.clusters, seed)),
    )


def _mcnemar(paired: PairedItems) -> PValue | None:
    """McNemar's exact test; None where items are not right or wrong."""
    if not paired.is_right_or_wrong:
        return None
    outcomes = paired.outcomes()
    return PValue(name="McNemar", p=round12(mcnemar(outcomes.wins, outcomes.losses).p))


def _side_swaps(
    paired: PairedItems, seed: int, resamples: Resamples | None
) -> PValue | None:
    del resamples
    resampled = _resampled_items(paired)
    a, b = (
        Ratio(resampled.sums(side.first), resampled.sums(_below(side)))
        for side in (paired.a, paired.b)
    )
    p = swap_sides(b, a, seed)
    if p is None:
        return None
    return PValue(name=f"side swaps by {paired.values.cluster}", p=round12(p))


def _scored(columns: SideValues) -> tuple[Floats, Floats]:
    """Labels and scores."""
    return columns.first, _below(columns)


def _area_interval(
    prepared: Callable[[Floats, Floats, npt.NDArray[np.intp]], ResampledStatistic],
    sides: _Sides,
    resampled: _ResampledItems,
    resamples: Resamples,
) -> Interval:
    if not len(resampled.at):
        return Interval(lo=None, hi=None)
    *before, last = (prepared(*_scored(columns), resampled.at) for columns in sides)
    if not before:
        return resamples.interval_of(last)
    (a,) = before
    return resamples.interval_of(last.minus(a))


def _delong(paired: PairedItems) -> PValue | None:
    labels, a = _scored(paired.a)
    test = delong_paired(labels, _scored(paired.b)[1], a)
    return None if test is None else PValue(name="DeLong", p=round12(test.p))


def _delong_by_cluster(
    paired: PairedItems, seed: int, resamples: Resamples | None
) -> PValue | None:
    del seed, resamples
    labels, a = _scored(paired.a)
    test = delong_paired(labels, _scored(paired.b)[1], a, paired.clusters)
    if test is None:
        return None
    return PValue(name=f"DeLong by {paired.values.cluster}", p=round12(test.p))


def _bootstrapped(
    paired: PairedItems, seed: int, resamples: Resamples | None
) -> PValue | None:
    """The test of an average precision, from the replicates of its interval."""
    del seed
    resampled = _resampled_items(paired)
    if resamples is None or resampled.clusters < _MIN_CLUSTERS:
        return None
    a, b = (auprc_of(*_scored(side), resampled.at) for side in (paired.a, paired.b))
    values = [b(block) - a(block) for block in resamples.multiplicities()]
    p = bootstrap_p(np.concatenate(values)) if values else None
    if p is None:
        return None
    return PValue(name=f"bootstrap by {paired.values.cluster}", p=round12(p))


_MIN_CLUSTERS = 2
"""Clusters without which every replicate is the sample itself."""


@dataclass(frozen=True, slots=True)
class _MetricKind:
    value: Callable[[SideValues], float | None]
    interval: Callable[[_Sides, _ResampledItems, Resamples], Interval]
    tests: tuple[
        Callable[[PairedItems, int, Resamples | None], PValue | None],
        Callable[[PairedItems], PValue | None] | None,
    ]
    """One that respects clusters, and one that assumes independent items, if any."""


_KINDS: Mapping[str, _MetricKind] = {
    "mean": _MetricKind(
        lambda c: mean(c.first), _sums_interval, (_sign_flips, _mcnemar)
    ),
    "ratio": _MetricKind(_ratio, _sums_interval, (_side_swaps, None)),
    "auroc": _MetricKind(
        lambda c: auroc(*_scored(c)),
        partial(_area_interval, auroc_of),
        (_delong_by_cluster, _delong),
    ),
    "auprc": _MetricKind(
        lambda c: auprc(*_scored(c)),
        partial(_area_interval, auprc_of),
        (_bootstrapped, None),
    ),
}
