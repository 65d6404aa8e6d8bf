"""One gate: raw probability, calibration and thresholds, fitted together.

`fit` is given the rows it may learn from and nothing else: what it returns cannot know
the rows it will be asked about.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from jobs.evidence_retrieval.gating.calibrator import Calibrator, fit_calibrator
from jobs.evidence_retrieval.gating.classifier import (
    Classifier,
    choose_c,
    fit_classifier,
    out_of_fold,
    refuse_one_class,
)
from jobs.evidence_retrieval.gating.thresholds import (
    Targets,
    Thresholds,
    targets_of,
    thresholds,
)
from jobs.evidence_retrieval.pipeline import Calibration, Config
from jobs.evidence_retrieval.settings import Settings
from jobs.metrics.columns import Bools, Floats

GateKind: TypeAlias = Literal["passthrough", "classifier"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GateSpec:
    """What to fit; equal specs on equal rows give equal gates."""

    kind: GateKind
    calibration: Calibration
    c_grid: tuple[float, ...]
    calibrate_on: Literal["out_of_fold", "tune"]
    targets: Targets
    edge: Literal["lt", "le"]


def spec_of(config: Config, settings: Settings) -> GateSpec | None:
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
class Rows:
    """Queries as a gate sees them, by post and criterion in the order of their text.

    That order is canonical, so that what is fitted does not depend on any file's.
    """

    names: tuple[str, ...]  #: of the features
    values: Floats  #: (rows, features)
    stated: Floats  #: (rows,) the model's own probability; NaN where it stated none
    posts: tuple[str, ...]  #: (rows,)

    def __len__(self) -> int:
        return len(self.posts)

    def where(self, chosen: Bools) -> Rows:
        """Some of the rows, in their order."""
        return Rows(
            names=self.names,
            values=self.values[chosen],
            stated=self.stated[chosen],
            posts=tuple(np.array(self.posts, dtype=np.object_)[chosen].tolist()),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """Rows with their gold."""

    rows: Rows
    y: Bools


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedGate:
    """All that was learnt."""

    names: tuple[str, ...]
    classifier: Classifier | None  #: None: the model's own probability is taken
    calibrator: Calibrator
    thresholds: Thresholds

    def raw(self, rows: Rows) -> Floats:
        """The probability before calibration."""
        return _raw(self.classifier, rows)

    def probability(self, rows: Rows) -> Floats:
        """The probability that thresholds and metrics go by."""
        return _calibrated(self.calibrator, self.raw(rows))


def fit(spec: GateSpec, learn: Labelled, tune: Labelled) -> FittedGate:
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


def fit_final(spec: GateSpec, every: Labelled) -> FittedGate:
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


def _learnt(spec: GateSpec, learn: Labelled) -> tuple[Classifier | None, Floats]:
    """The classifier, and probabilities of its rows by ones that did not see them."""
    refuse_one_class(learn.y)
    if spec.kind == "passthrough":
        return None, learn.rows.stated
    values, posts = learn.rows.values, learn.rows.posts
    c = choose_c(values, learn.y, posts, spec.c_grid)
    classifier = fit_classifier(values, learn.y, c)
    return classifier, logistic(out_of_fold(values, learn.y, posts, c))


def _raw(classifier: Classifier | None, rows: Rows) -> Floats:
    if classifier is None:
        return rows.stated
    return logistic(classifier.log_odds(rows.values))


def _calibrated(calibrator: Calibrator, p: Floats) -> Floats:
    return p if calibrator is None else calibrator(p)
