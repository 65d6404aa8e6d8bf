"""Measures the lists of sentences, and the number of sentences shown to a reader."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from jobs.evidence_retrieval.metrics.bootstrap import NO_CLUSTERS, Clusters
from jobs.evidence_retrieval.metrics.judged_predictions import (
    POSITIVE,
    GateStates,
    JudgedPredictions,
    MeasuredLists,
    SelectedSentences,
)
from jobs.evidence_retrieval.queries import UNKNOWN
from jobs.kit.measurements import MeasuredValue, Measurement, count, share
from jobs.kit.measures import ValueMeasure, measured
from jobs.kit.metrics.cluster_statistics import NOT_NEGATIVE
from jobs.kit.metrics.columns import (
    Aggregate,
    Bools,
    Floats,
    Ints,
    aggregate,
    mean,
    quantiles,
)
from jobs.kit.metrics.selective import NEG, POS, STATES, UNCERTAIN

AS_STATED = "as given in the file; not recomputable"

STATED_PATHS: Mapping[str, str] = {
    "evidence_recall_at_k": "evidence_recall@K",
    "evidence_precision_at_k": "evidence_precision@K",
    "mrr": "mrr",
}
"""Columns of per-query files, with the measures that they state."""


@dataclass(frozen=True, kw_only=True)
class RankedQueries:
    """One list of each query with evidence, with the clusters for intervals."""

    ranked: MeasuredLists
    clusters: Clusters

    @cached_property
    def means(self) -> Mapping[str, MeasuredValue]:
        """Mean of each measure of the list."""
        rows, columns = self.ranked.rows, self.ranked.values
        n = len(rows)
        drawn = self.clusters.means(rows, columns.values())
        return {
            name: MeasuredValue(
                value=mean(column.tolist()),
                n=n,
                n_defined=n,
                statistic=next(drawn),
            )
            for name, column in columns.items()
        }


def _by_cutoff(word: str, queries: RankedQueries) -> Mapping[str, MeasuredValue]:
    """Return the means of one measure, by the K that the list is cut at."""
    cut = (name.partition("@") for name in queries.means)
    return {k: queries.means[f"{word}@{k}"] for name, _, k in cut if k and name == word}


_LISTS: Mapping[str, tuple[str, str]] = {
    "recall": (
        "Recall",
        "Share of a query's evidence sentences among the first {k} of the list",
    ),
    "precision": (
        "List precision",
        "Share of evidence sentences among the first {k} of the list",
    ),
    "hit": (
        "Hit rate",
        "Share of queries with an evidence sentence among the first {k} of the list",
    ),
    "map": (
        "MAP",
        "Mean average precision: how early evidence comes in the first {k} of the list",
    ),
    "ndcg": (
        "nDCG",
        "How near the first {k} of the list are to having all evidence first (1)",
    ),
    "mrr": (
        "MRR",
        "How early evidence comes in the first {k} of the list: 1 first, 0.5 second",
    ),
}
"""Name and meaning of measures of a list cut at K."""

RANKING: Mapping[str, ValueMeasure[RankedQueries]] = {
    **{
        f"{word}@{{k}}": ValueMeasure(
            f"{name} at {{k}}",
            meaning,
            "higher",
            definition=f"{word}@1({{key}}; {{over}})",
            of=partial(_by_cutoff, word),
        )
        for word, (name, meaning) in _LISTS.items()
    },
    "mrr": ValueMeasure(
        "MRR",
        "How early the first evidence sentence comes: 1 first, 0.5 second",
        "higher",
        definition="mrr@1(mrr; {over})",
        of=lambda queries: queries.means["mrr"],
    ),
    "pool_recall": ValueMeasure(
        "Pool recall",
        "Share of evidence sentences that are anywhere in the list",
        "higher",
        definition="pool_recall@1(pool_recall; {over})",
        of=lambda queries: queries.means["pool_recall"],
    ),
    "gold_absent": ValueMeasure(
        "Evidence sentences not listed",
        "Evidence sentences that are not in the list",
        "lower",
        definition="count@1(gold sentences that are not in the list)",
        of=lambda queries: count(
            int(queries.ranked.absent.sum()), len(queries.ranked.rows)
        ),
    ),
}
"""Measures of a list, over queries with evidence."""


def ranking(
    ranked: MeasuredLists, clusters: Clusters = NO_CLUSTERS
) -> Iterator[Measurement]:
    """Yield means of a list's measures, and of its missing sentences."""
    return measured(
        RANKING,
        RankedQueries(ranked=ranked, clusters=clusters),
        over=ranked.rules.definition,
        subset=POSITIVE,
    )


def _means(ranked: MeasuredLists) -> Iterator[tuple[Measurement, list[float]]]:
    """Yield each mean of a list with its values."""
    for whole in ranking(ranked):
        if whole.path in ranked.values:
            yield whole, ranked.values[whole.path].tolist()


def spreads(ranked: MeasuredLists) -> Iterator[Measurement]:
    """Yield the spread of those measures over queries."""
    for whole, column in _means(ranked):
        statistics = aggregate(column)
        for figure, value in _figures(statistics).items():
            yield replace(
                whole,
                path=f"{whole.path}~{figure}",
                definition=f"{whole.definition}; {figure} over queries"
                + (", ddof=1" if figure == "std" else ""),
                measured=MeasuredValue(
                    value=value, n=statistics.n, n_defined=statistics.n_defined
                ),
            )


def _figures(statistics: Aggregate) -> Mapping[str, float | None]:
    """Return the further statistics of a column, by name."""
    return {
        "std": statistics.std,
        "median": statistics.median,
        "p25": statistics.p25,
        "p75": statistics.p75,
    }


def over_all_queries(ranked: MeasuredLists, queries: int) -> Iterator[Measurement]:
    """Yield the same means, counting queries without evidence as 0."""
    for whole, column in _means(ranked):
        value = mean([*column, *[0.0] * (queries - len(column))])
        yield replace(
            whole,
            definition=f"{whole.definition}; denominator includes queries without "
            "evidence",
            measured=MeasuredValue(value=value, n=queries),
            subset="all_queries",
        )


def stated_means(block: JudgedPredictions, clusters: Clusters) -> Iterator[Measurement]:
    """Yield means of stated values that cannot be recomputed."""
    n = int(np.count_nonzero(block.judged & (block.queries.y == 1)))
    for column, (rows, values) in block.stated_values.items():
        name = STATED_PATHS.get(column)
        is_computed = block.final is not None and (
            name == "mrr" or block.chosen is not None
        )
        if name is None or is_computed:
            continue
        statistics = aggregate(values.tolist())
        whole = Measurement(
            path=name,
            definition=f"{name.partition('@')[0]}@1({AS_STATED})",
            measured=MeasuredValue(
                value=statistics.mean,
                n=n,
                n_defined=statistics.n_defined,
                statistic=clusters.mean(rows, values),
            ),
            subset=POSITIVE,
            note="not recomputable",
        )
        yield whole
        for figure, value in _figures(statistics).items():
            yield replace(
                whole,
                path=f"{name}~{figure}",
                measured=replace(whole.measured, value=value, statistic=None),
            )


CANDIDATES: Mapping[str, ValueMeasure[Ints]] = {
    "n_candidates.mean": ValueMeasure(
        "Candidate sentences",
        "Sentences of a query's post, on average",
        definition="n_candidates@1(sentences of the post, mean over queries)",
        of=lambda sizes: share(int(sizes.sum()), len(sizes)),
    )
}


def candidates(block: JudgedPredictions) -> Iterator[Measurement]:
    """Yield the mean number of candidate sentences."""
    pool = block.queries.pool
    sizes = pool[block.judged & (pool != UNKNOWN)]
    if len(sizes):
        yield from measured(CANDIDATES, sizes, subset="judged")


@dataclass(frozen=True, slots=True, kw_only=True)
class QueriesWithK:
    """Queries with a K, and the clusters for intervals."""

    chosen: SelectedSentences
    group: Bools | None = None  #: the group to describe; None: all
    clusters: Clusters

    def k_figures(
        self, k: Ints | None, *, is_drawn: bool = True
    ) -> Mapping[str, MeasuredValue]:
        """Return statistics of a column of Ks; empty without one."""
        if k is None:
            return {}
        statistic = None
        if self.group is not None:
            k = k[self.group]
        elif is_drawn:
            statistic = self.clusters.mean(
                self.chosen.rows, k.astype(np.float64), NOT_NEGATIVE
            )
        median, p90 = quantiles(k, (0.5, 0.9))
        ends = (int(k.min()), int(k.max())) if len(k) else (None, None)
        figures = {"median": median, "p90": p90, "min": ends[0], "max": ends[1]}
        # whole numbers: their sum is exact in any order
        whole = replace(share(int(k.sum()), len(k)), statistic=statistic)
        return {"mean": whole} | {
            name: MeasuredValue(value=value, n=len(k))
            for name, value in figures.items()
        }

    def evidence(self, column: Floats) -> Mapping[str, MeasuredValue]:
        """Return the mean over queries with evidence, under the name of its cut-off."""
        chosen, n = self.chosen, len(column)
        if chosen.k_listed is None or not n:
            return {}
        return {
            chosen.rule: MeasuredValue(
                value=mean(column.tolist()),
                n=n,
                n_defined=n,
                statistic=self.clusters.mean(chosen.evidence_rows, column),
            )
        }


SENTENCES: Mapping[str, ValueMeasure[QueriesWithK]] = {
    "k.{stat}": ValueMeasure(
        "Sentences shown, {stat}",
        "Sentences that a reader is shown for a query (K, or fewer): {stat}",
        "lower",
        definition="k@2(sentences shown: K, at most the post's sentences; {stat})",
        of=lambda selected: selected.k_figures(selected.chosen.k),
    ),
    "k_nominal.{stat}": ValueMeasure(
        "Nominal K, {stat}",
        "K as it was selected or set for a query: {stat}",
        "lower",
        definition="k@1(selected K, however many sentences there are; {stat})",
        of=lambda selected: selected.k_figures(selected.chosen.nominal),
    ),
    "k_shown.{stat}": ValueMeasure(
        "Sentences listed, {stat}",
        "K, cut at the end of a query's list: {stat}",
        "lower",
        definition="k@1(selected K, cut at the list's end; {stat})",
        of=lambda selected: selected.k_figures(
            selected.chosen.k_listed, is_drawn=False
        ),
    ),
}
"""Measures of all queries with a K; for a group, `{stat}` is `{group}.{stat}`."""

EXTRACTED: Mapping[str, ValueMeasure[Ints]] = {
    "sentences_extracted": ValueMeasure(
        "Sentences to read",
        "Sentences that a person has to read",
        "lower",
        definition="count@1(shown sentences)",
        of=lambda k_listed: count(int(k_listed.sum()), len(k_listed)),
    )
}

EVIDENCE: Mapping[str, ValueMeasure[QueriesWithK]] = {
    "evidence_recall@{k}": ValueMeasure(
        "Evidence recall at {k}",
        "Share of evidence sentences that a reader is shown",
        "higher",
        definition="evidence_recall@1(K={rule}; K = 0 counts 0)",
        of=lambda selected: selected.evidence(selected.chosen.recall),
    ),
    "evidence_precision@{k}": ValueMeasure(
        "Evidence precision at {k}",
        "Share of shown sentences that are evidence",
        "higher",
        definition="evidence_precision@1(K={rule}; over sentences shown; none: 0)",
        of=lambda selected: selected.evidence(selected.chosen.precision),
    ),
}


def selection(
    chosen: SelectedSentences,
    stated: GateStates | None,
    n: int,
    clusters: Clusters,
) -> Iterator[Measurement]:
    """Yield measures of K, of the part that lists can fill, and of the result.

    Args:
        chosen: judged queries with a K.
        stated: their states, if there are any.
        n: number of all queries.
        clusters: the unit of resampling.
    """
    groups: dict[str, Bools | None] = {"": None}
    if stated is not None:
        state = np.full(n, UNKNOWN, dtype=np.int8)
        state[stated.rows] = stated.state
        groups |= {
            STATES[code]: state[chosen.rows] == code for code in (NEG, UNCERTAIN, POS)
        }
    groups |= {"has_evidence": chosen.y, "no_evidence": ~chosen.y}
    for name, group in groups.items():
        selected = QueriesWithK(chosen=chosen, group=group, clusters=clusters)
        for key, measure in SENTENCES.items():
            prefix = key.removesuffix("{stat}")
            for stat, value in measure.values(selected).items():
                yield measure.measurement(
                    f"{prefix}{name}.{{stat}}" if name else key,
                    value,
                    subset=name or "with K",
                    text=stat,
                )
    if chosen.k_listed is not None:
        yield from measured(EXTRACTED, chosen.k_listed, subset="with K")
    yield from evidence(chosen, clusters)


def evidence(chosen: SelectedSentences, clusters: Clusters) -> Iterator[Measurement]:
    """Yield the shares of evidence and of other sentences shown to a reader."""
    yield from measured(
        EVIDENCE,
        QueriesWithK(chosen=chosen, clusters=clusters),
        subset=POSITIVE,
        parameters={"rule": "selected by query" if chosen.rule == "K" else chosen.rule},
    )
