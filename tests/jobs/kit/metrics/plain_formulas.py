"""A second computation of curves, calibration, rates and rankings, by plain loops.

The oracle of `jobs.kit.metrics`: it imports nothing of it, and no numpy, so that what
both agree on is more than one reading repeated.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias

from jobs.evidence_retrieval.verification.definitions import (
    EdgeRule,
    MetricDefinitions,
    QueryRow,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldRanks:
    """Where a list holds the gold of its query."""

    ranks: tuple[int, ...]  #: from 1, rising
    gold: int  #: how many there are to find
    length: int  #: of the list

    def within(self, k: int) -> int:
        """How many stand among the first *k*."""
        return sum(rank <= k for rank in self.ranks)


def gold_ranks(gold: Iterable[str], ranked: Sequence[str]) -> GoldRanks:
    """Compare a list with the gold of its query; doubles in the gold count once."""
    gold_items = set(gold)
    ranks = tuple(rank for rank, item in enumerate(ranked, 1) if item in gold_items)
    return GoldRanks(ranks=ranks, gold=len(gold_items), length=len(ranked))


Judged: TypeAlias = Sequence[tuple[bool, float]]
"""Truth and probability of each row."""


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """What counts as positive from one probability on."""

    threshold: float  #: inf at the start, where nothing does
    tp: int
    fp: int


def curve(judged: Judged) -> list[CurvePoint]:
    """The start, and a point for every distinct probability from the highest on."""
    points = [CurvePoint(math.inf, 0, 0)]
    tp = fp = 0
    for truth, p in sorted(judged, key=lambda row: -row[1]):
        tp, fp = tp + truth, fp + (not truth)
        if p == points[-1].threshold:
            points.pop()
        points.append(CurvePoint(p, tp, fp))
    return points


def auroc(points: Sequence[CurvePoint]) -> float | None:
    """The trapezoids under the curve; None where only one class is there."""
    twice = sum(
        (here.fp - before.fp) * (here.tp + before.tp)
        for before, here in pairwise(points)
    )
    whole = 2 * points[-1].tp * points[-1].fp
    return twice / whole if whole else None


def auprc(points: Sequence[CurvePoint]) -> float | None:
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
class OperatingRates:
    """A point of the curve as rates; threshold inf: the start, NaN: between points."""

    tpr: float
    fpr: float
    threshold: float


def operating_point(
    points: Sequence[CurvePoint], target: float, rule: str
) -> OperatingRates | None:
    """Where the false positive rate is at most *target*, or nearest to it.

    None where only one class is there. Rules are those of `MetricDefinitions.tpr_rule`.
    """
    positives, negatives = points[-1].tp, points[-1].fp
    if not positives or not negatives:
        return None
    candidate_points = points if rule in {"last", "interpolate"} else _corners(points)
    rates = [
        OperatingRates(p.tp / positives, p.fp / negatives, p.threshold)
        for p in candidate_points
    ]
    if rule == "nearest":
        return min(rates, key=lambda rate: abs(rate.fpr - target))
    below = [rate for rate in rates if rate.fpr <= target]
    if rule == "interpolate" and len(below) < len(rates):
        left, right = below[-1], rates[len(below)]
        # the highest point of a vertical stretch is what interpolation sees
        right = max((r for r in rates if r.fpr == right.fpr), key=lambda r: r.tpr)
        share = (target - left.fpr) / (right.fpr - left.fpr)
        return OperatingRates(
            left.tpr + share * (right.tpr - left.tpr), target, math.nan
        )
    return below[-1]


def _corners(points: Sequence[CurvePoint]) -> list[CurvePoint]:
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
    """How one rule of `MetricDefinitions.ece_edges` puts probabilities into bins."""

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


def ece(judged: Judged, choices: MetricDefinitions) -> float | None:
    """The mean gap between what bins of one width said and what happened in them."""
    if not judged:
        return None
    return math.fsum(
        len(inside) / len(judged) * gap
        for inside, gap in _gaps(judged, choices.ece_edges, choices.ece_bins)
    )


def mce(judged: Judged, choices: MetricDefinitions) -> float | None:
    """The largest of those gaps."""
    gaps = _gaps(judged, choices.ece_edges, choices.ece_bins)
    return max((gap for _, gap in gaps), default=None)


def _gaps(
    judged: Judged, rule: EdgeRule, bins: int
) -> Iterable[tuple[list[tuple[bool, float]], float]]:
    edge = _EDGES[rule]
    # the doubles of numpy.linspace(0, 1, bins + 1): multiples of the rounded width
    edges = [i * (1 / bins) for i in range(bins)] + [1.0]
    by_bin: dict[int, list[tuple[bool, float]]] = {}
    for truth, p in judged:
        if p != edge.lost:
            by_bin.setdefault(_bin_of(p, edges, edge.closed), []).append((truth, p))
    for i, inside in sorted(by_bin.items()):
        expected = (
            (edges[i] + edges[i + 1]) / 2
            if edge.has_midpoint
            else math.fsum(p for _, p in inside) / len(inside)
        )
        happened = sum(truth for truth, _ in inside) / len(inside)
        yield inside, abs(expected - happened)


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


NEG, UNCERTAIN, POS = STATES = ("NEG", "UNCERTAIN", "POS")


def state_of(query: QueryRow, choices: MetricDefinitions) -> str:
    """The state by probability and thresholds, or the file's own; "" where neither is.

    POS from tau_pos on, NEG below tau_neg; at both, POS.
    """
    if choices.states == "column":
        return query.state
    p, low, high = query.p, query.tau_neg, query.tau_pos
    if p is None or low is None or high is None:
        return ""
    if p > high or (p == high and not choices.strict):
        return POS
    if p < low or (p == low and (choices.strict or choices.gate_edge == "le")):
        return NEG
    return UNCERTAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class StateCounts:
    """Queries by truth and by what the gate does with them."""

    neg_true: int  #: skipped although they have evidence
    neg_false: int
    pos_true: int
    pos_false: int  #: alerts for nothing
    true: int
    false: int

    @property
    def n(self) -> int:
        """All queries with a state."""
        return self.true + self.false


def count(stated: Iterable[tuple[bool, str]]) -> StateCounts:
    """Count truths by state."""
    cells = Counter(stated)
    by_truth = {
        truth: sum(cells[truth, state] for state in STATES) for truth in (True, False)
    }
    return StateCounts(
        neg_true=cells[True, NEG],
        neg_false=cells[False, NEG],
        pos_true=cells[True, POS],
        pos_false=cells[False, POS],
        true=by_truth[True],
        false=by_truth[False],
    )


Rate: TypeAlias = Callable[[StateCounts, MetricDefinitions], tuple[float, int]]
"""A rate as what stands above and below the line."""


def _missed(counts: StateCounts, choices: MetricDefinitions) -> tuple[float, int]:
    below = counts.n if choices.fn_per_1000 == "all" else counts.true
    return 1000 * counts.neg_true, below


RATES: Mapping[str, Rate] = {
    "neg_rate": lambda c, _: (c.neg_true + c.neg_false, c.n),
    "uncertain_rate": lambda c, _: (
        c.n - c.neg_true - c.neg_false - c.pos_true - c.pos_false,
        c.n,
    ),
    "pos_rate": lambda c, _: (c.pos_true + c.pos_false, c.n),
    "screening_sensitivity": lambda c, _: (c.true - c.neg_true, c.true),
    "screening_specificity": lambda c, _: (c.neg_false, c.false),
    "screening_fpr": lambda c, _: (c.false - c.neg_false, c.false),
    "screening_npv": lambda c, _: (c.neg_false, c.neg_true + c.neg_false),
    "screening_fn_per_1000": _missed,
    "screening_fn_per_1000_positive": lambda c, _: (1000 * c.neg_true, c.true),
    "alert_precision": lambda c, _: (c.pos_true, c.pos_true + c.pos_false),
    "alert_recall": lambda c, _: (c.pos_true, c.true),
    "alert_fpr": lambda c, _: (c.pos_false, c.false),
    "alerts_per_1000": lambda c, _: (1000 * (c.pos_true + c.pos_false), c.n),
}


def rate(name: str, counts: StateCounts, choices: MetricDefinitions) -> float | None:
    """One of `RATES`; the value of 0/0 is the choice's."""
    above, below = RATES[name](counts, choices)
    return above / below if below else choices.zero_division


def recall(gold_ranks: GoldRanks, k: int, choices: MetricDefinitions) -> float:
    """Share of the gold among the first *k*."""
    del choices
    return gold_ranks.within(k) / gold_ranks.gold if gold_ranks.gold else 0.0


def precision(gold_ranks: GoldRanks, k: int, choices: MetricDefinitions) -> float:
    """Share of the first *k* that is gold; 0 of none is 0."""
    below = min(k, gold_ranks.length) if choices.precision_over == "k_eff" else k
    return gold_ranks.within(k) / below if below else 0.0


def hit(gold_ranks: GoldRanks, k: int, choices: MetricDefinitions) -> float:
    """Whether any gold is among the first *k*."""
    del choices
    return float(gold_ranks.within(k) > 0)


def reciprocal_rank(gold_ranks: GoldRanks, k: int, choices: MetricDefinitions) -> float:
    """1 / rank of the first gold, 0 where it stands below *k*."""
    del choices
    return 1 / gold_ranks.ranks[0] if gold_ranks.within(k) else 0.0


def average_precision(
    gold_ranks: GoldRanks, k: int, choices: MetricDefinitions
) -> float:
    """Precision at each gold among the first *k*, by the chosen denominator."""
    top = gold_ranks.ranks[: gold_ranks.within(k)]
    total = 0.0
    for so_far, rank in enumerate(top, 1):
        total += so_far / rank
    below = {"gold": gold_ranks.gold, "min": min(gold_ranks.gold, k), "found": len(top)}
    divisor = below[choices.ap_denominator]
    return total / divisor if divisor else 0.0


def ndcg(gold_ranks: GoldRanks, k: int, choices: MetricDefinitions) -> float:
    """Discounted gain of the first *k* by that of the best list there could be."""
    del choices
    best = _discounted(range(1, min(gold_ranks.gold, k) + 1))
    return _discounted(gold_ranks.ranks[: gold_ranks.within(k)]) / best if best else 0.0


def _discounted(ranks: range | tuple[int, ...]) -> float:
    total = 0.0
    for rank in ranks:
        total += 1 / math.log2(rank + 1)
    return total


MEASURES: Mapping[str, Callable[[GoldRanks, int, MetricDefinitions], float]] = {
    "recall": recall,
    "precision": precision,
    "hit": hit,
    "mrr": reciprocal_rank,
    "map": average_precision,
    "ndcg": ndcg,
}
