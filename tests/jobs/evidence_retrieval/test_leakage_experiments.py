"""The experiments pass an honest gate and catch planted leaks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from jobs.evidence_retrieval import leakage_experiments
from jobs.evidence_retrieval.inputs import assign_folds
from jobs.evidence_retrieval.leakage_experiments import deep_checks
from jobs.evidence_retrieval.predictions.classifier import Split
from jobs.evidence_retrieval.predictions.fitted_gate import FeatureRows
from jobs.evidence_retrieval.predictions.gate import (
    FoldAssignment,
    FoldResult,
    GateSpec,
    Nested,
    fit_fold,
    nested,
)
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.kit.metrics.columns import Ints

SPEC = GateSpec(
    kind="classifier",
    calibration="none",
    settings=EvidenceSettings(
        target_sensitivity=0.95, target_alert_precision=0.7, min_alerts=3
    ),
)


@pytest.fixture(name="parts")
def _parts() -> tuple[FeatureRows, Ints, FoldAssignment]:
    chance = np.random.default_rng(4)
    names = [f"p{number:03}" for number in range(30)]
    y = (chance.random(120) < 0.4).astype(np.int64)
    values = chance.normal(size=(120, 2)) + y[:, None]
    of = assign_folds(names, 3, 1)
    rows = FeatureRows(
        names=("a", "b"),
        values=values,
        stated=1 / (1 + np.exp(-values[:, 0])),
        posts=tuple(name for name in names for _ in range(4)),
    )
    return (
        rows,
        y,
        FoldAssignment(names=("0", "1", "2"), of=of, seed=1, tune_fraction=0.3),
    )


def codes(parts: tuple[FeatureRows, Ints, FoldAssignment]) -> set[str]:
    rows, y, folds = parts
    return {finding.code for finding in deep_checks("m", SPEC, rows, y, folds)}


def test_an_honest_gate_passes(parts: tuple[FeatureRows, Ints, FoldAssignment]) -> None:
    assert codes(parts) == set()


def test_learning_from_test_posts_shows_in_all_three(
    parts: tuple[FeatureRows, Ints, FoldAssignment], monkeypatch: pytest.MonkeyPatch
) -> None:
    def cheat(spec: GateSpec, rows: FeatureRows, y: Ints, own: Split) -> FoldResult:
        return fit_fold(spec, rows, y, replace(own, fit=(*own.fit, *own.test)))

    def knows(
        spec: GateSpec, rows: FeatureRows, y: Ints, folds: FoldAssignment
    ) -> Nested:
        return replace(nested(spec, rows, y, folds), probability=y.astype(float))

    monkeypatch.setattr(leakage_experiments, "fit_fold", cheat)
    monkeypatch.setattr(leakage_experiments, "nested", knows)
    assert codes(parts) == {"gold_scramble", "test_removal", "label_shuffle"}
