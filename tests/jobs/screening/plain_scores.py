"""The scoring of screening once more, by loops and fractions, as its definitions read.

Nothing here is fast or shared with the job: a record is a line of text and numbers, a
review a list of them, and a replicate of the bootstrap a list of reviews.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

Value = Fraction | float | int | None

FILLED = {"include": 1.0, "exclude": 0.0}
"""What stands for a probability that is not there; 0.5 for anything else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One record and what was said of it."""

    review: str
    paper: str
    kind: str
    outcome: str
    p: float | None
    ended: int = 0

    @property
    def is_positive(self) -> bool:
        return self.kind == "included"


def over(above: Value, below: Value) -> Value:
    if above is None or not below:
        return None
    return Fraction(above) / Fraction(below)


def read(line: Line, unclear: str, tau: float | None) -> str | None:
    """Include, exclude or nothing."""
    outcome = line.outcome
    if tau is not None and line.p is not None:
        outcome = "include" if line.p >= tau else "exclude"
    if outcome in {"include", "exclude"}:
        return outcome
    if outcome in {"unclear", "unparsed", "failed"} and unclear != "outside":
        return unclear
    return None


def said(line: Line, other: str, tau: float | None) -> str:
    """Include or exclude; whatever is neither is the *other* one."""
    return read(line, "outside", tau) or other


def matrix(calls: Sequence[tuple[bool, str | None]]) -> tuple[int, int, int, int]:
    """tp, fp, tn, fn of what was decided."""
    tp = sum(truth and call == "include" for truth, call in calls)
    fp = sum(not truth and call == "include" for truth, call in calls)
    tn = sum(not truth and call == "exclude" for truth, call in calls)
    fn = sum(truth and call == "exclude" for truth, call in calls)
    return tp, fp, tn, fn


def rates(tp: int, fp: int, tn: int, fn: int, records: int) -> dict[str, Value]:
    n = tp + fp + tn + fn
    sensitivity, specificity = over(tp, tp + fn), over(tn, tn + fp)
    precision = over(tp, tp + fp)
    margins = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    balanced = kappa = ac1 = mcc = None
    if sensitivity is not None and specificity is not None:
        balanced = (sensitivity + specificity) / 2
    if n:
        mcc = (tp * tn - fp * fn) / math.sqrt(margins) if margins else 0.0
        agreed = Fraction(tp + tn, n)
        told, true = Fraction(tp + fp, n), Fraction(tp + fn, n)
        kappa_chance = told * true + (1 - told) * (1 - true)
        kappa = over(agreed - kappa_chance, 1 - kappa_chance)
        q = (told + true) / 2
        ac1 = over(agreed - 2 * q * (1 - q), 1 - 2 * q * (1 - q))
    return {
        "coverage": over(n, records),
        "sensitivity": sensitivity,
        "specificity": specificity,
        "fpr": over(fp, fp + tn),
        "precision": precision,
        "npv": over(tn, tn + fn),
        "f1": over(2 * tp, 2 * tp + fp + fn),
        "f2": over(5 * tp, 5 * tp + 4 * fn + fp),
        "accuracy": over(tp + tn, n),
        "nnr": over(1, precision),
        "workload_reduction": over(tn + fn, n),
        "balanced_accuracy": balanced,
        "mcc": mcc,
        "kappa": kappa,
        "ac1": ac1,
    }


def pooled(
    lines: Sequence[Line], unclear: str = "outside", tau: float | None = None
) -> dict[str, Value]:
    """Every rate of some records together, both readings of the undecided included."""
    calls = [(line.is_positive, read(line, unclear, tau)) for line in lines]
    found = rates(*matrix(calls), len(lines))
    for reading, other in (("as_include", "include"), ("as_exclude", "exclude")):
        calls = [(line.is_positive, said(line, other, tau)) for line in lines]
        again = rates(*matrix(calls), len(lines))
        for word in ("sensitivity", "specificity", "f1"):
            found[f"{reading}.{word}"] = again[word]
    return found


def foretold(sensitivity: Value, specificity: Value, prevalence: Fraction) -> Value:
    if sensitivity is None or specificity is None:
        return None
    right = sensitivity * prevalence
    return over(right, right + (1 - specificity) * (1 - prevalence))


def height(line: Line) -> tuple[int, float]:
    """Stages passed, then the probability or what stands for it."""
    filled = FILLED.get(line.outcome, 0.5)
    return line.ended, filled if line.p is None else line.p


def ranked(lines: Sequence[Line]) -> list[Line]:
    by_id = sorted(lines, key=lambda line: line.paper)
    return sorted(by_id, key=height, reverse=True)


def first_rank(labels: Sequence[bool], percent: int) -> int:
    n = sum(labels)
    return next(
        k for k in range(1, len(labels) + 1) if 100 * sum(labels[:k]) >= percent * n
    )


def ranking(lines: Sequence[Line]) -> dict[str, Value]:
    """What reading one review in order saves; nothing is defined with one class."""
    order = ranked(lines)
    labels = [line.is_positive for line in order]
    total, n = len(labels), sum(labels)
    names = (
        "wss95", "wss100", "tnr95", "recall_at_10pct", "atd", "last_relevant_rank",
        "loss", "ndcg", "auroc", "ap",
    )  # fmt: skip
    if n in {0, total}:
        return dict.fromkeys(names)
    k95, k100 = first_rank(labels, 95), first_rank(labels, 100)
    ranks = [rank for rank, label in enumerate(labels, start=1) if label]
    found = [sum(labels[:rank]) for rank in range(1, total + 1)]
    pairs = [
        Fraction(height(a) > height(b)) + Fraction(height(a) == height(b), 2)
        for a in order
        if a.is_positive
        for b in order
        if not b.is_positive
    ]
    return {
        "wss95": Fraction(total - k95, total) - Fraction(5, 100),
        "wss100": Fraction(total - k100, total),
        "tnr95": Fraction(sum(not label for label in labels[k95:]), total - n),
        "recall_at_10pct": Fraction(sum(labels[: total // 10]), n),
        "atd": Fraction(sum(ranks), n * total),
        "last_relevant_rank": ranks[-1],
        "loss": (n * (total - Fraction(n - 1, 2)) - sum(found)) / (n * (total - n)),
        "ndcg": sum(1 / math.log2(rank + 1) for rank in ranks)
        / sum(1 / math.log2(rank + 1) for rank in range(1, n + 1)),
        "auroc": sum(pairs) / len(pairs),
        "ap": average_precision(order),
    }


def average_precision(order: Sequence[Line]) -> Fraction:
    n = sum(line.is_positive for line in order)
    area, before = Fraction(0), Fraction(0)
    for step in sorted({height(line) for line in order}, reverse=True):
        above = [line for line in order if height(line) >= step]
        hits = sum(line.is_positive for line in above)
        recall = Fraction(hits, n)
        area += (recall - before) * Fraction(hits, len(above))
        before = recall
    return area


def by_review(lines: Sequence[Line]) -> Mapping[str, list[Line]]:
    reviews: dict[str, list[Line]] = {}
    for line in sorted(lines, key=lambda line: line.review):
        reviews.setdefault(line.review, []).append(line)
    return reviews


def mean(values: Sequence[Value]) -> Value:
    there = [value for value in values if value is not None]
    return sum(there) / len(there) if there else None


def spread(values: Sequence[Value]) -> float | None:
    there = [float(value) for value in values if value is not None]
    if len(there) < len(("one", "another")):
        return None
    middle = sum(there) / len(there)
    return math.sqrt(sum((x - middle) ** 2 for x in there) / (len(there) - 1))


def interval(
    statistic: Callable[[Sequence[str]], Value],
    reviews: Sequence[str],
    b: int,
    seed: int,
    level: Fraction,
) -> tuple[float, float] | tuple[None, None]:
    """Percentiles of a statistic of reviews that are drawn with replacement."""
    if len(reviews) < len(("one", "another")):
        return None, None
    generator = np.random.default_rng(seed)
    drawn = [
        statistic([reviews[at] for at in generator.integers(0, m, m)])
        for m in [len(reviews)] * b
    ]
    values = sorted(float(value) for value in drawn if value is not None)
    if not values:
        return None, None
    tail = (1 - level) / 2
    return percentile(values, tail), percentile(values, 1 - tail)


def percentile(values: Sequence[float], share: Fraction) -> float:
    place = share * (len(values) - 1)
    below = int(place)
    above = min(below + 1, len(values) - 1)
    return values[below] + float(place - below) * (values[above] - values[below])


def threshold(lines: Sequence[Line]) -> float | None:
    """The largest probability at which 95 of 100 positives are included."""
    taus = sorted({line.p for line in lines if line.p is not None}, reverse=True)
    positives = [line.p for line in lines if line.p is not None and line.is_positive]
    for tau in taus:
        if positives and 100 * sum(p >= tau for p in positives) >= 95 * len(positives):
            return tau
    return None


def left_out(lines: Sequence[Line]) -> tuple[int, int, int, int]:
    """tp, fp, tn, fn of every review under the threshold of all the others."""
    calls: list[tuple[bool, str | None]] = []
    for review, own in by_review(lines).items():
        tau = threshold([line for line in lines if line.review != review])
        if tau is not None:
            calls += [
                (line.is_positive, "include" if line.p >= tau else "exclude")
                for line in own
                if line.p is not None
            ]
    return matrix(calls)
