"""Cuts predictions to the judged queries: probabilities, states, lists, K.

A part exists if its input does: format E has no probabilities, predictions without
rankings have no lists. `within` cuts all parts to the queries of a fold or criterion,
so that the same code computes every number for the whole and for its parts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from jobs.evidence_retrieval.queries import (
    SCORED,
    SKIPPED,
    UNKNOWN,
    Predictions,
    Queries,
    UnfittedGate,
)
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.kit.metrics.columns import Bools, Floats, Ints
from jobs.kit.metrics.ranking import RankedHits, RankingRules, evaluate, hits, select
from jobs.kit.metrics.selective import States, assign

SCORED_QUERIES, POSITIVE = "scored", "has_evidence"
"""Subsets: judged queries with a probability, and queries with evidence."""

CHUNK = 50_000
"""Number of queries whose lists are compared at a time."""

POOL_RECALL = "pool_recall"
AT_K = ("recall", "precision", "hit", "map", "ndcg")


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredLists:
    """Measures of one list of each query with evidence."""

    rows: Ints
    values: Mapping[str, Floats]  #: by measure; every value is defined
    absent: Ints  #: gold sentences that are not in the list
    rules: RankingRules

    def within(self, mask: Bools) -> MeasuredLists:
        """Return the part in *mask*."""
        at = mask[self.rows]
        values = {name: column[at] for name, column in self.values.items()}
        return replace(self, rows=self.rows[at], values=values, absent=self.absent[at])


def rules_of(settings: EvidenceSettings) -> RankingRules:
    """Return the ranking rules; a positive without any listed gold counts 0."""
    return RankingRules(empty="zero", ap_over=settings.ap_denominator)


def measure_names(settings: EvidenceSettings) -> list[str]:
    """Return the ranking measures of a list, in the order of tables."""
    names = [f"{name}@{k}" for name in AT_K for k in settings.k_values]
    if settings.mrr_cut:
        names += [f"mrr@{k}" for k in settings.k_values]
    return [*names, "mrr", POOL_RECALL]


def read_lists(
    queries: Queries, prediction: Predictions, settings: EvidenceSettings
) -> dict[str, MeasuredLists]:
    """Measure all lists of a prediction; empty if there are no gold labels."""
    if queries.gold is None:
        return {}
    lists = {}
    for name, ranked in prediction.lists.items():
        rows = ranked_rows(queries, prediction, ranked)
        parts, absent = [], [np.empty(0, dtype=np.int64)]
        for ranked_hits in compared(queries.gold, ranked, rows):
            parts.append(_measured(ranked_hits, settings))
            absent.append(ranked_hits.relevant - ranked_hits.is_hit.sum(axis=1))
        lists[name] = MeasuredLists(
            rows=rows,
            values={
                measure: np.concatenate([np.empty(0), *(p[measure] for p in parts)])
                for measure in measure_names(settings)
            },
            absent=np.concatenate(absent),
            rules=rules_of(settings),
        )
    return lists


def compared(
    gold: Sequence[tuple[str, ...]], ranked: Sequence[Sequence[str]], rows: Ints
) -> Iterator[RankedHits]:
    """Yield the lists of some queries compared with their gold, chunk by chunk."""
    for start in range(0, len(rows), CHUNK):
        indices = rows[start : start + CHUNK].tolist()
        yield hits([gold[i] for i in indices], [ranked[i] for i in indices])


def ranked_rows(
    queries: Queries, prediction: Predictions, ranked: Sequence[Sequence[str]]
) -> Ints:
    """Return the queries with evidence that were ranked.

    An empty list counts as a ranking only if the query was scored; otherwise the model
    has not seen it.
    """
    status = prediction.status
    return np.array(
        [
            i
            for i in np.flatnonzero(queries.y == 1).tolist()
            if status[i] == SCORED or len(ranked[i])
        ],
        dtype=np.int64,
    )


def _measured(ranked_hits: RankedHits, settings: EvidenceSettings) -> dict[str, Floats]:
    """Return the reported measures; the pool's recall is that of the whole list."""
    end = max(1, ranked_hits.gains.shape[1])
    values = evaluate(ranked_hits, (*settings.k_values, end), rules_of(settings))
    values[POOL_RECALL] = values[f"recall@{end}"]
    return {name: values[name] for name in measure_names(settings)}


FIXED_AT = 10
"""Rank at which fixed-length lists are compared, regardless of their length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedSentences:
    """Judged queries with a K; some of them have evidence and a list."""

    rows: Ints
    y: Bools
    nominal: Ints  #: K as selected or set
    k: Ints
    """Sentences that a reader was shown: at most K, and at most those of the post.

    If the size of the post is unknown, a fixed K ends with the list, and a K that was
    selected by query is not limited.
    """
    k_listed: Ints | None  #: K cut at the list's end; None: there is no list
    evidence_rows: Ints  #: queries with evidence and a list
    recall: Floats  #: recall of the evidence rows
    precision: Floats
    rule: str
    """Cut-off of recall and precision: "K" if it is selected by query, else a number,
    which is at most `FIXED_AT`."""

    def within(self, mask: Bools) -> SelectedSentences:
        """Return the part in *mask*, which covers every query."""
        at, evidence_mask = mask[self.rows], mask[self.evidence_rows]
        return replace(
            self,
            rows=self.rows[at],
            y=self.y[at],
            nominal=self.nominal[at],
            k=self.k[at],
            k_listed=None if self.k_listed is None else self.k_listed[at],
            evidence_rows=self.evidence_rows[evidence_mask],
            recall=self.recall[evidence_mask],
            precision=self.precision[evidence_mask],
        )


def choose(
    queries: Queries,
    prediction: Predictions,
    settings: EvidenceSettings,
    gamma: float | None = None,
) -> SelectedSentences | None:
    """Return the sentences that a prediction selects; None if it has no K.

    Args:
        queries: all queries.
        prediction: one model under one configuration.
        settings: settings of the job.
        gamma: a gamma of the sweep instead of the deployed one.
    """
    k = _k_column(queries, prediction) if gamma is None else prediction.sweep[gamma]
    if k is None:
        return None
    rule = prediction.k_rule
    cutoffs = k
    if rule.isdigit():
        rule = str(min(int(rule), FIXED_AT))
        cutoffs = np.minimum(k, FIXED_AT)
    rows = np.flatnonzero((queries.y != UNKNOWN) & (k != UNKNOWN))
    pool, nominal = queries.pool[rows], k[rows]
    read = np.where(pool == UNKNOWN, nominal, np.minimum(nominal, pool))
    ranked = prediction.lists.get(prediction.final)
    k_listed, evidence_rows = None, np.empty(0, dtype=np.int64)
    recall, precision = [np.empty(0)], [np.empty(0)]
    if ranked is not None:
        lengths = np.fromiter((len(ranked[i]) for i in rows.tolist()), np.int64)
        k_listed = np.minimum(nominal, lengths)
        if prediction.k_rule.isdigit():
            read = np.where(pool == UNKNOWN, k_listed, read)
    if ranked is not None and queries.gold is not None:
        evidence_rows = ranked_rows(queries, prediction, ranked)
        evidence_rows = evidence_rows[
            k[evidence_rows] >= (1 if settings.skip_empty else 0)
        ]
        done = 0
        for part in compared(queries.gold, ranked, evidence_rows):
            n = len(part.lengths)
            chosen = select(part, cutoffs[evidence_rows[done : done + n]])
            # for a query with evidence but no gold sentences, nothing counts as found
            recall.append(np.nan_to_num(chosen.recall))
            precision.append(chosen.precision)
            done += n
    return SelectedSentences(
        rows=rows,
        y=queries.y[rows] == 1,
        nominal=nominal,
        k=read,
        k_listed=k_listed,
        evidence_rows=evidence_rows,
        recall=np.concatenate(recall),
        precision=np.concatenate(precision),
        rule=rule,
    )


def _k_column(queries: Queries, prediction: Predictions) -> Ints | None:
    if prediction.k is not None:
        return prediction.k
    if prediction.k_rule.isdigit():
        return np.full(len(queries), int(prediction.k_rule), dtype=np.int64)
    return None


STATED = "as the file says"


@dataclass(frozen=True, slots=True, kw_only=True)
class GateScores:
    """Judged queries with a probability, or at least a score."""

    rows: Ints
    y: Bools
    p: Floats
    is_probability: bool  #: False: the largest stage score

    def within(self, mask: Bools) -> GateScores:
        """Return the part in *mask*, which covers every query."""
        at = mask[self.rows]
        return replace(self, rows=self.rows[at], y=self.y[at], p=self.p[at])


@dataclass(frozen=True, slots=True, kw_only=True)
class GateStates:
    """Judged queries with a state."""

    rows: Ints
    y: Bools
    state: States
    method: str  #: text for definitions

    def within(self, mask: Bools) -> GateStates:
        """Return the part in *mask*."""
        at = mask[self.rows]
        return replace(self, rows=self.rows[at], y=self.y[at], state=self.state[at])


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedPredictions:
    """Columns of a prediction, limited to the judged queries."""

    queries: Queries
    prediction: Predictions
    settings: EvidenceSettings
    judged: Bools  #: (Q,)
    gated: GateScores | None = None
    stated: GateStates | None = None
    lists: Mapping[str, MeasuredLists] = field(default_factory=dict)
    chosen: SelectedSentences | None = None
    stated_values: Mapping[str, tuple[Ints, Floats]] = field(default_factory=dict)
    """Stated values that cannot be recomputed: rows with evidence, and values."""
    statuses: Mapping[str, int] = field(default_factory=dict)  #: all queries, by status

    @property
    def final(self) -> MeasuredLists | None:
        """The list that a reader sees."""
        return self.lists.get(self.prediction.final)

    def within(self, mask: Bools) -> JudgedPredictions:
        """Return the same for a subset of the queries."""
        return replace(
            self,
            judged=self.judged & mask,
            gated=self.gated and self.gated.within(mask),
            stated=self.stated and self.stated.within(mask),
            lists={name: ranked.within(mask) for name, ranked in self.lists.items()},
            chosen=self.chosen and self.chosen.within(mask),
            stated_values={
                name: (rows[mask[rows]], values[mask[rows]])
                for name, (rows, values) in self.stated_values.items()
            },
        )


def block_of(
    queries: Queries,
    prediction: Predictions,
    settings: EvidenceSettings,
    unfitted: Sequence[UnfittedGate] = (),
) -> JudgedPredictions:
    """Return the measured parts of one prediction.

    Args:
        queries: all queries.
        prediction: one model under one configuration.
        settings: settings of the job.
        unfitted: folds whose gate could not be fitted; these are left out.
    """
    judged = queries.y != UNKNOWN
    gated = _gated(
        queries, prediction, judged & ~_unfitted(queries, prediction, unfitted)
    )
    stated = _stated(queries, prediction, settings, gated, judged)
    return JudgedPredictions(
        queries=queries,
        prediction=prediction,
        settings=settings,
        judged=judged,
        gated=gated,
        stated=stated,
        lists=read_lists(queries, prediction, settings),
        chosen=choose(queries, prediction, settings),
        stated_values=_stated_values(queries, prediction),
        statuses=_statuses(prediction),
    )


def _unfitted(
    queries: Queries, prediction: Predictions, unfitted: Sequence[UnfittedGate]
) -> Bools:
    names = {
        gate.fold
        for gate in unfitted
        if (gate.model, gate.config) == (prediction.model, prediction.config)
    }
    fold_indices = [i for i, name in enumerate(queries.folds) if name in names]
    return np.isin(queries.fold, fold_indices)


def _gated(
    queries: Queries, prediction: Predictions, judged: Bools
) -> GateScores | None:
    column = prediction.prob
    if column is None:
        column = prediction.score
    if column is None:
        return None
    rows = np.flatnonzero(judged & ~np.isnan(column))
    return GateScores(
        rows=rows,
        y=queries.y[rows] == 1,
        p=column[rows],
        is_probability=prediction.prob is not None,
    )


def _stated(
    queries: Queries,
    prediction: Predictions,
    settings: EvidenceSettings,
    gated: GateScores | None,
    judged: Bools,
) -> GateStates | None:
    low, high = prediction.tau_neg, prediction.tau_pos
    if settings.states == "recomputed" or prediction.state is None:
        has_p = gated and gated.is_probability
        if gated and has_p and low is not None and high is not None:
            return recomputed(gated, low, high, settings)
    if prediction.state is None:
        return None
    rows = np.flatnonzero(judged & (prediction.state != UNKNOWN))
    return GateStates(
        rows=rows, y=queries.y[rows] == 1, state=prediction.state[rows], method=STATED
    )


def recomputed(
    gated: GateScores, low: Floats, high: Floats, settings: EvidenceSettings
) -> GateStates:
    """Return the states derived from p and each query's thresholds, if any."""
    with_thresholds = gated.within(~np.isnan(low) & ~np.isnan(high))
    state = assign(
        with_thresholds.p,
        low[with_thresholds.rows],
        high[with_thresholds.rows],
        edge=settings.gate_edge,
    )
    return GateStates(
        rows=with_thresholds.rows,
        y=with_thresholds.y,
        state=state,
        method=f"from p and the row's thresholds, edge={settings.gate_edge}",
    )


def _stated_values(
    queries: Queries, prediction: Predictions
) -> dict[str, tuple[Ints, Floats]]:
    """Return stated values, limited to queries with evidence."""
    with_values = {
        name: np.flatnonzero((queries.y == 1) & ~np.isnan(column))
        for name, column in prediction.stated_values.items()
    }
    return {
        name: (rows, prediction.stated_values[name][rows])
        for name, rows in with_values.items()
    }


def _statuses(prediction: Predictions) -> dict[str, int]:
    counts = Counter(prediction.status)
    return {
        SCORED: counts[SCORED],
        SKIPPED: sum(n for s, n in counts.items() if s.startswith(SKIPPED)),
        **{name: counts[name] for name in sorted(counts) if name != SCORED},
    }
