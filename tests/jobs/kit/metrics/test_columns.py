"""tests.jobs.kit.metrics.test_columns

Shares of a change: exact, for any items that came, went or moved.
"""

from __future__ import annotations

import math
import random
import statistics
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.kit.metrics import aggregate, mean, quantiles, ratio, shares_of_change, std
from jobs.kit.metrics.columns import Term, exact_ratio, exact_sum

NUMBERS = st.lists(st.floats(-1e6, 1e6), min_size=2)


def test_a_mean_leaves_undefined_values_out() -> None:
    assert mean([None, 1.0, 0.0, None]) == 0.5


def test_what_has_no_values_is_undefined_and_not_zero() -> None:
    assert mean([]) is None
    assert mean([None]) is None
    assert ratio(0, 0) is None
    assert std([1.0]) is None
    nothing = aggregate([None, None])
    assert (nothing.n, nothing.n_defined) == (2, 0)
    assert {nothing.mean, nothing.std, nothing.median, nothing.p25} == {None}
    assert {nothing.p75, nothing.min, nothing.max} == {None}


def test_a_single_value_has_every_figure_but_a_deviation() -> None:
    one = aggregate([None, 0.25])
    assert (one.mean, one.median, one.p25, one.p75) == (0.25, 0.25, 0.25, 0.25)
    assert (one.min, one.max, one.std) == (0.25, 0.25, None)
    assert (one.n, one.n_defined) == (2, 1)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_value_that_is_no_number_is_named_and_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="at defined index 1"):
        mean([None, 1.0, bad])


@given(NUMBERS)
def test_the_figures_agree_with_the_standard_library_and_numpy(
    numbers: list[float],
) -> None:
    described = aggregate(numbers)
    assert described.mean == math.fsum(numbers) / len(numbers)
    assert described.std == pytest.approx(statistics.stdev(numbers), abs=1e-6)
    assert described.median == pytest.approx(np.median(numbers))
    assert (described.p25, described.p75) == tuple(np.quantile(numbers, [0.25, 0.75]))
    assert (described.min, described.max) == (min(numbers), max(numbers))


@given(NUMBERS, st.randoms(use_true_random=False))
def test_the_order_of_the_values_changes_no_digit(
    numbers: list[float], rng: random.Random
) -> None:
    shuffled = rng.sample(numbers, len(numbers))
    assert aggregate(shuffled) == aggregate(numbers)


def test_quantiles_are_linear_between_neighbours() -> None:
    assert quantiles([3.0, 1.0, 2.0, 10.0], (0.0, 0.5, 1.0)) == (1.0, 2.5, 10.0)


VALUES = st.floats(-1e6, 1e6)
TERMS = st.dictionaries(
    st.sampled_from("abcdef"), st.tuples(VALUES, st.floats(1e-3, 1e6)), min_size=1
)


@given(TERMS, TERMS)
def test_shares_add_up_to_the_change_without_rounding(
    before: dict[str, Term], after: dict[str, Term]
) -> None:
    shares = shares_of_change(before, after)
    was, now = exact_ratio(before), exact_ratio(after)
    assert shares is not None
    assert was is not None
    assert now is not None
    assert sum(shares.values(), Fraction()) == now - was


@given(st.lists(VALUES))
def test_a_sum_is_that_of_the_fractions(values: list[float]) -> None:
    assert exact_sum(values) == sum(map(Fraction, values), Fraction())


def test_an_item_counts_by_what_it_became_against_the_ratio_before() -> None:
    before = {"kept": (1.0, 1.0), "went": (0.0, 1.0)}
    after = {"kept": (0.0, 1.0), "came": (1.0, 1.0)}
    assert shares_of_change(before, after) == {
        "kept": Fraction(-1, 2),
        "went": Fraction(1, 4),
        "came": Fraction(1, 4),
    }


def test_nothing_is_divided_where_a_ratio_is_undefined() -> None:
    assert shares_of_change({}, {"a": (1.0, 1.0)}) is None
    assert shares_of_change({"a": (1.0, 1.0)}, {}) is None
