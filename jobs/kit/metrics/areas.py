"""Areas under curves and calibration under resampling; DeLong's variance.

Each function prepares a statistic for `Resamples.interval_of`: it is given blocks of
multiplicities (replicates x clusters) and returns the value of every replicate, NaN
where there is none. The difference of two models is `first.minus(second)`.

The variance is that of DeLong, DeLong and Clarke-Pearson, 1988, with mid-ranks (Sun and
Xu, 2014). It assumes independent rows; where rows come in clusters it is printed beside
the bootstrap, never instead. The paired form takes clusters too, with Obuchowski's
variance (1997), which adds placements up by cluster and equals DeLong's where every row
is its own cluster.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from jobs.kit.metrics.cluster_statistics import Counts, ResampledStatistic, Support
from jobs.kit.metrics.columns import (
    Bools,
    Column,
    Floats,
    check_same_length,
    labels,
    quotient,
    scores,
)
from jobs.kit.metrics.intervals import Interval

ValueOf: TypeAlias = Callable[[Counts], Floats]

Totals: TypeAlias = npt.NDArray[np.int64]
"""Rows of one class at each distinct score, replicates down."""

_BLOCK_BYTES = 8 << 20
"""Rows gathered at a time; larger blocks fall out of the processor's cache."""


def cluster_index(groups: Sequence[str]) -> npt.NDArray[np.intp]:
    """Each row's cluster, by the ascending order of the keys as text."""
    keys = {key: i for i, key in enumerate(sorted(set(groups)))}
    return np.fromiter((keys[group] for group in groups), np.intp, len(groups))


class _Sorted:
    """Rows by falling score, so that a replicate's curve is a running total.

    Rows of one score and class stand together: a replicate is gathered by row, added up
    to distinct (score, class) pairs and accumulated. Everything is whole numbers, so
    nothing depends on the order of additions.
    """

    def __init__(self, y: Column, score: Column, cluster: npt.NDArray[np.intp]) -> None:
        truth, column = labels("y", y), scores("score", score)
        check_same_length(y=truth, score=column, cluster=cluster)
        order = np.lexsort((truth, -column))
        self._cluster = cluster[order]
        truth, column = truth[order], column[order]
        is_new_score = np.append(True, np.diff(column) != 0)
        self._starts = np.flatnonzero(is_new_score | np.append(True, np.diff(truth)))
        # where each (score, class) pair lands among the distinct scores
        self._score_index = (np.cumsum(is_new_score) - 1)[self._starts]
        self._is_positive = truth[self._starts]
        self._distinct = int(is_new_score.sum())

    def counts(self, block: Counts) -> tuple[Totals, Totals]:
        """Positives and negatives at each distinct score, replicates down."""
        gathered = np.take(block, self._cluster, axis=1)
        pairs = np.add.reduceat(gathered, self._starts, axis=1, dtype=np.int64)
        shape = len(block), self._distinct
        positives, negatives = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        for side, at in (
            (self._is_positive, positives),
            (~self._is_positive, negatives),
        ):
            at[:, self._score_index[side]] = pairs[:, side]
        return positives, negatives

    def by_parts(self, value_of: Callable[[Counts], Floats]) -> ValueOf:
        """*value_of* in pieces that fit the processor's cache."""
        rows = max(1, _BLOCK_BYTES // (8 * max(1, 2 * self._distinct)))
        rows = min(rows, max(1, _BLOCK_BYTES // max(1, len(self._cluster))))

        def parts(block: Counts) -> Floats:
            return np.concatenate(
                [value_of(block[i : i + rows]) for i in range(0, len(block), rows)]
            )

        return parts


def _undefined(block: Counts) -> Floats:
    """Return the value of no rows (NaN) for every replicate."""
    return np.full(len(block), np.nan)


def _classes(y: Column, cluster: npt.NDArray[np.intp]) -> Support:
    """The clusters with positives and with negatives."""
    truth = labels("y", y)
    size = int(cluster.max(initial=-1)) + 1
    positives, negatives = (
        np.bincount(cluster[rows], minlength=size).astype(np.float64)
        for rows in (truth, ~truth)
    )
    return Support.of_classes(positives, negatives)


_NO_SUPPORT = ResampledStatistic(_undefined, Support(effective=0.0, independent=0))


def _area_of(
    y: Column,
    score: Column,
    cluster: npt.NDArray[np.intp],
    areas: Callable[[Totals, Totals], Floats],
) -> ResampledStatistic:
    """The area that *areas* makes of positives and negatives at each score."""
    if not len(y):
        return _NO_SUPPORT
    rows = _Sorted(y, score, cluster)
    value_of = rows.by_parts(lambda block: areas(*rows.counts(block)))
    return ResampledStatistic(value_of, _classes(y, cluster))


def auroc_of(
    y: Column, score: Column, cluster: npt.NDArray[np.intp]
) -> ResampledStatistic:
    """The area under the ROC curve of each replicate."""

    def areas(positives: Totals, negatives: Totals) -> Floats:
        above = np.cumsum(positives, axis=1)
        twice = (negatives * (2 * above - positives)).sum(axis=1)
        return quotient(twice, 2 * above[:, -1] * negatives.sum(axis=1))

    return _area_of(y, score, cluster, areas)


def auprc_of(
    y: Column, score: Column, cluster: npt.NDArray[np.intp]
) -> ResampledStatistic:
    """The average precision of each replicate."""

    def areas(positives: Totals, negatives: Totals) -> Floats:
        tp = np.cumsum(positives, axis=1)
        seen = tp + np.cumsum(negatives, axis=1)
        precision = np.divide(tp, seen, out=np.zeros(tp.shape), where=seen > 0)
        return quotient((positives * precision).sum(axis=1), tp[:, -1])

    return _area_of(y, score, cluster, areas)


def tpr_of(
    y: Column, score: Column, cluster: npt.NDArray[np.intp], grid: Floats
) -> ValueOf:
    """The sensitivity of each replicate at each false positive rate of *grid*.

    On the lines between the points of its curve, as a band around a picture of it is
    drawn. One row a replicate, for `Resamples.band_of`; NaN with one class.
    """
    rows = _Sorted(y, score, cluster)

    def sensitivities(block: Counts) -> Floats:
        positives, negatives = rows.counts(block)
        curves = np.full((len(block), len(grid)), np.nan)
        for row, tp, fp in zip(
            curves, positives.cumsum(axis=1), negatives.cumsum(axis=1), strict=True
        ):
            if tp[-1] and fp[-1]:
                fpr, tpr = np.append(0, fp) / fp[-1], np.append(0, tp) / tp[-1]
                row[:] = np.interp(grid, fpr, tpr)
        return curves

    return rows.by_parts(sensitivities)


_FEWEST = 2
"""Fewest rows of a class; with fewer, the variance is undefined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delong:
    """An area with its standard error; None where undefined."""

    auroc: float
    se: float
    interval: Interval  #: normal on the scale of the area, cut to [0, 1]

    @property
    def is_degenerate(self) -> bool:
        """Whether the interval is a point: to be said beside it."""
        return self.se == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DelongPaired:
    """The difference of two areas over the same rows."""

    difference: float  #: the first minus the second
    se: float
    z: float | None  #: None where the standard error is 0
    p: float  #: two-sided; 1 where nothing differs


def delong(y: Column, score: Column, level: float = 0.95) -> Delong | None:
    """The area of a score; None with fewer than two rows of a class."""
    truth, column = labels("y", y), scores("score", score)
    check_same_length(y=truth, score=column)
    if _is_too_small(truth):
        return None
    above, below = _placements(truth, column)
    area = _mean(above)
    se = math.sqrt(_covariance(above, above) + _covariance(below, below))
    half = NormalDist().inv_cdf(0.5 + level / 2) * se
    return Delong(
        auroc=area,
        se=se,
        interval=Interval(lo=max(0.0, area - half), hi=min(1.0, area + half)),
    )


def delong_paired(
    y: Column, first: Column, second: Column, groups: Sequence[str] | None = None
) -> DelongPaired | None:
    """Two scores of the same rows; None with fewer than two rows of a class.

    With *groups*, the cluster of each row, the variance is Obuchowski's, and a class
    that lies in fewer than two clusters gives None.
    """
    truth = labels("y", y)
    columns = (scores("first", first), scores("second", second))
    check_same_length(y=truth, first=columns[0], second=columns[1])
    if _is_too_small(truth):
        return None
    (above1, below1), (above2, below2) = (_placements(truth, c) for c in columns)
    apart = _mean(above1) - _mean(above2)
    above, below = above1 - above2, below1 - below2
    variance = (
        _covariance(above, above) + _covariance(below, below)
        if groups is None
        else _clustered(truth, above - apart, below - apart, groups)
    )
    if variance is None:
        return None
    se = math.sqrt(max(0.0, variance))
    if not se:
        return DelongPaired(difference=apart, se=0.0, z=None, p=float(apart == 0))
    z = apart / se
    return DelongPaired(
        difference=apart, se=se, z=z, p=math.erfc(abs(z) / math.sqrt(2))
    )


def _clustered(
    truth: Bools, above: Floats, below: Floats, groups: Sequence[str]
) -> float | None:
    """Obuchowski's variance of an area, from placements less their mean.

    None where a class lies in fewer than two clusters.
    """
    index_of = {group: at for at, group in enumerate(sorted(set(groups)))}
    at = np.fromiter((index_of[group] for group in groups), np.intp, len(groups))
    sums, sizes = [], []
    for rows, column in ((truth, above), (~truth, below)):
        sums.append(np.bincount(at[rows], weights=column, minlength=len(index_of)))
        sizes.append(np.bincount(at[rows], minlength=len(index_of)))
    with_rows = [int((size > 0).sum()) for size in sizes]
    if min(with_rows) < _FEWEST:
        return None
    n = [int(size.sum()) for size in sizes]
    variance = sum(
        k / (k - 1) * math.fsum(column * column) / size**2
        for column, k, size in zip(sums, with_rows, n, strict=True)
    )
    m = len(index_of)
    return variance + 2 * m / (m - 1) * math.fsum(sums[0] * sums[1]) / (n[0] * n[1])


def _is_too_small(truth: Bools) -> bool:
    positives = int(truth.sum())
    return min(positives, len(truth) - positives) < _FEWEST


def _placements(truth: Bools, column: Floats) -> tuple[Floats, Floats]:
    """Return the share of negatives below each positive, and the reverse.

    Ties count half.
    """
    positive, negative = column[truth], column[~truth]
    return _below(positive, negative), 1 - _below(negative, positive)


def _below(these: Floats, those: Floats) -> Floats:
    those = np.sort(those)
    low = np.searchsorted(those, these, side="left")
    high = np.searchsorted(those, these, side="right")
    return (low + high) / 2 / len(those)


def _mean(column: Floats) -> float:
    return math.fsum(column) / len(column)


def _covariance(a: Floats, b: Floats) -> float:
    """The unbiased covariance of two columns, by their length: of their means."""
    n = len(a)
    return math.fsum((a - _mean(a)) * (b - _mean(b))) / (n - 1) / n
