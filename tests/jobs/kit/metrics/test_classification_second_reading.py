"""Classification, calibration, gate and labels: the fast reading and the plain one.

The plain one is the engine that verifies stored summaries, and beside it
`second_reading` for what those do not hold.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import get_args

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from jobs.evidence_retrieval.verification.definitions import (
    SIFTLOG,
    EdgeRule,
    MetricDefinitions,
    QueryRow,
)
from jobs.kit.metrics import calibration as ca
from jobs.kit.metrics import classification as cl
from jobs.kit.metrics.classification import multilabel
from jobs.kit.metrics.selective import STATES, Edge, assign, gate_grid, gate_metrics
from tests.jobs.kit.metrics import plain_formulas as formulas
from tests.jobs.kit.metrics import second_reading as plain

BORDERS = [0.0, 0.1, 0.2, 0.3, 0.30000000000000004, 0.5, 0.6, 0.7, 0.9, 1 - 1e-16, 1.0]
PROBABILITIES = st.sampled_from(BORDERS) | st.floats(0, 1)
ROWS = st.lists(st.tuples(st.booleans(), PROBABILITIES), min_size=1, max_size=40)
TAUS = st.sampled_from([*BORDERS, math.inf])


def near(expected: object) -> object:
    if isinstance(expected, Fraction):
        expected = float(expected)
    return pytest.approx(expected, rel=1e-12, abs=1e-12)


def columns(rows: list[tuple[bool, float]]) -> tuple[list[int], list[float]]:
    return [int(y) for y, _ in rows], [p for _, p in rows]


@given(*[st.integers(0, 30) | st.integers(0, 10**7)] * 4, st.sampled_from([1, 2]))
def test_rates_of_a_confusion(tp: int, fp: int, tn: int, fn: int, beta: int) -> None:
    found = cl.rates(cl.Confusion(tp, fp, tn, fn), beta=beta)
    expected = plain.rates(tp, fp, tn, fn, beta)
    assert dict(found) == {name: near(value) for name, value in expected.items()}


@given(ROWS, PROBABILITIES, st.booleans())
def test_counts_at_a_threshold(
    rows: list[tuple[bool, float]], tau: float, strict: bool
) -> None:
    y, p = columns(rows)
    found = cl.confusion(y, cl.at_threshold(p, tau, strict=strict))
    expected = plain.counts(rows, tau, strict=strict)
    assert (found.tp, found.fp, found.tn, found.fn) == expected
    if not strict:
        grid = cl.threshold_grid(y, p, [tau])
        cells = (grid.tp[0], grid.fp[0], grid.tn[0], grid.fn[0])
        assert cells == expected


@given(ROWS, st.data())
def test_areas_and_every_point_of_the_curve(
    rows: list[tuple[bool, float]], data: st.DataObject
) -> None:
    y, p = columns(rows)
    points, found = formulas.curve(rows), cl.curve(y, p)
    assert [(q.threshold, q.tp, q.fp) for q in points] == list(
        zip(*(c.tolist() for c in (found.threshold, found.tp, found.fp)), strict=True)
    )
    assert cl.auroc(y, p) == near(formulas.auroc(points))
    assert cl.auprc(y, p) == near(formulas.auprc(points))
    assert cl.auprc(y, p) == near(plain.auprc(rows))
    trapezoid = cl.auprc(y, p, method="trapezoid")
    assert trapezoid == near(plain.auprc(rows, trapezoid=True))
    loads = data.draw(
        st.lists(st.integers(0, 4), min_size=len(rows), max_size=len(rows))
    )
    assert cl.auroc(y, p, loads) == near(plain.auroc(rows, loads))


@given(ROWS, st.floats(0, 1) | st.sampled_from([0.0, 0.01, 0.25, 0.5, 1.0]))
def test_operating_points_by_every_rule(
    rows: list[tuple[bool, float]], target: float
) -> None:
    y, p = columns(rows)
    for rule in get_args(cl.Vertex):
        found = cl.tpr_at_fpr(y, p, target, vertex=rule)
        expected = formulas.operating_point(formulas.curve(rows), target, rule)
        if found is None or expected is None:
            assert found is expected
            continue
        assert (found.tpr, found.fpr) == near((expected.tpr, expected.fpr))
        if rule != "interpolate":
            assert (found.threshold or math.inf) == (expected.threshold or math.inf)


ECE_OPTIONS: dict[EdgeRule, ca.BinRule] = {
    "right": {},
    "left": {"closed": "left"},
    "right_drop_zero": {"drop_zero": True},
    "left_drop_one": {"closed": "left", "drop_one": True},
    "right_midpoint": {"reference": "midpoint"},
}


def test_every_rule_of_the_bins_is_compared() -> None:
    assert set(ECE_OPTIONS) == set(get_args(EdgeRule))


@given(ROWS, st.integers(1, 20))
def test_calibration_error_by_every_rule(
    rows: list[tuple[bool, float]], bins: int
) -> None:
    y, p = columns(rows)
    for edges, options in ECE_OPTIONS.items():
        choices = MetricDefinitions(ece_edges=edges, ece_bins=bins)
        assert ca.ece(y, p, bins, **options) == near(formulas.ece(rows, choices))
        assert ca.mce(y, p, bins, **options) == near(formulas.mce(rows, choices))
    assert ca.ece_adaptive(y, p, bins) == near(plain.adaptive_ece(rows, bins))


@given(ROWS)
def test_brier_its_parts_and_log_loss(rows: list[tuple[bool, float]]) -> None:
    y, p = columns(rows)
    assert ca.brier(y, p) == near(plain.brier(rows))
    parts = ca.brier_decomposition(y, p)
    assert parts is not None
    expected = plain.brier_parts(rows)
    found = (parts.reliability, parts.resolution, parts.uncertainty)
    assert found == near(tuple(map(float, expected)))
    reliability, resolution, uncertainty = expected
    assert reliability - resolution + uncertainty == plain.brier(rows)
    skill = 1 - plain.brier(rows) / uncertainty if uncertainty else None
    assert ca.brier_skill(y, p) == near(skill)
    assert ca.log_loss(y, p).value == near(plain.log_loss(rows))


@given(ROWS)
def test_an_isotonic_line_is_the_one_of_minima_and_maxima(
    rows: list[tuple[bool, float]],
) -> None:
    y, p = columns(rows)
    assume(len(set(y)) == 2)
    line = ca.fit_isotonic(p, y)
    for x, expected in plain.isotonic([(q, truth) for truth, q in rows]).items():
        assert line([x])[0] == near(expected)


@given(ROWS, st.booleans())
def test_a_platt_line_is_where_its_gradient_ends(
    rows: list[tuple[bool, float]], smooth: bool
) -> None:
    y, p = columns(rows)
    try:
        line = ca.fit_platt(p, y, smooth=smooth)
    except ValueError:
        # one class, one value, or separated: there is no such line
        return
    positives, n = sum(y), len(y)
    gradient = [0.0, 0.0]
    for truth, said in rows:
        high = (positives + 1) / (positives + 2) if smooth else 1.0
        low = 1 / (n - positives + 2) if smooth else 0.0
        safe = min(max(said, 1e-7), 1 - 1e-7)
        x = math.log(safe / (1 - safe))
        gap = 1 / (1 + math.exp(-(line.slope * x + line.intercept)))
        gap -= high if truth else low
        gradient = [gradient[0] + gap * x, gradient[1] + gap]
    assert gradient == pytest.approx([0.0, 0.0], abs=1e-8)


@given(ROWS, TAUS, TAUS, st.sampled_from(get_args(Edge)))
def test_states_and_what_they_come_to(
    rows: list[tuple[bool, float]], one: float, two: float, edge: Edge
) -> None:
    low, high = sorted((one, two))
    assume(low < math.inf)
    y, p = columns(rows)
    choices = MetricDefinitions(gate_edge=edge)
    own = [
        formulas.state_of(QueryRow(p=each, tau_neg=low, tau_pos=high), choices)
        for each in p
    ]
    assigned = assign(p, low, high, edge=edge)
    assert [STATES[state] for state in assigned] == own
    found = gate_metrics(y, assigned)
    counted = formulas.count(
        (truth, state) for (truth, _), state in zip(rows, own, strict=True)
    )
    expected = {name: formulas.rate(name, counted, SIFTLOG) for name in formulas.RATES}
    assert {
        **{f"{name.lower()}_rate": share.value for name, share in found.rates.items()},
        "screening_sensitivity": found.screening_sensitivity.value,
        "screening_specificity": found.screening_specificity.value,
        "screening_fpr": found.screening_fpr.value,
        "screening_npv": found.screening_npv.value,
        "screening_fn_per_1000": found.screening_fn_per_1000,
        "screening_fn_per_1000_positive": found.screening_fn_per_1000_positive,
        "alert_precision": found.alert_precision.value,
        "alert_recall": found.alert_recall.value,
        "alert_fpr": found.alert_fpr.value,
        "alerts_per_1000": found.alerts_per_1000,
    } == {n: near(v) for n, v in expected.items()}
    if edge == "lt":
        grid = gate_grid(y, p, [low], [high])
        for name in ("neg_rate", "screening_sensitivity", "screening_npv"):
            assert none(getattr(grid, name)[0]) == near(expected[name])
        for name in ("pos_rate", "alert_precision", "alert_recall"):
            assert none(getattr(grid, name)[0]) == near(expected[name])


def none(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


@given(st.integers(1, 6), st.integers(1, 5), st.data())
def test_several_labels_an_item(items: int, width: int, data: st.DataObject) -> None:
    cells = st.lists(st.integers(0, 1), min_size=width, max_size=width)
    truth, decided = (
        data.draw(st.lists(cells, min_size=items, max_size=items)) for _ in range(2)
    )
    found = multilabel(truth, decided)
    for name, expected in plain.multilabel(truth, decided).items():
        assert getattr(found, name) == near(expected), name
