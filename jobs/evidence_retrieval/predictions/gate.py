"""Fits a gate: probability, calibration and thresholds; also as plain JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from jobs.evidence_retrieval.pipeline import Calibration, Config
from jobs.evidence_retrieval.predictions.classifier import (
    Calibrator,
    Classifier,
    choose_c,
    fit_calibrator,
    fit_classifier,
    out_of_fold,
    refuse_one_class,
)
from jobs.evidence_retrieval.predictions.classifier import as_json as calibrator_json
from jobs.evidence_retrieval.predictions.classifier import from_json as calibrator_of
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.metrics import assign, gate_metrics, threshold_grid, wilson
from jobs.metrics.columns import Bools, Floats, quotient

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


@dataclass(frozen=True, slots=True, kw_only=True)
class GateThresholds:
    """NEG below the first, POS from the second on (inf: nobody)."""

    tau_neg: float
    tau_pos: float
    has_positive: bool  #: False: nothing to set them by, so nobody is NEG or POS


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
class FeatureRows:
    """Queries as a gate sees them, by post and criterion in the order of their text.

    That order is canonical, so that what is fitted does not depend on any file's.
    """

    names: tuple[str, ...]  #: of the features
    values: Floats  #: (rows, features)
    stated: Floats  #: (rows,) the model's own probability; NaN where it stated none
    posts: tuple[str, ...]  #: (rows,)

    def __len__(self) -> int:
        return len(self.posts)

    def where(self, chosen: Bools) -> FeatureRows:
        """Some of the rows, in their order."""
        return FeatureRows(
            names=self.names,
            values=self.values[chosen],
            stated=self.stated[chosen],
            posts=tuple(np.array(self.posts, dtype=np.object_)[chosen].tolist()),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledRows:
    """Rows with their gold."""

    rows: FeatureRows
    y: Bools


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedGate:
    """All that was learnt."""

    names: tuple[str, ...]
    classifier: Classifier | None  #: None: the model's own probability is taken
    calibrator: Calibrator
    thresholds: GateThresholds

    def raw(self, rows: FeatureRows) -> Floats:
        """The probability before calibration."""
        return _raw(self.classifier, rows)

    def probability(self, rows: FeatureRows) -> Floats:
        """The probability that thresholds and metrics go by."""
        return _calibrated(self.calibrator, self.raw(rows))


def fit(spec: GateSpec, learn: LabelledRows, tune: LabelledRows) -> FittedGate:
    """Classifier and calibrator from *learn*, thresholds from *tune*.

    Raises:
        CannotFitError: where a class is missing, or no calibrator exists.
    """
    classifier, unseen = _learnt(spec, learn)
    raw_tune = _raw(classifier, tune.rows)
    if spec.calibrate_on == "tune":
        calibrator = fit_calibrator(spec.calibration, raw_tune, tune.y)
    else:
        calibrator = fit_calibrator(spec.calibration, unseen, learn.y)
    return FittedGate(
        names=learn.rows.names,
        classifier=classifier,
        calibrator=calibrator,
        thresholds=thresholds(tune.y, _calibrated(calibrator, raw_tune), spec.targets),
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
        thresholds=thresholds(every.y, _calibrated(calibrator, unseen), spec.targets),
    )


def logistic(log_odds: Floats) -> Floats:
    """Probabilities of log-odds."""
    # number by number: an array's exp may differ in its last digit between processors
    return np.array([_logistic(x) for x in log_odds.tolist()], dtype=np.float64)


def _logistic(x: float) -> float:
    if x >= 0:
        return 1 / (1 + math.exp(-x))
    raised = math.exp(x)
    return raised / (1 + raised)


def _learnt(spec: GateSpec, learn: LabelledRows) -> tuple[Classifier | None, Floats]:
    """The classifier, and probabilities of its rows by ones that did not see them."""
    refuse_one_class(learn.y)
    if spec.kind == "passthrough":
        return None, learn.rows.stated
    values, posts = learn.rows.values, learn.rows.posts
    c = choose_c(values, learn.y, posts, spec.c_grid)
    classifier = fit_classifier(values, learn.y, c)
    return classifier, logistic(out_of_fold(values, learn.y, posts, c))


def _raw(classifier: Classifier | None, rows: FeatureRows) -> Floats:
    if classifier is None:
        return rows.stated
    return logistic(classifier.log_odds(rows.values))


def _calibrated(calibrator: Calibrator, p: Floats) -> Floats:
    return p if calibrator is None else calibrator(p)


FORMAT = 1
NOBODY = "inf"
"""JSON has no infinity; tau_pos is this word where nobody is POS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredGate:
    """A gate fitted on all judged posts of a data set, for use on another one."""

    model: str
    config: str
    gate: FittedGate
    posts: tuple[str, ...]  #: that it has seen, and so must not be judged on


def gate_json(gate: FittedGate) -> Mapping[str, Any]:
    """All that a gate has learnt."""
    classifier, taus = gate.classifier, gate.thresholds
    return {
        "features": [*gate.names],
        "classifier": None
        if classifier is None
        else {
            "mean": [*classifier.mean],
            "scale": [*classifier.scale],
            "coefficients": [*classifier.coefficients],
            "intercept": classifier.intercept,
            "c": classifier.c,
        },
        "calibrator": calibrator_json(gate.calibrator),
        "tau_neg": taus.tau_neg,
        "tau_pos": NOBODY if math.isinf(taus.tau_pos) else taus.tau_pos,
        "tuned": taus.has_positive,
    }


def gate_of(stored: Mapping[str, Any]) -> FittedGate:
    """A gate out of a file; raise `KeyError` where something is missing."""
    own = stored["classifier"]
    return FittedGate(
        names=tuple(stored["features"]),
        classifier=None
        if own is None
        else Classifier(
            mean=tuple(own["mean"]),
            scale=tuple(own["scale"]),
            coefficients=tuple(own["coefficients"]),
            intercept=own["intercept"],
            c=own["c"],
        ),
        calibrator=calibrator_of(stored["calibrator"]),
        thresholds=GateThresholds(
            tau_neg=float(stored["tau_neg"]),
            tau_pos=float(stored["tau_pos"]),
            has_positive=stored["tuned"],
        ),
    )


def encode(gates: Iterable[StoredGate]) -> str:
    """The text of `gate_final.json`."""
    listed = [
        {
            "model": own.model,
            "config": own.config,
            "posts": [*own.posts],
            **gate_json(own.gate),
        }
        for own in gates
    ]
    return json.dumps({"format": FORMAT, "gates": listed}, indent=1) + "\n"


def decode(text: str) -> tuple[StoredGate, ...]:
    """The gates of a `gate_final.json`.

    Raises:
        ValueError: in one sentence, where the text is none.
    """
    try:
        stored = json.loads(text)
        if stored["format"] != FORMAT:
            raise ValueError(
                f"its format is {stored['format']}, and this version reads {FORMAT}; "
                "write it again by scoring with --final-gate."
            )
        return tuple(
            StoredGate(
                model=own["model"],
                config=own["config"],
                gate=gate_of(own),
                posts=tuple(own["posts"]),
            )
            for own in stored["gates"]
        )
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise ValueError(
            f"it is not a gate written by --final-gate ({error!r}); name the "
            "gate_final.json of a scoring."
        ) from error
