"""Figures of the gate: its probabilities, its states, and the K they lead to."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from jobs.evidence_retrieval.verification import curves, states
from jobs.evidence_retrieval.verification.choices import Choices, Tries
from jobs.evidence_retrieval.verification.figures import (
    Figure,
    Scope,
    mean,
    median,
    needed,
)

_AT_FPR = re.compile(r"(tpr|threshold)_at_(\d+(?:\.\d+)?)pct_fpr")
_OF_K = re.compile(r"(?:(NEG|UNCERTAIN|POS)_)?(mean|median|min|max)_([kn])")

_TPR_RULES: Tries = {"tpr_rule": ("last", "interpolate", "drop_collinear", "nearest")}
_ECE_EDGES: Tries = {
    "ece_edges": ("right", "left", "right_drop_zero", "left_drop_one", "right_midpoint")
}
_STATES: Tries = {
    "gate_edge": ("lt", "le"),
    "strict": (False, True),
    "states": ("recomputed", "column"),
}
_OF_NOTHING: Tries = {"of_nothing": (None, 0.0)}

_CURVES: Mapping[str, tuple[Callable[[Scope, Choices], float | None], str, Tries]] = (
    MappingProxyType(
        {
            "auroc": (
                lambda scope, _: curves.auroc(scope.curve),
                "chance that a query with evidence is ranked above one without",
                {},
            ),
            "auprc": (
                lambda scope, _: curves.auprc(scope.curve),
                "average precision; its floor is the share of positives",
                {},
            ),
            "ece": (
                lambda scope, choices: curves.ece(scope.judged, choices),
                "how far probabilities lie from what happens, on average",
                _ECE_EDGES,
            ),
            "mce": (
                lambda scope, choices: curves.mce(scope.judged, choices),
                "how far they lie from it in the worst bin",
                _ECE_EDGES,
            ),
        }
    )
)

_RATE_MEANINGS = MappingProxyType(
    {
        "neg_rate": "share of queries that are skipped",
        "uncertain_rate": "share of queries to read with care",
        "pos_rate": "share of queries that raise an alert",
        "screening_sensitivity": "share of queries with evidence that are not skipped",
        "screening_specificity": "share of queries without evidence that are skipped",
        "screening_fpr": "share of queries without evidence that are not skipped",
        "screening_npv": "share of skipped queries that have no evidence",
        "screening_fn_per_1000": "missed cases in 1,000 queries",
        "screening_fn_per_1000_positive": "missed cases in 1,000 with evidence",
        "alert_precision": "share of alerts that have evidence",
        "alert_recall": "share of queries with evidence that raise an alert",
        "alert_fpr": "share of queries without evidence that raise an alert",
        "alerts_per_1000": "alerts in 1,000 queries",
    }
)


def gate_figure(key: str) -> Figure | None:
    """A figure of the group `ne_gate`; None: *key* names none."""
    if match := _AT_FPR.fullmatch(key):
        kind, percent = match.groups()
        return Figure(
            name=f"ne_gate.{key}",
            compute=partial(_at_fpr, kind, float(percent) / 100),
            meaning={
                "tpr": "sensitivity where that share of the rest is let through",
                "threshold": "the probability that does so",
            }[kind],
            tries={**_TPR_RULES, **_OF_NOTHING},
        )
    if key not in _CURVES:
        return None
    compute, meaning, tries = _CURVES[key]
    return Figure(
        name=f"ne_gate.{key}",
        compute=partial(_defined, compute),
        meaning=meaning,
        tries={**_OF_NOTHING, **tries},
    )


def _defined(
    compute: Callable[[Scope, Choices], float | None], scope: Scope, choices: Choices
) -> float | None:
    value = compute(scope, choices)
    return choices.of_nothing if value is None else value


def _at_fpr(kind: str, target: float, scope: Scope, choices: Choices) -> float | None:
    point = curves.operating_point(scope.curve, target, choices.tpr_rule)
    if point is None:
        return choices.of_nothing
    return point.tpr if kind == "tpr" else point.threshold


def deployment_figure(key: str) -> Figure | None:
    """A figure of the group `deployment`; None: *key* names none."""
    if key not in states.RATES:
        return None
    tries = {**_STATES, "zero_division": (None, 0.0)}
    if key == "screening_fn_per_1000":
        tries["fn_per_1000"] = ("all", "positives")
    return Figure(
        name=f"deployment.{key}",
        compute=partial(_rate, key),
        meaning=_RATE_MEANINGS[key],
        tries=tries,
    )


def _rate(key: str, scope: Scope, choices: Choices) -> float | None:
    counts = states.count((truth, state) for truth, state, _ in scope.stated(choices))
    return states.rate(key, counts, choices)


def dynamic_k_figure(key: str) -> Figure | None:
    """A figure of the group `dynamic_k`; None: *key* names none."""
    match = _OF_K.fullmatch(key)
    if match is None:
        return None
    state, statistic, letter = match.groups()
    what = "sentences selected" if letter == "k" else "sentences to choose from"
    where = f" of {state} queries" if state else ""
    return Figure(
        name=f"dynamic_k.{key}",
        compute=partial(_of_k, state, statistic, letter),
        meaning=f"{statistic} number of {what}{where}",
        tries={**(_STATES if state else {}), **_OF_NOTHING},
    )


def _of_k(
    state: str | None, statistic: str, letter: str, scope: Scope, choices: Choices
) -> float | None:
    queries = (
        [query for _, own, query in scope.stated(choices) if own == state]
        if state
        else [query for query in scope.queries if query.truth is not None]
    )
    values = [
        float(value)
        for query in queries
        if (value := query.selected if letter == "k" else query.pool) is not None
    ]
    if queries:
        needed(values, "no selected K" if letter == "k" else "no size of a pool")
    if statistic in _ENDS:
        return _ENDS[statistic](values) if values else choices.of_nothing
    return (mean if statistic == "mean" else median)(values, choices)


_ENDS: Mapping[str, Callable[[list[float]], float]] = MappingProxyType(
    {"min": min, "max": max}
)
