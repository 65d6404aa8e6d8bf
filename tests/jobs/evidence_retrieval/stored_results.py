"""Set A as a per-query file, and its summary by fold as `jobs.kit.metrics` has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from jobs.kit.metrics.calibration import Closed, ece
from jobs.kit.metrics.classification import Vertex, auprc, auroc, tpr_at_fpr
from jobs.kit.metrics.columns import aggregate, mean
from jobs.kit.metrics.ranking import evaluate, hits
from jobs.kit.metrics.selective import NEG, POS, STATES, Edge, assign, gate_metrics
from tests.jobs.kit.metrics.set_a import SetA

TAU_POS = 0.68
Row = dict[str, str]


def selected(a: SetA, edge: Edge = "lt") -> list[int]:
    """K by state, as set A has it."""
    i = a.index
    states = assign(a.p, a.tau_neg, TAU_POS, edge=edge)
    return [int(k) for k in np.choose(states, (i * 0, 5 + i % 8, 3 + i % 4))]


def rows_of(a: SetA) -> list[Row]:
    """One row a query, as text."""
    states, chosen = assign(a.p, a.tau_neg, TAU_POS), selected(a)
    return [
        {
            "fold_id": str(a.fold[i]),
            "post_id": a.post[i],
            "criterion_id": f"A.{i % 10 + 1}",
            "p4_prob_raw": "",
            "p4_prob_calibrated": repr(float(a.p[i])),
            "has_evidence_gold": str(int(a.y[i])),
            "state": STATES[states[i]],
            "tau_neg": repr(float(a.tau_neg[i])),
            "tau_pos": repr(TAU_POS),
            "n_candidates": str(a.pool[i]),
            "selected_k": str(chosen[i]),
            "gold_sent_uids": "|".join(a.gold(int(i))),
            "reranked_topk": "|".join(a.ranked(int(i)) if a.y[i] else ()),
        }
        for i in a.index
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """The definitions that a summary is made with; the defaults are siftlog's own."""

    edge: Edge = "lt"
    vertex: Vertex = "last"
    closed: Closed = "right"
    drop_one: bool = False
    ddof: Literal[0, 1] = 1


PUBLISHED_CV = Made(edge="le", vertex="nearest", closed="left", drop_one=True, ddof=0)


def summary_of(a: SetA, made: Made | None = None) -> dict[str, Any]:
    """The stored results of set A."""
    made = made or Made()
    folds = [_fold(a, a.fold == k, made) for k in range(5)]
    names = {
        f"{group}.{key}": [fold["test_metrics"][group][key] for fold in folds]
        for group, figures in folds[0]["test_metrics"].items()
        for key in figures
    }
    return {
        "n_folds": 5,
        "config": {"seed": 1, "gate": "isotonic"},
        "fold_results": folds,
        "aggregated_metrics": {
            name: _spread(values, made.ddof) for name, values in names.items()
        },
    }


def _spread(values: list[float], ddof: int) -> dict[str, float | None]:
    found = aggregate(values)
    return {
        "mean": found.mean,
        "std": float(np.std(values, ddof=ddof)),
        "median": found.median,
        "min": found.min,
        "max": found.max,
    }


def _fold(a: SetA, inside: Any, made: Made) -> dict[str, Any]:
    y, p, index = a.y[inside], a.p[inside], a.index[inside]
    states = assign(p, a.tau_neg[inside], TAU_POS, edge=made.edge)
    return {
        "threshold_selection": {
            "tau_neg": float(a.tau_neg[inside][0]),
            "tau_pos": TAU_POS,
            "screening": {"sensitivity": 0.99},
        },
        "test_metrics": {
            "ne_gate": _gate(y, p, made),
            "deployment": _deployment(y, states),
            "evidence": _evidence(a, [int(i) for i in index[y]]),
            "dynamic_k": _dynamic_k(a, index, states),
        },
    }


def _gate(y: Any, p: Any, made: Made) -> dict[str, float | None]:
    figures = {
        "auroc": auroc(y, p),
        "auprc": auprc(y, p),
        "ece": ece(y, p, closed=made.closed, drop_one=made.drop_one),
    }
    for percent in (1, 3, 5, 10):
        point = tpr_at_fpr(y, p, percent / 100, vertex=made.vertex)
        assert point is not None
        figures[f"tpr_at_{percent}pct_fpr"] = point.tpr
        figures[f"threshold_at_{percent}pct_fpr"] = point.threshold
    return figures


def _deployment(y: Any, states: Any) -> dict[str, float | None]:
    found = gate_metrics(y, states)
    negatives = ~np.asarray(y, dtype=bool)
    specificity = found.screening_specificity.value
    assert specificity is not None
    return {
        "neg_rate": found.rates["NEG"].value,
        "uncertain_rate": found.rates["UNCERTAIN"].value,
        "pos_rate": found.rates["POS"].value,
        "screening_sensitivity": found.screening_sensitivity.value,
        "screening_fpr": 1 - specificity,
        "screening_npv": found.screening_npv.value,
        "screening_fn_per_1000": found.screening_fn_per_1000,
        "alert_precision": found.alert_precision.value,
        "alert_recall": found.alert_recall.value,
        "alert_fpr": float(np.mean(states[negatives] == POS)),
    }


def _evidence(a: SetA, positive: list[int]) -> dict[str, float | None]:
    gold, ranked = [a.gold(i) for i in positive], [a.ranked(i) for i in positive]
    fixed = evaluate(hits(gold, ranked), (5, 10))
    chosen = selected(a)
    recall, precision = [], []
    for i, wanted, items in zip(positive, gold, ranked, strict=True):
        taken = items[: chosen[i]]
        right = len(set(taken).intersection(wanted))
        recall.append(right / len(wanted))
        precision.append(right / len(taken) if taken else 0.0)
    return {
        "recall@K": mean(recall),
        "precision@K": mean(precision),
        **{
            name: mean(fixed[name].tolist())
            for name in ("recall@5", "precision@10", "ndcg@10", "map@10", "mrr")
        },
    }


def _dynamic_k(a: SetA, index: Any, states: Any) -> dict[str, float | None]:
    chosen = np.array(selected(a))[index]
    figures: Mapping[str, Any] = {
        "mean_k": chosen.mean(),
        "median_k": np.median(chosen),
        "mean_n": a.pool[index].mean(),
        "NEG_mean_k": chosen[states == NEG].mean(),
        "POS_mean_k": chosen[states == POS].mean(),
    }
    return {name: float(value) for name, value in figures.items()}
