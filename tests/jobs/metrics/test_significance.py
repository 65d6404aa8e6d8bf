from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from jobs.metrics import Interval, holm, mcnemar, noninferiority, sign_flip


@pytest.mark.parametrize(
    ("b", "c", "p", "chi2"),
    [
        (10, 3, 0.09228515625, 2.769230769230769),
        (0, 0, 1.0, None),
        (5, 5, 1.0, 0.0),
        (1, 0, 1.0, 0.0),
        (20, 2, 0.00012111663818359375, 13.136363636363637),
        (3919, 2671, 1.459910768307661e-53, 235.9649468892261),
    ],
)
def test_mcnemar_gives_the_known_values(
    b: int, c: int, p: float, chi2: float | None
) -> None:
    test = mcnemar(b, c)
    assert test.p == pytest.approx(p, rel=1e-12, abs=0)
    assert test.chi2 == pytest.approx(chi2, rel=1e-12)
    assert mcnemar(c, b) == test


@given(st.integers(0, 300), st.integers(0, 300))
def test_mcnemar_is_the_exact_binomial_test(b: int, c: int) -> None:
    expected = stats.binomtest(b, b + c).pvalue if b + c else 1.0
    assert mcnemar(b, c).p == pytest.approx(expected, rel=1e-12)


def test_a_negative_count_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be negative"):
        mcnemar(-1, 2)


def test_holm_gives_the_known_values() -> None:
    assert holm([0.01, 0.04, 0.03, 0.04]) == pytest.approx((0.04, 0.09, 0.09, 0.09))


def test_an_undefined_p_value_does_not_count_in_its_family() -> None:
    assert holm([None, 0.02, None, 0.04]) == (None, 0.04, None, 0.04)
    assert holm([]) == ()


@given(st.lists(st.one_of(st.none(), st.floats(0, 1)), max_size=12))
def test_holm_never_lowers_a_p_value_and_keeps_their_order(
    p: list[float | None],
) -> None:
    corrected = holm(p)
    pairs = [
        (a, b)
        for a, b in zip(p, corrected, strict=True)
        if a is not None and b is not None
    ]
    assert [b is None for b in corrected] == [a is None for a in p]
    assert all(a <= b <= 1.0 for a, b in pairs)
    for (a, b), (other_a, other_b) in itertools.combinations(pairs, 2):
        if a <= other_a:
            assert b <= other_b
        else:
            assert b >= other_b


def test_few_clusters_are_tested_by_every_pattern_of_signs() -> None:
    sums = [0.4, 0.3, -0.1, 0.2]
    extreme = sum(
        abs(math.fsum(s * x for s, x in zip(signs, sums, strict=True))) >= 0.8 - 1e-12
        for signs in itertools.product((1, -1), repeat=4)
    )
    differences = [0.1, 0.3, 0.3, -0.1, 0.2]
    groups = ["a", "a", "b", "c", "d"]
    assert sign_flip(differences, groups) == extreme / 16


def test_clusters_without_a_difference_do_not_count() -> None:
    assert sign_flip([0.0, 1e-13, 0.3, -0.3], ["a", "b", "c", "c"]) == 1.0
    assert sign_flip([], []) == 1.0
    assert sign_flip([0.5, 0.0, 0.0], ["a", "b", "c"]) == 1.0


def test_many_clusters_are_tested_by_drawn_signs_with_the_observed_one_among_them() -> (
    None
):
    groups = [f"g{n:02}" for n in range(20)]
    assert sign_flip([1.0] * 20, groups) == 1 / 10_001
    even = [1.0, -1.0] * 10
    assert sign_flip(even, groups) == 1.0
    some = [1.0] * 14 + [-1.0] * 6
    exact = stats.binomtest(14, 20).pvalue
    assert sign_flip(some, groups) == pytest.approx(exact, abs=0.015)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=8), st.randoms())
def test_the_order_of_the_rows_does_not_change_the_test(
    differences: list[float], rng: random.Random
) -> None:
    groups = [f"g{n % 3}" for n in range(len(differences))]
    order = rng.sample(range(len(groups)), len(groups))
    shuffled = sign_flip([differences[i] for i in order], [groups[i] for i in order])
    assert shuffled == sign_flip(differences, groups)


def test_differences_without_a_group_are_refused() -> None:
    with pytest.raises(ValueError, match="2 values for 1 groups"):
        sign_flip([0.1, 0.2], ["a"])


def test_not_inferior_means_the_whole_interval_is_above_the_margin() -> None:
    assert noninferiority(Interval(lo=-0.01, hi=0.2), 0.02) is True
    assert noninferiority(Interval(lo=-0.02, hi=0.2), 0.02) is False
    assert noninferiority(Interval(lo=None, hi=None), 0.02) is None
