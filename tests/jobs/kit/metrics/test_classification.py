"""The same numbers as scikit-learn, on columns full of ties and border values.

Every metric over the full-size set, against answers computed independently.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sk
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from jobs.kit.metrics.agreement import agreement
from jobs.kit.metrics.areas import (
    auprc_of,
    auroc_of,
    cluster_index,
    delong,
    delong_paired,
    tpr_of,
)
from jobs.kit.metrics.calibration import (
    brier,
    ece,
    fit_isotonic,
    fit_platt,
    log_loss,
    mce,
    reliability,
)
from jobs.kit.metrics.classification import (
    at_threshold,
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
from jobs.kit.metrics.columns import aggregate, std
from jobs.kit.metrics.ranking import evaluate, hits
from jobs.kit.metrics.resampling import Resamples
from jobs.kit.metrics.selective import Edge, assign, aurc, gate_metrics
from jobs.kit.metrics.significance import mcnemar
from tests.jobs.kit.metrics.set_a import CRITERIA, SetA, set_a

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


def a_near(expected: object) -> object:
    return pytest.approx(expected, rel=0, abs=1e-12)


@pytest.fixture(scope="module")
def a() -> SetA:
    return set_a()


@pytest.fixture(scope="module")
def by_post(a: SetA) -> Resamples:
    return Resamples(sorted(set(a.post)), cluster="post")


def test_areas_and_sensitivities(a: SetA) -> None:
    assert [int(a.y[a.fold == k].sum()) for k in range(5)] == [277, 252, 287, 313, 250]
    assert auroc(a.y, a.p) == a_near(0.8109338369709094)
    assert auprc(a.y, a.p) == a_near(0.5426500994157891)
    for target, tpr, threshold in (
        (0.01, 0.4017403915881073, 0.695),
        (0.03, 0.41986947063089197, 0.681),
        (0.05, 0.43872371283538797, 0.667),
        (0.10, 0.4865844815083394, 0.632),
    ):
        point = tpr_at_fpr(a.y, a.p, target)
        assert point is not None
        assert (point.tpr, point.threshold) == a_near((tpr, threshold))


def test_counts_and_rates_at_one_half(a: SetA) -> None:
    cells = confusion(a.y, at_threshold(a.p, 0.5))
    assert (cells.tp, cells.tn, cells.fp, cells.fn) == (951, 9548, 3843, 428)
    found = rates(cells)
    assert found["f1"] == a_near(0.3081159889842864)
    assert found["mcc"] == a_near(0.2501987830518923)


def test_calibration_and_risk(a: SetA) -> None:
    assert ece(a.y, a.p) == a_near(0.29348544346648625)
    assert mce(a.y, a.p) == a_near(0.5629486935866983)
    counts = [each.count for each in reliability(a.y, a.p)]
    assert counts == [1940, 1943, 1910, 2106, 2099, 2126, 2105, 172, 188, 181]
    assert brier(a.y, a.p) == a_near(0.1656556496953284)
    assert log_loss(a.y, a.p).value == a_near(0.4934583329173355)
    confidence = np.maximum(a.p, 1 - a.p)
    assert aurc(confidence, (a.p >= 0.5) != a.y) == a_near(0.11146826767306647)


def test_delong_and_the_second_model(a: SetA) -> None:
    alone, pair = delong(a.y, a.p), delong_paired(a.y, a.p, a.p2)
    assert alone is not None
    ends = (alone.interval.lo, alone.interval.hi)
    assert ends == a_near((0.7990051149287133, 0.8228625590131057))
    assert auroc(a.y, a.p2) == a_near(0.7247741263776732)
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


def test_the_band_of_a_curve_begins_at_the_origin() -> None:
    grid = np.array([0.0, 0.5, 1.0])
    value_of = tpr_of([1, 0], [0.3, 0.3], np.array([0, 0]), grid)
    assert value_of(np.array([[1], [2]])).tolist() == [[0.0, 0.5, 1.0]] * 2


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
    assert found.screening_sensitivity.value == a_near(sensitivity)
    assert found.alert_precision.value == a_near(0.5874620829120324)
    assert found.alerts_per_1000 == a_near(66.96005416384564)
    if edge == "lt":
        assert found.screening_fn_per_1000 == a_near(1.0832769126607988)
        assert found.screening_fn_per_1000_positive == a_near(11.602610587382161)


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
    assert means == a_near(RANKING)
    assert std(found["mrr"].tolist()) == a_near(0.3531415427152141)
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
    assert k.mean() == a_near(7.450778605280975)
    assert cut.mean() == a_near(6.724915368991199)
    assert int(cut.sum()) == 99327
    recall, precision = [], []
    for q in a.index[a.y]:
        taken = set(a.ranked(q)[: cut[q]])
        gold = a.gold(q)
        right = len(taken.intersection(gold))
        recall.append(right / len(gold))
        precision.append(right / len(taken) if taken else 0.0)
    assert aggregate(recall).mean == a_near(0.4638627024413826)
    assert aggregate(precision).mean == a_near(0.18121759394420744)


def test_posts_as_items_with_ten_labels(a: SetA) -> None:
    y, h = a.y.reshape(-1, CRITERIA), (a.p >= 0.5).reshape(-1, CRITERIA)
    found = multilabel(y, h)
    assert found.exact_match == a_near(0.002031144211238998)
    assert found.hamming_score == a_near(0.710832769126608)
    assert found.micro_f1 == a_near(0.3081159889842864)
    for of_items in (
        found.f1_per_item,
        found.f1_per_item_empty_one,
        found.f1_per_item_defined,
    ):
        assert of_items == a_near(0.2418286745978012)
    assert found.weighted_f1_per_item == a_near(0.43279061201468744)
    assert found.macro_f1_over_labels == a_near(0.3069965818251753)
    assert found.weighted_f1_over_labels == a_near(0.31079171012288315)


def test_folds(a: SetA) -> None:
    areas = [auroc(a.y[a.fold == k], a.p[a.fold == k]) for k in range(5)]
    found = aggregate(areas)
    assert found.mean == a_near(0.8110869238877549)
    assert found.std == a_near(0.003530553058191237)
    assert np.std([x for x in areas if x is not None]) == a_near(0.0031578226545141506)
