"""Finds impossible values in a finished scorecard, of any job.

Rates outside [0, 1], counts that do not add up, rates that their own counts refute, one
name with two values, and figures over one set of queries that contradict each other.
A rule is applied only where both sides speak of the same subset and n.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias

from jobs.kit.metrics.classification import Confusion, rates
from runner.scorecard import Finding, Metric

TOLERANCE = 1e-9
_SAME = 1e-12
_ZERO_BY_ZERO = re.compile(r"0/0 is ([0-9]+(?:\.[0-9]+)?)")
_AT_K = re.compile(r"(?P<name>.+)@(?P<k>\d+)")
# a target such as 0.05 has a dot that ends no prefix
_PATH = re.compile(r"(?:(?P<prefix>.*)\.)?(?P<name>[A-Za-z_][^.@]*(?:@\d+(?:\.\d+)?)?)")

RATES = frozenset(
    [
        "accuracy",
        "alert_precision",
        "alert_recall",
        "auprc",
        "auroc",
        "balanced_accuracy",
        "brier",
        "ece",
        "evidence_precision",
        "evidence_recall",
        "exact_match",
        "f1",
        "fnr",
        "fpr",
        "hamming_score",
        "hit",
        "map",
        "mce",
        "micro_f1",
        "mrr",
        "ndcg",
        "npv",
        "precision",
        "prevalence",
        "recall",
        "screening_npv",
        "screening_sensitivity",
        "sensitivity",
        "specificity",
        "tpr_at_fpr",
    ]
)
"""Names, without their cut-off, of what lies between 0 and 1."""

RISING = ("recall", "hit", "mrr")
"""Never falls as K grows."""

AT_MOST = (
    ("recall", "hit"),
    ("precision", "hit"),
    ("ndcg", "hit"),
    ("map", "recall"),
    ("mrr", "hit"),
)
"""At one K, the first is never above the second (map over all gold)."""

EQUAL_AT_1 = ("hit@1", "precision@1", "ndcg@1", "mrr@1")

ORDERED = (
    ("alert_recall", "screening_sensitivity", "an alert is not NEG either"),
    ("exact_match", "hamming_score", "an item that is right has only right cells"),
    ("hit@1", "mrr", "a first place counts 1 in both"),
)
"""The first is never above the second, whatever K."""

Severity: TypeAlias = Literal["error", "warn", "info"]


def check_metrics(metrics: Sequence[Metric]) -> list[Finding]:
    """All findings about one list of metrics, in its order.

    A path is a name behind any number of prefixes that end in a dot, such as
    `fold.2.ndcg@10`; rules compare metrics of one prefix.
    """
    findings = [*_ranges(metrics), *_intervals(metrics), *_doubles(metrics)]
    groups: dict[str, dict[str, Metric]] = {}
    for metric in metrics:
        prefix, name = _split(metric.path)
        groups.setdefault(prefix, {})[name] = metric
    for prefix, group in groups.items():
        findings += _counts(prefix, group)
        findings += _impossible(group)
        for rule in _cross(group):
            findings += rule.findings(prefix)
    return findings


def _split(path: str) -> tuple[str, str]:
    match = _PATH.fullmatch(path)
    if match is None:
        prefix, _, name = path.rpartition(".")
        return prefix, name
    return match["prefix"] or "", match["name"]


def _ranges(metrics: Iterable[Metric]) -> Iterator[Finding]:
    for metric in metrics:
        name = _split(metric.path)[1].partition("~")[0].partition("@")[0]
        value = metric.value
        if name in RATES and value is not None and not 0 <= value <= 1 + TOLERANCE:
            yield _finding(
                "out_of_range",
                "error",
                metric.path,
                f"{metric.path} is {value!r}, but a rate is between 0 and 1.",
            )


def _intervals(metrics: Iterable[Metric]) -> Iterator[Finding]:
    for metric in metrics:
        lo, hi, value = metric.lo, metric.hi, metric.value
        if lo is None or hi is None:
            continue
        if lo > hi:
            yield _finding(
                "interval_reversed",
                "error",
                metric.path,
                f"{metric.path} has the interval [{lo!r}, {hi!r}], ends exchanged.",
            )
        elif value is not None and not lo - TOLERANCE <= value <= hi + TOLERANCE:
            yield _finding(
                "outside_interval",
                "warn",
                metric.path,
                f"{metric.path} is {value!r}, outside its interval [{lo!r}, {hi!r}].",
            )


def _doubles(metrics: Iterable[Metric]) -> Iterator[Finding]:
    first: dict[str, Metric] = {}
    for metric in metrics:
        other = first.setdefault(metric.path, metric)
        if other.definition != metric.definition:
            yield _finding(
                "two_definitions",
                "error",
                metric.path,
                f"{metric.path} stands for {other.definition!r} and for "
                f"{metric.definition!r}; one name has one definition.",
            )
        elif not _is_equal(other.value, metric.value):
            yield _finding(
                "two_values",
                "error",
                metric.path,
                f"{metric.path} is printed as {other.value!r} and as {metric.value!r} "
                "under one definition.",
            )


def _is_equal(a: float | None, b: float | None) -> bool:
    return a == b if a is None or b is None else abs(a - b) <= _SAME


def _counts(prefix: str, group: Mapping[str, Metric]) -> Iterator[Finding]:
    """Counts that must add up, and rates that follow from them."""
    numbers = {
        name: metric.value for name, metric in group.items() if metric.value is not None
    }
    for parts, whole in (
        (("tp", "fn"), "positives"),
        (("fp", "tn"), "negatives"),
        (("positives", "negatives"), "n"),
        (("tp", "fp", "tn", "fn"), "n"),
        (("NEG", "UNCERTAIN", "POS"), "n"),
    ):
        if whole in numbers and all(part in numbers for part in parts):
            total = sum(numbers[part] for part in parts)
            if total != numbers[whole]:
                yield _finding(
                    "counts_do_not_add_up",
                    "error",
                    _path(prefix, whole),
                    f"{' + '.join(parts)} is {total} and {whole} is {numbers[whole]}.",
                )
    if all(name in numbers for name in ("tp", "fp", "tn", "fn")):
        cells = Confusion(*(numbers[name] for name in ("tp", "fp", "tn", "fn")))
        for name, expected in rates(cells).items():
            stated = group.get(name)
            if stated is None or _is_near(stated.value, expected):
                continue
            if expected is None and _is_near(stated.value, _zero_by_zero(stated)):
                continue
            yield _finding(
                "refuted_by_counts",
                "error",
                stated.path,
                f"{stated.path} is {stated.value!r}; its own counts give {expected!r}.",
            )


def _zero_by_zero(metric: Metric) -> float | None:
    """Return 0/0 by a metric's definition; None: undefined."""
    match = _ZERO_BY_ZERO.search(metric.definition)
    return None if match is None else float(match[1])


def _impossible(group: Mapping[str, Metric]) -> Iterator[Finding]:
    """Figures of one table that cannot stand together."""
    value = {name: m.value for name, m in group.items() if m.value is not None}
    if all(name in value for name in ("precision", "recall", "f1")):
        low, high = sorted((value["precision"], value["recall"]))
        if not low - TOLERANCE <= value["f1"] <= high + TOLERANCE:
            yield _finding(
                "f1_out_of_bounds",
                "error",
                group["f1"].path,
                f"{group['f1'].path} is {value['f1']!r}, but precision and recall are "
                f"{low!r} and {high!r}, and F1 lies between them.",
            )
    if value.get("auroc", 0) >= 1 - _SAME and value.get("auprc", 1) < 1 - TOLERANCE:
        yield _finding(
            "perfect_but_not",
            "error",
            group["auprc"].path,
            f"{group['auroc'].path} is 1, so each positive stands above each negative "
            f"and {group['auprc'].path} cannot be {value['auprc']!r}.",
        )
    if (
        value.get("labels", 2) > 1
        and value.get("exact_match", 0) + value.get("hamming_loss", 0) > 1 + TOLERANCE
    ):
        yield _finding(
            "more_than_all_cells",
            "error",
            group["exact_match"].path,
            f"{group['exact_match'].path} is {value['exact_match']!r} and the Hamming "
            f"loss {value['hamming_loss']!r}: items that are right have no wrong cell.",
        )


def _is_near(a: float | None, b: float | None) -> bool:
    return a == b if a is None or b is None else abs(a - b) <= TOLERANCE


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    """*low* can never be above *high*."""

    code: str
    low: Metric
    high: Metric
    reason: str
    scale: float = 1.0  #: of the low side

    def findings(self, prefix: str) -> Iterator[Finding]:
        low, high = self.low, self.high
        if low.value is None or high.value is None:
            return
        if self.scale * low.value <= high.value + TOLERANCE:
            return
        statement = f"{low.path} is {low.value!r} and {high.path} is {high.value!r}"
        if _population(low) != _population(high):
            message = f"{statement}, but they speak of different items: not comparable."
            yield _finding("not_comparable", "info", prefix, message)
        else:
            message = f"{statement}, which cannot be: {self.reason}."
            yield _finding(self.code, "error", low.path, message)


def _population(metric: Metric) -> tuple[str, int]:
    return metric.subset, metric.n


def _cross(group: Mapping[str, Metric]) -> Iterator[_Rule]:
    at: dict[str, dict[int, Metric]] = {}
    for name, metric in group.items():
        if match := _AT_K.fullmatch(name):
            at.setdefault(match["name"], {})[int(match["k"])] = metric
    yield from _rising(at)
    yield from _bounded(at)
    for (_, low), (_, high) in pairwise(sorted(_by_target(group).items())):
        reason = "a larger target allows every point that a smaller one does"
        yield _Rule(code="tpr_at_fpr_falls", low=low, high=high, reason=reason)
    at_1 = [group[name] for name in EQUAL_AT_1 if name in group]
    for one, other in pairwise(at_1):
        for low, high in ((one, other), (other, one)):
            reason = "at one item they are the same"
            yield _Rule(code="unequal_at_1", low=low, high=high, reason=reason)
    for left, right, reason in ORDERED:
        if left in group and right in group:
            code = f"{left}_above_{right}"
            yield _Rule(code=code, low=group[left], high=group[right], reason=reason)


def _bounded(at: Mapping[str, Mapping[int, Metric]]) -> Iterator[_Rule]:
    """Rules between two measures at one cut-off."""
    for left, right in AT_MOST:
        for k in sorted(at.get(left, {}).keys() & at.get(right, {}).keys()):
            low = at[left][k]
            if left == "map" and "ap over gold" not in low.definition:
                continue  # over another denominator it may exceed recall
            reason = f"no query has more {left} than {right} at one cut-off"
            code = f"{left}_above_{right}"
            yield _Rule(code=code, low=low, high=at[right][k], reason=reason)
    for k in sorted(at.get("hit", {}).keys() & at.get("mrr", {}).keys()):
        reason = f"a hit among {k} has a reciprocal rank of at least 1/{k}"
        hit, mrr = at["hit"][k], at["mrr"][k]
        yield _Rule(code="mrr_below_hit", low=hit, high=mrr, reason=reason, scale=1 / k)


def _by_target(group: Mapping[str, Metric]) -> dict[float, Metric]:
    """Sensitivities at a false positive rate, such as `tpr_at_fpr@0.05`."""
    names = [name for name in group if name.startswith("tpr_at_fpr@")]
    return {float(name.partition("@")[2]): group[name] for name in names}


def _rising(at: Mapping[str, Mapping[int, Metric]]) -> Iterator[_Rule]:
    for name in RISING:
        for (_, low), (_, high) in pairwise(sorted(at.get(name, {}).items())):
            reason = f"{name} never falls as the cut-off grows"
            yield _Rule(code=f"{name}_falls", low=low, high=high, reason=reason)
    for (k, low), (more, high) in pairwise(sorted(at.get("precision", {}).items())):
        yield _Rule(
            code="hits_fall",
            low=low,
            high=high,
            reason="hits, cut-off times precision, never become fewer",
            scale=k / more,
        )


def _finding(code: str, severity: Severity, where: str, message: str) -> Finding:
    return Finding(code=code, severity=severity, where=where, message=message)


def _path(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name
