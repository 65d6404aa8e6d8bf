"""Gates as plain JSON: for the record of each fold, and for use on new data."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from jobs.evidence_retrieval.gating.calibrator import as_json as calibrator_json
from jobs.evidence_retrieval.gating.calibrator import from_json as calibrator_of
from jobs.evidence_retrieval.gating.classifier import Classifier
from jobs.evidence_retrieval.gating.gate import FittedGate
from jobs.evidence_retrieval.gating.thresholds import Thresholds

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
        thresholds=Thresholds(
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
