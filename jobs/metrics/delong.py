"""DeLong's variance of the area under the ROC curve, for one score and for two.

DeLong, DeLong and Clarke-Pearson, 1988, with mid-ranks (Sun and Xu, 2014). It assumes
independent rows; where rows come in clusters it is printed beside the bootstrap, never
instead. The paired form takes clusters too, with Obuchowski's variance (1997), which
adds placements up by cluster and equals DeLong's where every row is its own cluster.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from jobs.metrics.columns import Bools, Column, Floats, labels, of_one_length, scores
from jobs.metrics.intervals import Interval

_FEWEST = 2
"""Of each class; below, a variance is undefined."""


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
    of_one_length(y=truth, score=column)
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
    y: Column,
    first: Column,
    second: Column,
    groups: Sequence[str] | None = None,
) -> DelongPaired | None:
    """Two scores of the same rows; None with fewer than two rows of a class.

    With *groups*, the cluster of each row, the variance is Obuchowski's, and a class
    that lies in fewer than two clusters gives None.
    """
    truth = labels("y", y)
    columns = (scores("first", first), scores("second", second))
    of_one_length(y=truth, first=columns[0], second=columns[1])
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
    place = {group: at for at, group in enumerate(sorted(set(groups)))}
    at = np.fromiter((place[group] for group in groups), np.intp, len(groups))
    sums, sizes = [], []
    for rows, column in ((truth, above), (~truth, below)):
        sums.append(np.bincount(at[rows], weights=column, minlength=len(place)))
        sizes.append(np.bincount(at[rows], minlength=len(place)))
    with_rows = [int((size > 0).sum()) for size in sizes]
    if min(with_rows) < _FEWEST:
        return None
    n = [int(size.sum()) for size in sizes]
    own = sum(
        k / (k - 1) * math.fsum(column * column) / size**2
        for column, k, size in zip(sums, with_rows, n, strict=True)
    )
    m = len(place)
    return own + 2 * m / (m - 1) * math.fsum(sums[0] * sums[1]) / (n[0] * n[1])


def _is_too_small(truth: Bools) -> bool:
    positives = int(truth.sum())
    return min(positives, len(truth) - positives) < _FEWEST


def _placements(truth: Bools, column: Floats) -> tuple[Floats, Floats]:
    """Of each positive the share of negatives below, of each negative the reverse.

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
