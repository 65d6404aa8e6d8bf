"""The short tables; each row says itself what it is about."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from jobs.evidence_retrieval.artifacts.metric_rows import COLUMNS, cells
from jobs.evidence_retrieval.artifacts.threshold_grid import threshold_grid
from jobs.evidence_retrieval.measuring.results import Results
from jobs.evidence_retrieval.queries import UNKNOWN
from runner.scorecard import Cell, Table


def short_tables(results: Results) -> Iterator[Table]:
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


def _metrics(results: Results) -> Table:
    return Table(
        name="metrics",
        columns=("model", "note", *COLUMNS),
        rows=tuple(
            (model, each.note, *cells(each))
            for model, own in results.models.items()
            for each in own.whole
        ),
        caption="The headline configuration over all queries; mean and std are over "
        "folds, which is no interval.",
    )


def _per_criterion(results: Results) -> Table:
    return Table(
        name="per_criterion",
        columns=("model", "criterion", "note", *COLUMNS),
        rows=tuple(_criterion_rows(results)),
        caption="`few`: fewer than 10 queries with evidence.",
    )


def _criterion_rows(results: Results) -> Iterator[tuple[Cell, ...]]:
    for model, own in results.models.items():
        for criterion, metrics in own.criteria.items():
            for each in metrics:
                path = each.path.removeprefix(f"criterion.{criterion}.")
                yield (model, criterion, each.note, *cells(each, path))
        for each in own.macro:
            path = each.path.removeprefix("macro.")
            yield (model, "macro", each.note, *cells(each, path))


def _ablation(results: Results) -> Table:
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


def _gamma_sweep(results: Results) -> Table:
    return Table(
        name="gamma_sweep",
        columns=("model", "gamma", *COLUMNS),
        rows=tuple(
            (model, gamma, *cells(each))
            for model, own in results.models.items()
            for gamma, each in own.sweep
        ),
        caption="K by the mass rule, with this gamma in place of the deployed ones.",
    )


def _fold_thresholds(results: Results) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for gate in results.sheet.gates:
        where = (gate.model, gate.config, gate.fold)
        taus = (gate.tau_neg, gate.tau_pos)
        rows += [
            (*where, "tune", *taus, name, value) for name, value in gate.on_tune.items()
        ]
        own = results.models.get(gate.model)
        if own is not None and gate.config == results.sheet.headline:
            folds = own.folds.get(gate.fold, {})
            rows += [
                (*where, "test", *taus, name, folds[name].value)
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


def _folds(results: Results) -> Table:
    queries = results.sheet.queries
    fold = np.full(len(queries.posts), UNKNOWN, dtype=np.int64)
    fold[queries.post] = queries.fold
    return Table(
        name="folds",
        columns=("post_id", "fold_id"),
        rows=tuple(
            (post, queries.folds[own])
            for post, own in zip(queries.posts, fold.tolist(), strict=True)
            if own != UNKNOWN
        ),
        caption="Which posts are tested in which fold; can be given as --folds.",
    )


def _fold_sizes(results: Results) -> Table:
    queries = results.sheet.queries
    rows = []
    for i, name in enumerate(queries.folds):
        own = queries.fold == i
        posts = len(np.unique(queries.post[own]))
        positives = int(np.count_nonzero(queries.y[own] == 1))
        rows.append((name, posts, int(own.sum()), positives))
    return Table(
        name="fold_sizes",
        columns=("fold", "posts", "queries", "positives"),
        rows=tuple(rows),
    )


def _comparison(results: Results) -> Table:
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
