"""Measures how well probabilities are calibrated, and recalibrates them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from jobs.kit.metrics.cluster_statistics import Counts, ResampledStatistic, Support
from jobs.kit.metrics.columns import (
    Bools,
    Column,
    Floats,
    check_same_length,
    labels,
    probabilities,
    quotient,
    scores,
    weights,
)
from jobs.kit.metrics.intervals import Interval, wilson

Closed = Literal["right", "left"]
_FARTHEST = 1e-7
"""Platt's log-odds are taken of probabilities no nearer to 0 or 1."""
_FLAT = 1e-10
_MOST_STEPS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """Rows whose probability lies between `lo` and `hi`."""

    lo: float
    hi: float
    count: int
    mean_p: float | None
    rate: float | None  #: share of positives
    interval: Interval  #: Wilson's, of the rate


@dataclass(frozen=True, slots=True, kw_only=True)
class _Columns:
    y: Bools
    p: Floats


def _columns(y: Column, p: Column) -> _Columns:
    columns = _Columns(y=labels("y", y), p=probabilities("p", p))
    check_same_length(y=columns.y, p=columns.p)
    return columns


def reliability(
    y: Column,
    p: Column,
    bins: int = 10,
    *,
    closed: Closed = "right",
    level: float = 0.95,
) -> tuple[Bin, ...]:
    """Probabilities against what happened, in bins of one width.

    Edges are `numpy.linspace(0, 1, bins + 1)`. Bins hold their right edge, and the
    first one 0; with `closed="left"` their left edge, and the last one 1.
    """
    columns = _columns(y, p)
    edges = np.linspace(0, 1, bins + 1)
    index = bin_of(columns.p, bins, closed)
    buckets = []
    for i in range(bins):
        inside = index == i
        count, positive = int(inside.sum()), int(columns.y[inside].sum())
        buckets.append(
            Bin(
                lo=float(edges[i]),
                hi=float(edges[i + 1]),
                count=count,
                mean_p=math.fsum(columns.p[inside]) / count if count else None,
                rate=positive / count if count else None,
                interval=wilson(positive, count, level),
            )
        )
    return tuple(buckets)


def bin_of(
    p: Floats, bins: int, closed: Closed
) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """The bin of each probability, counted from 0."""
    edges = np.linspace(0, 1, bins + 1)
    if closed == "right":
        return np.maximum(np.searchsorted(edges, p, side="left") - 1, 0)
    return np.minimum(np.searchsorted(edges, p, side="right") - 1, len(edges) - 2)


class BinRule(TypedDict, total=False):
    """Binning of probabilities in `ece` and `mce`, as keyword arguments.

    Two loops that are met in the wild lose a border value: `drop_zero` leaves rows with
    p = 0 out of every bin, `drop_one` those with p = 1; they still count in the total.
    `reference="midpoint"` compares with the middle of the bin instead of the mean
    probability.
    """

    closed: Closed
    drop_zero: bool
    drop_one: bool
    reference: Literal["mean", "midpoint"]


def ece(y: Column, p: Column, bins: int = 10, **rule: Unpack[BinRule]) -> float | None:
    """Expected calibration error: the mean gap of the bins, by their share of rows."""
    n = len(probabilities("p", p))
    if not n:
        return None
    return math.fsum(count / n * gap for count, gap in _gaps(y, p, bins, rule))


def mce(y: Column, p: Column, bins: int = 10, **rule: Unpack[BinRule]) -> float | None:
    """The largest gap of a bin that has rows."""
    return max((gap for count, gap in _gaps(y, p, bins, rule) if count), default=None)


def _gaps(
    y: Column, p: Column, bins: int, rule: BinRule
) -> Iterator[tuple[int, float]]:
    """The rows of each bin, and how far its prediction lies from its rate."""
    columns = _columns(y, p)
    lost = (rule.get("drop_zero", False) & (columns.p == 0)) | (
        rule.get("drop_one", False) & (columns.p == 1)
    )
    inside = reliability(
        columns.y[~lost], columns.p[~lost], bins, closed=rule.get("closed", "right")
    )
    for bucket in inside:
        yield bucket.count, _gap(bucket, rule.get("reference", "mean"))


def _gap(bucket: Bin, reference: Literal["mean", "midpoint"]) -> float:
    if bucket.mean_p is None or bucket.rate is None:
        return 0.0
    predicted = bucket.mean_p if reference == "mean" else (bucket.lo + bucket.hi) / 2
    return abs(predicted - bucket.rate)


def ece_of(
    y: Column,
    p: Column,
    cluster: npt.NDArray[np.intp],
    bins: int = 10,
    *,
    closed: Closed = "right",
    drop_one: bool = False,
) -> ResampledStatistic:
    """The expected calibration error of each replicate, under `ece`'s options."""
    truth, column = labels("y", y), probabilities("p", p)
    check_same_length(y=truth, p=column, cluster=cluster)
    bin_index = bin_of(column, bins, closed)
    clusters = int(cluster.max(initial=-1)) + 1
    # a row that is dropped is in no bin, but counts in the total
    residuals = (
        np.where(column == 1, 0.0, column - truth) if drop_one else column - truth
    )
    gaps = np.bincount(
        cluster * bins + bin_index, weights=residuals, minlength=clusters * bins
    ).reshape(clusters, bins)
    sizes = np.bincount(cluster, minlength=clusters).astype(np.float64)

    # the last clusters may be without rows, where only some rows are looked at
    def errors(block: Counts) -> Floats:
        multiplicities = block[:, :clusters].astype(np.float64)
        # `einsum` adds in a fixed order; a matrix product would ask BLAS
        apart = np.abs(np.einsum("ij,jk->ik", multiplicities, gaps)).sum(axis=1)
        return quotient(apart, np.einsum("ij,j->i", multiplicities, sizes))

    return ResampledStatistic(errors, Support.of(sizes))


def ece_adaptive(
    y: Column,
    p: Column,
    bins: int = 10,
    *,
    ties: Literal["split", "together"] = "split",
) -> float | None:
    """Calibration error over bins of equal count, after a stable sort by p.

    Rows of one probability may be split between bins by their order; `together` moves
    a border to the next distinct probability instead. Secondary for that reason.
    """
    columns = _columns(y, p)
    n = len(columns.p)
    if not n:
        return None
    order = np.argsort(columns.p, kind="stable")
    p_sorted, y_sorted = columns.p[order], columns.y[order]
    borders = [len(part) for part in np.array_split(p_sorted, bins)]
    cuts = np.cumsum(borders)[:-1]
    if ties == "together":
        cuts = np.unique(np.searchsorted(p_sorted, p_sorted[cuts[cuts < n]]))
    gaps = []
    for predicted, true in zip(
        np.split(p_sorted, cuts), np.split(y_sorted, cuts), strict=True
    ):
        if len(predicted):
            gap = abs(
                math.fsum(predicted) / len(predicted) - int(true.sum()) / len(predicted)
            )
            gaps.append(len(predicted) / n * gap)
    return math.fsum(gaps)


def brier(y: Column, p: Column) -> float | None:
    """The mean squared distance of p from the truth."""
    columns = _columns(y, p)
    if not len(columns.p):
        return None
    return math.fsum((columns.p - columns.y) ** 2) / len(columns.p)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrierParts:
    """Brier = reliability - resolution + uncertainty (Murphy, 1973)."""

    reliability: float
    resolution: float
    uncertainty: float


def brier_decomposition(y: Column, p: Column) -> BrierParts | None:
    """The parts of the Brier score over distinct probabilities, so that they add up."""
    columns = _columns(y, p)
    n = len(columns.p)
    if not n:
        return None
    values, index = np.unique(columns.p, return_inverse=True)
    counts = np.bincount(index)
    rate = np.bincount(index, weights=columns.y) / counts
    prevalence = int(columns.y.sum()) / n
    return BrierParts(
        reliability=math.fsum(counts * (values - rate) ** 2) / n,
        resolution=math.fsum(counts * (rate - prevalence) ** 2) / n,
        uncertainty=prevalence * (1 - prevalence),
    )


def brier_skill(y: Column, p: Column) -> float | None:
    """1 - Brier / (Brier of always saying the prevalence)."""
    parts, score = brier_decomposition(y, p), brier(y, p)
    if parts is None or score is None or not parts.uncertainty:
        return None
    return 1 - score / parts.uncertainty


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLoss:
    """The mean negative log of the probability of what happened."""

    value: float | None
    clipped: int  #: rows that were moved away from 0 or 1; few of them dominate


def log_loss(y: Column, p: Column, eps: float = 1e-15) -> LogLoss:
    """Log loss in nats, with p no nearer to 0 or 1 than *eps*."""
    columns = _columns(y, p)
    safe = np.clip(columns.p, eps, 1 - eps)
    losses = -np.where(columns.y, np.log(safe), np.log1p(-safe))
    return LogLoss(
        value=math.fsum(losses) / len(safe) if len(safe) else None,
        clipped=int(np.count_nonzero(safe != columns.p)),
    )


@dataclass(frozen=True, slots=True)
class Isotonic:
    """A rising step line: knots, joined straight, level beyond the ends."""

    x: tuple[float, ...]
    y: tuple[float, ...]

    def __call__(self, score: Column) -> Floats:
        """Probabilities for scores."""
        return np.interp(scores("score", score), self.x, self.y)


def fit_isotonic(score: Column, y: Column, weight: Column | None = None) -> Isotonic:
    """The rising line with the least squared error (pool adjacent violators).

    Rows of one score are averaged first. Equal to scikit-learn's
    `IsotonicRegression(out_of_bounds="clip")`.

    Raises:
        ValueError: where only one class is there, or nothing.
    """
    # most of what the metrics would take to load, for the one of them that optimizes
    from scipy.optimize import isotonic_regression  # noqa: PLC0415 - see above

    x, truth = scores("score", score), labels("y", y)
    check_same_length(score=x, y=truth)
    _refuse_one_class(truth)
    loads = weights("weight", weight, len(x))
    has_weight = loads > 0
    values, index = np.unique(x[has_weight], return_inverse=True)
    mass = np.bincount(index, weights=loads[has_weight])
    means = np.bincount(index, weights=(loads * truth)[has_weight]) / mass
    fitted: Floats = isotonic_regression(means, weights=mass).x
    # inside a level stretch only its ends are needed
    level = np.concatenate(
        ([True], (fitted[1:-1] != fitted[:-2]) | (fitted[1:-1] != fitted[2:]), [True])
    )
    knots = level[: len(fitted)]
    return Isotonic(
        x=tuple(values[knots].tolist()),
        y=tuple(np.clip(fitted[knots], 0.0, 1.0).tolist()),
    )


@dataclass(frozen=True, slots=True)
class Platt:
    """p = 1 / (1 + exp(-(slope * log-odds + intercept)))."""

    slope: float
    intercept: float

    def __call__(self, p: Column) -> Floats:
        """Calibrated probabilities."""
        z = self.slope * _log_odds(probabilities("p", p)) + self.intercept
        return 1 / (1 + np.exp(-z))


def fit_platt(p: Column, y: Column, *, smooth: bool = False) -> Platt:
    """Logistic regression of the truth on the log-odds of p, by Newton's method.

    Args:
        p: probabilities; their log-odds are taken no farther out than 1e-7.
        y: the truth.
        smooth: use Platt's smoothed targets (Platt, 1999) instead of 0 and 1.

    Raises:
        ValueError: where only one class is there, or no finite fit exists.
    """
    columns = _columns(y, p)
    _refuse_one_class(columns.y)
    if not smooth and _is_separated(columns):
        raise ValueError(
            "p separates the classes of y, so Platt's line would be infinitely steep; "
            "use an isotonic calibrator or smooth=True."
        )
    x = _log_odds(columns.p)
    positives, n = int(columns.y.sum()), len(x)
    high, low = (
        ((positives + 1) / (positives + 2), 1 / (n - positives + 2))
        if smooth
        else (1.0, 0.0)
    )
    target = np.where(columns.y, high, low)
    slope, intercept = 0.0, math.log(positives / (n - positives))
    for _ in range(_MOST_STEPS):
        q = 1 / (1 + np.exp(-(slope * x + intercept)))
        gap, bend = q - target, q * (1 - q)
        g1, g0 = math.fsum(gap * x), math.fsum(gap)
        if math.hypot(g1, g0) < _FLAT:
            return Platt(slope=slope, intercept=intercept)
        h11, h10, h00 = math.fsum(bend * x * x), math.fsum(bend * x), math.fsum(bend)
        det = h11 * h00 - h10 * h10
        if not det > 0:
            raise ValueError("p has one value only; a calibrator needs two.")
        slope -= (h00 * g1 - h10 * g0) / det
        intercept -= (h11 * g0 - h10 * g1) / det
    raise ValueError("Platt's fit of p to y did not converge.")


def _is_separated(columns: _Columns) -> bool:
    positive, negative = columns.p[columns.y], columns.p[~columns.y]
    return bool(positive.min() >= negative.max() or positive.max() <= negative.min())


def _log_odds(p: Floats) -> Floats:
    safe = np.clip(p, _FARTHEST, 1 - _FARTHEST)
    odds: Floats = np.log(safe) - np.log1p(-safe)
    return odds


def _refuse_one_class(truth: Bools | Sequence[bool]) -> None:
    if len(set(np.asarray(truth).tolist())) < len((False, True)):
        raise ValueError("y holds one class only; a calibrator needs both.")
