"""Finds contradictory and impossible numbers, in rows and in tables."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from jobs.evidence_retrieval import consistency_rules, stated_rules
from jobs.evidence_retrieval.consistency_rules import PredictionView
from jobs.evidence_retrieval.metrics.states import REPORTED_RATES
from jobs.evidence_retrieval.queries import UNKNOWN, Queries, ScoringInput
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.kit.metrics.checks import TOLERANCE, check_metrics
from jobs.kit.metrics.columns import Bools, Ints
from jobs.kit.metrics.selective import STATES
from runner.scorecard import Cell, Finding, Metric, Table

SUMMED = (
    *("n", "positives", "negatives"),
    *("at_tau.tp", "at_tau.fp", "at_tau.tn", "at_tau.fn"),
    *(f"states.{state}" for state in STATES),
)
"""Counts whose sums over folds, and over criteria, equal the total."""

LOST, SENSITIVITY = "screening_fn_per_1000", "screening_sensitivity"

DECIDED = frozenset(
    [
        *REPORTED_RATES,
        *("tp", "fp", "tn", "fn"),
        *(SENSITIVITY, "screening_specificity", "screening_npv", LOST),
        *("alert_precision", "alert_recall"),
    ]
)
"""Names that are meaningless without a threshold."""

_THRESHOLD = re.compile(r"p >=? |tau|state|threshold|target=")
_AT_A_NUMBER = re.compile(r"evidence_(?:recall|precision)@\d+")
_HALF = re.compile(r"(?:baseline|chance)\D{0,12}0?\.50*(?!\d)")


def printed(metrics: Sequence[Metric], queries: Queries) -> Iterator[Finding]:
    """Yield all findings about the metrics of one model."""
    yield from check_metrics(metrics)
    by_path = {metric.path: metric for metric in metrics}
    yield from _sums(by_path, queries)
    yield from _denominators(by_path, queries)
    for metric in metrics:
        yield from _worded(metric)


def metric_name(metric: str) -> str:
    """Return the last name of a path, without its statistic (`~std`)."""
    return metric.rpartition(".")[2].partition("~")[0]


def _worded(metric: Metric) -> Iterator[Finding]:
    """Yield contradictions between a metric's name and its definition."""
    name, words = metric_name(metric.path), f"{metric.definition} {metric.note or ''}"
    if name in DECIDED and "@" not in name and not _THRESHOLD.search(words):
        yield _error(
            "threshold_unnamed",
            metric.path,
            f"{metric.path} is {metric.value!r}, but its definition "
            f"({metric.definition!r}) does not say at which threshold.",
        )
    yield from fixed_name(metric.path, metric.path, metric.definition)
    if name == "auprc" and _HALF.search(words):
        yield _error(
            "auprc_against_half",
            metric.path,
            f"{metric.path} is {metric.value!r} and compared with 0.5 "
            f"({words.strip()!r}); its chance level is the prevalence.",
        )


def fixed_name(where: str, path: str, definition: str) -> Iterator[Finding]:
    """Yield a finding if a K selected by query is printed as a number."""
    match = _AT_A_NUMBER.search(path)
    if match is not None and "selected" in definition:
        yield _error(
            "fixed_name_for_dynamic_k",
            where,
            f"{match[0]} names a fixed K, but its definition ({definition!r}) selects "
            "K by query.",
        )


def _sums(by_path: Mapping[str, Metric], queries: Queries) -> Iterator[Finding]:
    """Yield findings about parts that do not add up to the total."""
    parts = {
        "fold": () if (queries.fold == UNKNOWN).any() else queries.folds,
        "criterion": queries.criteria,
    }
    for kind, names in parts.items():
        for name in SUMMED:
            whole = by_path.get(name)
            part_metrics = [
                by_path.get(f"{kind}.{part_name}.{name}") for part_name in names
            ]
            values = [metric.value for metric in part_metrics if metric is not None]
            numbers = [value for value in values if value is not None]
            if whole is None or not names or len(numbers) < len(names):
                continue
            if sum(numbers) != whole.value:
                yield _error(
                    "parts_do_not_sum",
                    name,
                    f"{name} is {whole.value!r}, but its values by {kind} add up to "
                    f"{sum(numbers)!r}.",
                )


def _denominators(by_path: Mapping[str, Metric], queries: Queries) -> Iterator[Finding]:
    """Yield findings about misses that are per 1000 positives, not queries."""
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
            yield _error(
                "fn_per_1000_positives",
                lost.path,
                f"{lost.path} is {lost.value!r}, which is per 1000 queries with "
                f"evidence; per 1000 queries it is {per_positive * share!r}.",
            )


def _parts(queries: Queries) -> Iterator[tuple[str, Bools]]:
    """Yield the prefix and rows of the whole, each fold and each criterion."""
    yield "", np.ones(len(queries), dtype=np.bool_)
    groupings: Mapping[str, tuple[Sequence[str], Ints]] = {
        "fold": (queries.folds, queries.fold),
        "criterion": (queries.criteria, queries.criterion),
    }
    for kind, (names, column) in groupings.items():
        for index, name in enumerate(names):
            yield f"{kind}.{name}.", column == index


def _error(code: str, where: str, message: str) -> Finding:
    return Finding(code=code, severity="error", where=where, message=message)


Identity: TypeAlias = frozenset[tuple[str, Cell]]
"""Cells that identify a row: its metric, subset, fold, ..."""

METRIC, VALUE = "metric", "value"

IDENTIFYING = (
    *("model", "fold", "criterion", "list", "split"),
    *("gamma", "tau", "tau_neg", "tau_pos", METRIC, "subset"),
)
"""Columns that identify a row of a table of metrics."""

CONFIG = "config"
"""Also identifies rows; a table without it is about the headline."""

THRESHOLDS = ("tau", "tau_neg", "tau_pos", "threshold")

GROUPS = ("model", CONFIG, "fold", "criterion")

DEPLOYED = "deployed"

BASELINES = ("baseline", "chance")


def check_tables(tables: Sequence[Table], headline: str) -> Iterator[Finding]:
    """Yield all findings about the tables of a scorecard with this *headline*."""
    yield from _two_values(tables, headline)
    for table in tables:
        yield from _no_deployed_threshold(table)
        for row in _table_rows(table):
            path, definition = str(row.get(METRIC, "")), str(row.get("definition", ""))
            yield from fixed_name(f"{table.name} {path}", path, definition)
            yield from _against_half(table, row)


def _table_rows(table: Table) -> Iterator[dict[str, Cell]]:
    for cells in table.rows:
        yield dict(zip(table.columns, cells, strict=True))


def _two_values(tables: Sequence[Table], headline: str) -> Iterator[Finding]:
    """Yield findings about metrics with two values for the same subset."""
    first: dict[Identity, tuple[str, Cell]] = {}
    for table in tables:
        if not {METRIC, VALUE} <= set(table.columns):
            continue
        for row in _table_rows(table):
            identity = frozenset(
                [
                    (CONFIG, row.get(CONFIG, headline)),
                    *((name, row[name]) for name in IDENTIFYING if row.get(name)),
                ]
            )
            table_name, value = first.setdefault(identity, (table.name, row[VALUE]))
            if not _is_same(value, row[VALUE]):
                yield _error(
                    "two_values",
                    f"{table.name} {row[METRIC]}",
                    f"{row[METRIC]} is {row[VALUE]!r} in {table.name} and "
                    f"{value!r} in {table_name}, of the same subset.",
                )


def _is_same(cell: Cell, other: Cell) -> bool:
    if isinstance(cell, float) and isinstance(other, float):
        return abs(cell - other) <= TOLERANCE
    return cell == other


def _no_deployed_threshold(table: Table) -> Iterator[Finding]:
    """Yield findings about tables of several thresholds without a deployed one.

    A mark for the whole applies to its folds and criteria too.
    """
    columns = [name for name in THRESHOLDS if name in table.columns]
    if not columns:
        return
    tried: dict[Identity, set[tuple[Cell, ...]]] = {}
    marked: set[Identity] = set()
    for row in _table_rows(table):
        group = frozenset((name, row[name]) for name in GROUPS if row.get(name))
        tried.setdefault(group, set()).add(tuple(row[name] for name in columns))
        if row.get(DEPLOYED):
            marked.add(group)
    unmarked = [
        group
        for group, pairs in tried.items()
        if len(pairs) > 1 and not any(marked_group <= group for marked_group in marked)
    ]
    if unmarked:
        most = max(len(tried[group]) for group in unmarked)
        yield Finding(
            code="no_deployed_threshold",
            severity="warn",
            where=table.name,
            message=(
                f"The table shows {most} settings of {', '.join(columns)} and marks "
                f"none as {DEPLOYED}."
            ),
            n=len(unmarked),
        )


def _against_half(table: Table, row: dict[str, Cell]) -> Iterator[Finding]:
    if metric_name(str(row.get(METRIC, ""))) != "auprc":
        return
    for name in BASELINES:
        if row.get(name) == 0.5:  # noqa: PLR2004 - no other value is a plausible error
            yield _error(
                "auprc_against_half",
                f"{table.name} {row[METRIC]}",
                f"{row[METRIC]} is {row.get(VALUE)!r} beside a {name} of 0.5; its "
                "chance level is the prevalence.",
            )


BY_PREDICTION = (
    *consistency_rules.STATE_RULES,
    *consistency_rules.SELECTION_RULES,
    *stated_rules.STATED_RULES,
    *consistency_rules.RANKING_RULES,
)

OF_ROWS = tuple(consistency_rules.SEVERITIES)
"""Codes of the rules for rows; figures and tables have further ones."""


def check(
    scoring_input: ScoringInput,
    settings: EvidenceSettings,
    metrics: Mapping[str, Sequence[Metric]],
    tables: Sequence[Table] = (),
) -> tuple[Finding, ...]:
    """Return all contradictions in the input and the results of a scoring.

    Rows are checked under the headline configuration: the others share its lists and
    labels.

    Args:
        scoring_input: the input.
        settings: settings of the job.
        metrics: metrics of each model.
        tables: as they will be written.
    """
    of_metrics = (
        replace(finding, where=f"{model} {finding.where}")
        for model, model_metrics in metrics.items()
        for finding in printed(model_metrics, scoring_input.queries)
    )
    return (
        *_row_findings(scoring_input, settings),
        *of_metrics,
        *check_tables(tables, scoring_input.headline),
    )


def _row_findings(
    scoring_input: ScoringInput, settings: EvidenceSettings
) -> Iterator[Finding]:
    queries = scoring_input.queries
    for of_truth in consistency_rules.TRUTH_RULES:
        for violation in of_truth(queries):
            yield from violation.findings(queries, "")
    for prediction in scoring_input.predictions:
        if prediction.config == scoring_input.headline:
            view = PredictionView(
                queries=queries, prediction=prediction, settings=settings
            )
            for rule in BY_PREDICTION:
                for violation in rule(view):
                    yield from violation.findings(queries, prediction.model)
