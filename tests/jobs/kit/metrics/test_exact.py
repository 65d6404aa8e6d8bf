from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jobs.kit.metrics.columns import ExactColumn

FINITE = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e9, max_value=1e9)
WEIGHTED = st.lists(st.tuples(FINITE, st.integers(0, 20)), min_size=1, max_size=60)


def exact_sum(weighted: list[tuple[float, int]]) -> Fraction:
    return sum((Fraction(x) * count for x, count in weighted), Fraction(0))


def fast_sum(weighted: list[tuple[float, int]]) -> float:
    values, counts = zip(*weighted, strict=True)
    column = ExactColumn(values, total_count=sum(counts))
    return float(column.sums(np.array([counts], dtype=np.float64))[0])


@given(WEIGHTED)
def test_a_weighted_sum_is_right_to_the_last_digit_of_its_largest_term(
    weighted: list[tuple[float, int]],
) -> None:
    exact = exact_sum(weighted)
    largest = max(abs(x) for x, _ in weighted)
    error = abs(Fraction(fast_sum(weighted)) - exact)
    assert error <= abs(exact) * Fraction(2) ** -53 + Fraction(largest) / 2**75


@given(WEIGHTED, st.randoms(use_true_random=False))
def test_the_order_of_the_clusters_changes_no_bit(
    weighted: list[tuple[float, int]], rng: random.Random
) -> None:
    assert fast_sum(rng.sample(weighted, len(weighted))) == fast_sum(weighted)


def test_whole_numbers_add_up_exactly() -> None:
    column = ExactColumn([3.0, 0.0, 7.0], total_count=3)
    counts = np.array([[1.0, 1.0, 1.0], [0.0, 3.0, 0.0], [0.0, 0.0, 3.0]])
    assert column.sums(counts).tolist() == [10.0, 0.0, 21.0]


def test_a_column_of_zeros_has_the_sum_zero() -> None:
    assert fast_sum([(0.0, 3), (-0.0, 2)]) == 0.0
