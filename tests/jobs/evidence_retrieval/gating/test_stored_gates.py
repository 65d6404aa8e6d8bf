"""Gates in files: what is written is read back, what is not one is refused."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from jobs.evidence_retrieval.inputs import inputs, load
from jobs.evidence_retrieval.predictions.fitted_gate import (
    Classifier,
    FittedGate,
    GateThresholds,
    StoredGate,
    decode,
    encode,
)
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.metrics import Platt
from runner.errors import DatasetError

GATE = FittedGate(
    names=("a", "b"),
    classifier=Classifier(
        mean=(0.1, 0.2),
        scale=(1.0, 3.0),
        coefficients=(0.5, -1 / 3),
        intercept=-0.7,
        c=1.0,
    ),
    calibrator=Platt(slope=1.1, intercept=0.2),
    thresholds=GateThresholds(tau_neg=0.05, tau_pos=math.inf, has_positive=True),
)
STORED = StoredGate(model="m", config="full", gate=GATE, posts=("p1", "p2"))


def test_a_gate_comes_back_as_it_was_with_infinity_as_a_word() -> None:
    text = encode([STORED])
    assert json.loads(text)["gates"][0]["tau_pos"] == "inf"
    assert decode(text) == (STORED,)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"format": 9, "gates": []}', '{"format": 1, "gates": [{}]}'],
)
def test_anything_else_is_refused_with_the_next_step(text: str) -> None:
    with pytest.raises(ValueError, match="--final-gate"):
        decode(text)


def test_loading_reads_the_file_of_apply_gate_and_names_it_where_it_is_none(
    tmp_path: Path,
) -> None:
    path = tmp_path / "gate_final.json"
    settings = EvidenceSettings(apply_gate=path)
    with pytest.raises(DatasetError, match="check the path"):
        load(settings)
    path.write_text("{}")
    with pytest.raises(DatasetError, match=r"gate_final\.json.*--final-gate"):
        load(settings)
    path.write_text(encode([STORED]))
    assert load(settings).gates == (STORED,)
    assert [each.setting for each in inputs(settings)] == ["apply_gate"]
