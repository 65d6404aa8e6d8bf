"""The metrics once more, by loops and fractions: what `verify` has no need of.

Nothing here is fast or clever; each function is its definition read aloud.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import product

Rows = Sequence[tuple[bool, float]]
Table = Sequence[Sequence[int]]
Rate = Fraction | float | None


def over(above: Fraction | int, below: Fraction | int) -> Fraction | None:
    return Fraction(above) / below if below else None


def rates(tp: int, fp: int, tn: int, fn: int, beta: int) -> dict[str, Rate]:
    n, sensitivity = tp + fp + tn + fn, over(tp, tp + fn)
    specificity = over(tn, tn + fp)
    balanced = plus = minus = None
    if sensitivity is not None and specificity is not None:
        balanced = (sensitivity + specificity) / 2
        plus = over(sensitivity, 1 - specificity)
        minus = over(1 - sensitivity, specificity)
    margins = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    matthews: Rate = 0.0 if n else None
    if margins:
        matthews = (tp * tn - fp * fn) / math.sqrt(margins)
    kappa = gwet = None
    if n:
        agreed = Fraction(tp + tn, n)
        included = Fraction(2 * tp + fp + fn, 2 * n)
        by_luck = 2 * included * (1 - included)
        gwet = (agreed - by_luck) / (1 - by_luck)
        by_chance = Fraction((tp + fp) * (tp + fn) + (tn + fp) * (tn + fn), n * n)
        kappa = over(agreed - by_chance, 1 - by_chance)
    return {
        "sensitivity": sensitivity,
        "specificity": specificity,
        "fpr": over(fp, fp + tn),
        "fnr": over(fn, tp + fn),
        "precision": over(tp, tp + fp),
        "npv": over(tn, tn + fn),
        "f1": over(2 * tp, 2 * tp + fp + fn),
        "fbeta": over((1 + beta**2) * tp, (1 + beta**2) * tp + fp + beta**2 * fn),
        "accuracy": over(tp + tn, n),
        "balanced_accuracy": balanced,
        "prevalence": over(tp + fn, n),
        "mcc": matthews,
        "kappa": kappa,
        "ac1": gwet,
        "lr_plus": plus,
        "lr_minus": minus,
        "nnr": over(tp + fp, tp),
    }


def counts(rows: Rows, tau: float, *, strict: bool = False) -> tuple[int, ...]:
    """tp, fp, tn, fn."""
    cells = dict.fromkeys(product((True, False), repeat=2), 0)
    for truth, p in rows:
        cells[truth, p > tau or (p == tau and not strict)] += 1
    return (
        cells[True, True],
        cells[False, True],
        cells[False, False],
        cells[True, False],
    )


def auroc(rows: Rows, weights: Sequence[int]) -> Rate:
    """Over all pairs of a positive and a negative row."""
    won, pairs = Fraction(0), 0
    for (truth, p), load in zip(rows, weights, strict=True):
        for (other, q), other_load in zip(rows, weights, strict=True):
            if truth and not other:
                pairs += load * other_load
                won += load * other_load * Fraction((p > q) - (p < q) + 1, 2)
    return over(won, pairs)


def auprc(rows: Rows, *, trapezoid: bool = False) -> Rate:
    positives = sum(truth for truth, _ in rows)
    if not positives:
        return None
    total, recalled, before = Fraction(0), 0, None
    for tau in sorted({p for _, p in rows}, reverse=True):
        tp, fp, _, _ = counts(rows, tau)
        precision = Fraction(tp, tp + fp)
        height = precision
        if trapezoid and before is not None:
            height = (precision + before) / 2
        total += (tp - recalled) * height
        recalled, before = tp, precision
    return total / positives


def brier(rows: Rows) -> Fraction:
    return sum((Fraction(p) - truth) ** 2 for truth, p in rows) / Fraction(len(rows))


def brier_parts(rows: Rows) -> tuple[Fraction, Fraction, Fraction]:
    """Reliability, resolution and uncertainty."""
    n, prevalence = len(rows), Fraction(sum(y for y, _ in rows), len(rows))
    reliability = resolution = Fraction(0)
    for p in {p for _, p in rows}:
        inside = [truth for truth, q in rows if q == p]
        rate = Fraction(sum(inside), len(inside))
        reliability += len(inside) * (Fraction(p) - rate) ** 2 / n
        resolution += len(inside) * (rate - prevalence) ** 2 / n
    return reliability, resolution, prevalence * (1 - prevalence)


def log_loss(rows: Rows, eps: float = 1e-15) -> float:
    total = 0.0
    for truth, p in rows:
        safe = min(max(p, eps), 1 - eps)
        total -= math.log(safe) if truth else math.log1p(-safe)
    return total / len(rows)


def adaptive_ece(rows: Rows, bins: int) -> Fraction:
    """Equal counts, the first bins one longer, after a stable sort."""
    ordered = sorted(rows, key=lambda row: row[1])
    size, longer = divmod(len(ordered), bins)
    total, start = Fraction(0), 0
    for i in range(bins):
        end = start + size + (i < longer)
        inside = ordered[start:end]
        gap = sum(Fraction(p) for _, p in inside) - sum(truth for truth, _ in inside)
        total += abs(Fraction(gap)) / len(ordered)
        start = end
    return total


def isotonic(points: Sequence[tuple[float, bool]]) -> dict[float, Fraction]:
    """By the formula of minima and maxima of means, not by pooling."""
    xs = sorted({x for x, _ in points})

    def mean_between(low: float, high: float) -> Fraction:
        inside = [truth for x, truth in points if low <= x <= high]
        return Fraction(sum(inside), len(inside))

    return {
        x: max(
            min(mean_between(low, high) for high in xs if high >= x)
            for low in xs
            if low <= x
        )
        for x in xs
    }


Grades = Mapping[str, int]


def dcg(gains: Sequence[float], k: int) -> float:
    return math.fsum(g / math.log2(i + 1) for i, g in enumerate(gains[:k], 1))


def graded_ndcg(
    grades: Grades, ranked: Sequence[str], k: int, gain: Callable[[int], int]
) -> float:
    best = sorted((gain(g) for g in grades.values()), reverse=True)
    return dcg([gain(grades.get(item, 0)) for item in ranked], k) / dcg(best, k)


def whole_list(grades: Grades, ranked: Sequence[str]) -> dict[str, Rate]:
    """R-precision, bpref and inferred average precision, as trec_eval has them."""
    relevant = sum(grade > 0 for grade in grades.values())
    refused = len(grades) - relevant
    preferred, inferred = Fraction(0), 0.0
    hits_above = misses_above = 0
    for rank, item in enumerate(ranked, 1):
        grade = grades.get(item)
        if grade:
            penalty = min(misses_above, relevant)
            bound = min(refused, relevant)
            preferred += 1 - (Fraction(penalty, bound) if bound else 0)
            judged = hits_above + misses_above
            share = (hits_above + 0.00001) / (judged + 0.00002)
            inferred += (1 + judged * share) / rank
            hits_above += 1
        elif grade == 0:
            misses_above += 1
    at_r = sum(grades.get(item, 0) > 0 for item in ranked[:relevant])
    return {
        "rprec": Fraction(at_r, relevant),
        "bpref": preferred / relevant,
        "infap": inferred / relevant,
    }


def rbp(grades: Grades, ranked: Sequence[str], p: float) -> tuple[float, float]:
    """The value, and what unjudged items could add."""
    value, unknown = 0.0, p ** len(ranked)
    for i, item in enumerate(ranked):
        load = (1 - p) * p**i
        value += load if grades.get(item) else 0.0
        unknown += load if item not in grades else 0.0
    return value, unknown


def f1(y: Sequence[int], h: Sequence[int]) -> Fraction | None:
    both = sum(a and b for a, b in zip(y, h, strict=True))
    return over(2 * both, sum(y) + sum(h))


def multilabel(truth: Table, decided: Table) -> dict[str, Rate]:
    pairs = list(zip(truth, decided, strict=True))
    labels = list(
        zip(zip(*truth, strict=True), zip(*decided, strict=True), strict=True)
    )
    cells = [(a, b) for y, h in pairs for a, b in zip(y, h, strict=True)]
    items, names = [f1(y, h) for y, h in pairs], [f1(y, h) for y, h in labels]
    jaccard = [
        over(
            sum(a and b for a, b in zip(y, h, strict=True)),
            sum(a or b for a, b in zip(y, h, strict=True)),
        )
        for y, h in pairs
    ]
    return {
        "exact_match": Fraction(sum(list(y) == list(h) for y, h in pairs), len(pairs)),
        "hamming_score": Fraction(sum(a == b for a, b in cells), len(cells)),
        "jaccard_per_item": mean(jaccard),
        "micro_f1": f1([a for a, _ in cells], [b for _, b in cells]),
        "f1_per_item": mean([value or Fraction(0) for value in items]),
        "f1_per_item_empty_one": mean(
            [Fraction(1) if value is None else value for value in items]
        ),
        "f1_per_item_defined": mean(items),
        "weighted_f1_per_item": weighted(items, [sum(y) for y in truth]),
        "macro_f1_over_labels": mean(names),
        "weighted_f1_over_labels": weighted(names, [sum(y) for y, _ in labels]),
    }


def mean(values: Sequence[Fraction | None]) -> Fraction | None:
    there = [value for value in values if value is not None]
    return over(sum(there, Fraction(0)), len(there))


def weighted(values: Sequence[Fraction | None], loads: Sequence[int]) -> Rate:
    total = sum(
        (value * load for value, load in zip(values, loads, strict=True) if value),
        Fraction(0),
    )
    return over(total, sum(loads))
