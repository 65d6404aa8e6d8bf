"""What cannot be true of the metrics of one model, beyond `jobs.metrics.checks`.

Paths are those of a scorecard: `fold.2.` or `criterion.A.1.` before the name of a part.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from jobs.evidence_retrieval.consistency.rule import Severity
from jobs.evidence_retrieval.measuring.gate import SHOWN_RATES
from jobs.evidence_retrieval.queries import UNKNOWN, Queries
from jobs.metrics.checks import TOLERANCE, check_metrics
from jobs.metrics.columns import Bools, Ints
from runner.scorecard import Finding, Metric

SUMMED = (
    "n",
    "positives",
    "negatives",
    "at_tau.tp",
    "at_tau.fp",
    "at_tau.tn",
    "at_tau.fn",
    "states.NEG",
    "states.UNCERTAIN",
    "states.POS",
)
"""Counts whose folds, and whose criteria, add up to the whole."""

LOST, SENSITIVITY = "screening_fn_per_1000", "screening_sensitivity"

DECIDED = frozenset(
    [
        *SHOWN_RATES,
        *("tp", "fp", "tn", "fn"),
        SENSITIVITY,
        "screening_specificity",
        "screening_npv",
        LOST,
        "alert_precision",
        "alert_recall",
    ]
)
"""Names that mean nothing without the threshold behind them."""

_THRESHOLD = re.compile(r"p >=? |tau|state|threshold|target=")
_AT_A_NUMBER = re.compile(r"evidence_(?:recall|precision)@\d+")
_HALF = re.compile(r"(?:baseline|chance)\D{0,12}0?\.50*(?!\d)")


def printed(metrics: Sequence[Metric], queries: Queries) -> Iterator[Finding]:
    """All findings about the metrics of one model."""
    yield from check_metrics(metrics)
    by_path = {metric.path: metric for metric in metrics}
    yield from _sums(by_path, queries)
    yield from _denominators(by_path, queries)
    for metric in metrics:
        yield from _worded(metric)


def named(metric: str) -> str:
    """The name at a path's end, without the figure it is of (`~std`)."""
    return metric.rpartition(".")[2].partition("~")[0]


def _worded(metric: Metric) -> Iterator[Finding]:
    """What a metric's own words give away."""
    name, words = named(metric.path), f"{metric.definition} {metric.note or ''}"
    if name in DECIDED and "@" not in name and not _THRESHOLD.search(words):
        yield _finding(
            "threshold_unnamed",
            "error",
            metric.path,
            f"{metric.path} is {metric.value!r}, but its definition "
            f"({metric.definition!r}) does not say at which threshold.",
        )
    yield from fixed_name(metric.path, metric.path, metric.definition)
    if name == "auprc" and _HALF.search(words):
        yield _finding(
            "auprc_against_half",
            "error",
            metric.path,
            f"{metric.path} is {metric.value!r} and compared with 0.5 "
            f"({words.strip()!r}); its chance level is the prevalence.",
        )


def fixed_name(where: str, path: str, definition: str) -> Iterator[Finding]:
    """A K chosen by query must not be printed as a number."""
    found = _AT_A_NUMBER.search(path)
    if found is not None and "selected" in definition:
        yield _finding(
            "fixed_name_for_dynamic_k",
            "error",
            where,
            f"{found[0]} names a fixed K, but its definition ({definition!r}) selects "
            "K by query.",
        )


def _sums(by_path: Mapping[str, Metric], queries: Queries) -> Iterator[Finding]:
    """Parts against the whole."""
    parts = {
        "fold": () if (queries.fold == UNKNOWN).any() else queries.folds,
        "criterion": queries.criteria,
    }
    for kind, names in parts.items():
        for name in SUMMED:
            whole = by_path.get(name)
            own = [by_path.get(f"{kind}.{each}.{name}") for each in names]
            values = [metric.value for metric in own if metric is not None]
            numbers = [value for value in values if value is not None]
            if whole is None or not names or len(numbers) < len(names):
                continue
            if sum(numbers) != whole.value:
                yield _finding(
                    "parts_do_not_sum",
                    "error",
                    name,
                    f"{name} is {whole.value!r}, but its values by {kind} add up to "
                    f"{sum(numbers)!r}.",
                )


def _denominators(by_path: Mapping[str, Metric], queries: Queries) -> Iterator[Finding]:
    """Misses are told per 1000 of all queries; per 1000 positives is another name."""
    for prefix, rows in _parts(queries):
        lost = by_path.get(f"{prefix}{LOST}")
        caught = by_path.get(f"{prefix}{SENSITIVITY}")
        if lost is None or caught is None or not (lost.value and caught.value):
            continue
        per_positive = 1000 * (1 - caught.value)
        has_negatives = bool((rows & (queries.y == 0)).any())
        is_per_positive = math.isclose(lost.value, per_positive, rel_tol=TOLERANCE)
        if has_negatives and is_per_positive:
            y = queries.y[rows]
            share = float(np.mean(y[y != UNKNOWN]))
            yield _finding(
                "fn_per_1000_positives",
                "error",
                lost.path,
                f"{lost.path} is {lost.value!r}, which is per 1000 queries with "
                f"evidence; per 1000 queries it is {per_positive * share!r}.",
            )


def _parts(queries: Queries) -> Iterator[tuple[str, Bools]]:
    """The whole, each fold and each criterion: prefix and rows."""
    yield "", np.ones(len(queries), dtype=np.bool_)
    places: Mapping[str, tuple[Sequence[str], Ints]] = {
        "fold": (queries.folds, queries.fold),
        "criterion": (queries.criteria, queries.criterion),
    }
    for kind, (names, column) in places.items():
        for place, name in enumerate(names):
            yield f"{kind}.{name}.", column == place


def _finding(code: str, severity: Severity, where: str, message: str) -> Finding:
    return Finding(code=code, severity=severity, where=where, message=message)
