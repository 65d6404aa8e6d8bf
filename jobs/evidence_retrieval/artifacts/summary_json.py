"""`summary.json`: the numbers of a model in the layouts that other programs read.

With folds: what each fold reached and what that is over folds. Without: a block a list.
Beside them stand the definition, the interval and the number of defined values of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from jobs.evidence_retrieval.artifacts.documents import as_text
from jobs.evidence_retrieval.measuring.folds import over_folds
from jobs.evidence_retrieval.measuring.measure import Measure
from jobs.evidence_retrieval.measuring.results import ModelResults
from jobs.evidence_retrieval.measuring.sections import fold_masks
from jobs.evidence_retrieval.queries import Sheet
from jobs.evidence_retrieval.settings import Settings
from jobs.metrics.columns import Bools, Floats
from jobs.metrics.selective import STATES
from runner.scorecard import Metric

LISTED = ("recall", "mrr", "map", "ndcg")
"""The measures of a list's block, at each cut-off."""


def summary_json(own: ModelResults, sheet: Sheet, settings: Settings) -> str:
    """The file of one model's headline configuration."""
    content = _by_fold(own, sheet, settings) if own.folds else _by_list(own, settings)
    return as_text(content)


def fold_keys(settings: Settings) -> dict[str, dict[str, str]]:
    """What each group of a fold's block holds: key, and path of the measure."""
    at_fpr = {
        f"{key}_{_percent(target)}pct_fpr": f"{path}@{target:g}"
        for target in settings.fpr_targets
        for key, path in (
            ("tpr_at", "tpr_at_fpr"),
            ("threshold_at", "threshold_at_fpr"),
        )
    }
    return {
        "ne_gate": {"auroc": "auroc", "auprc": "auprc", **at_fpr, "ece": "ece"},
        "deployment": {
            "neg_rate": "neg_rate",
            "uncertain_rate": "uncertain_rate",
            "pos_rate": "pos_rate",
            "screening_sensitivity": "screening_sensitivity",
            "screening_fpr": "at_screening.fpr",
            "screening_npv": "screening_npv",
            "screening_fn_per_1000": "screening_fn_per_1000",
            "alert_precision": "alert_precision",
            "alert_recall": "alert_recall",
            "alert_fpr": "at_alert.fpr",
        },
        "evidence": {
            "recall@K": "evidence_recall@K",
            "precision@K": "evidence_precision@K",
            "ndcg@10": "ndcg@10",
            "mrr": "mrr",
        },
        "dynamic_k": {
            # the format states K as it was selected, not what a short post shows
            "mean_k": "k_nominal.mean",
            "median_k": "k_nominal.median",
            "mean_n": "n_candidates.mean",
            **{f"{state}_mean_k": f"k_nominal.{state}.mean" for state in STATES},
        },
    }


def _percent(target: float) -> str:
    return f"{100 * target:.10g}"


def _by_fold(own: ModelResults, sheet: Sheet, settings: Settings) -> dict[str, Any]:
    keys = fold_keys(settings)
    known = own.by_path()
    results, aggregated = [], {}
    definitions, intervals, n_defined = {}, {}, {}
    for fold, measures in own.folds.items():
        blocks = {group: _values(paths, measures) for group, paths in keys.items()}
        results.append(
            {
                "fold": fold,
                "threshold_selection": _selection(own, sheet, fold),
                "test_metrics": {g: block for g, block in blocks.items() if block},
            }
        )
    for group, paths in keys.items():
        for key, path in paths.items():
            if path not in known:
                continue
            name = f"{group}.{key}"
            found = over_folds(own.folds, path, settings.ddof)
            aggregated[name] = {
                "mean": found.mean,
                "std": found.std,
                "median": found.median,
                "min": found.min,
                "max": found.max,
            }
            definitions[name] = known[path].definition
            intervals[name] = _interval(known[path])
            n_defined[name] = found.n_defined
    return {
        "n_folds": len(own.folds),
        "config": {
            "model": own.block.prediction.model,
            "config": own.block.prediction.config,
            "profile": settings.profile,
            "ddof": settings.ddof,
        },
        "fold_results": results,
        "aggregated_metrics": aggregated,
        "definitions": definitions,
        "intervals": intervals,
        "n_defined": n_defined,
    }


def _values(
    paths: Mapping[str, str], measures: Mapping[str, Measure]
) -> dict[str, float | int | None]:
    return {
        key: measures[path].value for key, path in paths.items() if path in measures
    }


def _selection(own: ModelResults, sheet: Sheet, fold: str) -> dict[str, Any]:
    """The thresholds of a fold, and what they reached where they were chosen."""
    prediction = own.block.prediction
    for gate in sheet.gates:
        wanted = (prediction.model, prediction.config, fold)
        if (gate.model, gate.config, gate.fold) == wanted:
            found: dict[str, Any] = {"tau_neg": gate.tau_neg, "tau_pos": gate.tau_pos}
            for name, value in gate.on_tune.items():
                group, _, key = name.partition("_")
                if group in {"screening", "alert"}:
                    found.setdefault(group, {})[key] = value
                else:
                    found.setdefault("distribution", {})[name] = value
            return found
    rows = fold_masks(own.block)[fold]
    return {
        name: float(values[0])
        for name in ("tau_neg", "tau_pos")
        if len(values := _distinct(getattr(prediction, name), rows)) == 1
    }


def _distinct(column: Floats | None, rows: Bools) -> Floats:
    """The different thresholds of some queries; those without one are left out."""
    values = np.empty(0) if column is None else np.unique(column[rows])
    return values[~np.isnan(values)]


def _by_list(own: ModelResults, settings: Settings) -> dict[str, Any]:
    known = own.by_path()
    block = own.block
    positives = int((block.queries.y[block.judged] == 1).sum())
    content: dict[str, Any] = {}
    definitions, intervals, n_defined = {}, {}, {}
    for name in block.lists:
        prefix = f"{name}." if len(block.lists) > 1 else ""
        paths = {
            key: f"{prefix}{key}"
            for key in (f"{m}@{k}" for m in LISTED for k in settings.k_values)
            if f"{prefix}{key}" in known
        }
        of_positives = {
            **{key: known[path].value for key, path in paths.items()},
            "queries_total": int(block.judged.sum()),
            "queries_with_positives": positives,
            "queries_evaluated": len(block.lists[name].rows),
            "skip_no_positives": True,
        }
        content[name] = of_positives
        if settings.all_queries:
            over_all = {key: known[f"all_queries.{name}.{key}"].value for key in paths}
            counts = {
                "queries_evaluated": int(block.judged.sum()),
                "skip_no_positives": False,
            }
            content[name] = {
                "positives_only": of_positives,
                "all_queries": {**of_positives, **over_all, **counts},
            }
        for key, path in paths.items():
            definitions[f"{name}.{key}"] = known[path].definition
            intervals[f"{name}.{key}"] = _interval(known[path])
            n_defined[f"{name}.{key}"] = known[path].n_defined
    return {
        **content,
        "eval_split": "all",
        "definitions": definitions,
        "intervals": intervals,
        "n_defined": n_defined,
    }


def _interval(metric: Metric) -> dict[str, float | int | None]:
    """The value over all queries, which the interval is about."""
    return {"value": metric.value, "lo": metric.lo, "hi": metric.hi}
