"""What is read off charts: a minute that stays while columns come and change."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tui.screens.metrics import TimeCursor
from tui.sources.history import HistoryColumn, RunHistory


def history(count: int, width: int, first: int = 600) -> RunHistory:
    return RunHistory(
        width=width,
        columns=tuple(
            HistoryColumn(
                first=first + at * width, lived=1, row=None, in_flight=0, limit=None
            )
            for at in range(count)
        ),
        happenings=(),
    )


@given(st.integers(1, 40), st.integers(1, 30), st.integers(-50, 50))
def test_it_is_on_a_column_or_follows_the_present(
    count: int, width: int, position: int
) -> None:
    shown = history(count, width)
    cursor = TimeCursor().put(shown, position)
    if position >= count:
        assert cursor == TimeCursor()
    else:
        assert cursor.position(shown) == max(0, position)
    assert cursor.moved(shown, count) == TimeCursor()
    assert cursor.moved(shown, -count).position(shown) == 0


def test_its_minute_stays_in_other_columns_and_at_the_edge_of_what_is_left() -> None:
    fine, coarse = history(60, 1), history(6, 10)
    cursor = TimeCursor().put(fine, 25)
    assert cursor.position(coarse) == 2
    assert cursor.position(history(10, 1, first=700)) == 0
    assert TimeCursor().moved(fine, -1).position(fine) == 58


def test_without_columns_nothing_moves() -> None:
    cursor = TimeCursor(minute=7)
    assert cursor.position(history(0, 1)) is None
    assert cursor.moved(history(0, 1), 1) is cursor
