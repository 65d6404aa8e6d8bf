"""Kendall's tau of two orders, against scipy."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from jobs.metrics import kendall_tau


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
