"""Classification: counts, rates, ROC, precision-recall; several classes or labels.

A row counts as positive where its score is at least the threshold. Curves have a point
for every distinct score; none is dropped. Undefined is None, or NaN inside arrays of
rates.

Tables are (items, labels) of 0 and 1, complete. On sparse labels the three readings of
macro F1 differ threefold, hence the long names.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from jobs.kit.metrics.columns import (
    Bools,
    Column,
    Floats,
    as_value,
    check_same_length,
    labels,
    quotient,
    ratio,
    scores,
    weights,
)


@dataclass(frozen=True, slots=True)
class Confusion:
    """Rows by truth and decision; sums of weights where rows have weights."""

    tp: float
    fp: float
    tn: float
    fn: float

    @property
    def n(self) -> float:
        """All of them."""
        return self.tp + self.fp + self.tn + self.fn


def confusion(y: Column, h: Column, weight: Column | None = None) -> Confusion:
    """Return the confusion counts of decisions *h* and truth *y*, both 0 or 1.

    Whole numbers unless rows have weights.
    """
    truth, decided = labels("y", y), labels("h", h)
    check_same_length(y=truth, h=decided)
    parts = (truth & decided, ~truth & decided, ~truth & ~decided, truth & ~decided)
    if weight is None:
        return Confusion(*(int(np.count_nonzero(part)) for part in parts))
    loads = weights("weight", weight, len(truth))
    return Confusion(*(math.fsum(loads[part]) for part in parts))


def at_threshold(score: Column, tau: float, *, strict: bool = False) -> Bools:
    """Return which rows are positive: at *tau* or above; only above if *strict*."""
    column = scores("score", score)
    return column > tau if strict else column >= tau


def rates(counts: Confusion, beta: float = 1.0) -> Mapping[str, float | None]:
    """Every rate of a confusion by name; None where it is undefined.

    Names: sensitivity, specificity, fpr, fnr, precision, npv, f1, fbeta, accuracy,
    balanced_accuracy, prevalence, mcc, kappa, ac1, lr_plus, lr_minus, nnr. The
    correlation of Matthews is 0.0, not undefined, where a margin is empty, as
    scikit-learn has it; kappa and ac1 (Cohen, 1960; Gwet, 2008) are of decision and
    truth as two judges.
    """
    columns = rate_columns(counts.tp, counts.fp, counts.tn, counts.fn, beta=beta)
    return {name: as_value(float(column)) for name, column in columns.items()}


def rate_columns(
    tp: npt.ArrayLike,
    fp: npt.ArrayLike,
    tn: npt.ArrayLike,
    fn: npt.ArrayLike,
    *,
    beta: float = 1.0,
) -> Mapping[str, Floats]:
    """The rates of many confusions at once; NaN where one is undefined."""
    # in doubles: the product under Matthews' root overflows integers of 64 bits
    a, b, d, c = (np.asarray(x, dtype=np.float64) for x in (tp, fp, tn, fn))
    n = a + b + c + d
    sensitivity, specificity = quotient(a, a + c), quotient(d, d + b)
    # not 1 less the others: what is left of a rate near 1 has few digits
    fpr, fnr = quotient(b, b + d), quotient(c, a + c)
    b2 = beta * beta
    margins = np.sqrt((a + b) * (a + c)) * np.sqrt((d + b) * (d + c))
    matthews = quotient(a * d - b * c, margins)
    agreed = (a + b) * (b + d) + (a + c) * (c + d)
    # Gwet's chance agreement 2 q (1 - q), times 2 n^2: q is the mean share of positives
    by_chance = (2 * a + b + c) * (2 * d + b + c)
    return {
        "sensitivity": sensitivity,
        "specificity": specificity,
        "fpr": fpr,
        "fnr": fnr,
        "precision": quotient(a, a + b),
        "npv": quotient(d, d + c),
        "f1": quotient(2 * a, 2 * a + b + c),
        "fbeta": quotient((1 + b2) * a, (1 + b2) * a + b + b2 * c),
        "accuracy": quotient(a + d, n),
        "balanced_accuracy": (sensitivity + specificity) / 2,
        "prevalence": quotient(a + c, n),
        "mcc": np.where((n > 0) & np.isnan(matthews), 0.0, matthews),
        "kappa": quotient(2 * (a * d - b * c), agreed),
        "ac1": quotient(2 * n * (a + d) - by_chance, 2 * n * n - by_chance),
        "lr_plus": quotient(sensitivity, fpr),
        "lr_minus": quotient(fnr, specificity),
        "nnr": quotient(a + b, a),
    }


@dataclass(frozen=True, slots=True)
class Curve:
    """Counts above each distinct score, from the highest score to the lowest.

    The first point is the start: nothing counts as positive, its threshold is inf.
    """

    threshold: Floats
    tp: Floats
    fp: Floats

    @property
    def positives(self) -> float:
        """Rows that are positive in truth, or their weight."""
        return float(self.tp[-1])

    @property
    def negatives(self) -> float:
        """Rows that are negative in truth, or their weight."""
        return float(self.fp[-1])

    @property
    def tpr(self) -> Floats:
        """Sensitivity at each point; NaN without positives."""
        return quotient(self.tp, self.positives)

    @property
    def fpr(self) -> Floats:
        """False positive rate at each point; NaN without negatives."""
        return quotient(self.fp, self.negatives)

    @property
    def precision(self) -> Floats:
        """Precision at each point; NaN at the start."""
        return quotient(self.tp, self.tp + self.fp)


def curve(y: Column, score: Column, weight: Column | None = None) -> Curve:
    """All operating points of a score."""
    truth, column = labels("y", y), scores("score", score)
    check_same_length(y=truth, score=column)
    loads = weights("weight", weight, len(truth))
    order = np.argsort(-column, kind="stable")
    column, truth, loads = column[order], truth[order], loads[order]
    ends = np.append(np.flatnonzero(np.diff(column)), len(column) - 1)
    ends = ends[ends >= 0]
    return Curve(
        threshold=np.concatenate(([np.inf], column[ends])),
        tp=np.concatenate(([0.0], np.cumsum(loads * truth)[ends])),
        fp=np.concatenate(([0.0], np.cumsum(loads * ~truth)[ends])),
    )


def auroc(y: Column, score: Column, weight: Column | None = None) -> float | None:
    """Area under the ROC curve: P(positive above negative) + half of P(tie).

    None where only one class is there.
    """
    points = curve(y, score, weight)
    return ratio_of_areas(points.tp, points.fp)


def ratio_of_areas(tp: Floats, fp: Floats) -> float | None:
    """The trapezoids under cumulative counts by the rectangle around them."""
    twice = math.fsum(np.diff(fp) * (tp[1:] + tp[:-1]))
    whole = 2 * float(tp[-1]) * float(fp[-1])
    return twice / whole if whole else None


def auprc(
    y: Column,
    score: Column,
    weight: Column | None = None,
    *,
    method: Literal["steps", "trapezoid"] = "steps",
) -> float | None:
    """Average precision: the precision at each distinct score by the recall it adds.

    The line to compare it with is the prevalence. `trapezoid` joins the points, which
    is optimistic (Davis and Goadrich, 2006). None without positives.
    """
    points = curve(y, score, weight)
    if not points.positives:
        return None
    added = np.diff(points.tp)
    precision = np.nan_to_num(points.precision[1:])
    if method == "trapezoid":
        before = np.concatenate((precision[:1], precision[:-1]))
        precision = (precision + before) / 2
    return math.fsum(added * precision) / points.positives


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatingPoint:
    """A point of the ROC curve; threshold None: at its start, or between two points."""

    tpr: float
    fpr: float
    threshold: float | None


Vertex = Literal["last", "interpolate", "drop_collinear", "nearest"]


def tpr_at_fpr(
    y: Column, score: Column, target: float, *, vertex: Vertex = "last"
) -> OperatingPoint | None:
    """Sensitivity at a false positive rate of at most *target*.

    `last`: the last point whose rate is at most the target. `drop_collinear`: likewise
    among the points that scikit-learn's `roc_curve` keeps, which can lose that point.
    `nearest`: the kept point whose rate is nearest, which can exceed the target.
    `interpolate`: on the line between the points around the target. None where only one
    class is there.
    """
    points = curve(y, score)
    if not points.positives or not points.negatives:
        return None
    tpr, fpr, threshold = points.tpr, points.fpr, points.threshold
    if vertex == "interpolate":
        interpolated = float(np.interp(target, *_upper(fpr, tpr)))
        return OperatingPoint(tpr=interpolated, fpr=target, threshold=None)
    if vertex in {"drop_collinear", "nearest"}:
        corners = _corners(points)
        tpr, fpr, threshold = tpr[corners], fpr[corners], threshold[corners]
    if vertex == "nearest":
        index = int(np.argmin(np.abs(fpr - target)))
    else:
        index = int(np.searchsorted(fpr, target, side="right")) - 1
    reached = float(threshold[index])
    return OperatingPoint(
        tpr=float(tpr[index]),
        fpr=float(fpr[index]),
        threshold=None if math.isinf(reached) else reached,
    )


def _upper(fpr: Floats, tpr: Floats) -> tuple[Floats, Floats]:
    """The highest point at each false positive rate.

    Where the curve goes straight up, interpolation needs one value.
    """
    last = np.append(np.flatnonzero(np.diff(fpr)), len(fpr) - 1)
    return fpr[last], tpr[last]


def _corners(points: Curve) -> npt.NDArray[np.intp]:
    """The points where the curve changes its direction, with the start.

    What scikit-learn's `drop_intermediate` keeps: it compares the points after the
    start, so the first and the last of them always stay.
    """
    tp, fp = points.tp[1:], points.fp[1:]
    turns = (np.diff(tp, 2) != 0) | (np.diff(fp, 2) != 0)
    if len(tp) == 1:
        return np.array([0, 1])
    inner = np.flatnonzero(np.concatenate(([True], turns, [True])))
    return np.concatenate(([0], inner + 1))


@dataclass(frozen=True, slots=True)
class CountGrid:
    """The four counts at each of many thresholds."""

    taus: Floats
    tp: Floats
    fp: Floats
    tn: Floats
    fn: Floats


def threshold_grid(y: Column, p: Column, taus: Column) -> CountGrid:
    """The counts at every threshold of *taus* from one sort."""
    truth, column = labels("y", y), scores("p", p)
    check_same_length(y=truth, p=column)
    at = scores("taus", taus)
    above = {
        kind: len(part) - np.searchsorted(np.sort(part), at, side="left")
        for kind, part in ((True, column[truth]), (False, column[~truth]))
    }
    tp, fp = above[True].astype(np.float64), above[False].astype(np.float64)
    positives = float(np.count_nonzero(truth))
    return CountGrid(
        taus=at, tp=tp, fp=fp, tn=len(truth) - positives - fp, fn=positives - tp
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassRates:
    """Precision, recall and F1 of one class, or averaged over classes."""

    precision: float | None
    recall: float | None
    f1: float | None
    support: int  #: items of that class in truth
    n_defined: int = 1  #: classes whose F1 has a value, for the macro average


@dataclass(frozen=True, slots=True, kw_only=True)
class Multiclass:
    """Confusion of decisions among several classes."""

    by_label: Mapping[str, ClassRates]
    macro: ClassRates  #: plain means over the classes where the rate is defined
    weighted: ClassRates  #: means by support
    accuracy: float | None  #: also micro precision, recall and F1
    matrix: tuple[tuple[int, ...], ...]  #: truth down, decisions across, as the labels


def multiclass(y: Sequence[str], h: Sequence[str], names: Sequence[str]) -> Multiclass:
    """Rates of a decision among the classes *names*, which are given, not inferred.

    Raises:
        ValueError: where lengths differ, or a class is not among the names.
    """
    check_same_length(y=y, h=h)
    index = {name: i for i, name in enumerate(names)}
    for argument, column in (("y", y), ("h", h)):
        for i, name in enumerate(column):
            if name not in index:
                raise ValueError(f"{argument} holds {name!r} at index {i}, no label.")
    k = len(names)
    cells = np.bincount(
        [index[a] * k + index[b] for a, b in zip(y, h, strict=True)], minlength=k * k
    ).reshape(k, k)
    tp, truth, decided = np.diag(cells), cells.sum(axis=1), cells.sum(axis=0)
    columns = {
        "precision": quotient(tp, decided),
        "recall": quotient(tp, truth),
        "f1": quotient(2 * tp, truth + decided),
    }
    by_label = {
        name: ClassRates(
            precision=as_value(columns["precision"][i]),
            recall=as_value(columns["recall"][i]),
            f1=as_value(columns["f1"][i]),
            support=int(truth[i]),
        )
        for i, name in enumerate(names)
    }
    return Multiclass(
        by_label=by_label,
        macro=_averaged(columns, np.ones(k), len(y)),
        weighted=_averaged(columns, truth.astype(np.float64), len(y)),
        accuracy=as_value(float(quotient(tp.sum(), len(y)))),
        matrix=tuple(tuple(int(n) for n in row) for row in cells),
    )


def _averaged(columns: Mapping[str, Floats], load: Floats, n: int) -> ClassRates:
    return ClassRates(
        precision=_weighted(columns["precision"], load),
        recall=_weighted(columns["recall"], load),
        f1=_weighted(columns["f1"], load),
        support=n,
        n_defined=int(np.count_nonzero(~np.isnan(columns["f1"]))),
    )


def _weighted(column: Floats, load: Floats) -> float | None:
    is_defined = ~np.isnan(column)
    total = math.fsum(load[is_defined])
    return math.fsum((column * load)[is_defined]) / total if total else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Multilabel:
    """Figures of a decision table against the truth; None where undefined."""

    items: int
    labels: int
    exact_match: float | None  #: also subset accuracy
    hamming_score: float | None  #: share of right cells; not subset accuracy
    jaccard_per_item: float | None  #: mean over items with something to find or found
    jaccard_defined: int  #: how many those are
    micro_f1: float | None  #: over all cells
    f1_per_item: float | None  #: items with nothing to find and nothing found count 0
    f1_per_item_empty_one: float | None  #: those count 1
    f1_per_item_defined: float | None  #: those are left out
    f1_per_item_n_defined: int
    weighted_f1_per_item: float | None  #: by the item's positives
    macro_f1_over_labels: float | None  #: mean over labels where it is defined
    macro_f1_n_defined: int
    weighted_f1_over_labels: float | None  #: by the label's positives

    @property
    def hamming_loss(self) -> float | None:
        """Share of wrong cells."""
        return None if self.hamming_score is None else 1 - self.hamming_score


def multilabel(
    truth: Sequence[Sequence[int]] | npt.NDArray[np.generic],
    decided: Sequence[Sequence[int]] | npt.NDArray[np.generic],
) -> Multilabel:
    """All figures of two tables of one shape.

    Raises:
        ValueError: where the shapes differ, or a cell is not 0 or 1.
    """
    y, h = _table("truth", truth), _table("decided", decided)
    if y.shape != h.shape:
        raise ValueError(f"truth has the shape {y.shape} and decided {h.shape}.")
    items, width = y.shape
    per_item, per_label = _f1(y, h, axis=1), _f1(y, h, axis=0)
    both, either = (y & h).sum(axis=1), (y | h).sum(axis=1)
    jaccard = quotient(both, either)
    is_defined = ~np.isnan(per_item)
    whole = int(y.sum() + h.sum())
    return Multilabel(
        items=items,
        labels=width,
        exact_match=ratio(int((y == h).all(axis=1).sum()), items),
        hamming_score=ratio(int((y == h).sum()), items * width),
        jaccard_per_item=_mean(jaccard),
        jaccard_defined=int(np.count_nonzero(~np.isnan(jaccard))),
        micro_f1=ratio(2 * int((y & h).sum()), whole),
        f1_per_item=_mean(np.where(is_defined, per_item, 0.0)),
        f1_per_item_empty_one=_mean(np.where(is_defined, per_item, 1.0)),
        f1_per_item_defined=_mean(per_item),
        f1_per_item_n_defined=int(is_defined.sum()),
        weighted_f1_per_item=_weighted_mean(per_item, y.sum(axis=1)),
        macro_f1_over_labels=_mean(per_label),
        macro_f1_n_defined=int(np.count_nonzero(~np.isnan(per_label))),
        weighted_f1_over_labels=_weighted_mean(per_label, y.sum(axis=0)),
    )


def _table(
    name: str, values: Sequence[Sequence[int]] | npt.NDArray[np.generic]
) -> Bools:
    table: npt.NDArray[np.generic] = np.asarray(values)
    if table.ndim != len(("items", "labels")):
        raise ValueError(f"{name} must be a table of items by labels.")
    cells: Bools = labels(name, table.ravel()).reshape(table.shape)
    return cells


def _f1(y: Bools, h: Bools, axis: int) -> Floats:
    return quotient(2 * (y & h).sum(axis=axis), y.sum(axis=axis) + h.sum(axis=axis))


def _mean(column: Floats) -> float | None:
    defined = column[~np.isnan(column)]
    return math.fsum(defined) / len(defined) if len(defined) else None


def _weighted_mean(column: Floats, load: npt.NDArray[np.int_]) -> float | None:
    """The mean by *load*; an undefined value has no load."""
    total = math.fsum(np.nan_to_num(column) * load)
    return as_value(float(quotient(total, load.sum())))


def ppv_at_prevalence(
    sensitivity: float | None, specificity: float | None, prevalence: float
) -> float | None:
    """The precision that these rates would have where positives are that common.

    Bayes' rule; a set that was drawn has a precision of its own making.
    """
    if sensitivity is None or specificity is None:
        return None
    return as_value(
        float(ppv_columns(np.array(sensitivity), np.array(specificity), prevalence))
    )


def ppv_columns(sensitivity: Floats, specificity: Floats, prevalence: float) -> Floats:
    """Return that precision for arrays of rates; NaN where it is undefined."""
    right = sensitivity * prevalence
    return quotient(right, right + (1 - specificity) * (1 - prevalence))
