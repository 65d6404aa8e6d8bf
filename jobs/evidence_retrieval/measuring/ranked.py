"""Lists against gold, query by query.

Lists are looked at in chunks, so that a sheet may make them as they are asked for:
what is kept of each is one number a measure. Only queries with evidence have ranking
measures, whatever the others list.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from jobs.evidence_retrieval.queries import SCORED, Predictions, Queries
from jobs.evidence_retrieval.settings import Settings
from jobs.metrics.columns import Bools, Floats, Ints
from jobs.metrics.ranking import RankedHits, RankingRules, evaluate, hits

CHUNK = 50_000
"""Queries whose lists are compared at a time."""

POOL_RECALL = "pool_recall"
AT_K = ("recall", "precision", "hit", "map", "ndcg")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """One list of each query with evidence, measured."""

    rows: Ints
    values: Mapping[str, Floats]  #: by measure; every value is defined
    absent: Ints  #: gold sentences that the list has not
    rules: RankingRules

    def within(self, mask: Bools) -> Ranked:
        """Those of *mask*."""
        at = mask[self.rows]
        values = {name: column[at] for name, column in self.values.items()}
        return replace(self, rows=self.rows[at], values=values, absent=self.absent[at])


def rules_of(settings: Settings) -> RankingRules:
    """The rules of ranking; a positive whose gold is not listed anywhere counts 0."""
    return RankingRules(empty="zero", ap_over=settings.ap_denominator)


def measure_names(settings: Settings) -> list[str]:
    """The ranking measures of a list, in the order of tables."""
    names = [f"{name}@{k}" for name in AT_K for k in settings.k_values]
    if settings.mrr_cut:
        names += [f"mrr@{k}" for k in settings.k_values]
    return [*names, "mrr", POOL_RECALL]


def read_lists(
    queries: Queries, prediction: Predictions, settings: Settings
) -> dict[str, Ranked]:
    """All lists of a prediction, measured; none where gold is not known."""
    if queries.gold is None:
        return {}
    lists = {}
    for name, ranked in prediction.lists.items():
        rows = ranked_rows(queries, prediction, ranked)
        parts, absent = [], [np.empty(0, dtype=np.int64)]
        for found in compared(queries.gold, ranked, rows):
            parts.append(_measured(found, settings))
            absent.append(found.relevant - found.is_hit.sum(axis=1))
        lists[name] = Ranked(
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
    """The lists of some queries against their gold, a chunk at a time."""
    for start in range(0, len(rows), CHUNK):
        places = rows[start : start + CHUNK].tolist()
        yield hits([gold[i] for i in places], [ranked[i] for i in places])


def ranked_rows(
    queries: Queries, prediction: Predictions, ranked: Sequence[Sequence[str]]
) -> Ints:
    """Queries with evidence that were ranked.

    An empty list is a ranking only where the query was scored; elsewhere the model has
    not seen it.
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


def _measured(found: RankedHits, settings: Settings) -> dict[str, Floats]:
    """The measures that are kept; the pool's recall is that at the list's end."""
    end = max(1, found.gains.shape[1])
    values = evaluate(found, (*settings.k_values, end), rules_of(settings))
    values[POOL_RECALL] = values[f"recall@{end}"]
    return {name: values[name] for name in measure_names(settings)}
