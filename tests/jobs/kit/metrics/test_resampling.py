from __future__ import annotations

import random
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.kit.metrics import (
    Interval,
    Ratio,
    ResampledDifference,
    Resamples,
    mean,
    mean_of,
    ratio,
    round12,
    wilson,
    with_interval,
    without_interval,
)
from jobs.kit.metrics import resampling as module
from jobs.kit.metrics.cluster_statistics import Statistic

Percentiles = partial(Resamples, form="percentile")

KEYS = [f"PMC{n}" for n in (9, 10, 2, 33, 1, 7, 80, 5, 4, 6)]
VALUES = [0.1, 0.9, 0.4, 1.0, 0.0, 0.35, 0.7, 0.2, 0.55, 1 / 3]


def by_hand(
    keys: list[str], values: list[float | None], b: int = 2000, seed: int = 20260118
) -> tuple[float, float, int]:
    """The definition read literally: one draw, one mean, one replicate at a time."""
    ordered = [values[keys.index(key)] for key in sorted(keys)]
    rng = np.random.default_rng(seed)
    means = []
    for _ in range(b):
        drawn = rng.integers(0, len(keys), len(keys))
        value = mean(ordered[index] for index in drawn)
        if value is not None:
            means.append(value)
    lo, hi = np.percentile(means, [2.5, 97.5])
    return round12(lo), round12(hi), len(means)


@pytest.mark.parametrize(
    ("k", "n", "lo", "hi"),
    [
        (0, 10, 0.0, 0.2775327998628892),
        (10, 10, 0.7224672001371107, 1.0),
        (1376, 1379, 0.9936232943858853, 0.9992598674849723),
        (3, 4, 0.30064184258240184, 0.9544127391902995),
    ],
)
def test_wilson_gives_the_known_ends(k: int, n: int, lo: float, hi: float) -> None:
    interval = wilson(k, n)
    assert interval.lo == pytest.approx(lo, rel=1e-12, abs=0)
    assert interval.hi == pytest.approx(hi, rel=1e-12, abs=0)
    assert (interval.lo == 0.0) is (k == 0)
    assert (interval.hi == 1.0) is (k == n)


def test_wilson_of_nothing_is_undefined() -> None:
    assert wilson(0, 0) == Interval(lo=None, hi=None)


@pytest.mark.parametrize(("k", "n"), [(-1, 3), (4, 3)])
def test_wilson_refuses_counts_that_cannot_be(k: int, n: int) -> None:
    with pytest.raises(ValueError, match="k must lie between 0 and n"):
        wilson(k, n)


@given(st.integers(1, 500), st.floats(0, 1), st.floats(0.5, 0.999))
def test_wilson_holds_the_rate_and_stays_in_its_range(
    n: int, share: float, level: float
) -> None:
    k = round(share * n)
    interval = wilson(k, n, level)
    assert interval.lo is not None
    assert interval.hi is not None
    assert 0.0 <= interval.lo <= k / n <= interval.hi <= 1.0


def test_rounding_keeps_twelve_digits_and_no_negative_zero() -> None:
    assert round12(0.12345678901234567) == 0.123456789012
    assert str(round12(-0.0)) == "0.0"


def test_the_bootstrap_is_what_its_definition_says() -> None:
    interval = Percentiles(KEYS).mean(VALUES)
    assert (interval.lo, interval.hi, interval.b_used) == by_hand(KEYS, [*VALUES])
    assert (interval.b, interval.flagged) == (2000, False)


def test_replicates_without_a_value_are_dropped_counted_and_flagged() -> None:
    rare: list[float | None] = [None] * 9 + [0.5]
    rare[2] = 0.25
    interval = Percentiles(KEYS).mean(rare)
    lo, hi, used = by_hand(KEYS, rare)
    assert (interval.lo, interval.hi, interval.b_used) == (lo, hi, used)
    assert 0 < used < 0.95 * 2000
    assert interval.flagged


def test_a_statistic_without_any_value_has_no_interval() -> None:
    nothing = Percentiles(KEYS, b=50).mean([None] * 10)
    assert (nothing.lo, nothing.hi) == (None, None)
    assert (nothing.b, nothing.b_used, nothing.flagged) == (50, 0, True)


@pytest.mark.parametrize(("keys", "b"), [([], 9), (["one"], 9), (["one", "two"], 0)])
def test_without_clusters_or_replicates_there_is_no_interval(
    keys: list[str], b: int
) -> None:
    found = Percentiles(keys, b=b).mean([1.0] * len(keys))
    assert (found.lo, found.hi, found.b, found.b_used) == (None, None, b, 0)


def test_a_ratio_of_sums_weighs_clusters_by_their_denominator() -> None:
    asked = [float(n) for n in range(1, 11)]
    right = [x * n for x, n in zip(VALUES, asked, strict=True)]
    interval = Percentiles(KEYS, b=300).ratio(right, asked)

    order = sorted(range(10), key=KEYS.__getitem__)
    rng = np.random.default_rng(20260118)
    rates = []
    for _ in range(300):
        drawn = [order[index] for index in rng.integers(0, 10, 10)]
        rate = ratio(sum(right[i] for i in drawn), sum(asked[i] for i in drawn))
        assert rate is not None
        rates.append(rate)
    lo, hi = np.percentile(rates, [2.5, 97.5])
    assert (interval.lo, interval.hi) == (round12(lo), round12(hi))


def test_a_difference_uses_the_same_replicates_on_both_sides() -> None:
    resamples = Percentiles(KEYS)
    shifted = [value + 0.25 for value in VALUES]
    constant = resamples.difference(shifted, VALUES)
    assert (constant.lo, constant.hi) == (0.25, 0.25)
    itself = resamples.difference(VALUES, VALUES)
    assert (itself.lo, itself.hi) == (0.0, 0.0)


def test_a_difference_of_means_over_the_same_clusters_is_the_mean_difference() -> None:
    other = list(reversed(VALUES))
    resamples = Percentiles(KEYS)
    differences = [a - b for a, b in zip(VALUES, other, strict=True)]
    paired, single = resamples.difference(VALUES, other), resamples.mean(differences)
    assert paired.lo == pytest.approx(single.lo, abs=1e-12)
    assert paired.hi == pytest.approx(single.hi, abs=1e-12)


def test_many_statistics_get_the_intervals_they_would_get_alone() -> None:
    resamples = Percentiles(KEYS, b=100)
    half = [*VALUES[:5], *[None] * 5]
    statistics: list[Statistic] = [
        mean_of(VALUES),
        Ratio(VALUES, [1.0] * 10),
        ResampledDifference(mean_of(VALUES), mean_of(half)),
    ]
    assert resamples.intervals(statistics) == (
        resamples.mean(VALUES),
        resamples.ratio(VALUES, [1.0] * 10),
        resamples.difference(VALUES, half),
    )
    assert resamples.intervals([]) == ()


@settings(max_examples=20)
@given(st.randoms(use_true_random=False))
def test_the_order_in_which_clusters_are_given_changes_no_digit(
    rng: random.Random,
) -> None:
    order = rng.sample(range(10), 10)
    shuffled = Percentiles([KEYS[i] for i in order], b=200)
    assert shuffled.mean([VALUES[i] for i in order]) == Percentiles(KEYS, b=200).mean(
        VALUES
    )


def test_what_is_too_large_to_keep_is_drawn_again_and_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = Percentiles(KEYS, b=300)
    monkeypatch.setattr(module, "MATRIX_BYTES", 0)
    monkeypatch.setattr(module, "_BLOCK_BYTES", 7 * 8 * len(KEYS))
    redrawn = Percentiles(KEYS, b=300)
    blocks = list(redrawn.multiplicities())
    assert {len(block) for block in blocks} == {7, 300 % 7}
    np.testing.assert_array_equal(
        np.concatenate(blocks), np.concatenate(list(kept.multiplicities()))
    )
    assert redrawn.mean(VALUES) == kept.mean(VALUES)


def test_every_replicate_draws_as_many_clusters_as_there_are() -> None:
    for block in Percentiles(KEYS, b=50).multiplicities():
        assert (block.sum(axis=1) == len(KEYS)).all()


def test_the_definition_names_all_that_an_interval_depends_on() -> None:
    draws = Percentiles(KEYS, b=10, seed=3, level=0.9, cluster="paper")
    found = draws.mean(VALUES)
    assert found.how == (
        "interval by paper: percentile bootstrap, B=10, seed=3, level=0.9, B_used=10"
    )
    assert without_interval(with_interval("recall@1(x)", found)) == "recall@1(x)"


def test_keys_and_columns_that_do_not_fit_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="'b' twice, at index 2"):
        Percentiles(["b", "a", "b"])
    resamples = Percentiles(KEYS, b=2)
    with pytest.raises(ValueError, match="numerators has 1 values for 10 keys"):
        resamples.mean([1.0])
    with pytest.raises(ValueError, match="denominators holds nan at index 3"):
        resamples.ratio([1.0] * 10, [1.0, 1.0, 1.0, float("nan"), *[1.0] * 6])


def test_resamples_of_as_many_clusters_share_their_draws() -> None:
    one = Resamples(["a", "b", "c"], 50, 7, cluster="paper")
    other = Resamples(["x", "z", "y"], 50, 7)
    (drawn,), (again,) = one.multiplicities(), other.multiplicities()
    assert drawn is again
    (different,) = Resamples(["a", "b", "c"], 50, 8).multiplicities()
    assert not np.array_equal(drawn, different)
