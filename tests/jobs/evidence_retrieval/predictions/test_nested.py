"""The nested evaluation: what may reach a prediction, and what may not."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from jobs.evidence_retrieval.inputs import assign_folds
from jobs.evidence_retrieval.predictions.fitted_gate import FeatureRows, gate_json
from jobs.evidence_retrieval.predictions.gate import (
    FoldAssignment,
    GateSpec,
    Nested,
    fit_fold,
    nested,
    rows_of,
    splits,
)
from jobs.evidence_retrieval.queries import UNKNOWN
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.kit.metrics.columns import Ints

SPEC = GateSpec(
    kind="classifier",
    calibration="isotonic",
    settings=EvidenceSettings(
        target_sensitivity=0.95, target_alert_precision=0.7, min_alerts=3
    ),
)


def world(
    posts: int = 40, queries: int = 4, n_folds: int = 5
) -> tuple[FeatureRows, Ints, FoldAssignment]:
    chance = np.random.default_rng(11)
    n = posts * queries
    y = (chance.random(n) < 0.35).astype(np.int64)
    values = chance.normal(size=(n, 3)) + 1.2 * y[:, None] * [1.0, 0.5, 0.0]
    names = [f"p{number:03}" for number in range(posts)]
    of = assign_folds(names, n_folds, 5)
    rows = FeatureRows(
        names=("a", "b", "c"),
        values=values,
        stated=1 / (1 + np.exp(-values[:, 0])),
        posts=tuple(name for name in names for _ in range(queries)),
    )
    named = tuple(sorted(set(of.values())))
    return rows, y, FoldAssignment(names=named, of=of, seed=20260118, tune_fraction=0.3)


def said(found: Nested) -> tuple[bytes, ...]:
    return (
        found.raw.tobytes(),
        found.probability.tobytes(),
        *(
            json.dumps(None if own.gate is None else gate_json(own.gate)).encode()
            for own in found.folds
        ),
    )


@pytest.mark.parametrize("calibration", ["none", "isotonic", "platt"])
@pytest.mark.parametrize("kind", ["passthrough", "classifier"])
def test_a_scramble_of_test_gold_changes_no_byte_of_the_fold(
    kind: str, calibration: str
) -> None:
    rows, y, folds = world()
    spec = replace(SPEC, kind=kind, calibration=calibration)  # type: ignore[arg-type]
    before = nested(spec, rows, y, folds)
    for place, own in enumerate(splits(folds, rows.posts, y)):
        test = np.flatnonzero(rows_of(rows, own.test))
        scrambled = y.copy()
        scrambled[test] = 1 - y[test]
        after = nested(spec, rows, scrambled, folds)
        assert after.probability[test].tobytes() == before.probability[test].tobytes()
        assert after.raw[test].tobytes() == before.raw[test].tobytes()
        assert after.folds[place].gate == before.folds[place].gate
        assert said(after) != said(before)  # the others learnt from it


def test_without_the_test_posts_the_same_is_fitted() -> None:
    rows, y, folds = world()
    for own in splits(folds, rows.posts, y):
        kept = ~rows_of(rows, own.test)
        with_them = fit_fold(SPEC, rows, y, own)
        without = fit_fold(SPEC, rows.select(kept), y[kept], own)
        assert without.gate == with_them.gate
        assert without.tune_p.tobytes() == with_them.tune_p.tobytes()


def test_tuning_gold_reaches_the_thresholds_and_nothing_else() -> None:
    rows, y, folds = world()
    own = next(iter(splits(folds, rows.posts, y)))
    tune = rows_of(rows, own.tune)
    turned = np.where(tune, 1 - y, y)
    one, other = fit_fold(SPEC, rows, y, own), fit_fold(SPEC, rows, turned, own)
    assert one.gate is not None
    assert other.gate is not None
    assert one.gate.classifier == other.gate.classifier
    assert one.gate.calibrator == other.gate.calibrator
    assert one.gate.thresholds != other.gate.thresholds


def test_unjudged_rows_are_decided_and_teach_nothing() -> None:
    rows, y, folds = world()
    hidden = rows_of(rows, ("p003", "p017"))
    y[hidden] = UNKNOWN
    before = nested(SPEC, rows, y, folds)
    assert np.isfinite(before.probability[hidden]).all()
    moved = replace(rows, values=np.where(hidden[:, None], 9.0, rows.values))
    after = nested(SPEC, moved, y, folds)
    assert after.probability[~hidden].tobytes() == before.probability[~hidden].tobytes()


def test_two_posts_a_fold_keep_tune_and_test_apart() -> None:
    rows, y, folds = world(posts=10)
    found = nested(SPEC, rows, y, folds)
    for own in found.folds:
        assert len(own.split.test) == 2
        assert not {*own.split.tune} & {*own.split.test}
        assert not {*own.split.fit} & {*own.split.tune}


def test_one_class_to_learn_from_leaves_the_fold_without_a_gate() -> None:
    rows, y, folds = world(posts=10)
    only = rows_of(rows, [post for post, fold in folds.of.items() if fold == "1"])
    y = np.where(only, y, 0)
    found = nested(SPEC, rows, y, folds)
    own = found.folds[1]
    assert own.gate is None
    assert "no positive ones" in own.reason
    test = rows_of(rows, own.split.test)
    assert found.probability[test].tobytes() == rows.stated[test].tobytes()


def test_no_positive_to_tune_on_leaves_everybody_uncertain() -> None:
    rows, y, folds = world()
    own = next(iter(splits(folds, rows.posts, y)))
    y = np.where(rows_of(rows, own.tune), 0, y)
    result = fit_fold(SPEC, rows, y, own)
    assert result.gate is not None
    taus = result.gate.thresholds
    assert (taus.tau_neg, taus.tau_pos, taus.has_positive) == (0.0, np.inf, False)


def test_rows_in_another_order_of_folds_give_the_same() -> None:
    rows, y, folds = world()
    turned = replace(folds, of=dict(reversed(folds.of.items())))
    assert said(nested(SPEC, rows, y, turned)) == said(nested(SPEC, rows, y, folds))


def test_calibration_on_the_tuning_posts_is_an_option_that_shows() -> None:
    rows, y, folds = world()
    settings = SPEC.settings.model_copy(update={"calibrate_on": "tune"})
    common = replace(SPEC, settings=settings)
    one = nested(SPEC, rows, y, folds).folds[0].gate
    other = nested(common, rows, y, folds).folds[0].gate
    assert one is not None
    assert other is not None
    assert one.classifier == other.classifier
    assert one.calibrator != other.calibrator
