"""From a run's answers to the sheet that is scored.

Everything up to the gate works on a data set from which the gold was taken away; so a
changed label of a test post cannot reach a ranking, a feature or a probability of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from jobs.evidence_retrieval.dataset import Dataset
from jobs.evidence_retrieval.gating.stored import encode, gate_json
from jobs.evidence_retrieval.pipeline import Config
from jobs.evidence_retrieval.predicting.columns import columns
from jobs.evidence_retrieval.predicting.gated import Gated, Gates, final_gate
from jobs.evidence_retrieval.predicting.gathering import gather
from jobs.evidence_retrieval.predicting.leaks import leaks
from jobs.evidence_retrieval.predicting.noticed import (
    gate_findings,
    seen_posts,
    sweep_findings,
)
from jobs.evidence_retrieval.predicting.predictions import predictions
from jobs.evidence_retrieval.predicting.questions import queries
from jobs.evidence_retrieval.predicting.steps import path
from jobs.evidence_retrieval.queries import FoldGate, Predictions, Sheet
from runner.job import Answers
from runner.scorecard import Finding


def predict(dataset: Dataset, answers: Answers) -> Sheet:
    """What each model under each configuration says of every query."""
    blind = replace(dataset, gold=None)
    outputs = gather(blind, answers)
    chains = (chain for config in dataset.configs for chain in path(config))
    by_model = columns(blind, outputs, chains)
    asked = queries(dataset)
    gates = Gates(dataset, asked)
    found: list[Predictions] = []
    fitted: list[tuple[str, Config, Gated]] = []
    noticed: list[Finding] = []
    for model, own in by_model.items():
        for config in dataset.configs:
            gated = gates.of(model, own, config)
            made = predictions(
                asked,
                dataset.settings,
                config=config,
                model=model,
                columns=own,
                subject=outputs.subjects[model],
                gated=gated,
            )
            found.append(made)
            noticed += sweep_findings(made)
            if gated is None:
                continue
            fitted.append((model, config, gated))
            noticed += gate_findings(model, config, gated, may_fit=not dataset.gates)
            noticed += seen_posts(model, config, gated, asked)
    return Sheet(
        queries=asked,
        predictions=tuple(found),
        headline=dataset.configs[-1].name,
        models=answers.models,
        gates=tuple(fold_gates(fitted)),
        final_gates=_final(dataset, fitted),
        leakage=tuple(leaks(dataset, asked, found, fitted, gates.folds)),
        findings=tuple(noticed),
        missing=outputs.missing,
        stale=outputs.stale,
    )


def fold_gates(fitted: Iterable[tuple[str, Config, Gated]]) -> Iterable[FoldGate]:
    """What was fitted for each fold of each model and configuration."""
    for model, config, gated in fitted:
        for own in gated.result.folds:
            taus = None if own.gate is None else own.gate.thresholds
            yield FoldGate(
                model=model,
                config=config.name,
                fold=own.split.fold,
                posts={
                    "fit": len(own.split.fit),
                    "tune": len(own.split.tune),
                    "test": len(own.split.test),
                },
                tau_neg=None if taus is None else taus.tau_neg,
                tau_pos=None if taus is None else taus.tau_pos,
                on_tune=own.on_tune,
                fitted={"undefined": own.reason}
                if own.gate is None
                else gate_json(own.gate),
            )


def _final(dataset: Dataset, fitted: Iterable[tuple[str, Config, Gated]]) -> str:
    """The text of gate_final.json, where one was asked for."""
    if not dataset.settings.final_gate:
        return ""
    stored = (
        final_gate(model, config, gated)
        for model, config, gated in fitted
        if config.is_fitted
    )
    return encode(own for own in stored if own is not None)
