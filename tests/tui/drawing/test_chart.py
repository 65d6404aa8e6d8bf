"""Small charts that say no more than their values do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tui.render.charts import bar, bucketed, curve, sparkline
from tui.render.glyphs import ASCII, UNICODE, Glyphs

GLYPHS = st.sampled_from([UNICODE, ASCII])
VALUES = st.lists(st.none() | st.floats(0, 1e12), max_size=300)


@given(VALUES, st.integers(1, 80), st.integers(1, 6), GLYPHS)
def test_charts_fill_their_place_whatever_the_values(
    values: list[float | None], width: int, height: int, glyphs: Glyphs
) -> None:
    assert cell_len(sparkline(values, width, glyphs)) == width
    lines = curve(values, width, height, glyphs)
    assert [cell_len(line) for line in lines] == [width] * height
    assert "\u2800" not in "".join(lines)


@given(st.floats(allow_nan=False), st.integers(0, 40), GLYPHS)
def test_a_bar_fills_its_place(fraction: float, width: int, glyphs: Glyphs) -> None:
    assert cell_len(bar(fraction, width, glyphs)) == width


@given(st.floats(0.0001, 0.9999), st.integers(2, 40), GLYPHS)
def test_a_bar_is_neither_empty_nor_full_before_it_is(
    fraction: float, width: int, glyphs: Glyphs
) -> None:
    shown = bar(fraction, width, glyphs)
    assert shown != glyphs.blank * width
    assert shown != glyphs.full * width


@given(VALUES, st.integers(1, 50))
def test_buckets_lose_no_peak(values: list[float | None], count: int) -> None:
    shown = bucketed(values, count)
    assert len(shown) == min(len(values), count)
    peak = max((value for value in values if value is not None), default=None)
    assert peak == max((value for value in shown if value is not None), default=None)


@pytest.mark.parametrize(
    ("fraction", "mark", "shown"),
    [
        (0, None, "░░░░"),
        (1, None, "████"),
        (2, None, "████"),
        (0.5, None, "██░░"),
        (0.53, None, "██▏░"),
        (0.0001, None, "▏░░░"),
        (0.5, 0.8, "██░│"),
        (0.5, 7, "██░│"),
    ],
)
def test_bars(fraction: float, mark: float | None, shown: str) -> None:
    assert bar(fraction, 4, UNICODE, mark) == shown


def test_plain_bars() -> None:
    assert bar(0.5, 4, ASCII, 0.9) == "##-|"


def test_unknown_is_a_blank_and_nothing_is_a_low_level() -> None:
    assert sparkline([None, 0, 4, 8], 6, UNICODE) == "   ▁▄█"
    assert sparkline([0, 0], 2, UNICODE) == "▁▁"
    assert sparkline([1, None], 2, ASCII) == "# "


def test_a_top_makes_charts_comparable() -> None:
    assert sparkline([4], 1, UNICODE, top=8) == "▄"
    assert sparkline([9], 1, UNICODE, top=8) == "█"


def test_curves_grow_from_the_ground() -> None:
    assert curve([1, 2, 3, 4], 2, 1, UNICODE) == ["⣠⣾"]
    assert curve([8, 8, 0, None], 2, 2, UNICODE) == ["⣿ ", "⣿⡀"]
    assert curve([6, 3], 2, 2, ASCII) == ["# ", "##"]
