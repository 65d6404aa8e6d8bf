"""The full-size arithmetic set through the scorecard, against answers known before."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest

from jobs.evidence_retrieval.metrics.results import (
    EvidenceResults,
    expected_ndcg,
    measure_models,
)
from runner.scorecard import Metric
from tests.jobs.evidence_retrieval.sheets import MODEL, full_sheet, settings

VALUES = {
    "n": 14_770,
    "positives": 1379,
    "negatives": 13_391,
    "auroc": 0.8109338369709094,
    "auprc": 0.5426500994157891,
    "tpr_at_fpr@0.01": 0.4017403915881073,
    "threshold_at_fpr@0.01": 0.695,
    "tpr_at_fpr@0.03": 0.41986947063089197,
    "threshold_at_fpr@0.03": 0.681,
    "tpr_at_fpr@0.05": 0.43872371283538797,
    "threshold_at_fpr@0.05": 0.667,
    "tpr_at_fpr@0.1": 0.4865844815083394,
    "threshold_at_fpr@0.1": 0.632,
    "at_tau.tp": 951,
    "at_tau.tn": 9548,
    "at_tau.fp": 3843,
    "at_tau.fn": 428,
    "at_tau.f1": 0.3081159889842864,
    "at_tau.mcc": 0.2501987830518923,
    "ece": 0.29348544346648625,
    "mce": 0.5629486935866983,
    "brier": 0.1656556496953284,
    "log_loss": 0.4934583329173355,
    "aurc": 0.11146826767306647,
    "states.NEG": 1350,
    "states.UNCERTAIN": 12_431,
    "states.POS": 989,
    "screening_sensitivity": 0.9883973894126178,
    "screening_fn_per_1000": 1.0832769126607988,
    "screening_fn_per_1000_positive": 11.602610587382161,
    "alert_precision": 0.5874620829120324,
    "alerts_per_1000": 66.96005416384564,
    "k.mean": 99_327 / 14_770,
    "k_nominal.mean": 7.450778605280975,
    "k_shown.mean": 6.724915368991199,
    "sentences_extracted": 99_327,
    "recall@1": 0.15119651921682378,
    "recall@3": 0.29211989364273633,
    "recall@5": 0.41189267585206674,
    "recall@10": 0.6102248005801305,
    "recall@20": 0.8461445491902344,
    "ndcg@1": 0.21609862218999276,
    "ndcg@3": 0.2654764386363239,
    "ndcg@5": 0.3225025222177744,
    "ndcg@10": 0.3985402149582905,
    "ndcg@20": 0.47056351065856855,
    "map@10": 0.29813668558229833,
    "hit@10": 0.7418419144307469,
    "precision@10": 0.11385061638868746,
    "mrr": 0.38036917242313834,
    "mrr~std": 0.3531415427152141,
    "evidence_recall@K": 0.4638627024413826,
    "evidence_precision@K": 0.18121759394420744,
    "posts_at_tau.exact_match": 0.002031144211238998,
    "posts_at_tau.hamming_score": 0.710832769126608,
    "posts_at_tau.micro_f1": 0.3081159889842864,
    "posts_at_tau.f1_per_item": 0.2418286745978012,
    "posts_at_tau.f1_per_item_empty_one": 0.2418286745978012,
    "posts_at_tau.f1_per_item_defined": 0.2418286745978012,
    "posts_at_tau.weighted_f1_per_item": 0.43279061201468744,
    "posts_at_tau.macro_f1_over_labels": 0.3069965818251753,
    "posts_at_tau.weighted_f1_over_labels": 0.31079171012288315,
}

ENDS = {
    "auroc": (0.7994849307184938, 0.8220418015652892),
    "auroc~query": (0.7987293296425529, 0.8226922897490222),
    "auroc~delong": (0.7990051149287133, 0.8228625590131057),
    "auprc": (0.5189439086863258, 0.5656805189439655),
    "auprc~query": (0.5188613933931487, 0.5654104357776454),
    "ndcg@10": (0.3771732102983244, 0.42024717503348447),
}


@pytest.fixture(scope="module")
def results() -> EvidenceResults:
    return measure_models(full_sheet(second=True), settings())


@pytest.fixture(scope="module")
def found(results: EvidenceResults) -> Mapping[str, Metric]:
    return results.models[MODEL].by_path()


@pytest.mark.parametrize("path", VALUES)
def test_every_known_value_comes_out(found: Mapping[str, Metric], path: str) -> None:
    assert found[path].value == pytest.approx(VALUES[path], rel=0, abs=1e-12)


@pytest.mark.parametrize("path", ENDS)
def test_every_known_interval_comes_out(found: Mapping[str, Metric], path: str) -> None:
    metric = found[path]
    assert (metric.lo, metric.hi) == pytest.approx(ENDS[path], rel=1e-11)


def test_means_over_folds_stand_beside_the_pooled_value(
    results: EvidenceResults, found: Mapping[str, Metric]
) -> None:
    auroc = found["auroc"]
    assert auroc.mean == pytest.approx(0.8110869238877549, rel=0, abs=1e-12)
    assert auroc.std == pytest.approx(0.003530553058191237, rel=0, abs=1e-12)
    positives = [own["positives"].value for own in results.models[MODEL].folds.values()]
    assert positives == [277, 252, 287, 313, 250]


def test_published_cv_has_its_own_std_edges_and_states() -> None:
    found = (
        measure_models(
            full_sheet(lists=False), settings(profile="published-cv", boot_b=99)
        )
        .models[MODEL]
        .by_path()
    )
    assert found["auroc"].std == pytest.approx(0.0031578226545141506, abs=1e-12)
    assert found["screening_sensitivity"].value == pytest.approx(
        0.9876722262509064, abs=1e-12
    )
    states = [found[f"states.{name}"].value for name in ("NEG", "UNCERTAIN", "POS")]
    assert states == [1366, 12_415, 989]
    error = found["ece"]
    assert "closed=left" in error.definition
    assert error.lo is not None
    assert error.hi is not None
    assert error.value is not None
    assert error.lo < error.value < error.hi
    assert "nearest" in found["tpr_at_fpr@0.05"].definition


def test_two_models_are_compared_on_the_same_draws(results: EvidenceResults) -> None:
    gaps = {gap.metric.path: gap for gap in results.gaps}
    auroc, accuracy = gaps["auroc"], gaps["at_tau.accuracy"]
    assert auroc.interval is not None
    ends = (auroc.interval.lo, auroc.interval.hi)
    assert ends == pytest.approx((0.06776053859306257, 0.10398216096216743), rel=1e-11)
    assert auroc.metric.gap.a == pytest.approx(0.7247741263776732, abs=1e-12)
    assert "p 1.45991076831e-53; b=3919, c=2671; kappa" in accuracy.note
    # queries of a post are not independent: the test that decides permutes posts
    tests = [
        gaps[name].metric.p_values.primary for name in ("at_tau.accuracy", "auroc")
    ]
    assert [test and test.name for test in tests] == [
        "sign flips by post",
        "DeLong by post",
    ]
    assert tests[0] is not None
    assert tests[0].p == pytest.approx(1 / 10_001)
    assert auroc.metric.verdict == "better"


def test_criteria_add_up_to_the_whole(results: EvidenceResults) -> None:
    own = results.models[MODEL].criteria
    assert list(own) == [f"A.{c}" for c in range(1, 11)]
    counts = [
        metric.value or 0
        for metrics in own.values()
        for metric in metrics
        if metric.path.endswith("n_positive")
    ]
    assert sum(counts) == 1379


@pytest.mark.parametrize("path", ["evidence_recall@K", "evidence_precision@K"])
def test_a_mean_of_folds_by_their_queries_is_that_of_the_whole(
    results: EvidenceResults, found: Mapping[str, Metric], path: str
) -> None:
    folds = [metrics[path] for metrics in results.models[MODEL].folds.values()]
    total = math.fsum((metric.value or 0.0) * (metric.n or 0) for metric in folds)
    assert sum(metric.n or 0 for metric in folds) == found[path].n
    assert total / (found[path].n or 1) == pytest.approx(found[path].value)


@pytest.mark.parametrize("gold", [1, 3, 10])
def test_where_all_sentences_are_gold_any_order_is_ideal(gold: int) -> None:
    assert expected_ndcg(5)(gold, gold) == pytest.approx(1.0)
