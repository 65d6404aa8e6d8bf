"""Small vectors with known answers, computed independently of this project."""

from __future__ import annotations

import pytest

from jobs.kit.metrics.agreement import agreement, alpha, match_values
from jobs.kit.metrics.areas import delong, delong_paired
from jobs.kit.metrics.calibration import (
    brier,
    brier_decomposition,
    ece,
    ece_adaptive,
    log_loss,
    mce,
    reliability,
)
from jobs.kit.metrics.classification import (
    at_threshold,
    auprc,
    auroc,
    confusion,
    rates,
    tpr_at_fpr,
)
from jobs.kit.metrics.intervals import wilson
from jobs.kit.metrics.ranking import evaluate, hits
from jobs.kit.metrics.screening import (
    atd,
    erf,
    recall_at_share,
    screening_ap,
    screening_loss,
    screening_ndcg,
    tnr_at_recall,
    wss,
)
from jobs.kit.metrics.selective import aurc, coverage_at_risk

Y = [1, 0, 1, 1, 0, 0, 1, 0, 0, 0]
P = [0.9, 0.9, 0.8, 0.5, 0.5, 0.3, 0.3, 0.1, 0, 1]
P2 = [0.8, 0.4, 0.7, 0.6, 0.5, 0.2, 0.1, 0.3, 0.05, 0.6]


def near(expected: object) -> object:
    return pytest.approx(expected, rel=0, abs=1e-12)


def test_v1_areas_and_points_of_the_curve() -> None:
    assert auroc(Y, P) == near(0.6041666666666667)
    assert auprc(Y, P) == near(0.4583333333333333)
    points = [tpr_at_fpr(Y, P, target) for target in (0.01, 0.20, 0.25, 0.50)]
    assert [(p.tpr, p.fpr, p.threshold) for p in points if p is not None] == [
        (0.0, 0.0, None),
        (0.0, 1 / 6, 1.0),
        (0.0, 1 / 6, 1.0),
        (0.75, 0.5, 0.5),
    ]


def test_v1_rates_at_one_half() -> None:
    cells = confusion(Y, at_threshold(P, 0.5))
    assert (cells.tp, cells.tn, cells.fp, cells.fn) == (3, 3, 3, 1)
    found = rates(cells)
    assert found["mcc"] == near(0.25)
    assert found["kappa"] == near(0.23076923076923084)
    interval = wilson(3, 4)
    assert (interval.lo, interval.hi) == near((0.30064184258240184, 0.9544127391902995))


def test_v1_calibration() -> None:
    assert ece(Y, P) == near(0.25)
    assert mce(Y, P) == near(1.0)
    counts = [each.count for each in reliability(Y, P)]
    assert counts == [2, 0, 2, 0, 2, 0, 0, 1, 2, 1]
    assert ece_adaptive(Y, P) == near(0.43)
    assert brier(Y, P) == near(0.295)
    parts = brier_decomposition(Y, P)
    assert parts is not None
    found = (parts.reliability, parts.resolution, parts.uncertainty)
    assert found == near((0.145, 0.09, 0.24))
    loss = log_loss(Y, P)
    assert loss.value == near(4.022296777734935)
    assert loss.clipped == 2


def test_v1_delong_alone_and_paired() -> None:
    found = delong(Y, P)
    assert found is not None
    assert found.se == near(0.1943948349412912)
    ends = (found.interval.lo, found.interval.hi)
    assert ends == near((0.2231597914011274, 0.9851735419322059))
    assert auroc(Y, P2) == near(0.7708333333333334)
    pair = delong_paired(Y, P, P2)
    assert pair is not None
    assert (pair.z, pair.p) == near((-0.801068804751829, 0.42309181453469746))


def test_v1_risk_against_coverage() -> None:
    confidence = [max(p, 1 - p) for p in P]
    error = [int((p >= 0.5) != y) for y, p in zip(Y, P, strict=True)]
    assert aurc(confidence, error) == near(0.41154761904761905)


LISTED = [1, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 1, *[0] * 7]


def test_v2_screening_of_twenty_records() -> None:
    assert wss(LISTED) == near(0.3)
    assert wss(LISTED, form="no_offset") == near(0.35)
    assert wss(LISTED, form="asreview") == near(0.35)
    assert recall_at_share(LISTED) == near(0.2)
    assert erf(LISTED) == 1
    assert atd(LISTED) == near(0.29)
    assert screening_loss(LISTED) == near(0.18666666666666668)
    assert screening_ndcg(LISTED) == near(0.8508820603386289)
    assert tnr_at_recall(LISTED) == near(0.4666666666666667)
    assert screening_ap(LISTED) == near(0.6602564102564102)


def test_v3_screening_of_one_relevant_record() -> None:
    listed = [0, 1, *[0] * 7]
    assert wss(listed) == near(0.7277777777777777)
    assert wss(listed, form="asreview") == near(0.4444444444444444)
    assert recall_at_share(listed) == 0.0
    assert screening_loss(listed) == near(0.125)
    assert screening_ndcg(listed) == near(0.6309297535714575)
    assert tnr_at_recall(listed) == near(0.875)


def test_v5_agreement_of_three_categories() -> None:
    a, b = [0, 0, 1, 2, 2, 1, 0, 2], [0, 1, 1, 2, 1, 1, 0, 2]
    assert agreement(a, b, [0, 1, 2]).kappa == near(0.6363636363636364)
    assert agreement(a, b, [0, 1, 2], "linear").kappa == near(0.7142857142857143)
    assert agreement(a, b, [0, 1, 2], "quadratic").kappa == near(0.8)
    assert agreement(a, b, [0, 1, 2]).ac == near(0.6257309941520468)


def test_v5_agreement_on_a_rare_class() -> None:
    pairs = [(0, 0)] * 93 + [(0, 1)] * 2 + [(1, 0)] * 3 + [(1, 1)] * 2
    found = agreement([a for a, _ in pairs], [b for _, b in pairs], [0, 1])
    assert found.percent == near(0.95)
    assert found.kappa == near(0.41860465116279066)
    assert found.ac == near(0.9452983972430392)


def test_v5_alpha_with_units_of_different_size() -> None:
    units = [list(unit) for unit in ["00", "01", "11", "22", "212", "111", "0", "22"]]
    assert alpha(units, "012") == near(0.6296296296296297)


def test_v6_graded_gold_and_an_unjudged_item() -> None:
    grades = {"a": 2, "b": 0, "c": 1, "d": 0, "e": 2, "f": 1}
    found = evaluate(hits([grades], [["a", "b", "x", "c", "e"]]), [3, 5])
    assert found["ndcg@3"][0] == near(0.5316519652587917)
    assert found["ndcg@5"][0] == near(0.7643064061220306)
    assert found["bpref"][0] == near(0.5)
    assert found["ap"][0] == near(0.525)
    assert found["precision@5"][0] == near(0.6)
    assert found["judged@5"][0] == near(0.8)


def test_v7_tied_confidences() -> None:
    confidence, error = [0.9, 0.9, 0.8, 0.8], [0, 1, 0, 1]
    assert aurc(confidence, error) == near(0.5)
    assert coverage_at_risk(confidence, error, 0.5) == 1.0
    assert coverage_at_risk(confidence, error, 0.4) == 0.0


def test_v8_a_greedy_matching_can_be_smaller() -> None:
    fits = [[True, True], [True, False]]

    def equal(i: int, j: int) -> bool:
        return fits[i][j]

    assert match_values([0, 1], [0, 1], equal) == ((0, 1), (1, 0))
    assert match_values([0, 1], [0, 1], equal, method="greedy") == ((0, 0),)
