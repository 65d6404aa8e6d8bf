"""Predicts all queries of a run, from its answers or from an import.

Everything up to the gate uses a data set without gold, so a changed label of a test
post cannot affect its ranking, features or probability.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from jobs.evidence_retrieval.data import EvidenceDataset
from jobs.evidence_retrieval.import_predictions import imported_scoring_input
from jobs.evidence_retrieval.leakage_experiments import leak_checks
from jobs.evidence_retrieval.predictions.columns import columns, queries
from jobs.evidence_retrieval.predictions.config_predictions import (
    ConfigPredictions,
    decide,
    fold_gates,
)
from jobs.evidence_retrieval.predictions.fitted_gate import encode
from jobs.evidence_retrieval.predictions.fold_gates import FittedGates, final_gate
from jobs.evidence_retrieval.predictions.gate import FoldResult
from jobs.evidence_retrieval.predictions.outputs import gather
from jobs.evidence_retrieval.predictions.rankings import (
    needed_constants,
    ranking_chains,
)
from jobs.evidence_retrieval.queries import Predictions, Queries, ScoringInput
from runner.job import Answers
from runner.scorecard import Finding


def gate_findings(
    group: Sequence[ConfigPredictions], *, may_fit: bool
) -> Iterator[Finding]:
    """Yield folds without a gate, thresholds without a positive, and other weaknesses.

    Args:
        group: configurations that share their gates; each finding occurs once.
        may_fit: whether gates are fitted, not read from a file.
    """
    first = group[0]
    names = " and ".join(config_predictions.config.name for config_predictions in group)
    where = f"{first.predictions.model}, {names}"
    gated = next(iter(first.gates.values()))
    if first.config.is_fitted and gated.applied is None and not gated.result.folds:
        yield Finding(
            code="gate_undefined",
            severity="warn" if may_fit else "error",
            where=where,
            message="Without gold the gate cannot be fitted: probabilities are "
            "the model's, and there are no states."
            if may_fit
            else "The file of --apply-gate has no gate for this model, "
            "configuration and set of features, so probabilities are "
            "the model's, and there are no states.",
        )
    for result in first.fitted:
        yield from _fold_findings(f"{where}, fold {result.split.fold}", result)
    spec = gated.spec
    if spec.settings.calibrate_on == "tune" and spec.calibration != "none":
        yield _warning(
            "calibrated_on_tune",
            where,
            "The calibrator was fitted on the posts that set the thresholds, so the "
            "results there are too optimistic.",
        )


def _fold_findings(where: str, result: FoldResult) -> Iterator[Finding]:
    if result.gate is None:
        yield _warning(
            "gate_undefined",
            where,
            f"The gate cannot be fitted ({result.reason}); the fold's probabilities "
            "are the model's own and it has no states.",
        )
    elif not result.gate.thresholds.has_positive:
        yield _warning(
            "no_positive_to_tune_on",
            where,
            "No query of the tuning posts has evidence, so no query is NEG or POS.",
        )


def _warning(code: str, where: str, message: str) -> Finding:
    return Finding(code=code, severity="warn", where=where, message=message)


def grid_findings(decided: ConfigPredictions) -> Iterator[Finding]:
    """Yield folds that had no choice from a grid, and use the default constants."""
    if decided.grid is None:
        return
    if not decided.chosen:
        yield _warning(
            "grid_without_positive",
            decided.where,
            "There is no gold to choose from a grid by, so the constants hold.",
        )
    for choice in decided.chosen:
        if choice.value is None:
            yield _warning(
                "grid_without_positive",
                f"{decided.where}, fold {choice.split.fold}",
                "No query of the tuning posts has evidence to choose from a grid by, "
                "so the constants hold.",
            )


def seen_posts(decided: ConfigPredictions, queries: Queries) -> Iterator[Finding]:
    """Yield posts that a stored gate was fitted to and now decides."""
    for gated in decided.gates.values():
        seen = frozenset(() if gated.applied is None else gated.applied.posts)
        both = [post for post in queries.posts if post in seen]
        if both:
            yield Finding(
                code="applied_gate_saw_posts",
                severity="error",
                where=decided.where,
                message=f"The gate of --apply-gate was fitted on {len(both)} of these "
                "posts, so no metric of it is an estimate for new ones.",
                n=len(both),
                example=both[0],
            )


def sweep_findings(predictions: Predictions) -> Iterator[Finding]:
    """Yield a finding if gamma has no effect, because of bounds or flat scores."""
    columns = list(predictions.sweep.values())
    if len(columns) > 1 and np.sum(columns[-1]) <= np.sum(columns[0]):
        low, *_, high = predictions.sweep
        yield _warning(
            "gamma_without_effect",
            f"{predictions.model}, {predictions.config}",
            f"Mean K does not grow from gamma {low:g} to {high:g}: other rules than "
            "the mass of the scores decide it.",
        )


def predict(dataset: EvidenceDataset, answers: Answers) -> ScoringInput:
    """Predict every query for each model and configuration."""
    blind = replace(dataset, gold=None)
    outputs = gather(blind, answers)
    settings = dataset.settings
    chains = (
        chain
        for config in dataset.configs
        for constants in needed_constants(config, settings)
        for chain in ranking_chains(config, constants)
    )
    by_model = columns(blind, outputs, chains)
    all_queries = queries(dataset)
    gates = FittedGates(dataset, all_queries)
    decided = [
        decide(
            dataset,
            all_queries,
            config,
            model=model,
            columns=model_columns,
            subject=outputs.subjects[model],
            gates=gates,
        )
        for model, model_columns in by_model.items()
        for config in dataset.configs
    ]
    return ScoringInput(
        queries=all_queries,
        predictions=tuple(one.predictions for one in decided),
        headline=dataset.configs[-1].name,
        models=answers.models,
        gates=tuple(gate for one in decided for gate in fold_gates(one)),
        final_gates=_final(dataset, decided),
        leak_checks=leak_checks(dataset, all_queries, decided, gates.folds),
        findings=tuple(_findings(dataset, all_queries, decided)),
        missing=outputs.missing,
        stale=outputs.stale,
    )


def _findings(
    dataset: EvidenceDataset, all_queries: Queries, decided: Iterable[ConfigPredictions]
) -> Iterator[Finding]:
    sharing: dict[tuple[int, ...], list[ConfigPredictions]] = {}
    for config_predictions in decided:
        yield from sweep_findings(config_predictions.predictions)
        yield from grid_findings(config_predictions)
        if config_predictions.gates:
            yield from seen_posts(config_predictions, all_queries)
            shared = (*config_predictions.gates.values(), *config_predictions.fitted)
            key = tuple(map(id, shared))
            sharing.setdefault(key, []).append(config_predictions)
    for group in sharing.values():
        yield from gate_findings(group, may_fit=not dataset.gates)


def _final(dataset: EvidenceDataset, decided: Iterable[ConfigPredictions]) -> str:
    """Return the text of gate_final.json, if requested."""
    if not dataset.settings.final_gate:
        return ""
    stored = (
        final_gate(one.predictions.model, one.config, gated)
        for one in decided
        for gated in one.gates.values()
        if one.config.is_fitted
    )
    return encode(gate for gate in stored if gate is not None)


def scoring_input_of(dataset: EvidenceDataset, answers: Answers) -> ScoringInput:
    """Return the scoring input of a run's answers."""
    make = imported_scoring_input if answers.imported else predict
    return make(dataset, answers)
