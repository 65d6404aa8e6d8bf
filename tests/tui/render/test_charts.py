"""Small charts that say no more than their values do.

Charts with axes: they fill their room, keep still, and read as they should.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tui.render.charts import (
    LABEL,
    PlotAxis,
    bar,
    bucketed,
    columns_in,
    curve,
    nice_top,
    plot,
    sparkline,
)
from tui.render.format import amount
from tui.render.glyphs import ASCII, UNICODE, Glyphs
from tui.render.layout import Room

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


NOON = (29_453_760 + 720) * 60
"""Seconds from 1970 to 2026-01-01 12:00 UTC."""


def drawn(
    values: list[float | None],
    room: Room,
    *,
    width: int = 1,
    ceiling: list[float | None] | None = None,
    cursor: int | None = None,
    flagged: frozenset[int] = frozenset(),
) -> list[str]:
    axis = PlotAxis(
        first=NOON, width=60 * width, count=len(values), cursor=cursor, flagged=flagged
    )
    return plot(values, axis, room, amount, ceiling or []).plain.split("\n")


ROOMS = st.builds(
    Room,
    width=st.integers(20, 90),
    height=st.integers(2, 14),
    glyphs=st.sampled_from([UNICODE, ASCII]),
)


@given(
    st.lists(st.none() | st.floats(0, 1e9), min_size=1, max_size=200),
    ROOMS,
    st.sampled_from([1, 5, 60, 1440]),
    st.booleans(),
    st.data(),
)
def test_a_plot_fills_its_room_whatever_is_in_it(
    values: list[float | None],
    room: Room,
    minutes: int,
    has_ceiling: bool,
    data: st.DataObject,
) -> None:
    places = st.integers(0, len(values) - 1)
    lines = drawn(
        values,
        room,
        width=minutes,
        ceiling=[7.0] * len(values) if has_ceiling else [],
        cursor=data.draw(st.none() | places),
        flagged=data.draw(st.frozensets(places, max_size=5)),
    )
    assert [cell_len(line) for line in lines] == [room.width] * room.height
    assert room.glyphs is UNICODE or "".join(lines).isascii()


@given(st.floats(1e-6, 1e12))
def test_a_scale_ends_with_a_round_figure_at_most_twice_as_high(value: float) -> None:
    top = nice_top(value)
    assert value <= top < 2 * value * (1 + 1e-9) or top == value
    assert nice_top(top) == top
    assert f"{top:e}".replace(".", "").strip("0")[0] in "1235"


def test_values_stand_over_their_times_and_unknown_ones_leave_a_gap() -> None:
    values = [None, *([4.0] * 29), *([0.0] * 30)]
    room = Room(width=LABEL + 30, height=7, glyphs=UNICODE)
    assert drawn(values, room, cursor=45, flagged=frozenset({0, 20})) == [
        "      5                       │       ",
        "        ⢸⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿       │       ",
        "    2.5 ⢸⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿       │       ",
        "        ⢸⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿       │       ",
        "      0 ⢸⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣿⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀",
        "        ▲─────────▲────┬──────────────",
        "        12:00          12:30          ",
    ]


def test_more_values_than_columns_can_be_read_off_to_the_last_one() -> None:
    room = Room(width=LABEL + 4, height=4, glyphs=ASCII)
    for number in range(10):
        lines = drawn([1.0] * 10, room, cursor=number, flagged=frozenset({number}))
        assert [len(line) for line in lines] == [room.width] * room.height


def test_a_low_plot_has_its_times_between_its_marks() -> None:
    room = Room(width=LABEL + 30, height=3, glyphs=ASCII)
    shown = drawn([1.0, 2.0, 3.0] * 10, room, flagged=frozenset({29}))
    assert shown == [
        "      3  .# .# .# .# .# .# .# .# .# .#",
        "      0 :##:##:##:##:##:##:##:##:##:##",
        "        +12:00----+12:10----+12:20---^",
    ]


def test_a_ceiling_is_a_line_above_what_stays_below_it() -> None:
    room = Room(width=LABEL + 4, height=6, glyphs=ASCII)
    shown = drawn([2.0, 2.0, 8.0, None], room, ceiling=[8.0, 8.0, 8.0, None])
    assert [line[LABEL:] for line in shown[:4]] == ["--. ", "  # ", "  # ", "::# "]


def test_long_windows_have_dates() -> None:
    room = Room(width=LABEL + 60, height=7, glyphs=UNICODE)
    assert "01-02 00:00" in drawn([1.0] * 72, room, width=60)[-1]


@pytest.mark.parametrize(("glyphs", "columns"), [(UNICODE, 60), (ASCII, 30)])
def test_braille_shows_two_values_in_a_cell(glyphs: Glyphs, columns: int) -> None:
    assert columns_in(LABEL + 30, glyphs) == columns
