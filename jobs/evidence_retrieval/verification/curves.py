"""Probabilities against the truth: areas, operating points, calibration error.

Loops over rows; counts are integers, so that only the last division rounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias

from jobs.evidence_retrieval.verification.choices import Choices, EdgeRule

Judged: TypeAlias = Sequence[tuple[bool, float]]
"""Truth and probability of each row."""


@dataclass(frozen=True, slots=True)
class Point:
    """What counts as positive from one probability on."""

    threshold: float  #: inf at the start, where nothing does
    tp: int
    fp: int


def curve(judged: Judged) -> list[Point]:
    """The start, and a point for every distinct probability from the highest on."""
    points = [Point(math.inf, 0, 0)]
    tp = fp = 0
    for truth, p in sorted(judged, key=lambda row: -row[1]):
        tp, fp = tp + truth, fp + (not truth)
        if p == points[-1].threshold:
            points.pop()
        points.append(Point(p, tp, fp))
    return points


def auroc(points: Sequence[Point]) -> float | None:
    """The trapezoids under the curve; None where only one class is there."""
    twice = sum(
        (here.fp - before.fp) * (here.tp + before.tp)
        for before, here in pairwise(points)
    )
    whole = 2 * points[-1].tp * points[-1].fp
    return twice / whole if whole else None


def auprc(points: Sequence[Point]) -> float | None:
    """Each point's precision by the recall it adds; None without positives."""
    positives = points[-1].tp
    if not positives:
        return None
    steps = (
        (here.tp - before.tp) * here.tp / (here.tp + here.fp)
        for before, here in pairwise(points)
    )
    return math.fsum(steps) / positives


@dataclass(frozen=True, slots=True)
class Operating:
    """A point of the curve as rates; threshold inf: the start, NaN: between points."""

    tpr: float
    fpr: float
    threshold: float


def operating_point(
    points: Sequence[Point], target: float, rule: str
) -> Operating | None:
    """Where the false positive rate is at most *target*, or nearest to it.

    None where only one class is there. Rules are those of `Choices.tpr_rule`.
    """
    positives, negatives = points[-1].tp, points[-1].fp
    if not positives or not negatives:
        return None
    kept = points if rule in {"last", "interpolate"} else _corners(points)
    rates = [Operating(p.tp / positives, p.fp / negatives, p.threshold) for p in kept]
    if rule == "nearest":
        return min(rates, key=lambda rate: abs(rate.fpr - target))
    below = [rate for rate in rates if rate.fpr <= target]
    if rule == "interpolate" and len(below) < len(rates):
        left, right = below[-1], rates[len(below)]
        # the highest point of a vertical stretch is what interpolation sees
        right = max((r for r in rates if r.fpr == right.fpr), key=lambda r: r.tpr)
        share = (target - left.fpr) / (right.fpr - left.fpr)
        return Operating(left.tpr + share * (right.tpr - left.tpr), target, math.nan)
    return below[-1]


def _corners(points: Sequence[Point]) -> list[Point]:
    """The points at which the curve turns: what scikit-learn's `roc_curve` keeps.

    Its first and last point after the start always stay.
    """
    start, *rest = points
    turning = [
        here
        for before, here, after in zip(rest, rest[1:], rest[2:], strict=False)
        if (here.tp - before.tp, here.fp - before.fp)
        != (after.tp - here.tp, after.fp - here.fp)
    ]
    ends = rest[:1] if len(rest) == 1 else [rest[0], *turning, rest[-1]]
    return [start, *ends]


@dataclass(frozen=True, slots=True)
class _Bins:
    """How one rule of `Choices.ece_edges` puts probabilities into bins."""

    closed: Literal["right", "left"]
    lost: float | None = None  #: the border value that the loop forgets
    has_midpoint: bool = False  #: compares with the bin's middle, not its mean


_EDGES: Mapping[EdgeRule, _Bins] = {
    "right": _Bins("right"),
    "left": _Bins("left"),
    "right_drop_zero": _Bins("right", lost=0.0),
    "left_drop_one": _Bins("left", lost=1.0),
    "right_midpoint": _Bins("right", has_midpoint=True),
}


def ece(judged: Judged, choices: Choices) -> float | None:
    """The mean gap between what bins of one width said and what happened in them."""
    if not judged:
        return None
    return math.fsum(
        len(inside) / len(judged) * gap
        for inside, gap in _gaps(judged, choices.ece_edges, choices.ece_bins)
    )


def mce(judged: Judged, choices: Choices) -> float | None:
    """The largest of those gaps."""
    gaps = _gaps(judged, choices.ece_edges, choices.ece_bins)
    return max((gap for _, gap in gaps), default=None)


def _gaps(
    judged: Judged, rule: EdgeRule, bins: int
) -> Iterable[tuple[list[tuple[bool, float]], float]]:
    own = _EDGES[rule]
    # the doubles of numpy.linspace(0, 1, bins + 1): multiples of the rounded width
    edges = [i * (1 / bins) for i in range(bins)] + [1.0]
    by_bin: dict[int, list[tuple[bool, float]]] = {}
    for truth, p in judged:
        if p != own.lost:
            by_bin.setdefault(_bin_of(p, edges, own.closed), []).append((truth, p))
    for i, inside in sorted(by_bin.items()):
        said = (
            (edges[i] + edges[i + 1]) / 2
            if own.has_midpoint
            else math.fsum(p for _, p in inside) / len(inside)
        )
        happened = sum(truth for truth, _ in inside) / len(inside)
        yield inside, abs(said - happened)


def _bin_of(p: float, edges: Sequence[float], closed: Literal["right", "left"]) -> int:
    last = len(edges) - 2
    i = min(int(p * (last + 1)), last)
    # that was a guess by a rounded product; the edges decide
    if closed == "right":
        while i > 0 and p <= edges[i]:
            i -= 1
        while i < last and p > edges[i + 1]:
            i += 1
    else:
        while i > 0 and p < edges[i]:
            i -= 1
        while i < last and p >= edges[i + 1]:
            i += 1
    return i
