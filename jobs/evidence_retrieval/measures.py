"""Names, meanings and directions of the metrics of evidence-retrieval.

A query is a post read for one criterion. Its list has the post's sentences, the most
likely evidence first.
"""

from __future__ import annotations

from collections.abc import Mapping

from jobs.evidence_retrieval.metrics.breakdowns import (
    INCOMPLETE,
    JUDGED,
    POST_COUNTS,
    POST_FIGURES,
    POST_WAYS,
)
from jobs.evidence_retrieval.metrics.gate import AT_FPR, CALIBRATION, SEPARATION
from jobs.evidence_retrieval.metrics.lists import (
    CANDIDATES,
    EVIDENCE,
    EXTRACTED,
    RANKING,
    SENTENCES,
)
from jobs.evidence_retrieval.metrics.retrieval import (
    ANSWERED,
    COVERAGE,
    UNJUDGED_COUNTS,
)
from jobs.evidence_retrieval.metrics.states import (
    DECIDED,
    STATE_COUNTS,
    STATE_SHARES,
    WAYS,
)
from jobs.kit.measures import BASELINE_FORMS, Measure, MeasurePart, Measures


def _by_way(
    measures: Mapping[str, Measure], ways: Mapping[str, tuple[str, str]]
) -> dict[str, Measure]:
    """Return the measures of decisions, under each decision rule."""
    return {
        f"{way}.{key}": Measure(
            f"{measure.name}, {by}", f"{measure.meaning}; {rule}", measure.direction
        )
        for way, (by, rule) in ways.items()
        for key, measure in measures.items()
    }


def _of_group(measure: Measure) -> Measure:
    """Return a measure of the number of sentences shown, for a group of queries."""
    return Measure(
        measure.name.replace("{stat}", "{group}, {stat}"),
        measure.meaning.replace(": {stat}", ", of {group}: {stat}"),
        measure.direction,
    )


MEASURES = Measures(
    headlines=(
        "queries",
        "positives",
        "auroc",
        "auprc",
        "ece",
        "brier",
        "tpr_at_fpr@0.05",
        "recall@10",
        "ndcg@10",
        "mrr",
        "pool_recall",
        "evidence_recall@{k}",
        "evidence_precision@{k}",
        "k.mean",
        "sentences_extracted",
        "neg_rate",
        "screening_sensitivity",
        "screening_fn_per_1000",
        "screening_fn_per_1000_positive",
        "alert_precision",
        "alert_recall",
        "alerts_per_1000",
        "posts_at_tau.exact_match",
        "posts_at_tau.hamming_score",
    ),
    scopes={
        "fold.{fold*}.": MeasurePart(name="fold {fold}"),
        "criterion.{criterion*}.": MeasurePart(name="criterion {criterion}"),
        "config.{config*}.": MeasurePart(name="configuration {config}"),
        "macro.": MeasurePart(name="mean over criteria"),
        "all_queries.": MeasurePart(
            name="all queries", meaning="queries without evidence count too"
        ),
        "retriever.": MeasurePart(name="retriever", meaning="of the retriever's list"),
        "reranked.": MeasurePart(name="reranker", meaning="of the reranker's list"),
        "graph.": MeasurePart(
            name="graph", meaning="of the list that the graph reorders"
        ),
    },
    forms={
        **BASELINE_FORMS,
        "~wilson": MeasurePart(
            name="Wilson interval",
            meaning="with an interval that takes queries as independent",
        ),
        "~delong": MeasurePart(
            name="DeLong interval",
            meaning="with DeLong's interval, which takes queries as independent",
        ),
        "~query": MeasurePart(
            name="interval by query",
            meaning="with an interval that draws queries and not posts",
        ),
        "~std": MeasurePart(
            name="standard deviation over queries", direction="neither"
        ),
        "~median": MeasurePart(name="median over queries"),
        "~p25": MeasurePart(name="25th percentile over queries"),
        "~p75": MeasurePart(name="75th percentile over queries"),
        "~unscored_as_0": MeasurePart(
            name="unscored as 0", meaning="queries without a score have probability 0"
        ),
        "~unscored_as_1": MeasurePart(
            name="unscored as 1", meaning="queries without a score have probability 1"
        ),
    },
    slots={
        "stat": {
            "mean": "mean",
            "median": "median",
            "p90": "90th percentile",
            "min": "minimum",
            "max": "maximum",
        },
        "group": {
            "NEG": "skipped queries (NEG)",
            "UNCERTAIN": "uncertain queries (UNCERTAIN)",
            "POS": "alerts (POS)",
            "has_evidence": "queries with evidence",
            "no_evidence": "queries without evidence",
        },
    },
    measures={
        **COVERAGE,
        **ANSWERED,
        **UNJUDGED_COUNTS,
        **SEPARATION,
        **AT_FPR,
        **JUDGED,
        **CALIBRATION,
        **CANDIDATES,
        **SENTENCES,
        **{
            key.replace("{stat}", "{group}.{stat}"): _of_group(measure)
            for key, measure in SENTENCES.items()
        },
        **EXTRACTED,
        **EVIDENCE,
        **STATE_COUNTS,
        **STATE_SHARES,
        **RANKING,
        **_by_way(DECIDED, WAYS),
        **_by_way({**POST_COUNTS, **INCOMPLETE, **POST_FIGURES}, POST_WAYS),
    },
)
