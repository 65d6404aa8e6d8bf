"""Makes the short tables of a scoring; each row says itself what it is about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np

from jobs.evidence_retrieval.consistency import OF_ROWS
from jobs.evidence_retrieval.measures import MEASURES
from jobs.evidence_retrieval.metrics.judged_predictions import JudgedPredictions
from jobs.evidence_retrieval.metrics.results import EvidenceResults, ModelResults
from jobs.evidence_retrieval.queries import UNKNOWN, ScoringInput
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.kit.metrics.columns import Column
from jobs.kit.metrics.selective import gate_grid
from runner.scorecard import Cell, Finding, Metric, Table

COLUMNS = (
    "metric",
    "value",
    "mean",
    "std",
    "lo",
    "hi",
    "n",
    "n_defined",
    "subset",
    "definition",
    "meaning",
    "name",
    "direction",
)
"""What every row about a metric ends with."""


def cells(metric: Metric, path: str | None = None) -> tuple[Cell, ...]:
    """A metric as the end of a row; mean and std are over folds."""
    name = metric.path if path is None else path
    words = MEASURES.of(name)
    return (
        name,
        metric.value,
        metric.mean,
        metric.std,
        metric.lo,
        metric.hi,
        metric.n,
        metric.n_defined,
        metric.subset,
        metric.definition,
        None if words is None else words.meaning,
        name if words is None else words.name,
        None if words is None else words.direction,
    )


TUNE, TEST = "tune queries: for choosing", "test queries: not for selection"
DEPLOYED = "test"

OF_TAU_NEG = ("neg_rate", "screening_sensitivity", "screening_npv")
OF_TAU_POS = ("pos_rate", "alert_precision", "alert_recall")


def threshold_grid(results: EvidenceResults) -> Table:
    """The table of all models' headline configurations."""
    return Table(
        name="threshold_grid",
        columns=(
            "model",
            "fold",
            "tau_neg",
            "tau_pos",
            "deployed",
            "split",
            *COLUMNS,
        ),
        rows=tuple(
            (model, *row)
            for model, model_results in results.models.items()
            for row in (*_tuned(results, model_results), *_tested(model_results))
        ),
        caption="Pairs of thresholds over the tuning queries of each fold, for "
        "choosing, and over test queries: not for selection. The rows marked as "
        "deployed are those that the states come from.",
    )


def _tuned(
    results: EvidenceResults, model_results: ModelResults
) -> Iterator[tuple[Cell, ...]]:
    prediction = model_results.block.prediction
    for gate in results.scoring_input.gates:
        is_headline = (gate.model, gate.config) == (prediction.model, prediction.config)
        if is_headline and gate.tuned is not None:
            subset = f"tune of fold {gate.fold}"
            tried = _tried(gate.tuned.y, gate.tuned.p, results.settings, subset)
            for tau_neg, tau_pos, metric in tried:
                yield (gate.fold, tau_neg, tau_pos, False, TUNE, *cells(metric))


def _tested(model_results: ModelResults) -> Iterator[tuple[Cell, ...]]:
    block = model_results.block
    gated = block.gated
    if gated is None or not gated.is_probability or block.stated is None:
        return
    deployed = (_constant(block, "tau_neg"), _constant(block, "tau_pos"))
    by_path = model_results.by_path()
    for name in (*OF_TAU_NEG, *OF_TAU_POS):
        yield (None, *deployed, True, DEPLOYED, *cells(by_path[name]))
    for tau_neg, tau_pos, metric in _tried(gated.y, gated.p, block.settings, "scored"):
        yield (None, tau_neg, tau_pos, False, TEST, *cells(metric))


def _tried(
    y: Column, p: Column, settings: EvidenceSettings, subset: str
) -> Iterator[tuple[float, float, Metric]]:
    """Every pair that is one, with what it comes to."""
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
    """A threshold, if all queries have the same; else where to find it."""
    column = getattr(block.prediction, name)
    if column is None:
        return "as the file says"
    values = set(column[~np.isnan(column)].tolist())
    return values.pop() if len(values) == 1 else "by fold"


def short_tables(results: EvidenceResults) -> Iterator[Table]:
    """All of them that have a row."""
    for table in (
        _metrics(results),
        _per_criterion(results),
        _ablation(results),
        _gamma_sweep(results),
        threshold_grid(results),
        _fold_thresholds(results),
        _folds(results),
        _fold_sizes(results),
        _comparison(results),
    ):
        if table.rows:
            yield table


def _metrics(results: EvidenceResults) -> Table:
    return Table(
        name="metrics",
        columns=("model", "note", *COLUMNS),
        rows=tuple(
            (model, metric.note, *cells(metric))
            for model, model_results in results.models.items()
            for metric in model_results.whole
        ),
        caption="The headline configuration over all queries; mean and std are over "
        "folds, which is no interval.",
    )


def _per_criterion(results: EvidenceResults) -> Table:
    return Table(
        name="per_criterion",
        columns=("model", "criterion", "note", *COLUMNS),
        rows=tuple(_criterion_rows(results)),
        caption="`few`: fewer than 10 queries with evidence.",
    )


def _criterion_rows(results: EvidenceResults) -> Iterator[tuple[Cell, ...]]:
    for model, model_results in results.models.items():
        for criterion, metrics in model_results.criteria.items():
            for metric in metrics:
                path = metric.path.removeprefix(f"criterion.{criterion}.")
                yield (model, criterion, metric.note, *cells(metric, path))
        for metric in model_results.macro:
            path = metric.path.removeprefix("macro.")
            yield (model, "macro", metric.note, *cells(metric, path))


def _ablation(results: EvidenceResults) -> Table:
    rows = []
    for step in results.steps:
        gap = step.gap
        ends = gap.interval if gap else None
        rows.append(
            (
                step.model,
                step.config,
                *cells(step.metric),
                gap.value if gap else None,
                ends.lo if ends else None,
                ends.hi if ends else None,
                gap.is_equal if gap else None,
                gap.p if gap else None,
                gap.p_holm if gap else None,
                gap.test if gap else None,
                gap.note if gap else None,
                gap.verdict if gap else None,
            )
        )
    return Table(
        name="ablation",
        columns=(
            "model",
            "config",
            *COLUMNS,
            "difference",
            "difference_lo",
            "difference_hi",
            "equal",
            "p",
            "p_holm",
            "test",
            "note",
            "verdict",
        ),
        rows=tuple(rows),
        caption="Each configuration against the one before; Holm over the rows of one "
        "metric. auroc of configurations without a gate: the largest stage score.",
    )


def _gamma_sweep(results: EvidenceResults) -> Table:
    return Table(
        name="gamma_sweep",
        columns=("model", "gamma", *COLUMNS),
        rows=tuple(
            (model, gamma, *cells(metric))
            for model, model_results in results.models.items()
            for gamma, metric in model_results.sweep
        ),
        caption="K by the mass rule, with this gamma in place of the deployed ones.",
    )


def _fold_thresholds(results: EvidenceResults) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for gate in results.scoring_input.gates:
        fold_key = (gate.model, gate.config, gate.fold)
        taus = (gate.tau_neg, gate.tau_pos)
        rows += [
            (*fold_key, "tune", *taus, name, value)
            for name, value in gate.on_tune.items()
        ]
        model_results = results.models.get(gate.model)
        if model_results is not None and gate.config == results.scoring_input.headline:
            folds = model_results.folds.get(gate.fold, {})
            rows += [
                (*fold_key, "test", *taus, name, folds[name].value)
                for name in _ON_TEST
                if name in folds
            ]
    return Table(
        name="fold_thresholds",
        columns=(
            "model",
            "config",
            "fold",
            "split",
            "tau_neg",
            "tau_pos",
            "metric",
            "value",
        ),
        rows=tuple(rows),
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


def _comparison(results: EvidenceResults) -> Table:
    rows = []
    for gap in results.gaps:
        ends = gap.interval
        rows.append(
            (
                gap.family,
                gap.left,
                gap.right,
                gap.metric,
                gap.left_value,
                gap.right_value,
                gap.value,
                ends.lo if ends else None,
                ends.hi if ends else None,
                gap.p,
                gap.p_holm,
                gap.test,
                gap.n,
                gap.subset,
                gap.left_only,
                gap.right_only,
                gap.note,
                gap.verdict,
                gap.clusters,
            )
        )
    return Table(
        name="comparison",
        columns=(
            "family",
            "left",
            "right",
            "metric",
            "left_value",
            "right_value",
            "difference",
            "lo",
            "hi",
            "p",
            "p_holm",
            "test",
            "n",
            "subset",
            "left_only",
            "right_only",
            "note",
            "verdict",
            "posts",
        ),
        rows=tuple(rows),
        caption="Left minus right on the queries of both; intervals are paired, by "
        "post; Holm within each family. The verdict is on the left side.",
    )


def checks_table(
    scoring_input: ScoringInput, contradictions: Iterable[Finding]
) -> Table:
    """A row a check: how often it found something, or why it was not made.

    Args:
        scoring_input: with its leakage checks.
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
