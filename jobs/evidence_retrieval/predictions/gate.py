"""Fits a gate: its probability, calibration and thresholds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from jobs.evidence_retrieval.pipeline import Calibration, Config
from jobs.evidence_retrieval.predictions.classifier import (
    choose_c,
    fit_calibrator,
    fit_classifier,
    out_of_fold,
    refuse_one_class,
)
from jobs.evidence_retrieval.predictions.fitted_gate import (
    Classifier,
    FeatureRows,
    FittedGate,
    GateThresholds,
    calibrated,
    logistic,
    raw_probability,
)
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.kit.metrics import assign, gate_metrics, threshold_grid, wilson
from jobs.kit.metrics.columns import Bools, Floats, quotient

Bound: TypeAlias = Literal["point", "wilson"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdTargets:
    """What thresholds must reach."""

    sensitivity: float  #: sets tau_neg
    precision: float  #: of alerts; sets tau_pos
    min_alerts: int
    bound: Bound  #: whether the share itself or Wilson's lower end must reach it


def targets_of(settings: EvidenceSettings) -> ThresholdTargets:
    """What the settings ask of every gate."""
    return ThresholdTargets(
        sensitivity=settings.target_sensitivity,
        precision=settings.target_alert_precision,
        min_alerts=settings.min_alerts,
        bound=settings.target_bound,
    )


def thresholds(y: Bools, p: Floats, targets: ThresholdTargets) -> GateThresholds:
    """tau_neg as high as sensitivity allows, tau_pos as low as precision allows.

    Candidates are 0 and the distinct p; a row is called at p >= t.
    """
    if not y.any():
        return GateThresholds(tau_neg=0.0, tau_pos=math.inf, has_positive=False)
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
    return GateThresholds(tau_neg=tau_neg, tau_pos=tau_pos, has_positive=True)


def reached(
    y: Bools, p: Floats, chosen: GateThresholds, edge: Literal["lt", "le"]
) -> Mapping[str, float | None]:
    """What the thresholds do to the posts that they were set by."""
    states = assign(p, chosen.tau_neg, chosen.tau_pos, edge=edge)
    state_metrics = gate_metrics(y, states)
    alerts = state_metrics.alert_precision
    negatives = state_metrics.screening_specificity.n
    specificity = state_metrics.screening_specificity.value
    return {
        "screening_sensitivity": state_metrics.screening_sensitivity.value,
        "screening_fpr": None if specificity is None else 1 - specificity,
        "screening_npv": state_metrics.screening_npv.value,
        "alert_precision": alerts.value,
        "alert_recall": state_metrics.alert_recall.value,
        "alert_fpr": (alerts.n - alerts.k) / negatives if negatives else None,
        **{
            f"{name.lower()}_rate": share.value
            for name, share in state_metrics.rates.items()
        },
    }


def _share(k: Floats, n: Floats) -> Floats:
    """K of n; NaN, which reaches nothing, of none."""
    return quotient(k, n)


def _lower_end(k: Floats, n: Floats) -> Floats:
    ends = [wilson(int(a), int(b)).lo for a, b in zip(k, n, strict=True)]
    return np.array([math.nan if end is None else end for end in ends])


GateKind: TypeAlias = Literal["passthrough", "classifier"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GateSpec:
    """What to fit; equal specs on equal rows give equal gates."""

    kind: GateKind
    calibration: Calibration
    c_grid: tuple[float, ...]
    calibrate_on: Literal["out_of_fold", "tune"]
    targets: ThresholdTargets
    edge: Literal["lt", "le"]


def spec_of(config: Config, settings: EvidenceSettings) -> GateSpec | None:
    """What a configuration's gate is made of; None where it has none."""
    if config.gate == "none":
        return None
    return GateSpec(
        kind=config.gate,
        calibration=config.calibration,
        c_grid=settings.c_grid,
        calibrate_on=settings.calibrate_on,
        targets=targets_of(settings),
        edge=settings.gate_edge,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledRows:
    """Rows with their gold."""

    rows: FeatureRows
    y: Bools


def fit(spec: GateSpec, learn: LabelledRows, tune: LabelledRows) -> FittedGate:
    """Classifier and calibrator from *learn*, thresholds from *tune*.

    Raises:
        CannotFitError: where a class is missing, or no calibrator exists.
    """
    classifier, unseen = _learnt(spec, learn)
    raw_tune = raw_probability(classifier, tune.rows)
    if spec.calibrate_on == "tune":
        calibrator = fit_calibrator(spec.calibration, raw_tune, tune.y)
    else:
        calibrator = fit_calibrator(spec.calibration, unseen, learn.y)
    return FittedGate(
        names=learn.rows.names,
        classifier=classifier,
        calibrator=calibrator,
        thresholds=thresholds(tune.y, calibrated(calibrator, raw_tune), spec.targets),
    )


def fit_final(spec: GateSpec, every: LabelledRows) -> FittedGate:
    """A gate for new data, of all judged rows; no reported metric may use it.

    Calibrator and thresholds go by out-of-fold probabilities, for there are no posts
    left to tune on.

    Raises:
        CannotFitError: as `fit`.
    """
    classifier, unseen = _learnt(spec, every)
    calibrator = fit_calibrator(spec.calibration, unseen, every.y)
    return FittedGate(
        names=every.rows.names,
        classifier=classifier,
        calibrator=calibrator,
        thresholds=thresholds(every.y, calibrated(calibrator, unseen), spec.targets),
    )


def _learnt(spec: GateSpec, learn: LabelledRows) -> tuple[Classifier | None, Floats]:
    """The classifier, and probabilities of its rows by ones that did not see them."""
    refuse_one_class(learn.y)
    if spec.kind == "passthrough":
        return None, learn.rows.stated
    values, posts = learn.rows.values, learn.rows.posts
    c = choose_c(values, learn.y, posts, spec.c_grid)
    classifier = fit_classifier(values, learn.y, c)
    return classifier, logistic(out_of_fold(values, learn.y, posts, c))
