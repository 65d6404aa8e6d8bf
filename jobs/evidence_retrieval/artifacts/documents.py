"""What was checked and fitted, as JSON: leaks, contradictions, gates by fold."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from jobs.evidence_retrieval.artifacts.naming import Places, step_files
from jobs.evidence_retrieval.queries import FoldGate, Sheet
from runner.scorecard import Artifact, Finding


def documents(
    sheet: Sheet, findings: Iterable[Finding], places: Places
) -> Iterator[Artifact]:
    """`leakage.json`, `consistency.json`, and the gates as they were fitted.

    `gate_fold_<k>.json` for each model and fold; `gate_final.json` where it was asked
    for, one file of all models, as `--apply-gate` takes it.
    """
    leaks = [asdict(own) for own in sheet.leak_checks]
    yield Artifact(name="leakage.json", text=as_text(leaks))
    contradictions = [asdict(finding) for finding in findings]
    yield Artifact(name="consistency.json", text=as_text(contradictions))
    if sheet.final_gates:
        yield Artifact(name="gate_final.json", text=sheet.final_gates)
    for model in sheet.models:
        gates: dict[str, list[FoldGate]] = {}
        for gate in sheet.gates:
            if gate.model == model:
                gates.setdefault(gate.fold, []).append(gate)
        files = step_files("gate_fold_{}.json", tuple(gates))
        for fold, fitted in gates.items():
            content = {
                "model": model,
                "fold": fold,
                "configs": {gate.config: _gate(gate) for gate in fitted},
            }
            name = places.one(model, files[fold])
            yield Artifact(name=name, text=as_text(content))


def _gate(gate: FoldGate) -> dict[str, Any]:
    return {
        "posts": dict(gate.posts),
        "tau_neg": gate.tau_neg,
        "tau_pos": gate.tau_pos,
        "on_tune": dict(gate.on_tune),
        "fitted": dict(gate.fitted),
    }


def as_text(content: Any) -> str:  # noqa: ANN401 - whatever JSON can hold
    """JSON with a line end; an infinite threshold is written as the text `inf`."""
    plain = _plain(content)
    return json.dumps(plain, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _plain(value: Any) -> Any:  # noqa: ANN401 - whatever JSON can hold
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float) and math.isinf(value):
        return repr(value)
    return value
