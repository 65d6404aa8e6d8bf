"""Thresholds against a plain reading of their rule.

Gates in files: what is written is read back, what is not one is refused.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.evidence_retrieval.inputs import inputs, load
from jobs.evidence_retrieval.predictions.fitted_gate import (
    Classifier,
    FittedGate,
    GateThresholds,
    StoredGate,
    decode,
    encode,
)
from jobs.evidence_retrieval.predictions.gate import (
    reached,
    thresholds,
)
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.kit.metrics import Platt, assign, wilson
from runner.errors import DatasetError

POINT = EvidenceSettings(
    target_sensitivity=0.9, target_alert_precision=0.8, min_alerts=2
)


def plain(
    y: list[int], p: list[float], targets: EvidenceSettings
) -> tuple[float, float]:
    """The same rule, candidate by candidate."""

    def reaches(k: int, n: int, least: float) -> bool:
        if not n:
            return False
        if targets.target_bound == "point":
            return k / n >= least
        lower = wilson(k, n).lo
        return lower is not None and lower >= least

    candidates = sorted({0.0, *p})

    def counts(t: float) -> tuple[int, int]:
        called = [own for own, score in zip(y, p, strict=True) if score >= t]
        return sum(called), len(called)

    sensitivity = targets.target_sensitivity
    enough = [t for t in candidates if reaches(counts(t)[0], sum(y), sensitivity)]
    low = max(enough, default=0.0)
    for t in candidates:
        hits, alerts = counts(t)
        is_sure = reaches(hits, alerts, targets.target_alert_precision)
        if t >= low and alerts >= targets.min_alerts and is_sure:
            return low, t
    return low, math.inf


@given(
    st.lists(
        st.tuples(st.integers(0, 1), st.sampled_from([0, 0.1, 0.3, 0.5, 0.7, 1.0])),
        min_size=1,
        max_size=40,
    ),
    st.sampled_from([0.5, 0.9, 0.995, 1.0]),
    st.sampled_from([0.5, 0.9]),
    st.integers(1, 5),
    st.sampled_from(["point", "wilson"]),
)
def test_thresholds_are_those_of_the_rule(
    rows: list[tuple[int, float]],
    sensitivity: float,
    precision: float,
    fewest: int,
    bound: str,
) -> None:
    targets = EvidenceSettings(
        target_sensitivity=sensitivity,
        target_alert_precision=precision,
        min_alerts=fewest,
        target_bound="wilson" if bound == "wilson" else "point",
    )
    y, p = [own for own, _ in rows], [score for _, score in rows]
    found = thresholds(np.array(y) == 1, np.array(p, dtype=float), targets)
    if not any(y):
        assert (found.tau_neg, found.tau_pos) == (0.0, math.inf)
        assert not found.has_positive
    else:
        assert (found.tau_neg, found.tau_pos) == plain(y, p, targets)
        assert found.tau_neg <= found.tau_pos


def test_without_enough_alerts_nobody_is_pos() -> None:
    y, p = np.array([True, True, False]), np.array([0.9, 0.8, 0.1])
    targets = EvidenceSettings(
        target_sensitivity=1.0, target_alert_precision=0.9, min_alerts=10
    )
    found = thresholds(y, p, targets)
    assert (found.tau_neg, found.tau_pos) == (0.8, math.inf)


def test_calibrated_zeros_at_a_threshold_of_zero_under_both_edges() -> None:
    y, p = np.array([True, False, True, False]), np.array([0.0, 0.0, 1.0, 0.5])
    found = thresholds(y, p, POINT)
    assert found.tau_neg == 0.0
    assert assign(p, found.tau_neg, found.tau_pos).tolist() == [1, 1, 1, 1]
    assert assign(p, found.tau_neg, found.tau_pos, edge="le").tolist() == [0, 0, 1, 1]


def test_what_they_reach_is_told_and_undefined_stays_undefined() -> None:
    y, p = np.array([True, True, False, False]), np.array([0.9, 0.8, 0.7, 0.1])
    found = thresholds(y, p, POINT)
    told = reached(y, p, found, "lt")
    assert (found.tau_neg, found.tau_pos) == (0.8, 0.8)
    assert told["screening_sensitivity"] == told["alert_precision"] == 1.0
    assert told["alert_fpr"] == told["screening_fpr"] == 0.0
    assert told["neg_rate"] == told["pos_rate"] == pytest.approx(0.5)
    nobody = reached(y, p, thresholds(y[2:], p[2:], POINT), "lt")
    assert nobody["alert_precision"] is None


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
