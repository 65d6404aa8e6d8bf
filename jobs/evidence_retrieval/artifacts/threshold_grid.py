"""Pairs of thresholds tried out, on tuning queries and on test ones.

Each fold's tuning queries have rows of their own: they are what its gate was tuned on,
and no metric counts them there. Test queries are shown under a title that says what
their rows are not for, beside the pair that the states come from.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from jobs.evidence_retrieval.artifacts.metric_rows import COLUMNS, cells
from jobs.evidence_retrieval.measuring.block import Block
from jobs.evidence_retrieval.measuring.results import ModelResults, Results
from jobs.evidence_retrieval.settings import Settings
from jobs.metrics.columns import Column
from jobs.metrics.selective import gate_grid
from runner.scorecard import Cell, Metric, Table

TUNE, TEST = "tune queries: for choosing", "test queries: not for selection"
DEPLOYED = "test"

OF_TAU_NEG = ("neg_rate", "screening_sensitivity", "screening_npv")
OF_TAU_POS = ("pos_rate", "alert_precision", "alert_recall")


def threshold_grid(results: Results) -> Table:
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
            for model, own in results.models.items()
            for row in (*_tuned(results, own), *_tested(own))
        ),
        caption="Pairs of thresholds over the tuning queries of each fold, for "
        "choosing, and over test queries: not for selection. The rows marked as "
        "deployed are those that the states come from.",
    )


def _tuned(results: Results, own: ModelResults) -> Iterator[tuple[Cell, ...]]:
    said = own.block.prediction
    for gate in results.sheet.gates:
        is_own = (gate.model, gate.config) == (said.model, said.config)
        if is_own and gate.tuned is not None:
            subset = f"tune of fold {gate.fold}"
            tried = _tried(gate.tuned.y, gate.tuned.p, results.settings, subset)
            for tau_neg, tau_pos, each in tried:
                yield (gate.fold, tau_neg, tau_pos, False, TUNE, *cells(each))


def _tested(own: ModelResults) -> Iterator[tuple[Cell, ...]]:
    block = own.block
    gated = block.gated
    if gated is None or not gated.is_probability or block.stated is None:
        return
    deployed = (_constant(block, "tau_neg"), _constant(block, "tau_pos"))
    by_path = own.by_path()
    for name in (*OF_TAU_NEG, *OF_TAU_POS):
        yield (None, *deployed, True, DEPLOYED, *cells(by_path[name]))
    for tau_neg, tau_pos, each in _tried(gated.y, gated.p, block.settings, "scored"):
        yield (None, tau_neg, tau_pos, False, TEST, *cells(each))


def _tried(
    y: Column, p: Column, settings: Settings, subset: str
) -> Iterator[tuple[float, float, Metric]]:
    """Every pair that is one, with what it comes to."""
    low, high = settings.grid_tau_neg, settings.grid_tau_pos
    grid = gate_grid(y, p, low, high)
    for i, j in np.argwhere(grid.allowed).tolist():
        of_pair = f"tau_neg={low[i]}, tau_pos={high[j]}, edge=lt"
        for names, place in ((OF_TAU_NEG, i), (OF_TAU_POS, j)):
            for name in names:
                value = float(getattr(grid, name)[place])
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


def _constant(block: Block, name: str) -> Cell:
    """A threshold, if all queries have the same; else where to find it."""
    column = getattr(block.prediction, name)
    if column is None:
        return "as the file says"
    values = set(column[~np.isnan(column)].tolist())
    return values.pop() if len(values) == 1 else "by fold"
