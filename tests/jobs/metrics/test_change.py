"""Shares of a change: exact, for any items that came, went or moved."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from jobs.metrics import shares_of_change
from jobs.metrics.columns import Term, exact_ratio, exact_sum

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
