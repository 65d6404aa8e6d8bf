"""The same numbers as scikit-learn, on columns full of ties and border values."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sk
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from jobs.metrics.agreement import agreement
from jobs.metrics.calibration import brier, fit_isotonic, fit_platt, log_loss
from jobs.metrics.classification import (
    auprc,
    auroc,
    confusion,
    curve,
    multiclass,
    multilabel,
    rates,
    threshold_grid,
    tpr_at_fpr,
)

BORDERS = [0.0, 0.1, 0.3, 0.30000000000000004, 0.5, 0.9, 1.0]
ROWS = st.lists(
    st.tuples(st.booleans(), st.sampled_from(BORDERS) | st.floats(0, 1)),
    min_size=2,
    max_size=60,
)
BOTH = ROWS.filter(lambda rows: len({y for y, _ in rows}) == 2)


def near(expected: object) -> object:
    return pytest.approx(expected, rel=1e-12, abs=1e-12)


def columns(rows: list[tuple[bool, float]]) -> tuple[list[int], list[float]]:
    return [int(y) for y, _ in rows], [p for _, p in rows]


@given(BOTH)
def test_areas(rows: list[tuple[bool, float]]) -> None:
    y, p = columns(rows)
    assert auroc(y, p) == near(sk.roc_auc_score(y, p))
    assert auprc(y, p) == near(sk.average_precision_score(y, p))


@given(BOTH, st.data())
def test_weighted_areas(rows: list[tuple[bool, float]], data: st.DataObject) -> None:
    y, p = columns(rows)
    weight = data.draw(
        st.lists(st.integers(1, 5), min_size=len(rows), max_size=len(rows))
    )
    assert auroc(y, p, weight) == near(sk.roc_auc_score(y, p, sample_weight=weight))
    expected = sk.average_precision_score(y, p, sample_weight=weight)
    assert auprc(y, p, weight) == near(expected)


@given(BOTH)
def test_every_vertex_of_the_curve(rows: list[tuple[bool, float]]) -> None:
    y, p = columns(rows)
    fpr, tpr, thresholds = sk.roc_curve(y, p, drop_intermediate=False)
    points = curve(y, p)
    assert points.fpr == near(fpr)
    assert points.tpr == near(tpr)
    assert points.threshold.tolist() == thresholds.tolist()


@given(BOTH, st.floats(0, 1))
def test_sensitivity_among_the_kept_vertices(
    rows: list[tuple[bool, float]], target: float
) -> None:
    y, p = columns(rows)
    fpr, tpr, _ = sk.roc_curve(y, p, drop_intermediate=True)
    last = np.flatnonzero(fpr <= target)[-1]
    nearest = int(np.argmin(np.abs(fpr - target)))
    kept = tpr_at_fpr(y, p, target, vertex="drop_collinear")
    near_one = tpr_at_fpr(y, p, target, vertex="nearest")
    assert kept is not None
    assert near_one is not None
    assert (kept.fpr, kept.tpr) == near((fpr[last], tpr[last]))
    assert (near_one.fpr, near_one.tpr) == near((fpr[nearest], tpr[nearest]))


@given(ROWS)
def test_rates_of_two_classes(rows: list[tuple[bool, float]]) -> None:
    y, h = [int(a) for a, _ in rows], [int(p >= 0.5) for _, p in rows]
    found = rates(confusion(y, h))
    if len({*y, *h}) == 2:
        assert found["mcc"] == near(sk.matthews_corrcoef(y, h))
    assert found["accuracy"] == near(sk.accuracy_score(y, h))
    for name, score in (
        ("precision", sk.precision_score),
        ("sensitivity", sk.recall_score),
        ("f1", sk.f1_score),
    ):
        assert found[name] == near(none(score(y, h, zero_division=np.nan)))
    if len(set(y)) == 2:
        assert found["balanced_accuracy"] == near(sk.balanced_accuracy_score(y, h))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kappa = sk.cohen_kappa_score(y, h, labels=[0, 1])
    assert found["kappa"] == near(none(kappa))
    assert agreement(y, h, [0, 1]).kappa == near(none(kappa))


def none(value: float) -> float | None:
    return None if np.isnan(value) else value


@given(ROWS, st.lists(st.sampled_from(BORDERS), min_size=1, max_size=5))
def test_a_grid_of_thresholds(
    rows: list[tuple[bool, float]], taus: list[float]
) -> None:
    y, p = columns(rows)
    grid = threshold_grid(y, p, taus)
    for i, tau in enumerate(taus):
        one = confusion(y, [int(x >= tau) for x in p])
        found = (grid.tp[i], grid.fp[i], grid.tn[i], grid.fn[i])
        assert found == (one.tp, one.fp, one.tn, one.fn)


@given(BOTH)
def test_losses(rows: list[tuple[bool, float]]) -> None:
    y, p = columns(rows)
    assert brier(y, p) == near(sk.brier_score_loss(y, p))
    clipped = np.clip(p, 1e-15, 1 - 1e-15)
    expected = -np.mean(np.where(y, np.log(clipped), np.log1p(-clipped)))
    assert log_loss(y, p).value == pytest.approx(expected, rel=1e-12)


@given(BOTH, st.lists(st.floats(-1, 2), min_size=1, max_size=9))
def test_isotonic_calibration(rows: list[tuple[bool, float]], new: list[float]) -> None:
    # scikit-learn takes scores that differ in the last bit for one
    y, p = columns([(y, round(p, 9)) for y, p in rows])
    expected = IsotonicRegression(out_of_bounds="clip").fit(p, y).predict(new)
    assert fit_isotonic(p, y)(new) == near(expected)


def test_platt_calibration_is_logistic_regression_on_the_log_odds() -> None:
    rng = np.random.default_rng(7)
    p = rng.uniform(0.01, 0.99, 400)
    y = rng.uniform(size=400) < p**1.7
    odds = np.log(p / (1 - p))[:, None]
    theirs = LogisticRegression(C=np.inf, tol=1e-12, max_iter=1000).fit(odds, y)
    fitted = fit_platt(p, y)
    assert fitted.slope == pytest.approx(theirs.coef_[0, 0], rel=1e-5)
    assert fitted.intercept == pytest.approx(theirs.intercept_[0], rel=1e-5)
    # at the optimum the gradient is nothing, which says more than another solver
    assert abs(np.sum(fitted(p) - y)) < 1e-9
    assert abs(np.sum((fitted(p) - y) * odds[:, 0])) < 1e-9


LABELS = ["a", "b", "c", "d"]


@given(
    st.lists(st.tuples(st.sampled_from(LABELS), st.sampled_from(LABELS)), min_size=1)
)
def test_several_classes(pairs: list[tuple[str, str]]) -> None:
    y, h = [a for a, _ in pairs], [b for _, b in pairs]
    found = multiclass(y, h, LABELS)
    assert np.array_equal(found.matrix, sk.confusion_matrix(y, h, labels=LABELS))
    p, r, f, support = sk.precision_recall_fscore_support(
        y, h, labels=LABELS, zero_division=np.nan
    )
    for i, name in enumerate(LABELS):
        own = found.by_label[name]
        assert (own.precision, own.recall) == near((none(p[i]), none(r[i])))
        assert own.support == support[i]
        assert own.f1 == near(none(f[i]))
    present = ~np.isnan(f)
    assert found.macro.f1 == near(f[present].mean())
    assert found.macro.n_defined == present.sum()
    weighted = sk.f1_score(y, h, labels=LABELS, average="weighted", zero_division=0)
    assert found.weighted.f1 == near(weighted)
    assert found.accuracy == near(sk.accuracy_score(y, h))


@given(st.integers(2, 12), st.integers(2, 5), st.randoms(use_true_random=False))
def test_several_labels(items: int, width: int, chance: object) -> None:
    def table() -> np.ndarray:
        return np.array(
            [[int(chance.random() < 0.3) for _ in range(width)] for _ in range(items)]
        )

    y, h = table(), table()
    found = multilabel(y, h)
    assert found.exact_match == near(sk.accuracy_score(y, h))
    assert found.hamming_loss == near(sk.hamming_loss(y, h))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        samples = sk.f1_score(y, h, average="samples", zero_division=0)
        by_item = sk.f1_score(y.T, h.T, average="weighted", zero_division=0)
        by_label = sk.f1_score(y, h, average="weighted", zero_division=0)
        micro = sk.f1_score(y, h, average="micro", zero_division=np.nan)
    assert found.f1_per_item == near(samples)
    assert found.micro_f1 == near(none(micro))
    if y.any():
        assert found.weighted_f1_per_item == near(by_item)
        assert found.weighted_f1_over_labels == near(by_label)
