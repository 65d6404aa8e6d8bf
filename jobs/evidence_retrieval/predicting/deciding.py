"""One model under one configuration, decided: constants, gate and predictions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jobs.evidence_retrieval.dataset import Dataset
from jobs.evidence_retrieval.gating.nested import FoldResult
from jobs.evidence_retrieval.gating.splits import Split
from jobs.evidence_retrieval.gating.stored import gate_json
from jobs.evidence_retrieval.pipeline import Config
from jobs.evidence_retrieval.predicting.by_fold import by_fold
from jobs.evidence_retrieval.predicting.choosing import (
    Candidate,
    FoldChoice,
    Grid,
    choices,
)
from jobs.evidence_retrieval.predicting.columns import ModelColumns
from jobs.evidence_retrieval.predicting.gated import Gated, Gates
from jobs.evidence_retrieval.predicting.grids import Constants, offered
from jobs.evidence_retrieval.predicting.outputs import SubjectOutputs
from jobs.evidence_retrieval.predicting.predictions import predictions
from jobs.evidence_retrieval.predicting.steps import path
from jobs.evidence_retrieval.queries import FoldGate, Predictions, Queries, Tuned


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """What was predicted, and by what."""

    config: Config
    predictions: Predictions
    gates: Mapping[Constants, Gated]  #: under what folds go by; empty: no gate
    grid: Grid | None = None  #: None: no fold had anything to choose
    chosen: tuple[FoldChoice, ...] = ()

    @property
    def where(self) -> str:
        """Model and configuration, for findings."""
        return f"{self.predictions.model}, {self.config.name}"

    @property
    def fitted(self) -> Sequence[FoldResult]:
        """What was fitted for each fold and used there; empty without a gate."""
        if self.grid is None:
            return [own for gated in self.gates.values() for own in gated.result.folds]
        of_fold = [
            self.gates[choice.constants].fitted(choice.split.fold)
            for choice in self.chosen
            if choice.constants in self.gates
        ]
        return [own for own in of_fold if own is not None]


def decide(
    dataset: Dataset,
    queries: Queries,
    config: Config,
    *,
    model: str,
    columns: ModelColumns,
    subject: SubjectOutputs,
    gates: Gates,
) -> Decided:
    """All queries under one configuration, each by the constants of its fold.

    Args:
        dataset: whose settings.
        queries: with gold, of which only what the folds may see is looked at.
        config: one of the data set's.
        model: the model under test.
        columns: all that it said, as rankings.
        subject: all that it said, as it was read.
        gates: of the whole scoring.
    """
    settings = dataset.settings
    candidates = [
        Candidate(
            constants=own,
            last=columns.steps[path(config, own)[-1]],
            gated=gates.of(model, columns, config, own),
        )
        for own in offered(config, settings)
    ]
    offer = Grid(config=config, settings=settings, candidates=candidates)
    grid, chosen = None, tuple[FoldChoice, ...]()
    if len(candidates) > 1:
        grid, chosen = offer, tuple(choices(offer, queries, gates.folds))
    of_fold = {choice.split.fold: choice.constants for choice in chosen}
    # the last one is that of posts without a fold, which is -1
    held = offer.standing
    each = [*(of_fold.get(name, held) for name in queries.folds), held]
    of_query = [each[place] for place in queries.fold.tolist()]
    used = tuple(dict.fromkeys(of_query)) or (held,)
    gated = {own: gates.of(model, columns, config, own) for own in used}
    parts = [
        predictions(
            queries,
            settings,
            config=config,
            constants=own,
            model=model,
            columns=columns,
            subject=subject,
            gated=gated[own],
        )
        for own in used
    ]
    which = np.array([used.index(own) for own in of_query], dtype=np.int64)
    return Decided(
        config=config,
        predictions=by_fold(parts, which),
        gates={own: gate for own, gate in gated.items() if gate is not None},
        grid=grid,
        chosen=chosen,
    )


def fold_gates(decided: Decided) -> Iterator[FoldGate]:
    """What was fitted and chosen for each fold of a configuration."""
    fitted = {own.split.fold: own for own in decided.fitted}
    if decided.grid is None:
        for own in fitted.values():
            yield _record(decided, own.split, own)
        return
    by, varied = decided.grid.settings.grid_metric, decided.grid.varied
    for choice in decided.chosen:
        record = _record(decided, choice.split, fitted.get(choice.split.fold))
        constants = {name: getattr(choice.constants, name) for name in varied}
        yield replace(
            record,
            fitted={**record.fitted, "constants": constants, "chosen_by": by},
            on_tune={**record.on_tune, **constants, by: choice.value},
        )


def _record(decided: Decided, split: Split, result: FoldResult | None) -> FoldGate:
    gate = None if result is None else result.gate
    fitted: Mapping[str, Any] = {}
    if gate is not None:
        fitted = gate_json(gate)
    elif result is not None:
        fitted = {"undefined": result.reason}
    return FoldGate(
        model=decided.predictions.model,
        config=decided.config.name,
        fold=split.fold,
        posts={
            "fit": len(split.fit),
            "tune": len(split.tune),
            "test": len(split.test),
        },
        tau_neg=None if gate is None else gate.thresholds.tau_neg,
        tau_pos=None if gate is None else gate.thresholds.tau_pos,
        on_tune={} if result is None else result.on_tune,
        fitted=fitted,
        has_gate=result is not None,
        tuned=None
        if result is None or gate is None
        else Tuned(y=tuple(result.tune_y.tolist()), p=tuple(result.tune_p.tolist())),
    )
