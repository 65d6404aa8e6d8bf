"""What the headline numbers tell a reader who is no statistician, and their bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from jobs.evidence_retrieval.settings import Settings
from runner.scorecard import Metric, Target

MEANINGS: Mapping[str, str] = {
    "queries": "A query is one post read for one criterion.",
    "positives": "Queries that have evidence according to the gold.",
    "auroc": "How often a query with evidence scores above one without; chance is 0.5.",
    "auprc": "The share with evidence among the most probable queries, averaged over "
    "how many are taken; chance is the share with evidence.",
    "ece": "How far stated probabilities are from what happens, on average.",
    "brier": "The squared distance of probabilities from the truth; lower is better.",
    "log_loss": "How surprised the probabilities are by the truth; lower is better.",
    "aurc": "The errors that remain if only the surest queries are decided.",
    "tpr_at_fpr": "The share of evidence found at that share of false alarms.",
    "recall": "The share of a query's evidence sentences among the first listed.",
    "precision": "The share of the first listed sentences that are evidence.",
    "hit": "How often at least one evidence sentence is among the first listed.",
    "map": "How early all evidence sentences come, averaged over them.",
    "ndcg": "How near the list is to one with all evidence first, which has 1.",
    "mrr": "How early the first evidence sentence comes: 1 first, 0.5 second, ...",
    "pool_recall": "The share of evidence sentences that are anywhere in the list.",
    "evidence_recall": "The share of evidence sentences that a reader is shown.",
    "evidence_precision": "The share of shown sentences that are evidence.",
    "k.mean": "Sentences that a reader is shown for a query, on average: K, or all of "
    "a post that has fewer.",
    "k_nominal.mean": "The K that was selected or set for a query, on average; a post "
    "may have fewer sentences.",
    "sentences_extracted": "All sentences that somebody has to read.",
    "screening_sensitivity": "The share of queries with evidence that are not "
    "skipped (NEG).",
    "screening_fn_per_1000": "Queries with evidence that are skipped, in 1000 queries.",
    "screening_fn_per_1000_positive": "Queries with evidence that are skipped, in 1000 "
    "with evidence.",
    "screening_npv": "How often a skipped query indeed has no evidence.",
    "alert_precision": "How often an alert (POS) is right.",
    "alert_recall": "The share of queries with evidence that raise an alert.",
    "alerts_per_1000": "Alerts in 1000 queries.",
    "neg_rate": "The share of queries that nobody has to read (NEG).",
    "uncertain_rate": "The share of queries that are read with care (UNCERTAIN).",
    "pos_rate": "The share of queries that raise an alert.",
    "exact_match": "The share of posts with every criterion right.",
    "hamming_score": "The share of right decisions about criteria.",
    "at.sensitivity": "The share of queries with evidence that are called so.",
    "at.precision": "The share of queries called so that have evidence.",
}
"""By the path's name, without prefix and cut-off.

Those of a way to decide (`at_tau`, `at_screening`, `at_alert`) stand under `at.`: their
precision is about queries, that of a list about sentences.
"""


HEADLINES = frozenset(
    [
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
    ]
)
"""What the report begins with, and evidence measures at whatever K; all else is detail.
"""


def meaning(path: str) -> str:
    """One line for a metric; empty for what is a detail."""
    if path in MEANINGS:
        return MEANINGS[path]
    head, _, name = path.partition("@")[0].rpartition(".")
    way = "at." if head.rpartition(".")[2].startswith("at_") else ""
    return "" if "~" in path else MEANINGS.get(way + name, "")


def targets(settings: Settings) -> dict[str, Target]:
    """The bounds that the settings name, by path."""
    return {
        "auroc": Target(sense=">=", bound=settings.target_auroc),
        "auprc": Target(sense=">=", bound=settings.target_auprc),
        "ece": Target(sense="<", bound=settings.target_ece),
        "brier": Target(sense="<", bound=settings.target_brier),
        "evidence_recall@K": Target(sense=">=", bound=settings.target_evidence_recall),
        "screening_sensitivity": Target(sense=">=", bound=settings.target_sensitivity),
        "screening_fn_per_1000": Target(sense="<=", bound=settings.target_fn_per_1000),
        "alert_precision": Target(sense=">=", bound=settings.target_alert_precision),
    }


def explained(metrics: list[Metric], settings: Settings) -> list[Metric]:
    """The metrics with what they mean and the bounds they are held against."""
    bounds = targets(settings)
    return [
        replace(
            each,
            meaning=meaning(each.path) if is_headline(each.path) else "",
            target=bounds.get(each.path),
        )
        for each in metrics
    ]


def is_headline(path: str) -> bool:
    """Whether the report begins with it."""
    is_evidence = path.startswith("evidence_") and "~" not in path
    return path in HEADLINES or is_evidence
