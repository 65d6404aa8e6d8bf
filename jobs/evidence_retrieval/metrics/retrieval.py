"""Measures a block: all queries, a fold or a criterion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from jobs.evidence_retrieval.metrics.bootstrap import (
    NO_CLUSTERS,
    Clusters,
    PostBootstrap,
)
from jobs.evidence_retrieval.metrics.gate import (
    ScoredQueries,
    calibration,
    separation,
)
from jobs.evidence_retrieval.metrics.judged_predictions import (
    STATED,
    GateScores,
    JudgedPredictions,
    choose,
    recomputed,
)
from jobs.evidence_retrieval.metrics.lists import (
    candidates,
    evidence,
    ranking,
    selection,
    stated_means,
)
from jobs.evidence_retrieval.metrics.states import decided_queries, points, states
from jobs.evidence_retrieval.queries import SCORED, UNKNOWN
from jobs.kit.measurements import (
    Measurement,
    count,
    share,
)
from jobs.kit.measures import ValueMeasure, measured
from jobs.kit.metrics.columns import Bools
from runner.scorecard import Metric

COVERAGE: Mapping[str, ValueMeasure[JudgedPredictions]] = {
    "queries": ValueMeasure(
        "Queries",
        "Number of queries: one post read for one criterion",
        definition="count@1(posts x criteria)",
        of=lambda block: count(len(block.queries)),
    ),
    "posts": ValueMeasure(
        "Posts",
        "Number of distinct posts",
        definition="count@1(distinct posts)",
        of=lambda block: count(len(block.queries.posts)),
    ),
    "criteria": ValueMeasure(
        "Criteria",
        "Number of criteria",
        definition="count@1(criteria)",
        of=lambda block: count(len(block.queries.criteria)),
    ),
    "status.{status}": ValueMeasure(
        "Queries with status {status}",
        "Number of queries whose status is {status}",
        definition="count@1(queries)",
        of=lambda block: {name: count(n) for name, n in block.statuses.items()},
    ),
}

UNJUDGED_COUNTS: Mapping[str, ValueMeasure[JudgedPredictions]] = {
    "answered": ValueMeasure(
        "Answered queries",
        "Number of queries that have an answer",
        definition="count@1(queries with an answer)",
        of=lambda block: count(int(answered_queries(block).sum()), len(block.queries)),
    ),
    "evidence_at_tau": ValueMeasure(
        "Queries with evidence by the model",
        "Number of queries whose probability of evidence is at least tau",
        definition="count@1(p >= tau)",
        of=lambda block: count(_evident(block), len(block.queries)),
    ),
}
"""Counts of queries without labels."""


def answered_queries(block: JudgedPredictions) -> Bools:
    """Return whether each query has an answer: a probability, or else a score."""
    prediction = block.prediction
    column = prediction.score if prediction.prob is None else prediction.prob
    if column is None:
        ranked = prediction.lists.get(prediction.final, ())
        return np.fromiter(map(bool, ranked), np.bool_)
    answered: Bools = ~np.isnan(column)
    return answered


def _evident(block: JudgedPredictions) -> int:
    p = block.prediction.prob
    return 0 if p is None else int((p >= block.settings.tau).sum())


ANSWERED: Mapping[str, ValueMeasure[JudgedPredictions]] = {
    "coverage": ValueMeasure(
        "Coverage",
        "Share of judged queries that have an answer",
        "higher",
        definition="coverage@1(judged queries with an answer, by judged queries)",
        of=lambda block: share(block.statuses[SCORED], int(block.judged.sum())),
    ),
}


def coverage(block: JudgedPredictions) -> Iterator[Measurement]:
    """Yield the number of queries, and of those that are in no metric."""
    yield from measured(COVERAGE, block, subset="all")
    yield from measured(ANSWERED, block, subset="judged")


def measures(
    block: JudgedPredictions, clusters: Clusters = NO_CLUSTERS
) -> Iterator[Measurement]:
    """Yield every metric of a block: of all queries, a fold, or a criterion.

    Args:
        block: the queries.
        clusters: the unit of resampling.
    """
    settings, gated, stated = block.settings, block.gated, block.stated
    scored = None
    if gated is not None:
        scored = ScoredQueries(gated=gated, settings=settings, clusters=clusters)
        yield from separation(scored)
    for decided in decided_queries(gated, stated, settings, clusters):
        yield from points(decided)
    if scored is not None and scored.gated.is_probability:
        yield from calibration(scored)
    if block.final is not None:
        yield from ranking(block.final, clusters)
    yield from stated_means(block, clusters)
    yield from candidates(block)
    if block.chosen is not None:
        yield from selection(block.chosen, stated, len(block.queries), clusters)
    if stated is not None:
        yield from states(stated, settings, clusters)


def measures_by_query(
    block: JudgedPredictions, clusters: Clusters
) -> Iterator[Measurement]:
    """Yield the measures that are also drawn by single queries, among others.

    Arguments are those of `measures`.
    """
    settings, gated = block.settings, block.gated
    if gated is not None:
        yield from separation(
            ScoredQueries(gated=gated, settings=settings, clusters=clusters)
        )
    if block.final is not None:
        yield from ranking(block.final, clusters)
    yield from stated_means(block, clusters)
    if block.chosen is not None:
        yield from evidence(block.chosen, clusters)


def not_available(block: JudgedPredictions) -> tuple[str, ...]:
    """Return the parts without input, each with what is missing."""
    has_probability = block.gated is not None and block.gated.is_probability
    checks = (
        (has_probability, "gate, calibration and risk", "no probabilities"),
        (block.stated is not None, "states", "no thresholds and no states"),
        (block.final is not None, "ranking", _no_ranking_reason(block)),
        (block.chosen is not None, "dynamic K", "no K"),
        (bool(block.prediction.sweep), "gamma sweep", "no K under other gammas"),
        (bool((block.queries.fold != UNKNOWN).any()), "folds", "no folds"),
        (has_probability or block.stated is not None, "posts", "no decisions"),
    )
    return tuple(
        f"{part}: {reason}" for is_available, part, reason in checks if not is_available
    )


def _no_ranking_reason(block: JudgedPredictions) -> str:
    if block.queries.gold is None:
        return "no gold sentences"
    return "no rankings"


def fold_masks(
    block: JudgedPredictions,
) -> dict[str, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """Return the mask of each non-empty fold, in display order."""
    queries = block.queries
    masks = {name: queries.fold == i for i, name in enumerate(queries.folds)}
    return {name: mask for name, mask in masks.items() if mask.any()}


UNSCORED_PATHS = ("auroc", "auprc", "screening_sensitivity")
FILLED = ((1.0, "unscored_as_1"), (0.0, "unscored_as_0"))


def unscored(block: JudgedPredictions) -> Iterator[Measurement]:
    """Yield the reported measures with missing scores as 1 and as 0, if any."""
    gated, column = block.gated, block.prediction.prob
    if gated is None or column is None:
        return
    rest = np.flatnonzero(block.judged & np.isnan(column))
    if not len(rest):
        return
    for p, name in FILLED:
        filled = GateScores(
            rows=np.concatenate([gated.rows, rest]),
            y=np.concatenate([gated.y, block.queries.y[rest] == 1]),
            p=np.concatenate([gated.p, np.full(len(rest), p)]),
            is_probability=True,
        )
        for measurement in _of_filled(block, filled):
            if measurement.path in UNSCORED_PATHS:
                path = f"{measurement.path}~{name}"
                yield replace(measurement, path=path, note="secondary")


def _of_filled(block: JudgedPredictions, filled: GateScores) -> Iterator[Measurement]:
    settings, low, high = (
        block.settings,
        block.prediction.tau_neg,
        block.prediction.tau_pos,
    )
    yield from separation(ScoredQueries(gated=filled, settings=settings))
    if block.stated is None or block.stated.method == STATED:
        return
    if low is not None and high is not None:
        yield from states(recomputed(filled, low, high, settings), settings)


SWEEP_PATHS = (
    "k.mean",
    "k.has_evidence.mean",
    "evidence_recall@K",
    "evidence_precision@K",
    "sentences_extracted",
)


def sweep(
    block: JudgedPredictions, draws: PostBootstrap
) -> Iterator[tuple[float, Metric]]:
    """Yield the metrics under each gamma of the sweep, with intervals."""
    for gamma in block.prediction.sweep:
        chosen = choose(block.queries, block.prediction, block.settings, gamma)
        if chosen is None:
            continue
        swept = selection(chosen, None, len(block.queries), draws.clusters)
        for metric in draws.metrics(one for one in swept if one.path in SWEEP_PATHS):
            yield gamma, metric
