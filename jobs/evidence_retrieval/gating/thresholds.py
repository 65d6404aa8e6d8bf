"""The two thresholds of a gate, from the posts that were kept apart for them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from jobs.evidence_retrieval.settings import Settings
from jobs.metrics import assign, gate_metrics, threshold_grid, wilson
from jobs.metrics.columns import Bools, Floats, quotient

Bound: TypeAlias = Literal["point", "wilson"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """What thresholds must reach."""

    sensitivity: float  #: sets tau_neg
    precision: float  #: of alerts; sets tau_pos
    min_alerts: int
    bound: Bound  #: whether the share itself or Wilson's lower end must reach it


def targets_of(settings: Settings) -> Targets:
    """What the settings ask of every gate."""
    return Targets(
        sensitivity=settings.target_sensitivity,
        precision=settings.target_alert_precision,
        min_alerts=settings.min_alerts,
        bound=settings.target_bound,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """NEG below the first, POS from the second on (inf: nobody)."""

    tau_neg: float
    tau_pos: float
    has_positive: bool  #: False: nothing to set them by, so nobody is NEG or POS


def thresholds(y: Bools, p: Floats, targets: Targets) -> Thresholds:
    """tau_neg as high as sensitivity allows, tau_pos as low as precision allows.

    Candidates are 0 and the distinct p; a row is called at p >= t.
    """
    if not y.any():
        return Thresholds(tau_neg=0.0, tau_pos=math.inf, has_positive=False)
    candidates = np.unique(np.append(p, 0.0))
    counts = threshold_grid(y, p, candidates)
    reach = _share if targets.bound == "point" else _lower_end
    sensitivity = reach(counts.tp, counts.tp + counts.fn)
    # at 0 every row is called, so there always is one unless the bound forbids it
    enough = candidates[sensitivity >= targets.sensitivity]
    tau_neg = float(enough.max()) if len(enough) else 0.0
    alerts = counts.tp + counts.fp
    good = (
        (candidates >= tau_neg)
        & (alerts >= targets.min_alerts)
        & (reach(counts.tp, alerts) >= targets.precision)
    )
    tau_pos = float(candidates[good].min()) if good.any() else math.inf
    return Thresholds(tau_neg=tau_neg, tau_pos=tau_pos, has_positive=True)


def reached(
    y: Bools, p: Floats, chosen: Thresholds, edge: Literal["lt", "le"]
) -> Mapping[str, float | None]:
    """What the thresholds do to the posts that they were set by."""
    states = assign(p, chosen.tau_neg, chosen.tau_pos, edge=edge)
    found = gate_metrics(y, states)
    alerts = found.alert_precision
    negatives = found.screening_specificity.n
    specificity = found.screening_specificity.value
    return {
        "screening_sensitivity": found.screening_sensitivity.value,
        "screening_fpr": None if specificity is None else 1 - specificity,
        "screening_npv": found.screening_npv.value,
        "alert_precision": alerts.value,
        "alert_recall": found.alert_recall.value,
        "alert_fpr": (alerts.n - alerts.k) / negatives if negatives else None,
        **{f"{name.lower()}_rate": share.value for name, share in found.rates.items()},
    }


def _share(k: Floats, n: Floats) -> Floats:
    """K of n; NaN, which reaches nothing, of none."""
    return quotient(k, n)


def _lower_end(k: Floats, n: Floats) -> Floats:
    ends = [wilson(int(a), int(b)).lo for a, b in zip(k, n, strict=True)]
    return np.array([math.nan if end is None else end for end in ends])
