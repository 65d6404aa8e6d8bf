"""Areas and calibration under resampling: one sort, then counts only.

Each function prepares a statistic for `Resamples.interval_of`: it is given blocks of
multiplicities (replicates x clusters) and returns the value of every replicate, NaN
where there is none. The difference of two models is `first.minus(second)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from jobs.metrics.adjusted import Support
from jobs.metrics.calibration import Closed, bin_of
from jobs.metrics.columns import (
    Column,
    Floats,
    labels,
    of_one_length,
    probabilities,
    quotient,
    scores,
)
from jobs.metrics.drawn import Counts, Redrawn

ValueOf: TypeAlias = Callable[[Counts], Floats]

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
        of_one_length(y=truth, score=column, cluster=cluster)
        order = np.lexsort((truth, -column))
        self._cluster = cluster[order]
        truth, column = truth[order], column[order]
        is_new_score = np.append(True, np.diff(column) != 0)
        self._starts = np.flatnonzero(is_new_score | np.append(True, np.diff(truth)))
        # where each (score, class) pair lands among the distinct scores
        self._place = (np.cumsum(is_new_score) - 1)[self._starts]
        self._is_positive = truth[self._starts]
        self._distinct = int(is_new_score.sum())

    def counts(self, block: Counts) -> tuple[npt.NDArray[np.int64], ...]:
        """Positives and negatives at each distinct score, replicates down."""
        gathered = np.take(block, self._cluster, axis=1)
        pairs = np.add.reduceat(gathered, self._starts, axis=1, dtype=np.int64)
        found = []
        for side in (self._is_positive, ~self._is_positive):
            at = np.zeros((len(block), self._distinct), dtype=np.int64)
            at[:, self._place[side]] = pairs[:, side]
            found.append(at)
        return tuple(found)

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
    """What no rows come to, in every replicate."""
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


_NOBODY = Redrawn(_undefined, Support(effective=0.0, independent=0))


def auroc_of(y: Column, score: Column, cluster: npt.NDArray[np.intp]) -> Redrawn:
    """The area under the ROC curve of each replicate."""
    if not len(y):
        return _NOBODY
    rows = _Sorted(y, score, cluster)

    def areas(block: Counts) -> Floats:
        positives, negatives = rows.counts(block)
        above = np.cumsum(positives, axis=1)
        twice = (negatives * (2 * above - positives)).sum(axis=1)
        return quotient(twice, 2 * above[:, -1] * negatives.sum(axis=1))

    return Redrawn(rows.by_parts(areas), _classes(y, cluster))


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
        found = np.full((len(block), len(grid)), np.nan)
        for row, tp, fp in zip(
            found, positives.cumsum(axis=1), negatives.cumsum(axis=1), strict=True
        ):
            if tp[-1] and fp[-1]:
                fpr, tpr = np.append(0, fp) / fp[-1], np.append(0, tp) / tp[-1]
                row[:] = np.interp(grid, fpr, tpr)
        return found

    return rows.by_parts(sensitivities)


def auprc_of(y: Column, score: Column, cluster: npt.NDArray[np.intp]) -> Redrawn:
    """The average precision of each replicate."""
    if not len(y):
        return _NOBODY
    rows = _Sorted(y, score, cluster)

    def areas(block: Counts) -> Floats:
        positives, negatives = rows.counts(block)
        tp = np.cumsum(positives, axis=1)
        seen = tp + np.cumsum(negatives, axis=1)
        precision = np.divide(tp, seen, out=np.zeros(tp.shape), where=seen > 0)
        return quotient((positives * precision).sum(axis=1), tp[:, -1])

    return Redrawn(rows.by_parts(areas), _classes(y, cluster))


def ece_of(
    y: Column,
    p: Column,
    cluster: npt.NDArray[np.intp],
    bins: int = 10,
    *,
    closed: Closed = "right",
    drop_one: bool = False,
) -> Redrawn:
    """The expected calibration error of each replicate, under `ece`'s options."""
    truth, column = labels("y", y), probabilities("p", p)
    of_one_length(y=truth, p=column, cluster=cluster)
    place = bin_of(column, bins, closed)
    clusters = int(cluster.max(initial=-1)) + 1
    # a row that is dropped is in no bin, but counts in the total
    told = np.where(column == 1, 0.0, column - truth) if drop_one else column - truth
    gaps = np.bincount(
        cluster * bins + place, weights=told, minlength=clusters * bins
    ).reshape(clusters, bins)
    sizes = np.bincount(cluster, minlength=clusters).astype(np.float64)

    # the last clusters may be without rows, where only some rows are looked at
    def errors(block: Counts) -> Floats:
        drawn = block[:, :clusters].astype(np.float64)
        # `einsum` adds in a fixed order; a matrix product would ask BLAS
        apart = np.abs(np.einsum("ij,jk->ik", drawn, gaps)).sum(axis=1)
        return quotient(apart, np.einsum("ij,j->i", drawn, sizes))

    return Redrawn(errors, Support.of(sizes))
