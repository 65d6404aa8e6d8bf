"""Builds the short tables of a scoring; each row names its subject."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from jobs.evidence_retrieval.consistency import OF_ROWS
from jobs.evidence_retrieval.measures import MEASURES
from jobs.evidence_retrieval.metrics.judged_predictions import JudgedPredictions
from jobs.evidence_retrieval.metrics.paired_differences import (
    AblationStep,
    PairedDifference,
)
from jobs.evidence_retrieval.metrics.results import EvidenceResults, ModelResults
from jobs.evidence_retrieval.queries import UNKNOWN, FoldGate, ScoringInput
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.kit.comparison.difference import ComparedMetric
from jobs.kit.measures import MetricWords
from jobs.kit.metrics import Interval
from jobs.kit.metrics.columns import Column
from jobs.kit.metrics.selective import gate_grid
from jobs.kit.tables import (
    Columns,
    TableOf,
    column,
    count,
    flag,
    group,
    number,
    text,
)
from runner.scorecard import Cell, Finding, Metric, Table


class _MetricRow(NamedTuple):
    """A metric of a model, as the last columns of a row."""

    model: str
    metric: Metric
    scope: str = ""  #: prefix of its path, if another column has it
    criterion: str = ""
    gamma: float | None = None

    @property
    def path(self) -> str:
        return self.metric.path.removeprefix(self.scope)

    @property
    def words(self) -> MetricWords | None:
        return MEASURES.of(self.path)


METRIC: tuple[Columns[_MetricRow], ...] = (
    text("metric", lambda row: row.path),
    number("value", lambda row: row.metric.value),
    number("mean", lambda row: row.metric.mean, "over folds"),
    number("std", lambda row: row.metric.std, "over folds"),
    number("lo", lambda row: row.metric.lo),
    number("hi", lambda row: row.metric.hi),
    count("n", lambda row: row.metric.n),
    count("n_defined", lambda row: row.metric.n_defined),
    text("subset", lambda row: row.metric.subset),
    text("definition", lambda row: row.metric.definition),
    text("meaning", lambda row: words.meaning if (words := row.words) else None),
    text("name", lambda row: words.name if (words := row.words) else row.path),
    text("direction", lambda row: words.direction if (words := row.words) else None),
)
"""The last columns of every row about a metric."""


TUNE, TEST = "tune queries: for choosing", "test queries: not for selection"
DEPLOYED = "test"

OF_TAU_NEG = ("neg_rate", "screening_sensitivity", "screening_npv")
OF_TAU_POS = ("pos_rate", "alert_precision", "alert_recall")


class _GridRow(NamedTuple):
    """A metric under a pair of thresholds."""

    row: _MetricRow
    fold: str | None
    tau_neg: Cell
    tau_pos: Cell
    split: str

    @property
    def is_deployed(self) -> bool:
        return self.split == DEPLOYED


THRESHOLD_GRID = TableOf[_GridRow](
    name="threshold_grid",
    columns=(
        text("model", lambda grid: grid.row.model),
        text("fold", lambda grid: grid.fold),
        column("tau_neg", lambda grid: grid.tau_neg),
        column("tau_pos", lambda grid: grid.tau_pos),
        flag("deployed", lambda grid: grid.is_deployed),
        text("split", lambda grid: grid.split),
        group(METRIC, lambda grid: grid.row),
    ),
    caption="Pairs of thresholds over the tuning queries of each fold, for "
    "choosing, and over test queries: not for selection. The rows marked as "
    "deployed are those that the states come from.",
)


def _tuned(
    results: EvidenceResults, model: str, model_results: ModelResults
) -> Iterator[_GridRow]:
    prediction = model_results.block.prediction
    for gate in results.scoring_input.gates:
        is_headline = (gate.model, gate.config) == (prediction.model, prediction.config)
        if is_headline and gate.tuned is not None:
            subset = f"tune of fold {gate.fold}"
            tried = _tried(gate.tuned.y, gate.tuned.p, results.settings, subset)
            for low, high, metric in tried:
                yield _GridRow(_MetricRow(model, metric), gate.fold, low, high, TUNE)


def _tested(model: str, model_results: ModelResults) -> Iterator[_GridRow]:
    block = model_results.block
    gated = block.gated
    if gated is None or not gated.is_probability or block.stated is None:
        return
    deployed = (_constant(block, "tau_neg"), _constant(block, "tau_pos"))
    by_path = model_results.by_path()
    for name in (*OF_TAU_NEG, *OF_TAU_POS):
        yield _GridRow(_MetricRow(model, by_path[name]), None, *deployed, DEPLOYED)
    for low, high, metric in _tried(gated.y, gated.p, block.settings, "scored"):
        yield _GridRow(_MetricRow(model, metric), None, low, high, TEST)


def _tried(
    y: Column, p: Column, settings: EvidenceSettings, subset: str
) -> Iterator[tuple[float, float, Metric]]:
    """Yield every allowed pair, with its metrics."""
    low, high = settings.grid_tau_neg, settings.grid_tau_pos
    grid = gate_grid(y, p, low, high)
    for i, j in np.argwhere(grid.allowed).tolist():
        of_pair = f"tau_neg={low[i]}, tau_pos={high[j]}, edge=lt"
        for names, index in ((OF_TAU_NEG, i), (OF_TAU_POS, j)):
            for name in names:
                value = float(getattr(grid, name)[index])
                yield (
                    low[i],
                    high[j],
                    Metric(
                        path=name,
                        value=None if np.isnan(value) else value,
                        n=len(y),
                        subset=subset,
                        definition=f"{name}@1({of_pair})",
                    ),
                )


def _constant(block: JudgedPredictions, name: str) -> Cell:
    """Return a threshold, if all queries have the same one, else its source."""
    column = getattr(block.prediction, name)
    if column is None:
        return "as the file says"
    values = set(column[~np.isnan(column)].tolist())
    return values.pop() if len(values) == 1 else "by fold"


def short_tables(results: EvidenceResults) -> Iterator[Table]:
    """Yield the tables that have a row."""
    models = results.models.items()
    for table in (
        METRICS.table(
            _MetricRow(model, metric)
            for model, model_results in models
            for metric in model_results.whole
        ),
        PER_CRITERION.table(_criterion_rows(results)),
        ABLATION.table(results.steps),
        GAMMA_SWEEP.table(
            _MetricRow(model, metric, gamma=gamma)
            for model, model_results in models
            for gamma, metric in model_results.sweep
        ),
        THRESHOLD_GRID.table(
            row
            for model, model_results in models
            for row in (
                *_tuned(results, model, model_results),
                *_tested(model, model_results),
            )
        ),
        FOLD_THRESHOLDS.table(_threshold_rows(results)),
        _folds(results),
        _fold_sizes(results),
        COMPARISON.table(results.gaps),
    ):
        if table.rows:
            yield table


METRICS = TableOf[_MetricRow](
    name="metrics",
    columns=(
        text("model", lambda row: row.model),
        text("note", lambda row: row.metric.note),
        *METRIC,
    ),
    caption="The headline configuration over all queries; mean and std are over "
    "folds, which is no interval.",
)

PER_CRITERION = TableOf[_MetricRow](
    name="per_criterion",
    columns=(
        text("model", lambda row: row.model),
        text("criterion", lambda row: row.criterion),
        text("note", lambda row: row.metric.note),
        *METRIC,
    ),
    caption="`few`: fewer than 10 queries with evidence.",
)

GAMMA_SWEEP = TableOf[_MetricRow](
    name="gamma_sweep",
    columns=(
        text("model", lambda row: row.model),
        number("gamma", lambda row: row.gamma),
        *METRIC,
    ),
    caption="K by the mass rule, with this gamma in place of the deployed ones.",
)


def _criterion_rows(results: EvidenceResults) -> Iterator[_MetricRow]:
    for model, model_results in results.models.items():
        for criterion, metrics in model_results.criteria.items():
            for metric in metrics:
                yield _MetricRow(model, metric, f"criterion.{criterion}.", criterion)
        for metric in model_results.macro:
            yield _MetricRow(model, metric, "macro.", "macro")


ENDS: tuple[Columns[Interval], ...] = (
    number("lo", lambda interval: interval.lo),
    number("hi", lambda interval: interval.hi),
)

TESTED: tuple[Columns[ComparedMetric], ...] = (
    number("p", lambda metric: test.p if (test := metric.p_values.primary) else None),
    number("p_holm", lambda metric: metric.p_holm),
    text("test", lambda metric: test.name if (test := metric.p_values.primary) else ""),
)

JUDGED: tuple[Columns[PairedDifference], ...] = (
    text("note", lambda row: row.note),
    text("verdict", lambda row: row.metric.verdict, "on the left side"),
)

STEP: tuple[Columns[PairedDifference], ...] = (
    number("difference", lambda row: row.value),
    group(ENDS, lambda row: row.interval, "difference_"),
    flag("equal", lambda row: row.value == 0),
    group(TESTED, lambda row: row.metric),
    *JUDGED,
)

ABLATION = TableOf[AblationStep](
    name="ablation",
    columns=(
        text("model", lambda step: step.model),
        text("config", lambda step: step.config),
        group(METRIC, lambda step: _MetricRow(step.model, step.metric)),
        group(STEP, lambda step: step.gap),
    ),
    caption="Each configuration against the one before; Holm over the rows of one "
    "metric. auroc of configurations without a gate: the largest stage score.",
)

COMPARISON = TableOf[PairedDifference](
    name="comparison",
    columns=(
        text("family", lambda row: row.family),
        text("left", lambda row: row.left),
        text("right", lambda row: row.right),
        text("metric", lambda row: row.metric.path),
        number("left_value", lambda row: row.metric.gap.b),
        number("right_value", lambda row: row.metric.gap.a),
        number("difference", lambda row: row.value),
        group(ENDS, lambda row: row.interval),
        group(TESTED, lambda row: row.metric),
        count("n", lambda row: row.metric.overlap.n, "queries of both"),
        text("subset", lambda row: row.subset),
        count("left_only", lambda row: row.dropped[0]),
        count("right_only", lambda row: row.dropped[1]),
        *JUDGED,
        count("posts", lambda row: row.metric.overlap.clusters),
    ),
    caption="Left minus right on the queries of both; intervals are paired, by "
    "post; Holm within each family. The verdict is on the left side.",
)


class _ThresholdRow(NamedTuple):
    """A metric of the thresholds of a fold."""

    gate: FoldGate
    split: str
    metric: str
    value: float | None


def _threshold_rows(results: EvidenceResults) -> Iterator[_ThresholdRow]:
    for gate in results.scoring_input.gates:
        for name, value in gate.on_tune.items():
            yield _ThresholdRow(gate, "tune", name, value)
        model_results = results.models.get(gate.model)
        if model_results is not None and gate.config == results.scoring_input.headline:
            metrics = model_results.folds.get(gate.fold, {})
            for name in _ON_TEST:
                if name in metrics:
                    yield _ThresholdRow(gate, "test", name, metrics[name].value)


FOLD_THRESHOLDS = TableOf[_ThresholdRow](
    name="fold_thresholds",
    columns=(
        text("model", lambda row: row.gate.model),
        text("config", lambda row: row.gate.config),
        text("fold", lambda row: row.gate.fold),
        text("split", lambda row: row.split),
        number("tau_neg", lambda row: row.gate.tau_neg),
        number("tau_pos", lambda row: row.gate.tau_pos),
        text("metric", lambda row: row.metric),
        number("value", lambda row: row.value),
    ),
    caption="Thresholds come from `tune` rows alone; `test` rows show what they "
    "reach where nothing was chosen.",
)


_ON_TEST = (
    "screening_sensitivity",
    "screening_npv",
    "alert_precision",
    "alert_recall",
    "neg_rate",
    "uncertain_rate",
    "pos_rate",
)


def _folds(results: EvidenceResults) -> Table:
    queries = results.scoring_input.queries
    fold = np.full(len(queries.posts), UNKNOWN, dtype=np.int64)
    fold[queries.post] = queries.fold
    return Table(
        name="folds",
        columns=("post_id", "fold_id"),
        rows=tuple(
            (post, queries.folds[post_fold])
            for post, post_fold in zip(queries.posts, fold.tolist(), strict=True)
            if post_fold != UNKNOWN
        ),
        caption="Which posts are tested in which fold; can be given as --folds.",
    )


def _fold_sizes(results: EvidenceResults) -> Table:
    queries = results.scoring_input.queries
    rows = []
    for i, name in enumerate(queries.folds):
        in_fold = queries.fold == i
        posts = len(np.unique(queries.post[in_fold]))
        positives = int(np.count_nonzero(queries.y[in_fold] == 1))
        rows.append((name, posts, int(in_fold.sum()), positives))
    return Table(
        name="fold_sizes",
        columns=("fold", "posts", "queries", "positives"),
        rows=tuple(rows),
    )


def checks_table(
    scoring_input: ScoringInput, contradictions: Iterable[Finding]
) -> Table:
    """Return a row per check: the number of findings, or why it was not made.

    Args:
        scoring_input: the input with its leakage checks.
        contradictions: all findings of the consistency checks.
    """
    counts = Counter(finding.code for finding in contradictions)
    return Table(
        name="checks",
        columns=("kind", "check", "findings", "not_checked"),
        rows=(
            *(
                (
                    "leakage",
                    check.name,
                    None if check.not_checked else len(check.findings),
                    check.not_checked,
                )
                for check in scoring_input.leak_checks
            ),
            *(("consistency", code, counts.pop(code, 0), "") for code in OF_ROWS),
            ("consistency", "figures and tables of this scoring", counts.total(), ""),
        ),
        caption="Every check of leakage and consistency; one of consistency finds "
        "nothing where the columns it is about are not there.",
    )
