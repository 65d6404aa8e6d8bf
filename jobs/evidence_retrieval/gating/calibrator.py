"""Calibrators by name, and as plain JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from jobs.evidence_retrieval.gating.classifier import CannotFitError
from jobs.evidence_retrieval.pipeline import Calibration
from jobs.metrics import Isotonic, Platt, fit_isotonic, fit_platt
from jobs.metrics.columns import Bools, Floats

Calibrator: TypeAlias = Isotonic | Platt | None
"""None leaves probabilities as they are."""


def fit_calibrator(kind: Calibration, p: Floats, y: Bools) -> Calibrator:
    """The calibrator of some rows; raise `CannotFitError` where there is none."""
    try:
        match kind:
            case "none":
                return None
            case "isotonic":
                return fit_isotonic(p, y)
            case "platt":
                return fit_platt(p, y)
    except ValueError as error:
        raise CannotFitError(str(error)) from None


def as_json(calibrator: Calibrator) -> Mapping[str, Any]:
    """The calibrator as it stands in a file."""
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


def from_json(stored: Mapping[str, Any]) -> Calibrator:
    """A calibrator out of a file; raise `KeyError` where something is missing."""
    match stored["kind"]:
        case "isotonic":
            return Isotonic(x=tuple(stored["x"]), y=tuple(stored["y"]))
        case "platt":
            return Platt(slope=stored["slope"], intercept=stored["intercept"])
        case _:
            return None
