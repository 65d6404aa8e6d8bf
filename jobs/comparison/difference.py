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

from jobs.comparison.pairing import (
    RIGHT_OR_WRONG,
    Columns,
    Overlap,
    Paired,
    Standing,
)
from jobs.metrics import (
    ANY,
    FEW_CLUSTERS,
    SHARE,
    Agreement,
    Difference,
    Interval,
    Range,
    Ratio,
    Redrawn,
    Resamples,
    agreement,
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

Verdict: TypeAlias = Literal["better", "worse", "undecided"]
"""Of B against A."""

_VERDICTS: Mapping[tuple[bool, bool], Verdict] = {
    (True, False): "better",
    (True, True): "worse",
    (False, False): "worse",
    (False, True): "better",
}
"""By whether B is higher, and whether lower is better; of an interval without 0."""


def verdict(interval: Interval, *, lower_is_better: bool) -> Verdict:
    """What the interval of B minus A decides: nothing, unless 0 lies outside of it."""
    lo, hi = interval.lo, interval.hi
    if lo is None or hi is None or lo <= 0 <= hi:
        return "undecided"
    return _VERDICTS[lo > 0, lower_is_better]


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
    agreement: Agreement | None  #: None: items are not right or wrong
    p_holm: float | None = None  #: of `p_values.own`, over the family

    @property
    def verdict(self) -> Verdict:
        """Whether B is better, where the whole interval says so."""
        return verdict(self.gap.interval, lower_is_better=self.lower_is_better)

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
    interval = kind.interval((paired.a, paired.b), _drawn(paired), resamples)
    return Gap(a=a, b=b, value=value, interval=interval)


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """What one side comes to by itself."""

    value: float | None
    interval: Interval


def level(paired: Paired, resamples: Resamples) -> Level:
    """B by itself on the paired items, on the resamples that `gap` is drawn on."""
    kind = _KINDS[paired.values.kind]
    interval = kind.interval((paired.b,), _drawn(paired), resamples)
    return Level(value=kind.value(paired.b), interval=interval)


def agreed(paired: Paired) -> Agreement | None:
    """How far both sides are right on the same items; None where none is 0 or 1."""
    if not (paired.items and paired.is_right_or_wrong):
        return None
    return agreement(paired.a.first.tolist(), paired.b.first.tolist(), RIGHT_OR_WRONG)


def _drawn(paired: Paired) -> _Drawn:
    place = {cluster: index for index, cluster in enumerate(paired.drawn)}
    at = np.array([place[cluster] for cluster in paired.clusters], dtype=np.intp)
    return _Drawn(at=at, clusters=len(paired.drawn))


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drawn:
    """Where the paired items are among the clusters that are drawn."""

    at: npt.NDArray[np.intp]  #: the cluster of each item
    clusters: int

    def sums(self, column: Floats) -> list[float]:
        """The column's exactly rounded sum in each cluster."""
        groups: list[list[float]] = [[] for _ in range(self.clusters)]
        for place, value in zip(self.at.tolist(), column.tolist(), strict=True):
            groups[place].append(value)
        return [math.fsum(group) for group in groups]


_Sides: TypeAlias = tuple[Columns] | tuple[Columns, Columns]
"""One side by itself; or A and B, for B minus A."""


def _sums_interval(sides: _Sides, drawn: _Drawn, resamples: Resamples) -> Interval:
    within = _range(sides)
    *before, own = (
        Ratio(drawn.sums(columns.first), drawn.sums(_below(columns)), within)
        for columns in sides
    )
    statistic = Difference(own, before[0]) if before else own
    return resamples.intervals([statistic])[0]


def _range(sides: _Sides) -> Range:
    """0 to 1 where no item of any side lies outside; else nobody knows."""
    is_share = all(
        bool(((columns.first >= 0) & (columns.first <= _below(columns))).all())
        for columns in sides
    )
    return SHARE if is_share else ANY


def _tests_of_mean(paired: Paired, seed: int) -> tuple[PValue | None, PValue | None]:
    gaps = (paired.b.first - paired.a.first).tolist()
    flips = PValue(
        name=f"sign flips by {paired.values.cluster}",
        p=round12(sign_flip(gaps, paired.clusters, seed)),
    )
    if not paired.is_right_or_wrong:
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
    prepared: Callable[[Floats, Floats, npt.NDArray[np.intp]], Redrawn],
) -> Callable[[_Sides, _Drawn, Resamples], Interval]:
    def interval(sides: _Sides, drawn: _Drawn, resamples: Resamples) -> Interval:
        if not len(drawn.at):
            return Interval(lo=None, hi=None)
        *before, own = (prepared(*_scored(columns), drawn.at) for columns in sides)
        if not before:
            return resamples.interval_of(own)
        (a,) = before
        return resamples.interval_of(own.minus(a))

    return interval


def _tests_of_auroc(paired: Paired, seed: int) -> tuple[PValue | None, PValue | None]:
    del seed
    labels, a = _scored(paired.a)
    found = delong_paired(labels, _scored(paired.b)[1], a)
    return None, None if found is None else PValue(name="DeLong", p=round12(found.p))


@dataclass(frozen=True, slots=True)
class _Kind:
    value: Callable[[Columns], float | None]
    interval: Callable[[_Sides, _Drawn, Resamples], Interval]
    p_values: Callable[[Paired, int], tuple[PValue | None, PValue | None]]
    """One that respects clusters, and one that takes items as independent."""


_KINDS: Mapping[str, _Kind] = {
    "mean": _Kind(_mean, _sums_interval, _tests_of_mean),
    "ratio": _Kind(_ratio, _sums_interval, _no_tests),
    "auroc": _Kind(_auroc, _area_interval(auroc_of), _tests_of_auroc),
    "auprc": _Kind(_auprc, _area_interval(auprc_of), _no_tests),
}
