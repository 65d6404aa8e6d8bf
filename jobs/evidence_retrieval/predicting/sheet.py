"""From a run's answers to the sheet that is scored.

Everything up to the gate works on a data set from which the gold was taken away; so a
changed label of a test post cannot reach a ranking, a feature or a probability of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from jobs.evidence_retrieval.dataset import Dataset
from jobs.evidence_retrieval.gating.stored import encode
from jobs.evidence_retrieval.predicting.columns import columns
from jobs.evidence_retrieval.predicting.deciding import Decided, decide, fold_gates
from jobs.evidence_retrieval.predicting.gated import Gates, final_gate
from jobs.evidence_retrieval.predicting.gathering import gather
from jobs.evidence_retrieval.predicting.grids import needed
from jobs.evidence_retrieval.predicting.leaks import leaks
from jobs.evidence_retrieval.predicting.noticed import (
    gate_findings,
    grid_findings,
    seen_posts,
    sweep_findings,
)
from jobs.evidence_retrieval.predicting.questions import queries
from jobs.evidence_retrieval.predicting.steps import path
from jobs.evidence_retrieval.queries import Queries, Sheet
from runner.job import Answers
from runner.scorecard import Finding


def predict(dataset: Dataset, answers: Answers) -> Sheet:
    """What each model under each configuration says of every query."""
    blind = replace(dataset, gold=None)
    outputs = gather(blind, answers)
    settings = dataset.settings
    chains = (
        chain
        for config in dataset.configs
        for constants in needed(config, settings)
        for chain in path(config, constants)
    )
    by_model = columns(blind, outputs, chains)
    asked = queries(dataset)
    gates = Gates(dataset, asked)
    decided = [
        decide(
            dataset,
            asked,
            config,
            model=model,
            columns=own,
            subject=outputs.subjects[model],
            gates=gates,
        )
        for model, own in by_model.items()
        for config in dataset.configs
    ]
    return Sheet(
        queries=asked,
        predictions=tuple(each.predictions for each in decided),
        headline=dataset.configs[-1].name,
        models=answers.models,
        gates=tuple(gate for each in decided for gate in fold_gates(each)),
        final_gates=_final(dataset, decided),
        leak_checks=leaks(dataset, asked, decided, gates.folds),
        findings=tuple(_noticed(dataset, asked, decided)),
        missing=outputs.missing,
        stale=outputs.stale,
    )


def _noticed(
    dataset: Dataset, asked: Queries, decided: Iterable[Decided]
) -> Iterator[Finding]:
    sharing: dict[tuple[int, ...], list[Decided]] = {}
    for each in decided:
        yield from sweep_findings(each.predictions)
        yield from grid_findings(each)
        if each.gates:
            yield from seen_posts(each, asked)
            key = tuple(map(id, (*each.gates.values(), *each.fitted)))
            sharing.setdefault(key, []).append(each)
    for alike in sharing.values():
        yield from gate_findings(alike, may_fit=not dataset.gates)


def _final(dataset: Dataset, decided: Iterable[Decided]) -> str:
    """The text of gate_final.json, where one was asked for."""
    if not dataset.settings.final_gate:
        return ""
    stored = (
        final_gate(each.predictions.model, each.config, gated)
        for each in decided
        for gated in each.gates.values()
        if each.config.is_fitted
    )
    return encode(own for own in stored if own is not None)
