"""Intervals where resampling says too little: few clusters, nothing that varies."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta

from jobs.kit.metrics import (
    NOT_NEGATIVE,
    SIGNED,
    Interval,
    Ratio,
    ResampledDifference,
    Resamples,
    auroc_of,
    clopper_pearson,
    mean_of,
)
from jobs.kit.metrics.cluster_statistics import PER_THOUSAND, Support
from runner.scorecard import Metric, Target


def keys(n: int) -> list[str]:
    return [f"{i:05}" for i in range(n)]


def ends(found: Interval) -> tuple[float, float]:
    assert found.lo is not None
    assert found.hi is not None
    return found.lo, found.hi


@pytest.mark.parametrize(
    ("clusters", "lo"), [(8, 0.63058), (385, 0.99046), (1, 0.025), (2, 0.15811)]
)
def test_all_of_them_found_has_the_exact_bound_of_the_clusters(
    clusters: int, lo: float
) -> None:
    sizes = [3.0] * clusters
    found = Resamples(keys(clusters)).ratio(sizes, sizes)
    assert ends(found) == pytest.approx((lo, 1.0), abs=1e-5)
    assert found.lo == pytest.approx(clopper_pearson(clusters, clusters)[0])
    assert found.how == (
        f"interval by cluster: exact bound of {clusters} that do not vary, level=0.95"
    )


def test_none_of_them_found_mirrors_it() -> None:
    found = Resamples(keys(8)).ratio([0.0] * 8, [3.0] * 8)
    assert ends(found) == pytest.approx((0.0, 1 - 0.63058), abs=1e-5)


def test_one_paper_with_all_predictions_is_one_cluster_of_many() -> None:
    predicted = [0.0] * 29 + [140.0]
    right = [0.0] * 29 + [2.0]
    lo, hi = ends(Resamples(keys(30)).ratio(right, predicted))
    share = 2 / 140
    assert (lo, hi) == pytest.approx((0.025 * share, 1 - 0.025 * (1 - share)))


def test_one_paper_with_nearly_all_predictions_is_little_more() -> None:
    predicted = [1.0] + [0.0] * 28 + [139.0]
    lo, hi = ends(Resamples(keys(30)).ratio([0.0] * 29 + [70.0], predicted))
    assert hi - lo > 0.9


@pytest.mark.parametrize("clusters", [8, 385])
def test_a_target_that_the_bound_does_not_reach_is_undecided(clusters: int) -> None:
    found = Resamples(keys(clusters)).mean([1.0] * clusters)
    target = Target(sense=">=", bound=0.995)
    metric = Metric(
        path="x", value=1.0, n=clusters, lo=found.lo, hi=found.hi, target=target
    )
    assert metric.verdict == "undecided"


def test_a_target_that_the_exact_bound_reaches_is_met() -> None:
    found = Resamples(keys(740)).mean([1.0] * 740)
    target = Target(sense=">=", bound=0.995)
    metric = Metric(path="x", value=1.0, n=740, lo=found.lo, hi=found.hi, target=target)
    assert metric.verdict == "pass"


def test_a_perfect_area_is_bounded_by_pairs_of_clusters() -> None:
    y, p = [1, 1, 1, 0, 0, 0, 0], [0.9, 0.8, 0.7, 0.1, 0.2, 0.3, 0.1]
    found = Resamples(keys(7)).interval_of(auroc_of(y, p, np.arange(7)))
    assert ends(found) == pytest.approx((0.025 ** (1 / 3), 1.0))


def test_two_models_that_agree_everywhere_may_still_differ_elsewhere() -> None:
    side = mean_of([1.0, 0.0, 1.0, 1.0])
    lo, hi = ends(Resamples(keys(4)).intervals([ResampledDifference(side, side)])[0])
    assert (lo, hi) == pytest.approx((-1 + 0.025**0.25, 1 - 0.025**0.25))


def test_a_number_without_a_range_that_does_not_vary_has_no_bound() -> None:
    found = Resamples(keys(9)).mean([10.0] * 9, NOT_NEGATIVE)
    assert (found.lo, found.hi) == (None, None)
    assert found.how == "interval by cluster: none, nothing varies"


def test_a_number_without_a_range_goes_by_students_t() -> None:
    values = [4.0, 6.0, 8.0, 6.0]
    found = Resamples(keys(4)).mean(values, NOT_NEGATIVE)
    half = (ends(found)[1] - ends(found)[0]) / 2
    assert ends(found)[0] + half == pytest.approx(6)
    # 3 degrees of freedom at most
    assert half >= 3.1824 * np.std(values, ddof=1) / 2
    assert "t with" in found.how


@pytest.mark.parametrize("power", [300, 900])
def test_large_numbers_have_the_interval_of_their_digits(power: int) -> None:
    numbers = np.array([1.0, 2.0, 3.0, 0.5, 2.5])
    found = Resamples(keys(5)).mean(numbers, NOT_NEGATIVE)
    large = Resamples(keys(5)).mean(np.ldexp(numbers, power), NOT_NEGATIVE)
    expected = [math.ldexp(end, power) for end in ends(found)]
    assert ends(large) == pytest.approx(expected, rel=1e-11)
    assert large.how == found.how


def test_a_rate_per_thousand_has_the_ends_of_the_share() -> None:
    lost, n = np.array([0.0, 1, 0, 2, 0, 0]), np.full(6, 10.0)
    share, rate = Resamples(keys(6)).intervals(
        [Ratio(lost, n), Ratio(1000 * lost, n, PER_THOUSAND)]
    )
    assert ends(rate) == pytest.approx(tuple(1000 * end for end in ends(share)))


def test_without_replicates_no_interval_is_asked_for() -> None:
    found = Resamples(keys(8), b=0).mean([1.0] * 8)
    assert (found.lo, found.hi) == (None, None)


def test_many_clusters_keep_the_percentiles() -> None:
    rng = np.random.default_rng(1)
    n = 1 + rng.poisson(9, 400).astype(float)
    k = rng.binomial(n.astype(int), 0.6).astype(float)
    own, old = (
        Resamples(keys(400), form=form).ratio(k.tolist(), n.tolist())
        for form in ("adjusted", "percentile")
    )
    assert own == old
    assert "percentile bootstrap" in own.how


def test_many_clusters_with_few_misses_do_not() -> None:
    k = [10.0] * 397 + [9.0] * 3
    own, old = (
        Resamples(keys(400), form=form).ratio(k, [10.0] * 400)
        for form in ("adjusted", "percentile")
    )
    assert ends(own)[0] < ends(old)[0] < ends(old)[1] == 1.0
    assert ends(own)[1] < 1
    assert "Clopper-Pearson at the effective size" in own.how


def test_misses_of_one_cluster_tell_less_than_misses_of_many() -> None:
    apart = [9.0] * 6 + [10.0] * 24
    together = [4.0] + [10.0] * 29
    n = [10.0] * 30
    wide, narrow = (ends(Resamples(keys(30)).ratio(k, n)) for k in (together, apart))
    assert wide[0] < narrow[0]


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=40),
    st.sampled_from([0.8, 0.95, 0.99]),
)
def test_ends_hold_the_value_and_stay_in_its_range(
    pairs: list[tuple[int, int]], level: float
) -> None:
    above = [float(min(pair)) for pair in pairs]
    below = [float(max(pair)) for pair in pairs]
    found = Resamples(keys(len(pairs)), level=level).ratio(above, below)
    if not sum(below):
        assert (found.lo, found.hi) == (None, None)
        return
    lo, hi = ends(found)
    assert 0 <= lo <= sum(above) / sum(below) + 1e-11
    assert sum(above) / sum(below) - 1e-11 <= hi <= 1


@given(st.lists(st.floats(0, 1), min_size=2, max_size=30), st.randoms())
def test_the_order_of_rows_changes_no_digit(
    values: list[float], random: object
) -> None:
    order = list(range(len(values)))
    random.shuffle(order)  # type: ignore[attr-defined]
    names = keys(len(values))
    whole = Resamples(names).mean(values)
    again = Resamples([names[i] for i in order]).mean([values[i] for i in order])
    assert again == whole


@given(st.integers(0, 60), st.integers(1, 60), st.sampled_from([0.8, 0.95]))
def test_the_exact_interval_is_that_of_scipys_beta(
    k: int, n: int, level: float
) -> None:
    k = min(k, n)
    tail = (1 - level) / 2
    lo, hi = clopper_pearson(k, n, level)
    assert lo == pytest.approx(beta.ppf(tail, k, n - k + 1) if k else 0)
    assert hi == pytest.approx(beta.ppf(1 - tail, k + 1, n - k) if k < n else 1)


def test_support_counts_clusters_by_their_weight() -> None:
    assert Support.of([1.0] * 8).effective == pytest.approx(8)
    assert Support.of([1.0, 0.0, 0.0]) == Support(effective=1.0, independent=1)
    assert Support.of([0.0, 0.0]) == Support(effective=0.0, independent=0)
    both = np.array([1.0, 1.0, 0.0]), np.array([1.0, 0.0, 1.0])
    assert Support.of_classes(*both).independent == 1
    assert not math.isnan(Support.of_classes(*both).effective)


def test_a_signed_statistic_keeps_its_range() -> None:
    lo, hi = ends(Resamples(keys(5)).mean([1.0, 1.0, 1.0, 0.9, -1.0], SIGNED))
    assert -1 <= lo < 0.58 < hi <= 1
