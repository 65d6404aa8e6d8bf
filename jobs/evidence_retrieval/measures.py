"""Names, meanings and directions of the metrics of evidence-retrieval.

A query is one post read for one criterion. Its list holds the post's sentences, the
likeliest evidence first.
"""

from __future__ import annotations

from collections.abc import Mapping

from jobs.kit.measures import BASELINE_FORMS, Measure, MeasurePart, Measures
from runner.scorecard import Direction

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
"""Of a list cut at K: name and meaning."""

_RATES: Mapping[str, tuple[str, str, Direction]] = {
    "n": ("Queries decided", "Judged queries with a score", "neither"),
    "tp": ("True positives", "Queries with evidence that are called so", "higher"),
    "fp": ("False positives", "Queries without evidence that are called so", "lower"),
    "tn": ("True negatives", "Queries without evidence, not called so", "higher"),
    "fn": ("False negatives", "Queries with evidence that are not called so", "lower"),
    "sensitivity": (
        "Sensitivity",
        "Share of queries with evidence called so",
        "higher",
    ),
    "specificity": (
        "Specificity",
        "Share of queries without evidence not called so",
        "higher",
    ),
    "fpr": (
        "False positive rate",
        "Share of queries without evidence that are called so",
        "lower",
    ),
    "precision": (
        "Precision",
        "Share with evidence of the queries called so",
        "higher",
    ),
    "npv": (
        "Negative predictive value",
        "Share of the queries not called so that have no evidence",
        "higher",
    ),
    "f1": ("F1", "Harmonic mean of precision and sensitivity", "higher"),
    "mcc": (
        "Matthews correlation",
        "Correlation of decisions with the gold; chance is 0",
        "higher",
    ),
    "balanced_accuracy": (
        "Balanced accuracy",
        "Mean of sensitivity and specificity; chance is 0.5",
        "higher",
    ),
    "kappa": ("Cohen's kappa", "Agreement with the gold beyond chance", "higher"),
}
"""Of queries decided in one way: name, meaning, direction."""

_DECIDED: Mapping[str, tuple[str, str]] = {
    "at_tau": ("at tau", "called so from the probability tau"),
    "at_screening": ("not skipped", "called so unless skipped (NEG)"),
    "at_alert": ("alerts", "called so where an alert is raised (POS)"),
}
"""Ways to decide a query: name, meaning."""

_POSTS: Mapping[str, tuple[str, str, Direction]] = {
    "items": ("Complete posts", "Posts with a score for every criterion", "neither"),
    "labels": ("Criteria of a post", "Criteria that a post is read for", "neither"),
    "incomplete": (
        "Incomplete posts",
        "Posts that are left out, as a criterion has no score",
        "lower",
    ),
    "exact_match": ("Exact match", "Share of posts with all criteria right", "higher"),
    "hamming_score": ("Hamming score", "Share of right decisions", "higher"),
    "hamming_loss": ("Hamming loss", "Share of wrong decisions", "lower"),
    "micro_f1": ("Micro F1", "F1 over all decisions about criteria", "higher"),
    "jaccard_per_item": (
        "Jaccard index by post",
        "Overlap of the called and the true criteria of a post, as a mean",
        "higher",
    ),
    "f1_per_item": (
        "F1 by post",
        "Mean F1 of posts; one without any criterion, called or true, counts 0",
        "higher",
    ),
    "f1_per_item_empty_one": (
        "F1 by post, empty as 1",
        "Mean F1 of posts; one without any criterion, called or true, counts 1",
        "higher",
    ),
    "f1_per_item_defined": (
        "F1 by post, where defined",
        "Mean F1 of posts with a criterion, called or true",
        "higher",
    ),
    "weighted_f1_per_item": (
        "Weighted F1 by post",
        "Mean F1 of posts, weighted by their number of true criteria",
        "higher",
    ),
    "macro_f1_over_labels": ("Macro F1 of criteria", "Mean F1 of criteria", "higher"),
    "weighted_f1_over_labels": (
        "Weighted F1 of criteria",
        "Mean F1 of the criteria, weighted by how common they are",
        "higher",
    ),
}
"""Of whole posts: name, meaning, direction."""

_PLAIN: Mapping[str, Measure] = {
    "queries": Measure("Queries", "Number of queries: one post read for one criterion"),
    "posts": Measure("Posts", "Number of distinct posts"),
    "criteria": Measure("Criteria", "Number of criteria"),
    "status.{status}": Measure(
        "Queries with status {status}", "Number of queries whose status is {status}"
    ),
    "coverage": Measure(
        "Coverage", "Share of judged queries that have an answer", "higher"
    ),
    "n": Measure("Scored queries", "Number of judged queries with a score"),
    "positives": Measure(
        "Queries with evidence", "Number of scored queries that have evidence"
    ),
    "negatives": Measure(
        "Queries without evidence", "Number of scored queries that have no evidence"
    ),
    "n_queries": Measure("Judged queries", "Number of judged queries"),
    "n_positive": Measure(
        "Judged queries with evidence", "Number of judged queries with evidence"
    ),
    "positive_rate": Measure("Prevalence", "Share of judged queries with evidence"),
    "auroc": Measure(
        "AUROC",
        "How often a query with evidence scores above one without; chance is 0.5",
        "higher",
    ),
    "auprc": Measure(
        "AUPRC",
        "Share with evidence among the most probable queries, averaged over how many "
        "are taken; chance is the share with evidence",
        "higher",
    ),
    "tpr_at_fpr@{fpr*}": Measure(
        "True positive rate at FPR {fpr}",
        "Share of evidence found where a share of {fpr} of the queries without "
        "evidence may be false alarms",
        "higher",
    ),
    "attained_fpr@{fpr*}": Measure(
        "Attained FPR at target {fpr}",
        "Share of false alarms that the threshold for a target of {fpr} really has",
    ),
    "threshold_at_fpr@{fpr*}": Measure(
        "Threshold at FPR {fpr}",
        "Score from which at most a share of {fpr} are false alarms",
    ),
    "ece": Measure(
        "Expected calibration error",
        "Mean distance of stated probabilities from what happens",
        "lower",
    ),
    "mce": Measure(
        "Maximum calibration error",
        "Largest distance of stated probabilities from what happens, over bins",
        "lower",
    ),
    "ece_adaptive": Measure(
        "Expected calibration error, adaptive bins",
        "Mean distance of stated probabilities from what happens, in bins of equal "
        "size",
        "lower",
    ),
    "brier": Measure(
        "Brier score", "Mean squared distance of probabilities from the truth", "lower"
    ),
    "brier_reliability": Measure(
        "Brier score, reliability",
        "Part of the Brier score that is due to wrong probabilities",
        "lower",
    ),
    "brier_resolution": Measure(
        "Brier score, resolution",
        "Part of the Brier score that telling queries apart saves",
        "higher",
    ),
    "brier_uncertainty": Measure(
        "Brier score, uncertainty",
        "Part of the Brier score that is due to the prevalence alone",
    ),
    "brier_skill": Measure(
        "Brier skill score",
        "Share of the Brier score of the bare prevalence that the model saves",
        "higher",
    ),
    "log_loss": Measure(
        "Log loss", "How surprised the probabilities are by the truth", "lower"
    ),
    "aurc": Measure(
        "Area under the risk-coverage curve",
        "Errors that remain if only the surest queries are decided, averaged over how "
        "many",
        "lower",
    ),
    "excess_aurc": Measure(
        "Excess area under the risk-coverage curve",
        "How far the area lies above that of the best order of queries",
        "lower",
    ),
    "mrr": Measure(
        "MRR",
        "How early the first evidence sentence comes: 1 first, 0.5 second",
        "higher",
    ),
    "pool_recall": Measure(
        "Pool recall",
        "Share of evidence sentences that are anywhere in the list",
        "higher",
    ),
    "gold_absent": Measure(
        "Evidence sentences not listed",
        "Evidence sentences that are not in the list",
        "lower",
    ),
    "n_candidates.mean": Measure(
        "Candidate sentences", "Sentences of a query's post, on average"
    ),
    **{
        f"{key}{of}.{{stat}}": Measure(
            f"{name}{', {group}' if of else ''}, {{stat}}",
            f"{meaning}{', of {group}' if of else ''}: {{stat}}",
            "lower",
        )
        for key, name, meaning in (
            (
                "k",
                "Sentences shown",
                "Sentences that a reader is shown for a query (K, or fewer)",
            ),
            ("k_nominal", "Nominal K", "K as it was selected or set for a query"),
            ("k_shown", "Sentences listed", "K, cut at the end of a query's list"),
        )
        for of in ("", ".{group}")
    },
    "sentences_extracted": Measure(
        "Sentences to read", "Sentences that somebody has to read", "lower"
    ),
    "evidence_recall@{k}": Measure(
        "Evidence recall at {k}",
        "Share of evidence sentences that a reader is shown",
        "higher",
    ),
    "evidence_precision@{k}": Measure(
        "Evidence precision at {k}",
        "Share of shown sentences that are evidence",
        "higher",
    ),
    "states.n": Measure("Queries with a state", "Number of queries with a state"),
    "states.{state}": Measure(
        "Queries in state {state}", "Number of queries in the state {state}"
    ),
    "neg_rate": Measure("Skipped queries", "Share of queries that are skipped (NEG)"),
    "uncertain_rate": Measure(
        "Uncertain queries", "Share of queries that are read with care (UNCERTAIN)"
    ),
    "pos_rate": Measure("Alert rate", "Share of queries that raise an alert (POS)"),
    "screening_sensitivity": Measure(
        "Screening sensitivity",
        "Share of queries with evidence that are not skipped",
        "higher",
    ),
    "screening_specificity": Measure(
        "Screening specificity",
        "Share of queries without evidence that are skipped",
        "higher",
    ),
    "screening_npv": Measure(
        "Screening negative predictive value",
        "Share of skipped queries that indeed have no evidence",
        "higher",
    ),
    "alert_precision": Measure(
        "Alert precision", "Share of alerts that are right", "higher"
    ),
    "alert_recall": Measure(
        "Alert recall", "Share of queries with evidence that raise an alert", "higher"
    ),
    "screening_fn_per_1000": Measure(
        "Missed queries per 1,000",
        "Queries with evidence that are skipped, in 1,000 queries",
        "lower",
    ),
    "screening_fn_per_1000_positive": Measure(
        "Missed queries per 1,000 with evidence",
        "Queries with evidence that are skipped, in 1,000 queries with evidence",
        "lower",
    ),
    "alerts_per_1000": Measure("Alerts per 1,000", "Alerts in 1,000 queries"),
}

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
        **_PLAIN,
        **{
            f"{word}@{{k}}": Measure(f"{name} at {{k}}", meaning, "higher")
            for word, (name, meaning) in _LISTS.items()
        },
        **{
            f"{way}.{word}": Measure(f"{name}, {by}", f"{meaning}; {rule}", direction)
            for way, (by, rule) in _DECIDED.items()
            for word, (name, meaning, direction) in _RATES.items()
        },
        **{
            f"{way}.{word}": Measure(f"{name}, {by}", f"{meaning}; {rule}", direction)
            for way, by, rule in (
                (
                    "posts_at_tau",
                    "at tau",
                    "a criterion is called from probability tau",
                ),
                (
                    "posts_not_neg",
                    "not skipped",
                    "a criterion is called unless skipped",
                ),
            )
            for word, (name, meaning, direction) in _POSTS.items()
        },
    },
)
