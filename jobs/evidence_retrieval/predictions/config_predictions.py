"""Predicts every query for one model under one configuration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from jobs.evidence_retrieval.data import EvidenceDataset
from jobs.evidence_retrieval.pipeline import Config
from jobs.evidence_retrieval.predictions.classifier import Split
from jobs.evidence_retrieval.predictions.columns import ModelColumns
from jobs.evidence_retrieval.predictions.fitted_gate import gate_json
from jobs.evidence_retrieval.predictions.fold_gates import (
    FittedGates,
    FoldChoice,
    GateOutput,
    Grid,
    GridCandidate,
    choices,
)
from jobs.evidence_retrieval.predictions.gate import FoldResult
from jobs.evidence_retrieval.predictions.outputs import SubjectOutputs
from jobs.evidence_retrieval.predictions.rankings import (
    Constants,
    grid_constants,
    ranking_chains,
)
from jobs.evidence_retrieval.predictions.stages import selection
from jobs.evidence_retrieval.queries import (
    SCORED,
    SKIPPED,
    UNJUDGED,
    UNKNOWN,
    UNSCORED,
    FoldGate,
    Predictions,
    Queries,
    TuningSample,
)
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.kit.metrics import assign
from jobs.kit.metrics.columns import Floats, Ints
from jobs.kit.metrics.selective import States

FALLEN_BACK = "ranked_by_stage_before"
"""Count of queries that keep the ranking of an earlier stage."""


def predictions(
    queries: Queries,
    settings: EvidenceSettings,
    *,
    config: Config,
    constants: Constants,
    model: str,
    columns: ModelColumns,
    subject: SubjectOutputs,
    gated: GateOutput | None,
) -> Predictions:
    """Predict all queries under one configuration; gold affects only `status`."""
    steps = [columns.steps[chain] for chain in ranking_chains(config, constants)]
    last = steps[-1]
    raw, probability = _probabilities(queries, settings, gated)
    score = _empty_as_zero(last.shape[0].copy(), queries, settings)
    tau_neg = tau_pos = state = None
    if gated is not None and config.three_state:
        tau_neg, tau_pos = _taus(queries, gated)
        state = _states(probability, tau_neg, tau_pos, gated)
    chosen = selection(config, settings, last.scores, state, constants.gamma)
    fallen = int(np.count_nonzero(~np.array(last.answered) & (queries.pool > 1)))
    counts = Counter(subject.counts)
    if fallen:
        counts[FALLEN_BACK] = fallen
    number = score if gated is None else probability
    return Predictions(
        model=model,
        config=config.name,
        status=_status(queries, number, subject, config),
        prob_raw=None if gated is None else raw,
        prob=None if gated is None else probability,
        score=score,
        tau_neg=tau_neg,
        tau_pos=tau_pos,
        state=state,
        k=chosen.k,
        k_rule=chosen.rule,
        sweep=chosen.sweep,
        lists={step.name: step.lists for step in steps},
        final=last.name,
        scores={step.name: step.scores for step in steps},
        replicates=np.array(columns.replicates_read, dtype=np.int64),
        repeat=columns.replicates.numbers(),
        counts=dict(sorted(counts.items())),
    )


def _probabilities(
    queries: Queries, settings: EvidenceSettings, gated: GateOutput | None
) -> tuple[Floats, Floats]:
    """Return raw and calibrated probabilities; NaN if the gate has none."""
    raw, probability = np.full((2, len(queries)), np.nan)
    if gated is not None:
        raw[gated.of.indices] = gated.result.raw
        probability[gated.of.indices] = gated.result.probability
    return (
        _empty_as_zero(raw, queries, settings),
        _empty_as_zero(probability, queries, settings),
    )


def _empty_as_zero(
    column: Floats, queries: Queries, settings: EvidenceSettings
) -> Floats:
    """Set queries without sentences to 0, if the settings say so."""
    if settings.empty_pool == "zero":
        column[queries.pool == 0] = 0.0
    return column


def _taus(queries: Queries, gated: GateOutput) -> tuple[Floats, Floats]:
    """Return the thresholds of each query's fold; NaN if that has no gate."""
    names = (*queries.folds, None)  # for UNKNOWN, which is -1
    gates = [gated.gate(name) for name in names]
    neg = [np.nan if gate is None else gate.thresholds.tau_neg for gate in gates]
    pos = [np.nan if gate is None else gate.thresholds.tau_pos for gate in gates]
    return np.array(neg)[queries.fold], np.array(pos)[queries.fold]


def _states(p: Floats, tau_neg: Floats, tau_pos: Floats, gated: GateOutput) -> States:
    states = np.full(len(p), UNKNOWN, dtype=np.int8)
    has_thresholds = ~np.isnan(p) & ~np.isnan(tau_neg)
    states[has_thresholds] = assign(
        p[has_thresholds],
        tau_neg[has_thresholds],
        tau_pos[has_thresholds],
        edge=gated.spec.settings.gate_edge,
    )
    return states


def _status(
    queries: Queries, number: Floats, subject: SubjectOutputs, config: Config
) -> Sequence[str]:
    """Return the status of each query, by the number that orders queries."""
    goes_by_endpoint = config.gate == "none" and config.rerank == "endpoint"
    statuses = []
    for i, (y, value) in enumerate(zip(queries.y.tolist(), number, strict=True)):
        if y == UNKNOWN:
            statuses.append(UNJUDGED)
        elif not np.isnan(value):
            statuses.append(SCORED)
        elif not queries.pool[i]:
            statuses.append(f"{SKIPPED}:no_sentences")
        elif (reason := subject.skipped.get(queries.key(i))) is not None:
            statuses.append(f"{SKIPPED}:{reason}")
        elif goes_by_endpoint and queries.pool[i] == 1:
            # it had nothing to order, so it has no score
            statuses.append(f"{SKIPPED}:single_sentence")
        else:
            statuses.append(UNSCORED)
    return statuses


_Value = TypeVar("_Value")
_Kind = TypeVar("_Kind", bound=np.generic)


_COLUMNS = ("prob_raw", "prob", "score", "tau_neg", "tau_pos", "state", "k")
"""Numeric columns; None if a configuration has no such column."""


def by_fold(parts: Sequence[Predictions], which: Ints) -> Predictions:
    """Merge one configuration's predictions under several constants.

    Args:
        parts: predictions, each for all queries.
        which: for each query, the index of its part.
    """
    first = parts[0]
    if len(parts) == 1:
        return first
    columns: dict[str, Any] = {
        name: _stacked([getattr(part, name) for part in parts], which)
        for name in _COLUMNS
        if getattr(first, name) is not None
    }
    return replace(
        first,
        **columns,
        status=_rows([part.status for part in parts], which),
        sweep={
            gamma: _stacked([part.sweep[gamma] for part in parts], which)
            for gamma in first.sweep
        },
        lists={
            name: _rows([part.lists[name] for part in parts], which)
            for name in first.lists
        },
        scores={
            name: _rows([part.scores[name] for part in parts], which)
            for name in first.scores
        },
    )


def _stacked(columns: Sequence[npt.NDArray[_Kind]], which: Ints) -> npt.NDArray[_Kind]:
    return np.stack(columns)[which, np.arange(len(which))]


def _rows(columns: Sequence[Sequence[_Value]], which: Ints) -> Sequence[_Value]:
    # a step before the one that a grid affects remains the shared object
    if all(column is columns[0] for column in columns):
        return columns[0]
    return [columns[at][i] for i, at in enumerate(which.tolist())]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigPredictions:
    """Predictions of a configuration, with the gates and choices behind them."""

    config: Config
    predictions: Predictions
    gates: Mapping[Constants, GateOutput]  #: by the constants of a fold; empty: no gate
    grid: Grid | None = None  #: None: no fold had a choice
    chosen: tuple[FoldChoice, ...] = ()

    @property
    def where(self) -> str:
        """Model and configuration, for findings."""
        return f"{self.predictions.model}, {self.config.name}"

    @property
    def fitted(self) -> Sequence[FoldResult]:
        """Gates fitted for each fold and used there; empty without a gate."""
        if self.grid is None:
            return [
                fold_result
                for gated in self.gates.values()
                for fold_result in gated.result.folds
            ]
        of_fold = [
            self.gates[choice.constants].fitted(choice.split.fold)
            for choice in self.chosen
            if choice.constants in self.gates
        ]
        return [fold_result for fold_result in of_fold if fold_result is not None]


def decide(
    dataset: EvidenceDataset,
    queries: Queries,
    config: Config,
    *,
    model: str,
    columns: ModelColumns,
    subject: SubjectOutputs,
    gates: FittedGates,
) -> ConfigPredictions:
    """Predict all queries under one configuration, by the constants of each fold.

    Args:
        dataset: inputs, with the settings.
        queries: queries with gold, of which only the part open to a fold is used.
        config: a configuration of the data set.
        model: the model under test.
        columns: its answers, as rankings.
        subject: its answers, as parsed.
        gates: gates of the whole scoring.
    """
    settings = dataset.settings
    candidates = [
        GridCandidate(
            constants=constants,
            last=columns.steps[ranking_chains(config, constants)[-1]],
            gated=gates.of(model, columns, config, constants),
        )
        for constants in grid_constants(config, settings)
    ]
    offer = Grid(config=config, settings=settings, candidates=candidates)
    grid, chosen = None, tuple[FoldChoice, ...]()
    if len(candidates) > 1:
        grid, chosen = offer, tuple(choices(offer, queries, gates.folds))
    of_fold = {choice.split.fold: choice.constants for choice in chosen}
    # the last one is for posts without a fold, which is -1
    defaults = offer.defaults
    fold_constants = [
        *(of_fold.get(name, defaults) for name in queries.folds),
        defaults,
    ]
    of_query = [fold_constants[fold] for fold in queries.fold.tolist()]
    used = tuple(dict.fromkeys(of_query)) or (defaults,)
    gated = {
        constants: gates.of(model, columns, config, constants) for constants in used
    }
    parts = [
        predictions(
            queries,
            settings,
            config=config,
            constants=constants,
            model=model,
            columns=columns,
            subject=subject,
            gated=gated[constants],
        )
        for constants in used
    ]
    which = np.array([used.index(constants) for constants in of_query], dtype=np.int64)
    return ConfigPredictions(
        config=config,
        predictions=by_fold(parts, which),
        gates={name: gate for name, gate in gated.items() if gate is not None},
        grid=grid,
        chosen=chosen,
    )


def fold_gates(decided: ConfigPredictions) -> Iterator[FoldGate]:
    """Yield the fitted gate and the chosen constants of each fold."""
    fitted = {fold_result.split.fold: fold_result for fold_result in decided.fitted}
    if decided.grid is None:
        for fold_result in fitted.values():
            yield _record(decided, fold_result.split, fold_result)
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


def _record(
    decided: ConfigPredictions, split: Split, result: FoldResult | None
) -> FoldGate:
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
        posts={part: len(getattr(split, part)) for part in ("fit", "tune", "test")},
        tau_neg=None if gate is None else gate.thresholds.tau_neg,
        tau_pos=None if gate is None else gate.thresholds.tau_pos,
        on_tune={} if result is None else result.on_tune,
        fitted=fitted,
        has_gate=result is not None,
        tuned=None
        if result is None or gate is None
        else TuningSample(
            y=tuple(result.tune_y.tolist()), p=tuple(result.tune_p.tolist())
        ),
    )
