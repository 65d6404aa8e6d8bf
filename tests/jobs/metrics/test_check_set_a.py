"""Every metric over the full-size set, against answers computed independently."""

from __future__ import annotations

import numpy as np
import pytest

from jobs.metrics.areas import auprc_of, auroc_of, cluster_index, delong, delong_paired
from jobs.metrics.calibration import brier, ece, log_loss, mce, reliability
from jobs.metrics.classification import (
    at_threshold,
    auprc,
    auroc,
    confusion,
    multilabel,
    rates,
    tpr_at_fpr,
)
from jobs.metrics.columns import aggregate, std
from jobs.metrics.intervals import Resamples
from jobs.metrics.ranking import evaluate, hits
from jobs.metrics.selective import Edge, assign, aurc, gate_metrics
from jobs.metrics.significance import mcnemar
from tests.jobs.metrics.set_a import CRITERIA, SetA, set_a


def near(expected: object) -> object:
    return pytest.approx(expected, rel=0, abs=1e-12)


@pytest.fixture(scope="module")
def a() -> SetA:
    return set_a()


@pytest.fixture(scope="module")
def by_post(a: SetA) -> Resamples:
    return Resamples(sorted(set(a.post)), cluster="post")


def test_areas_and_sensitivities(a: SetA) -> None:
    assert [int(a.y[a.fold == k].sum()) for k in range(5)] == [277, 252, 287, 313, 250]
    assert auroc(a.y, a.p) == near(0.8109338369709094)
    assert auprc(a.y, a.p) == near(0.5426500994157891)
    for target, tpr, threshold in (
        (0.01, 0.4017403915881073, 0.695),
        (0.03, 0.41986947063089197, 0.681),
        (0.05, 0.43872371283538797, 0.667),
        (0.10, 0.4865844815083394, 0.632),
    ):
        point = tpr_at_fpr(a.y, a.p, target)
        assert point is not None
        assert (point.tpr, point.threshold) == near((tpr, threshold))


def test_counts_and_rates_at_one_half(a: SetA) -> None:
    cells = confusion(a.y, at_threshold(a.p, 0.5))
    assert (cells.tp, cells.tn, cells.fp, cells.fn) == (951, 9548, 3843, 428)
    found = rates(cells)
    assert found["f1"] == near(0.3081159889842864)
    assert found["mcc"] == near(0.2501987830518923)


def test_calibration_and_risk(a: SetA) -> None:
    assert ece(a.y, a.p) == near(0.29348544346648625)
    assert mce(a.y, a.p) == near(0.5629486935866983)
    counts = [each.count for each in reliability(a.y, a.p)]
    assert counts == [1940, 1943, 1910, 2106, 2099, 2126, 2105, 172, 188, 181]
    assert brier(a.y, a.p) == near(0.1656556496953284)
    assert log_loss(a.y, a.p).value == near(0.4934583329173355)
    confidence = np.maximum(a.p, 1 - a.p)
    assert aurc(confidence, (a.p >= 0.5) != a.y) == near(0.11146826767306647)


def test_delong_and_the_second_model(a: SetA) -> None:
    alone, pair = delong(a.y, a.p), delong_paired(a.y, a.p, a.p2)
    assert alone is not None
    ends = (alone.interval.lo, alone.interval.hi)
    assert ends == near((0.7990051149287133, 0.8228625590131057))
    assert auroc(a.y, a.p2) == near(0.7247741263776732)
    assert pair is not None
    assert pair.z == pytest.approx(9.22695099985778, rel=1e-12)
    right, right2 = (a.p >= 0.5) == a.y, (a.p2 >= 0.5) == a.y
    b, c = int((right & ~right2).sum()), int((~right & right2).sum())
    assert sorted((b, c)) == [2671, 3919]
    assert mcnemar(b, c).p == pytest.approx(1.459910768307661e-53, rel=1e-12)


def test_intervals_of_areas_by_post_and_by_query(a: SetA, by_post: Resamples) -> None:
    cluster = cluster_index(a.post)
    rows, row = Resamples.of_rows(len(a.y)), np.arange(len(a.y))
    for draws, index, roc, prc in (
        (
            by_post,
            cluster,
            (0.7994849307184938, 0.8220418015652892),
            (0.5189439086863258, 0.5656805189439655),
        ),
        (
            rows,
            row,
            (0.7987293296425529, 0.8226922897490222),
            (0.5188613933931487, 0.5654104357776454),
        ),
    ):
        for make, ends in ((auroc_of, roc), (auprc_of, prc)):
            found = draws.interval_of(make(a.y, a.p, index))
            assert (found.lo, found.hi) == pytest.approx(ends, rel=1e-11)


def test_interval_of_the_difference_of_two_models(a: SetA, by_post: Resamples) -> None:
    cluster = cluster_index(a.post)
    one, two = auroc_of(a.y, a.p, cluster), auroc_of(a.y, a.p2, cluster)
    found = by_post.interval_of(one.minus(two))
    ends = (0.06776053859306257, 0.10398216096216743)
    assert (found.lo, found.hi) == pytest.approx(ends, rel=1e-11)


@pytest.mark.parametrize(
    ("edge", "counts", "sensitivity"),
    [
        ("lt", (1350, 12431, 989), 0.9883973894126178),
        ("le", (1366, 12415, 989), 0.9876722262509064),
    ],
)
def test_three_states(
    a: SetA, edge: Edge, counts: tuple[int, int, int], sensitivity: float
) -> None:
    found = gate_metrics(a.y, assign(a.p, a.tau_neg, 0.68, edge=edge))
    assert tuple(found.counts.values()) == counts
    assert found.screening_sensitivity.value == near(sensitivity)
    assert found.alert_precision.value == near(0.5874620829120324)
    assert found.alerts_per_1000 == near(66.96005416384564)
    if edge == "lt":
        assert found.screening_fn_per_1000 == near(1.0832769126607988)
        assert found.screening_fn_per_1000_positive == near(11.602610587382161)


RANKING = {
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
}


def test_ranking_of_the_positives(a: SetA, by_post: Resamples) -> None:
    positive = [int(i) for i in a.index[a.y]]
    found = evaluate(
        hits([a.gold(i) for i in positive], [a.ranked(i) for i in positive]),
        (1, 3, 5, 10, 20),
    )
    means = {name: aggregate(found[name].tolist()).mean for name in RANKING}
    assert means == near(RANKING)
    assert std(found["mrr"].tolist()) == near(0.3531415427152141)
    posts = sorted(set(a.post))
    place = {post: k for k, post in enumerate(posts)}
    sums, counts = np.zeros(len(posts)), np.zeros(len(posts))
    for i, value in zip(positive, found["ndcg@10"], strict=True):
        sums[place[a.post[i]]] += value
        counts[place[a.post[i]]] += 1
    interval = by_post.ratio(sums.tolist(), counts.tolist())
    ends = (0.3771732102983244, 0.42024717503348447)
    assert (interval.lo, interval.hi) == pytest.approx(ends, rel=1e-11)


def test_selected_k(a: SetA) -> None:
    states = assign(a.p, a.tau_neg, 0.68)
    i = a.index
    k = np.choose(states, (np.zeros_like(i), 5 + i % 8, 3 + i % 4))
    cut = np.minimum(k, a.pool)
    assert k.mean() == near(7.450778605280975)
    assert cut.mean() == near(6.724915368991199)
    assert int(cut.sum()) == 99327
    recall, precision = [], []
    for q in a.index[a.y]:
        taken = set(a.ranked(q)[: cut[q]])
        gold = a.gold(q)
        right = len(taken.intersection(gold))
        recall.append(right / len(gold))
        precision.append(right / len(taken) if taken else 0.0)
    assert aggregate(recall).mean == near(0.4638627024413826)
    assert aggregate(precision).mean == near(0.18121759394420744)


def test_posts_as_items_with_ten_labels(a: SetA) -> None:
    y, h = a.y.reshape(-1, CRITERIA), (a.p >= 0.5).reshape(-1, CRITERIA)
    found = multilabel(y, h)
    assert found.exact_match == near(0.002031144211238998)
    assert found.hamming_score == near(0.710832769126608)
    assert found.micro_f1 == near(0.3081159889842864)
    for of_items in (
        found.f1_per_item,
        found.f1_per_item_empty_one,
        found.f1_per_item_defined,
    ):
        assert of_items == near(0.2418286745978012)
    assert found.weighted_f1_per_item == near(0.43279061201468744)
    assert found.macro_f1_over_labels == near(0.3069965818251753)
    assert found.weighted_f1_over_labels == near(0.31079171012288315)


def test_folds(a: SetA) -> None:
    areas = [auroc(a.y[a.fold == k], a.p[a.fold == k]) for k in range(5)]
    found = aggregate(areas)
    assert found.mean == near(0.8110869238877549)
    assert found.std == near(0.003530553058191237)
    assert np.std([x for x in areas if x is not None]) == near(0.0031578226545141506)
