"""Figures of a screen: of one width, rounded so that they never promise too much."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.render.format import UNKNOWN, amount, count, duration, latency, money, percent


def test_what_is_unknown_is_never_zero() -> None:
    assert {count(None), amount(None), duration(None), latency(None)} == {UNKNOWN}
    assert percent(None) == UNKNOWN
    assert money(None) == "?"
    assert "0" in amount(0)


@given(st.floats(0, 1e12))
def test_an_amount_takes_at_most_five_cells(value: float) -> None:
    assert len(amount(value)) <= 6


@given(st.floats(0, 86_400 * 99))
def test_a_duration_takes_at_most_nine_cells(seconds: float) -> None:
    assert len(duration(seconds)) <= 9


@given(st.integers(0, 10**7), st.integers(1, 10**7))
def test_a_hundred_percent_is_all_of_it(part: int, whole: int) -> None:
    share = min(part, whole) / whole
    for tenths in (True, False):
        is_full = percent(share, tenths=tenths).startswith("100")
        assert is_full == (part >= whole)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (999, "999"),
        (999.6, "1.0 k"),
        (1000, "1 k"),
        (9_960, "10 k"),
        (999_900, "1.0 M"),
    ],
)
def test_an_amount_that_rounds_up_takes_the_next_unit(value: float, shown: str) -> None:
    assert amount(value) == shown
