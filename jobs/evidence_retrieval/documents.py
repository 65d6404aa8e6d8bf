"""Writes the JSON documents of a scoring: summary, leaks, findings, gates."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from jobs.evidence_retrieval.metrics.breakdowns import over_folds
from jobs.evidence_retrieval.metrics.results import ModelResults
from jobs.evidence_retrieval.metrics.retrieval import fold_masks
from jobs.evidence_retrieval.queries import FoldGate, ScoringInput
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.kit.metrics.columns import Bools, Floats
from jobs.kit.metrics.selective import STATES
from jobs.kit.text_format import slugs
from runner.scorecard import Artifact, Finding, Metric


class EvidenceFolders:
    """Paths of files in the folders of a scoring's models."""

    def __init__(self, models: Sequence[str]) -> None:
        self._slugs = slugs(models)
        self._is_alone = len(models) == 1

    def path(self, model: str, name: str) -> str:
        """Return the path of a file that a model has once."""
        return name if self._is_alone else f"{self._slugs[model]}/{name}"

    def all(self, model: str, name: str) -> tuple[str, ...]:
        """Return the paths of a file: in the model's folder, and at top if alone."""
        inside = f"{self._slugs[model]}/{name}"
        return (inside, name) if self._is_alone else (inside,)


def step_files(pattern: str, steps: Sequence[str]) -> dict[str, str]:
    """Return the file of each list of a model, such as `run.reranked.txt`."""
    return {step: pattern.format(slug) for step, slug in slugs(steps).items()}


GATE_FIELDS = ("posts", "tau_neg", "tau_pos", "on_tune", "fitted")
"""Fields of a gate in `gate_fold_<k>.json`."""


def documents(
    scoring_input: ScoringInput, findings: Iterable[Finding], folders: EvidenceFolders
) -> Iterator[Artifact]:
    """Yield `leakage.json`, `consistency.json`, and the fitted gates.

    A gate is in `gate_fold_<k>.json` for each model and fold; `gate_final.json`, on
    request, has those of all models, in the format of `--apply-gate`.
    """
    leaks = [asdict(check) for check in scoring_input.leak_checks]
    yield Artifact(name="leakage.json", text=as_text(leaks))
    contradictions = [asdict(finding) for finding in findings]
    yield Artifact(name="consistency.json", text=as_text(contradictions))
    if scoring_input.final_gates:
        yield Artifact(name="gate_final.json", text=scoring_input.final_gates)
    for model in scoring_input.models:
        gates: dict[str, list[FoldGate]] = {}
        for gate in scoring_input.gates:
            if gate.model == model:
                gates.setdefault(gate.fold, []).append(gate)
        files = step_files("gate_fold_{}.json", tuple(gates))
        for fold, fitted in gates.items():
            content = {
                "model": model,
                "fold": fold,
                "configs": {
                    gate.config: {name: getattr(gate, name) for name in GATE_FIELDS}
                    for gate in fitted
                },
            }
            name = folders.path(model, files[fold])
            yield Artifact(name=name, text=as_text(content))


def as_text(content: Any) -> str:  # noqa: ANN401 - whatever JSON can hold
    """Format JSON with a line end; infinite thresholds are written as `inf`."""
    plain = _plain(content)
    return json.dumps(plain, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _plain(value: Any) -> Any:  # noqa: ANN401 - whatever JSON can hold
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and math.isinf(value):
        return repr(value)
    return value


LIST_MEASURES = ("recall", "mrr", "map", "ndcg")
"""Measures of a list's block, at each cut-off."""


def summary_json(
    model_results: ModelResults, scoring_input: ScoringInput, settings: EvidenceSettings
) -> str:
    """Return the summary of one model's headline configuration."""
    content = (
        _by_fold(model_results, scoring_input, settings)
        if model_results.folds
        else _by_list(model_results, settings)
    )
    return as_text(content)


def fold_keys(settings: EvidenceSettings) -> dict[str, dict[str, str]]:
    """Return, by group of a fold's block, each key with the path of its measure."""
    at_fpr = {
        f"{name}_at_{100 * target:.10g}pct_fpr": f"{name}_at_fpr@{target:g}"
        for target in settings.fpr_targets
        for name in ("tpr", "threshold")
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
            # the format has K as selected, not as limited by a short post
            "mean_k": "k_nominal.mean",
            "median_k": "k_nominal.median",
            "mean_n": "n_candidates.mean",
            **{f"{state}_mean_k": f"k_nominal.{state}.mean" for state in STATES},
        },
    }


def _by_fold(
    model_results: ModelResults, scoring_input: ScoringInput, settings: EvidenceSettings
) -> dict[str, Any]:
    keys = fold_keys(settings)
    by_path = model_results.by_path()
    results, aggregated, n_defined, metrics = [], {}, {}, {}
    for fold, measures in model_results.folds.items():
        blocks = {group: _values(paths, measures) for group, paths in keys.items()}
        results.append(
            {
                "fold": fold,
                "threshold_selection": _selection(model_results, scoring_input, fold),
                "test_metrics": {g: block for g, block in blocks.items() if block},
            }
        )
    for group, paths in keys.items():
        for key, path in paths.items():
            if path not in by_path:
                continue
            name = f"{group}.{key}"
            statistics = over_folds(model_results.folds, path, settings.ddof)
            aggregated[name] = {
                statistic: getattr(statistics, statistic)
                for statistic in ("mean", "std", "median", "min", "max")
            }
            metrics[name] = by_path[path]
            n_defined[name] = statistics.n_defined
    return {
        "n_folds": len(model_results.folds),
        "config": {
            "model": model_results.block.prediction.model,
            "config": model_results.block.prediction.config,
            "profile": settings.profile,
            "ddof": settings.ddof,
        },
        "fold_results": results,
        "aggregated_metrics": aggregated,
        **_definitions(metrics),
        "n_defined": n_defined,
    }


def _values(
    paths: Mapping[str, str], measures: Mapping[str, Metric]
) -> dict[str, float | int | None]:
    return {
        key: measures[path].value for key, path in paths.items() if path in measures
    }


def _selection(
    model_results: ModelResults, scoring_input: ScoringInput, fold: str
) -> dict[str, Any]:
    """Return the thresholds of a fold, and their metrics on the tuning posts."""
    prediction = model_results.block.prediction
    for gate in scoring_input.gates:
        gate_key = (prediction.model, prediction.config, fold)
        if (gate.model, gate.config, gate.fold) == gate_key:
            selection: dict[str, Any] = {
                "tau_neg": gate.tau_neg,
                "tau_pos": gate.tau_pos,
            }
            for name, value in gate.on_tune.items():
                group, _, key = name.partition("_")
                if group in {"screening", "alert"}:
                    selection.setdefault(group, {})[key] = value
                else:
                    selection.setdefault("distribution", {})[name] = value
            return selection
    rows = fold_masks(model_results.block)[fold]
    return {
        name: float(values[0])
        for name in ("tau_neg", "tau_pos")
        if len(values := _distinct(getattr(prediction, name), rows)) == 1
    }


def _distinct(column: Floats | None, rows: Bools) -> Floats:
    """Return the distinct thresholds of some queries, without missing ones."""
    values = np.empty(0) if column is None else np.unique(column[rows])
    return values[~np.isnan(values)]


def _by_list(model_results: ModelResults, settings: EvidenceSettings) -> dict[str, Any]:
    by_path = model_results.by_path()
    block = model_results.block
    positives = int((block.queries.y[block.judged] == 1).sum())
    content: dict[str, Any] = {}
    metrics: dict[str, Metric] = {}
    for name in block.lists:
        prefix = f"{name}." if len(block.lists) > 1 else ""
        paths = {
            key: f"{prefix}{key}"
            for key in (f"{m}@{k}" for m in LIST_MEASURES for k in settings.k_values)
            if f"{prefix}{key}" in by_path
        }
        of_positives = {
            **{key: by_path[path].value for key, path in paths.items()},
            "queries_total": int(block.judged.sum()),
            "queries_with_positives": positives,
            "queries_evaluated": len(block.lists[name].rows),
            "skip_no_positives": True,
        }
        content[name] = of_positives
        if settings.all_queries:
            over_all = {
                key: by_path[f"all_queries.{name}.{key}"].value for key in paths
            }
            counts = {
                "queries_evaluated": int(block.judged.sum()),
                "skip_no_positives": False,
            }
            content[name] = {
                "positives_only": of_positives,
                "all_queries": {**of_positives, **over_all, **counts},
            }
        metrics |= {f"{name}.{key}": by_path[path] for key, path in paths.items()}
    return {
        **content,
        "eval_split": "all",
        **_definitions(metrics),
        "n_defined": {name: metric.n_defined for name, metric in metrics.items()},
    }


def _definitions(metrics: Mapping[str, Metric]) -> dict[str, Any]:
    """Return the definition of each number, and its interval over all queries."""
    return {
        "definitions": {name: metric.definition for name, metric in metrics.items()},
        "intervals": {
            name: {"value": metric.value, "lo": metric.lo, "hi": metric.hi}
            for name, metric in metrics.items()
        },
    }
