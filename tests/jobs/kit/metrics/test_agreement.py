"""Kendall's tau of two orders, against scipy.

Agreement from counts, agreement of many judges, precision at another prevalence.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from jobs.kit.metrics import (
    agreement,
    agreement_of,
    fleiss_kappa,
    kendall_tau,
    ppv_at_prevalence,
)


@given(st.integers(2, 12).flatmap(lambda n: st.permutations(range(n))))
def test_it_equals_scipys_over_the_ranks(order: list[int]) -> None:
    n = len(order)
    ranks = [order.index(item) for item in range(n)]
    expected = kendalltau(range(n), ranks).statistic
    assert kendall_tau(range(n), order) == pytest.approx(expected, abs=1e-12)


def test_the_ends_and_what_is_undefined() -> None:
    assert kendall_tau("abc", "abc") == 1.0
    assert kendall_tau("abc", "cba") == -1.0
    assert kendall_tau("a", "a") is None
    assert kendall_tau("", "") is None


@pytest.mark.parametrize("other", ["ab", "abd", "aab", "abcd"])
def test_other_items_are_refused(other: str) -> None:
    with pytest.raises(ValueError, match="same distinct items"):
        kendall_tau("abc", other)


PAIRS = st.lists(st.tuples(st.sampled_from("xy"), st.sampled_from("xy")))


@given(PAIRS)
def test_agreement_of_counts_is_that_of_the_pairs(pairs: list[tuple[str, str]]) -> None:
    a, b = [x for x, _ in pairs], [y for _, y in pairs]
    table = np.array([[pairs.count((x, y)) for y in "xy"] for x in "xy"], dtype=float)
    assert agreement_of(table) == agreement(a, b, "xy")


def test_fleiss_kappa_of_the_example_of_1971() -> None:
    # ten items, fourteen judges, five categories
    table = [
        [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0],
        [2, 2, 8, 1, 1], [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2],
        [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
    ]  # fmt: skip
    assert fleiss_kappa(table) == pytest.approx(0.20993070442195522, abs=1e-12)


def test_judges_who_say_nothing_or_all_the_same_have_no_fleiss_kappa() -> None:
    assert fleiss_kappa(np.empty((0, 2))) is None
    assert fleiss_kappa([[1, 0], [0, 1]]) is None
    assert fleiss_kappa([[2, 0], [3, 0]]) is None
    # items with one judge change nothing
    assert fleiss_kappa([[2, 0], [0, 2], [1, 0]]) == fleiss_kappa([[2, 0], [0, 2]])


def test_precision_is_foretold_by_bayes_rule() -> None:
    assert ppv_at_prevalence(0.8, 0.9, 0.5) == pytest.approx(0.4 / 0.45)
    assert ppv_at_prevalence(0.0, 1.0, 0.5) is None
    assert ppv_at_prevalence(None, 0.9, 0.5) is None
    assert ppv_at_prevalence(0.9, None, 0.5) is None
