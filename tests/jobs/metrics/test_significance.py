from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from jobs.metrics import (
    Interval,
    Ratio,
    bootstrap_p,
    delong_paired,
    holm,
    mcnemar,
    noninferiority,
    sign_flip,
    swap_sides,
)


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


# -- ratios and areas by cluster -------------------------------------------------------


def brute(first: Ratio, second: Ratio) -> float:
    """Every exchange of sides, one by one."""
    clusters = range(len(first.numerators))

    def gap(swapped: tuple[bool, ...]) -> float:
        sums = [0.0] * 4
        for at in clusters:
            sides = (second, first) if swapped[at] else (first, second)
            for place, side in enumerate(sides):
                sums[2 * place] += side.numerators[at]
                sums[2 * place + 1] += side.denominators[at]
        return abs(sums[0] / sums[1] - sums[2] / sums[3])

    observed = gap((False,) * len(clusters))
    patterns = list(itertools.product((False, True), repeat=len(clusters)))
    return sum(gap(each) >= observed - 1e-9 for each in patterns) / len(patterns)


CELLS = st.tuples(*[st.integers(0, 5)] * 2, *[st.integers(1, 6)] * 2)


@given(st.lists(CELLS, min_size=1, max_size=7))
def test_swapped_sides_are_counted_as_by_hand(
    cells: list[tuple[int, int, int, int]],
) -> None:
    a, b, below_a, below_b = zip(*cells, strict=True)
    first = Ratio([float(x) for x in a], [float(x) for x in below_a])
    second = Ratio([float(x) for x in b], [float(x) for x in below_b])
    found = swap_sides(first, second)
    assert found == pytest.approx(brute(first, second))
    assert swap_sides(second, first) == found


def test_swapped_sides_of_equal_denominators_are_sign_flips() -> None:
    rng = np.random.default_rng(5)
    groups = [f"g{n:03}" for n in range(40)]
    a, b = rng.random(40), rng.random(40)
    ones = np.ones(40)
    p = swap_sides(Ratio(a, ones), Ratio(b, ones))
    assert p == sign_flip((a - b).tolist(), groups)


def test_a_ratio_without_a_value_has_no_test_and_equal_sides_have_p_1() -> None:
    nothing, some = Ratio([0.0, 0.0], [0.0, 0.0]), Ratio([1.0, 0.0], [1.0, 1.0])
    assert swap_sides(nothing, some) is None
    assert swap_sides(some, some) == 1.0
    with pytest.raises(ValueError, match="clusters"):
        swap_sides(some, Ratio([1.0], [1.0]))


def test_a_resampled_difference_is_tested_by_its_smaller_tail() -> None:
    values = np.array([*range(-4, 96), np.nan], dtype=np.float64)
    assert bootstrap_p(values) == pytest.approx(2 * (1 + 5) / 101)
    assert bootstrap_p(-values) == bootstrap_p(values)
    assert bootstrap_p(np.zeros(50)) == 1.0
    assert bootstrap_p(np.array([np.nan])) is None


def test_delongs_test_by_cluster_is_delongs_where_every_row_is_one() -> None:
    rng = np.random.default_rng(7)
    y = rng.random(60) < 0.4
    a, b = rng.random(60) + y, rng.random(60) + y / 2
    alone = delong_paired(y, a, b)
    rows = delong_paired(y, a, b, [f"r{n:02}" for n in range(60)])
    assert alone is not None
    assert rows is not None
    # one term has its own count of clusters, so that the two agree but for rounding
    assert rows.se == pytest.approx(alone.se, rel=1e-12)
    assert rows.p == pytest.approx(alone.p, rel=1e-9)
    # rows that are there twice say no more than once, and must not look surer
    twice = delong_paired(
        np.repeat(y, 2),
        np.repeat(a, 2),
        np.repeat(b, 2),
        [f"r{n // 2:02}" for n in range(120)],
    )
    assert twice is not None
    assert twice.se == pytest.approx(alone.se, rel=1e-9)
    assert delong_paired(y, a, b, ["one"] * 60) is None
