"""What has no value is None, and what is no input is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from jobs.kit.metrics import calibration as ca
from jobs.kit.metrics import classification as cl
from jobs.kit.metrics import screening as sc
from jobs.kit.metrics import selective as se
from jobs.kit.metrics.agreement import (
    MatchCounts,
    agreement,
    alpha,
    flip_rate,
    pass_at_k,
    pass_hat_k,
    prf,
    replicate_agreement,
    set_recall,
)
from jobs.kit.metrics.areas import (
    auprc_of,
    auroc_of,
    cluster_index,
    delong,
    delong_paired,
)
from jobs.kit.metrics.calibration import ece_of
from jobs.kit.metrics.classification import multilabel
from jobs.kit.metrics.ranking import RankingRules, evaluate, fuse_rrf, hits, order
from jobs.kit.metrics.resampling import Resamples
from jobs.kit.metrics.selective import assign, gate_metrics, share

ONE_CLASS = ([1, 1, 1], [0.1, 0.5, 0.9])


@pytest.mark.parametrize("value", [0, 1])
def test_one_class_has_no_curve(value: int) -> None:
    y, p = [value] * 3, [0.1, 0.5, 0.9]
    assert cl.auroc(y, p) is None
    assert cl.tpr_at_fpr(y, p, 0.1) is None
    assert (cl.auprc(y, p) is None) == (value == 0)
    assert delong(y, p) is None
    assert delong_paired(y, p, p) is None


def test_rates_of_nothing_are_none() -> None:
    found = cl.rates(cl.Confusion(0, 0, 0, 0))
    assert set(found.values()) == {None}


def test_matthews_with_an_empty_margin_is_zero() -> None:
    assert cl.rates(cl.Confusion(3, 0, 0, 2))["mcc"] == 0.0


def test_a_rate_that_has_nothing_below_is_none_and_its_neighbours_are_not() -> None:
    found = cl.rates(cl.Confusion(0, 0, 5, 0))
    assert found["sensitivity"] is None
    assert found["precision"] is None
    assert found["balanced_accuracy"] is None
    assert found["f1"] is None
    assert found["specificity"] == 1.0


def test_counts_past_64_bits_do_not_overflow() -> None:
    big = 3_000_000_000
    found = cl.rates(cl.Confusion(big, big, 3 * big, big))
    assert found["mcc"] == pytest.approx(0.25)


@pytest.mark.parametrize("of", [ca.ece, ca.mce, ca.ece_adaptive, ca.brier])
def test_calibration_of_nothing(of: Callable[[list[int], list[float]], float]) -> None:
    assert of([], []) is None
    assert ca.brier_decomposition([], []) is None
    assert ca.brier_skill(*ONE_CLASS) is None
    assert ca.log_loss([], []).value is None


@pytest.mark.parametrize("fit", [ca.fit_isotonic, ca.fit_platt])
def test_a_calibrator_wants_both_classes(
    fit: Callable[[list[float], list[int]], object],
) -> None:
    with pytest.raises(ValueError, match="one class only"):
        fit([0.1, 0.9], [1, 1])


def test_separated_classes_have_no_platt_fit() -> None:
    with pytest.raises(ValueError, match="isotonic"):
        ca.fit_platt([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1])
    smooth = ca.fit_platt([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1], smooth=True)
    assert smooth.slope > 0


SCREENING = (
    sc.wss,
    sc.tnr_at_recall,
    sc.recall_at_share,
    sc.erf,
    sc.atd,
    sc.atd_records,
    sc.screening_loss,
    sc.screening_ndcg,
    sc.screening_ap,
    sc.last_relevant_rank,
    sc.recall_curve,
    sc.nnr_at_recall,
)


@pytest.mark.parametrize("of", SCREENING, ids=lambda of: of.__name__)
def test_screening_without_relevant_records(of: Callable[[list[int]], object]) -> None:
    assert of([0, 0, 0]) is None
    assert of([]) is None


def test_screening_where_all_are_relevant_has_no_loss() -> None:
    assert sc.screening_loss([1, 1]) is None
    assert sc.tnr_at_recall([1, 1]) is None
    assert sc.recall_at_share([1, 1], 0.1) == 0.0


def test_a_level_is_compared_in_integers() -> None:
    # 0.95 * 20 is 19 in decimals; in doubles it may be a little more
    assert sc.last_relevant_rank([1] * 20) == 20
    assert sc.nnr_at_recall([*[1] * 19, 0, 1]) == 1.0


def test_risk_of_nothing() -> None:
    assert se.aurc([], []) is None
    assert se.excess_aurc([], []) is None
    assert se.coverage_at_risk([], [], 0.5) is None
    assert se.risk_at_coverage([], [], 0.5) is None


def test_the_best_order_has_no_excess() -> None:
    assert se.excess_aurc([0.9, 0.8, 0.7, 0.6], [0, 0, 1, 1]) == pytest.approx(0)


def test_agreement_of_one_category_has_no_kappa() -> None:
    found = agreement([0, 0], [0, 0], [0, 1])
    assert (found.percent, found.kappa) == (1.0, None)
    assert agreement([], [], [0, 1]).percent is None
    assert alpha([[0, 0], [0]], [0, 1]) is None
    assert replicate_agreement([["a"]]).mean_pairwise is None
    assert flip_rate([]) is None


def test_replicates_of_unequal_number() -> None:
    found = replicate_agreement([["a", "a", "b"], ["c", "c"], ["d"]])
    assert found.items == 2
    assert found.mean_pairwise == pytest.approx((1 / 3 + 1) / 2)
    assert found.all_equal == 0.5
    assert pass_at_k(5, 2, 3) == pytest.approx(1 - 1 / 10)
    assert pass_hat_k(5, 3, 3) == pytest.approx(1 / 10)
    assert pass_at_k(2, 1, 3) is None


def test_a_query_without_gold_is_undefined_or_zero_as_asked() -> None:
    both = hits([[], ["a"]], [["x"], ["y"]])
    found = evaluate(both, (1, 5))
    zeroed = evaluate(both, (1, 5), RankingRules(empty="zero"))
    for name in ("recall@5", "precision@1", "hit@1", "mrr", "map@5", "ndcg@5", "ap"):
        assert np.isnan(found[name][0]), name
        assert found[name][1] == 0.0, name
        assert zeroed[name][0] == 0.0, name


def test_lists_of_nothing_are_ranked_too() -> None:
    found = evaluate(hits([["a"], []], [[], []]), (1, 5))
    assert found["recall@5"][0] == 0.0
    assert found["mrr"][0] == 0.0
    assert np.isnan(found["ndcg@5"][1])
    assert evaluate(hits([], []), (3,))["ndcg@3"].size == 0


def test_an_id_that_stands_twice_is_named_or_its_first_place_counts() -> None:
    with pytest.raises(ValueError, match=r"p1/A\.1 lists 'b' twice"):
        hits([["a"]], [["b", "a", "b"]], names=["p1/A.1"])
    found = evaluate(hits([["a"]], [["b", "b", "a"]], dedupe="first"), (2,))
    assert found["hit@2"][0] == 1.0


def test_orders_of_tied_scores() -> None:
    score, ids = [0.5, 0.9, 0.5], ["c", "b", "d"]
    assert order(score, ids) == ["b", "c", "d"]
    assert order(score, ids, ties="id_asc") == ["b", "c", "d"]
    assert order(score, ids, ties="trec") == ["b", "d", "c"]
    assert order([1 + 1e-9, 1.0], ["a", "b"], ties="trec") == ["b", "a"]


def test_fusion_of_ranks() -> None:
    assert fuse_rrf([["a", "b", "c"], ["c", "a"]]) == ["a", "c", "b"]


def test_a_gate_over_nothing() -> None:
    found = gate_metrics([], assign([], 0.1, 0.9))
    assert found.screening_sensitivity.value is None
    assert found.screening_fn_per_1000 is None
    assert share(0, 0).interval.lo is None


def test_edges_of_a_gate() -> None:
    p = [0.0, 0.1, 0.5, 0.9, 1.0]
    assert assign(p, 0.1, 0.9).tolist() == [0, 1, 1, 2, 2]
    assert assign(p, 0.1, 0.9, edge="le").tolist() == [0, 0, 1, 2, 2]
    assert assign(p, 0.0, float("inf"), edge="le").tolist() == [0, 1, 1, 1, 1]
    assert assign([0.5], 0.5, 0.5, edge="le").tolist() == [2]
    with pytest.raises(ValueError, match="index 1"):
        assign([0.5, 0.5], np.array([0.1, 0.8]), 0.5)


def test_tables_of_nothing() -> None:
    found = multilabel(np.zeros((0, 3)), np.zeros((0, 3)))
    assert found.exact_match is None
    assert found.hamming_loss is None
    empty = multilabel([[0, 0]], [[0, 0]])
    assert empty.f1_per_item == 0.0
    assert empty.f1_per_item_empty_one == 1.0
    assert empty.f1_per_item_defined is None
    assert empty.micro_f1 is None


def test_extraction_of_nothing() -> None:
    assert prf(MatchCounts(0, 0, 0)).f1 is None
    assert prf(MatchCounts(0, 0, 0), zero_division=0.0).f1 == 0.0
    with pytest.raises(ValueError, match="gold is empty"):
        set_recall(["a"], [])


REFUSED = {
    "a label of 2": (lambda: cl.auroc([0, 2], [0.1, 0.2]), "y holds 2.0 at index 1"),
    "a score that is NaN": (
        lambda: cl.auroc([0, 1], [0.1, float("nan")]),
        "score holds nan at index 1",
    ),
    "p above 1": (lambda: ca.brier([0, 1], [0.5, 1.5]), "p holds 1.5 at index 1"),
    "p below 0": (lambda: assign([-0.1], 0.1, 0.9), "p holds -0.1 at index 0"),
    "lengths": (lambda: cl.auroc([0, 1], [0.5]), "score has 1 values and y has 2"),
    "a negative weight": (
        lambda: cl.auroc([0, 1], [0.1, 0.2], [1, -1]),
        "weight holds -1.0 at index 1",
    ),
    "text": (lambda: cl.auroc(["a", "b"], [0.1, 0.2]), "y must hold numbers"),
    "no category": (
        lambda: agreement([0, 5], [0, 0], [0, 1]),
        "a holds 5 at index 1",
    ),
    "no label": (
        lambda: cl.multiclass(["a"], ["z"], ["a"]),
        "h holds 'z' at index 0",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_input_is_refused_by_name(case: str) -> None:
    call, said = REFUSED[case]
    with pytest.raises(ValueError, match=said):
        call()


def test_weights_of_one_give_the_point_itself() -> None:
    y, p = [1, 0, 1, 0, 1], [0.9, 0.8, 0.8, 0.3, 0.1]
    groups = ["a", "a", "b", "c", "c"]
    cluster, ones = cluster_index(groups), np.ones((1, 3), dtype=np.uint8)
    assert auroc_of(y, p, cluster)(ones)[0] == cl.auroc(y, p)
    assert auprc_of(y, p, cluster)(ones)[0] == pytest.approx(cl.auprc(y, p), abs=1e-15)
    assert ece_of(y, p, cluster)(ones)[0] == pytest.approx(ca.ece(y, p), abs=1e-15)


@pytest.mark.parametrize("drop_one", [False, True])
def test_calibration_errors_with_left_edges_can_be_drawn_too(drop_one: bool) -> None:
    y, p = [1, 0, 1, 0, 1, 0], [1.0, 0.8, 0.5, 0.45, 0.1, 1.0]
    cluster, ones = np.array([0, 0, 1, 1, 2, 2]), np.ones((1, 3), dtype=np.uint8)
    drawn = ece_of(y, p, cluster, closed="left", drop_one=drop_one)(ones)[0]
    expected = ca.ece(y, p, closed="left", drop_one=drop_one)
    assert drawn == pytest.approx(expected, abs=1e-15)
    assert drawn != pytest.approx(ca.ece(y, p), abs=1e-3)


def test_a_replicate_is_the_statistic_of_the_rows_it_repeats() -> None:
    y, p = [1, 0, 1, 0, 1, 0], [0.9, 0.8, 0.8, 0.3, 0.1, 0.9]
    groups = ["a", "a", "b", "c", "c", "b"]
    counts = np.array([[2, 0, 1], [0, 3, 0], [1, 1, 1]], dtype=np.uint8)
    values = auroc_of(y, p, cluster_index(groups))(counts)
    for row, value in zip(counts, values, strict=True):
        times = [row["abc".index(g)] for g in groups]
        rows = [i for i, n in enumerate(times) for _ in range(n)]
        expected = cl.auroc([y[i] for i in rows], [p[i] for i in rows])
        assert value == pytest.approx(expected, abs=1e-15)


def test_a_model_against_itself_differs_by_nothing() -> None:
    y, p, groups = [1, 0, 1, 0], [0.9, 0.2, 0.4, 0.5], ["a", "a", "b", "c"]
    of = auroc_of(y, p, cluster_index(groups))
    draws = Resamples(["a", "b", "c"], form="percentile")
    found = draws.interval_of(of.minus(of))
    assert (found.lo, found.hi) == (0.0, 0.0)
    # some replicates have one class only; they are dropped and counted
    assert found.b_used < found.b
    assert found.flagged


@pytest.mark.parametrize("make", [auroc_of, auprc_of, ece_of])
def test_a_replicate_of_no_rows_is_undefined(make: Callable[..., Any]) -> None:
    of = make([], [], np.empty(0, dtype=np.intp))
    assert np.isnan(of(np.ones((2, 3), dtype=np.int64))).all()
