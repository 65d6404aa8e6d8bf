"""Applies a fitted gate to queries; writes and reads it as plain JSON.

Fitting is in `jobs.evidence_retrieval.predictions.gate`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import numpy as np

from jobs.kit.metrics.calibration import Isotonic, Platt
from jobs.kit.metrics.columns import Bools, Floats

_DECIMALS = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Classifier:
    """Standardisation and coefficients, fitted to the same rows."""

    mean: tuple[float, ...]
    scale: tuple[float, ...]  #: 1 for a constant feature
    coefficients: tuple[float, ...]
    intercept: float
    c: float

    def log_odds(self, values: Floats) -> Floats:
        """Return the log-odds of evidence of each row, to nine decimals."""
        rows = (values - np.array(self.mean)) / np.array(self.scale)
        # row by row, because a matrix product may round a row by its position
        weighted = (rows * np.array(self.coefficients)).sum(axis=1)
        rounded: Floats = np.round(weighted + self.intercept, _DECIMALS)
        return rounded


Calibrator: TypeAlias = Isotonic | Platt | None
"""None leaves probabilities unchanged."""


def calibrator_json(calibrator: Calibrator) -> Mapping[str, Any]:
    """Return the calibrator in its file format."""
    match calibrator:
        case None:
            return {"kind": "none"}
        case Isotonic():
            return {"kind": "isotonic", "x": [*calibrator.x], "y": [*calibrator.y]}
        case Platt():
            return {
                "kind": "platt",
                "slope": calibrator.slope,
                "intercept": calibrator.intercept,
            }


def calibrator_of(stored: Mapping[str, Any]) -> Calibrator:
    """Read a calibrator from a file; raise `KeyError` if a field is missing."""
    match stored["kind"]:
        case "isotonic":
            return Isotonic(x=tuple(stored["x"]), y=tuple(stored["y"]))
        case "platt":
            return Platt(slope=stored["slope"], intercept=stored["intercept"])
        case _:
            return None


@dataclass(frozen=True, slots=True, kw_only=True)
class GateThresholds:
    """NEG below the first, POS from the second on (inf: none)."""

    tau_neg: float
    tau_pos: float
    has_positive: bool  #: False: nothing to set them by, so no query is NEG or POS


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureRows:
    """Queries as input of a gate, sorted by post and criterion as text.

    That order is canonical, so that the fit does not depend on the order of a file.
    """

    names: tuple[str, ...]  #: names of the features
    values: Floats  #: (rows, features)
    stated: Floats  #: (rows,) the model's own probability, or NaN
    posts: tuple[str, ...]  #: (rows,)

    def __len__(self) -> int:
        return len(self.posts)

    def select(self, chosen: Bools) -> FeatureRows:
        """Return some of the rows, in their order."""
        return FeatureRows(
            names=self.names,
            values=self.values[chosen],
            stated=self.stated[chosen],
            posts=tuple(np.array(self.posts, dtype=np.object_)[chosen].tolist()),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedGate:
    """All fitted parts of a gate."""

    names: tuple[str, ...]
    classifier: Classifier | None  #: None: the model's own probability is used
    calibrator: Calibrator
    thresholds: GateThresholds

    def raw(self, rows: FeatureRows) -> Floats:
        """Return the probability before calibration."""
        return raw_probability(self.classifier, rows)

    def probability(self, rows: FeatureRows) -> Floats:
        """Return the probability that thresholds and metrics use."""
        return calibrated(self.calibrator, self.raw(rows))


def logistic(log_odds: Floats) -> Floats:
    """Return the probabilities of log-odds."""
    # element by element: an array's exp may differ in its last digit between processors
    return np.array([_logistic(x) for x in log_odds.tolist()], dtype=np.float64)


def _logistic(x: float) -> float:
    if x >= 0:
        return 1 / (1 + math.exp(-x))
    raised = math.exp(x)
    return raised / (1 + raised)


def raw_probability(classifier: Classifier | None, rows: FeatureRows) -> Floats:
    """Return the probability before calibration, or the model's own."""
    if classifier is None:
        return rows.stated
    return logistic(classifier.log_odds(rows.values))


def calibrated(calibrator: Calibrator, p: Floats) -> Floats:
    """Return calibrated probabilities, or *p* without a calibrator."""
    return p if calibrator is None else calibrator(p)


FORMAT = 1


INFINITE = "inf"
"""JSON has no infinity; tau_pos is this word if no query is POS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredGate:
    """A gate fitted on all judged posts of a data set, for use on another one."""

    model: str
    config: str
    gate: FittedGate
    posts: tuple[str, ...]  #: used for fitting, so excluded from evaluation


def gate_json(gate: FittedGate) -> Mapping[str, Any]:
    """Return the fitted parts of a gate as JSON."""
    classifier, taus = gate.classifier, gate.thresholds
    return {
        "features": [*gate.names],
        "classifier": None if classifier is None else asdict(classifier),
        "calibrator": calibrator_json(gate.calibrator),
        "tau_neg": taus.tau_neg,
        "tau_pos": INFINITE if math.isinf(taus.tau_pos) else taus.tau_pos,
        "tuned": taus.has_positive,
    }


def gate_of(stored: Mapping[str, Any]) -> FittedGate:
    """Read a gate from a file; raise `KeyError` if a field is missing."""
    classifier = stored["classifier"]
    return FittedGate(
        names=tuple(stored["features"]),
        classifier=None
        if classifier is None
        else Classifier(
            mean=tuple(classifier["mean"]),
            scale=tuple(classifier["scale"]),
            coefficients=tuple(classifier["coefficients"]),
            intercept=classifier["intercept"],
            c=classifier["c"],
        ),
        calibrator=calibrator_of(stored["calibrator"]),
        thresholds=GateThresholds(
            tau_neg=float(stored["tau_neg"]),
            tau_pos=float(stored["tau_pos"]),
            has_positive=stored["tuned"],
        ),
    )


def encode(gates: Iterable[StoredGate]) -> str:
    """Return the text of `gate_final.json`."""
    entries = [
        {
            "model": stored_gate.model,
            "config": stored_gate.config,
            "posts": [*stored_gate.posts],
            **gate_json(stored_gate.gate),
        }
        for stored_gate in gates
    ]
    return json.dumps({"format": FORMAT, "gates": entries}, indent=1) + "\n"


def decode(text: str) -> tuple[StoredGate, ...]:
    """Read the gates of a `gate_final.json`.

    Raises:
        ValueError: the text is not a valid file; the message is one sentence.
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
                model=stored_gate["model"],
                config=stored_gate["config"],
                gate=gate_of(stored_gate),
                posts=tuple(stored_gate["posts"]),
            )
            for stored_gate in stored["gates"]
        )
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise ValueError(
            f"it is not a gate written by --final-gate ({error!r}); name the "
            "gate_final.json of a scoring."
        ) from error
