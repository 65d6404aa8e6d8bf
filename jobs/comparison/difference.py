"""The difference of one metric between two models: how large, how sure, tested how.

Which statistic and which test a metric gets goes by its kind, in one table. A test that
takes items as independent is the metric's test only where every item is a cluster of
its own; elsewhere it stands beside the interval and is not corrected for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from jobs.comparison.pairing import Columns, Overlap, Paired, Standing
from jobs.metrics import (
    FEW_CLUSTERS,
    Difference,
    Interval,
    Ratio,
    Resamples,
    auprc,
    auprc_of,
    auroc,
    auroc_of,
    delong_paired,
    mcnemar,
    mean,
    ratio,
    round12,
    sign_flip,
)
from jobs.metrics.columns import Floats
from jobs.metrics.resampled import ValueOf

Verdict: TypeAlias = Literal["A higher", "B higher", "equal", "undecided"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """B minus A; None where a side has no value."""

    a: float | None
    b: float | None
    value: float | None
    interval: Interval

    @property
    def verdict(self) -> Verdict:
        """Which side is higher, where the whole interval says so."""
        lo, hi = self.interval.lo, self.interval.hi
        if lo is None or hi is None:
            return "undecided"
        if lo > 0:
            return "B higher"
        if hi < 0:
            return "A higher"
        return "equal" if lo == hi else "undecided"


@dataclass(frozen=True, slots=True, kw_only=True)
class PValue:
    """A test of no difference."""

    name: str
    p: float  #: two-sided, at 12 significant digits


@dataclass(frozen=True, slots=True, kw_only=True)
class PValues:
    """The tests of one metric."""

    own: PValue | None = None  #: respects the clusters; the one that Holm corrects
    beside: PValue | None = None  #: takes items as independent, though they are not


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One metric of two models."""

    path: str
    definition: str
    cluster: str  #: what intervals are drawn by, such as "paper"
    lower_is_better: bool
    overlap: Overlap
    gap: Gap
    standing: Standing | None  #: None: no item has a value by itself
    p_values: PValues
    p_holm: float | None = None  #: of `p_values.own`, over the family

    @property
    def is_from_few(self) -> bool:
        """Whether so few clusters were drawn from that the interval says little."""
        return self.overlap.clusters < FEW_CLUSTERS


def gap(paired: Paired, resamples: Resamples) -> Gap:
    """The difference with its interval, on resamples of the pairing's clusters."""
    kind = _KINDS[paired.values.kind]
    a, b = kind.value(paired.a), kind.value(paired.b)
    value = None if a is None or b is None else b - a
    if paired.b.second is None:
        # of a mean: exactly rounded once, and not each side's for itself
        value = mean(paired.b.first - paired.a.first)
    place = {cluster: index for index, cluster in enumerate(paired.drawn)}
    at = np.array([place[cluster] for cluster in paired.clusters], dtype=np.intp)
    return Gap(a=a, b=b, value=value, interval=kind.interval(paired, resamples, at))


def p_values(paired: Paired, seed: int) -> PValues:
    """What the kind of metric is tested with; nothing where no item is paired."""
    if not paired.items:
        return PValues()
    by_cluster, by_item = _KINDS[paired.values.kind].p_values(paired, seed)
    if paired.is_clustered:
        return PValues(own=by_cluster, beside=by_item)
    return PValues(own=by_item or by_cluster)


def _mean(columns: Columns) -> float | None:
    return mean(columns.first)


def _ratio(columns: Columns) -> float | None:
    return ratio(math.fsum(columns.first), math.fsum(_below(columns)))


def _below(columns: Columns) -> Floats:
    """What each item adds to the denominator: 1 in a mean."""
    return np.ones(len(columns.first)) if columns.second is None else columns.second


def _sums_interval(
    paired: Paired, resamples: Resamples, at: npt.NDArray[np.intp]
) -> Interval:
    def by_cluster(columns: Columns) -> Ratio:
        return Ratio(
            _sums(columns.first, at, len(paired.drawn)),
            _sums(_below(columns), at, len(paired.drawn)),
        )

    difference = Difference(by_cluster(paired.b), by_cluster(paired.a))
    return resamples.intervals([difference])[0]


def _sums(column: Floats, at: npt.NDArray[np.intp], clusters: int) -> list[float]:
    """The column's exactly rounded sum in each cluster."""
    groups: list[list[float]] = [[] for _ in range(clusters)]
    for place, value in zip(at.tolist(), column.tolist(), strict=True):
        groups[place].append(value)
    return [math.fsum(group) for group in groups]


def _tests_of_mean(paired: Paired, seed: int) -> tuple[PValue | None, PValue | None]:
    gaps = (paired.b.first - paired.a.first).tolist()
    flips = PValue(
        name=f"sign flips by {paired.values.cluster}",
        p=round12(sign_flip(gaps, paired.clusters, seed)),
    )
    values = np.concatenate((paired.a.first, paired.b.first))
    if not np.isin(values, (0, 1)).all():
        return flips, None
    found = paired.standing()
    return flips, PValue(name="McNemar", p=round12(mcnemar(found.wins, found.losses).p))


def _no_tests(paired: Paired, seed: int) -> tuple[PValue | None, PValue | None]:
    del paired, seed
    return None, None


def _scored(columns: Columns) -> tuple[Floats, Floats]:
    """Labels and scores."""
    return columns.first, _below(columns)


def _auroc(columns: Columns) -> float | None:
    return auroc(*_scored(columns))


def _auprc(columns: Columns) -> float | None:
    return auprc(*_scored(columns))


def _area_interval(
    prepared: Callable[[Floats, Floats, npt.NDArray[np.intp]], ValueOf],
) -> Callable[[Paired, Resamples, npt.NDArray[np.intp]], Interval]:
    def interval(
        paired: Paired, resamples: Resamples, at: npt.NDArray[np.intp]
    ) -> Interval:
        if not paired.items:
            return Interval(lo=None, hi=None)
        a = prepared(*_scored(paired.a), at)
        b = prepared(*_scored(paired.b), at)
        return resamples.interval_of(lambda counts: b(counts) - a(counts))

    return interval


def _tests_of_auroc(paired: Paired, seed: int) -> tuple[PValue | None, PValue | None]:
    del seed
    labels, a = _scored(paired.a)
    found = delong_paired(labels, _scored(paired.b)[1], a)
    return None, None if found is None else PValue(name="DeLong", p=round12(found.p))


@dataclass(frozen=True, slots=True)
class _Kind:
    value: Callable[[Columns], float | None]
    interval: Callable[[Paired, Resamples, npt.NDArray[np.intp]], Interval]
    p_values: Callable[[Paired, int], tuple[PValue | None, PValue | None]]
    """One that respects clusters, and one that takes items as independent."""


_KINDS: Mapping[str, _Kind] = {
    "mean": _Kind(_mean, _sums_interval, _tests_of_mean),
    "ratio": _Kind(_ratio, _sums_interval, _no_tests),
    "auroc": _Kind(_auroc, _area_interval(auroc_of), _tests_of_auroc),
    "auprc": _Kind(_auprc, _area_interval(auprc_of), _no_tests),
}
