"""tests.jobs.kit.metrics.test_significance

The sequential look: right at all looks together, where a fixed interval is not.
"""

from __future__ import annotations

import itertools
import math
import os
import random
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from jobs.kit.metrics import (
    ConfidenceSequence,
    Interval,
    Ratio,
    bootstrap_p,
    delong_paired,
    holm,
    mcnemar,
    noninferiority,
    sign_flip,
    significance,
    swap_sides,
)
from jobs.kit.metrics.columns import Floats


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


@pytest.mark.parametrize(("second", "p"), [([4, 3, 2, 1], 1.0), ([1, 2, 3, 4], 0.0)])
def test_areas_without_variance_are_equal_or_surely_different(
    second: list[float], p: float
) -> None:
    compared = delong_paired([1, 1, 0, 0], [4, 3, 2, 1], second)
    assert compared is not None
    assert (compared.se, compared.z, compared.p) == (0.0, None, p)


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


ALPHA = 0.05
WORLDS = 2000 if os.environ.get("SIFTLOG_PROVE") else 150
UNITS = 500

Draw = Callable[[np.random.Generator], Floats]


def _clustered(chance: np.random.Generator) -> Floats:
    """Papers of 1 to 12 questions that share a difficulty, each the mean of its own."""
    sizes = chance.integers(1, 13, UNITS)
    lean = chance.choice([-0.6, 0.6], UNITS)
    return np.array(
        [
            chance.choice([-1, 0, 1], size, p=_leaning(at)).mean()
            for size, at in zip(sizes, lean, strict=True)
        ]
    )


def _leaning(at: float) -> list[float]:
    return [0.4 - at / 2, 0.2, 0.4 + at / 2]


NULLS: dict[str, Draw] = {
    "symmetric": lambda chance: chance.choice([-1.0, 0.0, 1.0], UNITS),
    "mostly ties": lambda chance: chance.choice(
        [-1.0, 0.0, 1.0], UNITS, p=[0.02, 0.96, 0.02]
    ),
    "skewed": lambda chance: np.where(chance.random(UNITS) < 0.9, -0.1, 0.9),
    "uniform": lambda chance: chance.uniform(-1, 1, UNITS),
    "clustered": _clustered,
}


@pytest.mark.parametrize("null", NULLS)
def test_looking_after_every_unit_is_wrong_no_more_often_than_alpha(null: str) -> None:
    chance = np.random.default_rng(20260118)
    wrong = sum(_is_decided(NULLS[null](chance)) for _ in range(WORLDS))
    assert wrong / WORLDS <= ALPHA


def test_an_interval_of_one_look_is_wrong_far_more_often_when_looked_at_often() -> None:
    chance = np.random.default_rng(20260118)
    wrong = sum(_is_naively_decided(NULLS["symmetric"](chance)) for _ in range(WORLDS))
    assert wrong / WORLDS > 4 * ALPHA


def test_a_difference_is_found_and_a_large_one_soon() -> None:
    chance = np.random.default_rng(20260118)
    needed = []
    for gain in (0.25, 0.5):
        shares = [(0.6 - gain) / 2, 0.4, (0.6 + gain) / 2]
        found = [
            ConfidenceSequence(
                values=chance.choice([-1.0, 0.0, 1.0], UNITS, p=shares).tolist()
            )
            for _ in range(60)
        ]
        at = [each.first_above(0) for each in found]
        needed.append(float(np.median([UNITS if n is None else n for n in at])))
        assert all(n is not None for n in at)
        assert all(each.first_below(0) is None for each in found)
    assert needed[1] < needed[0] < UNITS / 2


def test_the_mean_is_missed_at_some_look_no_more_often_than_alpha() -> None:
    chance = np.random.default_rng(20260118)
    missed = 0
    for _ in range(WORLDS):
        values = chance.choice([-1.0, 0.0, 1.0], UNITS, p=[0.1, 0.5, 0.4]).tolist()
        interval = ConfidenceSequence(values=values).interval
        assert interval.lo is not None
        assert interval.hi is not None
        # ends only ever come nearer, so that the last interval tells of all looks
        missed += not interval.lo < 0.3 < interval.hi
    assert missed / WORLDS <= ALPHA


def test_capital_is_what_the_formula_says_in_exact_numbers() -> None:
    """Theorem 3, its bets as floats and everything else as fractions."""
    values = [1.0, -0.5, 1.0, 0.25, 1.0, 1.0]
    seen = ConfidenceSequence(values=values, alpha=0.9)
    xs = [(Fraction(value) + 1) / 2 for value in values]
    m, capital, exact = Fraction(1, 2), Fraction(1), []
    total, squares = Fraction(1, 2), Fraction(1, 4)
    for t, x in enumerate(xs, 1):
        variance = squares / t
        spread = float(variance) * t * math.log(t + 1)
        stake = min(math.sqrt(2 * math.log(2 / 0.9) / spread), 0.5 / float(m))
        capital *= 1 + Fraction(stake) * (x - m)
        exact.append(float(capital))
        total += x
        squares += (x - total / (t + 1)) ** 2
    rich = next(i for i, each in enumerate(exact, 1) if each >= 2 / 0.9)
    assert seen.first_above(0) == rich


VALUES = st.lists(st.floats(-1, 1), max_size=40)


@given(VALUES)
def test_turned_around_everything_is(values: list[float]) -> None:
    seen = ConfidenceSequence(values=values, alpha=0.5)
    turned = ConfidenceSequence(values=[-value for value in values], alpha=0.5)
    assert seen.first_above(0.125) == turned.first_below(-0.125)
    lo, hi = seen.interval.lo, seen.interval.hi
    assert lo is not None
    assert hi is not None
    assert (turned.interval.lo, turned.interval.hi) == (-hi, -lo)


@given(VALUES, VALUES)
def test_what_follows_changes_no_decision_and_never_widens(
    values: list[float], more: list[float]
) -> None:
    before = ConfidenceSequence(values=values, alpha=0.5)
    after = ConfidenceSequence(values=[*values, *more], alpha=0.5)
    if before.first_above(0) is not None:
        assert after.first_above(0) == before.first_above(0)
    assert after.after(len(values)) == before
    was, is_now = before.interval, after.interval
    assert None not in {was.lo, was.hi, is_now.lo, is_now.hi}
    assert (was.lo or 0.0) <= (is_now.lo or 0.0)
    assert (is_now.hi or 0.0) <= (was.hi or 0.0)


@given(VALUES.filter(bool), st.floats(-1, 1), st.floats(-1, 1))
def test_a_higher_bound_is_never_passed_sooner(
    values: list[float], one: float, other: float
) -> None:
    seen = ConfidenceSequence(values=values, alpha=0.5)
    low, high = sorted((one, other))
    of_high = seen.first_above(high)
    of_low = seen.first_above(low)
    assert of_high is None or (of_low is not None and of_low <= of_high)


def test_nothing_is_known_of_no_units_and_little_of_ties() -> None:
    nothing = ConfidenceSequence(values=[])
    assert (nothing.mean, nothing.interval.lo, nothing.interval.hi) == (None, -1, 1)
    ties = ConfidenceSequence(values=[0.0] * 400)
    assert ties.first_above(0) is None
    assert ties.first_above(-0.05) is not None
    assert ties.first_below(0.05) == ties.first_above(-0.05)


def test_long_runs_of_wins_are_no_error() -> None:
    assert ConfidenceSequence(values=[1.0] * 5000).interval.hi == 1


@pytest.mark.parametrize("values", [[1.5], [-1.01], [math.nan]])
def test_values_beyond_a_difference_of_shares_are_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="from -1 to 1"):
        ConfidenceSequence(values=values)


@pytest.mark.parametrize("alpha", [0, 1, -0.1])
def test_alpha_is_a_chance(alpha: float) -> None:
    with pytest.raises(ValueError, match="alpha"):
        ConfidenceSequence(values=[], alpha=alpha)


def _is_decided(values: Floats) -> bool:
    seen = ConfidenceSequence(values=values.tolist(), alpha=ALPHA)
    return seen.first_above(0) is not None or seen.first_below(0) is not None


def _is_naively_decided(values: Sequence[float] | Floats) -> bool:
    """Whether the usual 95 % interval leaves 0 out at any look from the 20th on."""
    xs = np.asarray(values, dtype=np.float64)
    n = np.arange(1, len(xs) + 1)
    means = np.cumsum(xs) / n
    spread = np.sqrt(np.maximum(np.cumsum(xs**2) / n - means**2, 0) / n)
    return bool((np.abs(means) > 1.96 * spread)[19:].any())


@pytest.mark.parametrize("m", [17, 20, 1, 14_000])
def test_kept_signs_are_those_that_the_seed_draws(m: int) -> None:
    patterns = next(significance._SignStream(5).patterns(m))
    rows = len(patterns)
    drawn = 2 * np.random.default_rng(5).integers(0, 2, (rows, m)) - 1
    assert np.array_equal(patterns, drawn)


def test_a_second_test_reads_the_signs_of_the_first() -> None:
    stream = significance._SignStream(5)
    first = np.concatenate(list(stream.patterns(18)))
    longer = np.concatenate(list(stream.patterns(20)))
    assert np.array_equal(first.ravel(), longer.ravel()[: first.size])
    assert np.array_equal(first, np.concatenate(list(stream.patterns(18))))
