"""What one model under one configuration says of each query."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from jobs.evidence_retrieval.pipeline import Config
from jobs.evidence_retrieval.predicting.columns import ModelColumns
from jobs.evidence_retrieval.predicting.gated import Gated
from jobs.evidence_retrieval.predicting.grids import Constants
from jobs.evidence_retrieval.predicting.outputs import SubjectOutputs
from jobs.evidence_retrieval.predicting.selection import selection
from jobs.evidence_retrieval.predicting.steps import path
from jobs.evidence_retrieval.queries import (
    SCORED,
    SKIPPED,
    UNJUDGED,
    UNKNOWN,
    UNSCORED,
    Predictions,
    Queries,
)
from jobs.evidence_retrieval.settings import Settings
from jobs.metrics import assign
from jobs.metrics.columns import Floats
from jobs.metrics.selective import States

FALLEN_BACK = "ranked_by_stage_before"
"""Count of queries whose ranking is not that of the stage that should have made it."""


def predictions(
    queries: Queries,
    settings: Settings,
    *,
    config: Config,
    constants: Constants,
    model: str,
    columns: ModelColumns,
    subject: SubjectOutputs,
    gated: Gated | None,
) -> Predictions:
    """All queries under one configuration; gold is looked at for `status` alone."""
    steps = [columns.steps[chain] for chain in path(config, constants)]
    last = steps[-1]
    raw, probability = _probabilities(queries, settings, gated)
    score = _empty_as_zero(last.shape[0].copy(), queries, settings)
    tau_neg = tau_pos = state = None
    if gated is not None and config.three_state:
        tau_neg, tau_pos = _taus(queries, gated)
        state = _states(probability, tau_neg, tau_pos, gated)
    chosen = selection(config, settings, last.scores, state, constants.gamma)
    fallen = int(np.count_nonzero(~np.array(last.known) & (queries.pool > 1)))
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
    queries: Queries, settings: Settings, gated: Gated | None
) -> tuple[Floats, Floats]:
    unknown = np.full(len(queries), np.nan)
    if gated is None:
        return unknown, unknown
    raw = gated.of.spread(gated.result.raw, unknown)
    probability = gated.of.spread(gated.result.probability, unknown)
    return (
        _empty_as_zero(raw, queries, settings),
        _empty_as_zero(probability, queries, settings),
    )


def _empty_as_zero(column: Floats, queries: Queries, settings: Settings) -> Floats:
    """Where there is no sentence there is no evidence, if the settings say so."""
    if settings.empty_pool == "zero":
        column[queries.pool == 0] = 0.0
    return column


def _taus(queries: Queries, gated: Gated) -> tuple[Floats, Floats]:
    """The thresholds of each query's fold; NaN where that has no gate."""
    names = (*queries.folds, None)  # the last one is that of UNKNOWN, which is -1
    found = [gated.gate(name) for name in names]
    neg = [np.nan if gate is None else gate.thresholds.tau_neg for gate in found]
    pos = [np.nan if gate is None else gate.thresholds.tau_pos for gate in found]
    return np.array(neg)[queries.fold], np.array(pos)[queries.fold]


def _states(p: Floats, tau_neg: Floats, tau_pos: Floats, gated: Gated) -> States:
    states = np.full(len(p), UNKNOWN, dtype=np.int8)
    there = ~np.isnan(p) & ~np.isnan(tau_neg)
    states[there] = assign(
        p[there], tau_neg[there], tau_pos[there], edge=gated.spec.edge
    )
    return states


def _status(
    queries: Queries, number: Floats, subject: SubjectOutputs, config: Config
) -> Sequence[str]:
    """Whether a query counts, by the number that orders queries here."""
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
        elif config.gate == "none" and _is_trivial(config, int(queries.pool[i])):
            statuses.append(f"{SKIPPED}:single_sentence")
        else:
            statuses.append(UNSCORED)
    return statuses


def _is_trivial(config: Config, pool: int) -> bool:
    """Whether an endpoint had nothing to order, and so gave no score."""
    return config.rerank == "endpoint" and pool == 1
