"""What is read off the charts of a run, and what stands where there is no chart."""

from __future__ import annotations

import pytest

from tests.tui.fake_history import column, history
from tui.render.glyphs import UNICODE
from tui.render.layout import Room
from tui.render.metrics import (
    COST,
    SERIES,
    ChartedHistory,
    chart,
    column_caption,
    figures,
)
from tui.sources.history import HistoryColumn

ROOM = Room(width=50, height=8, glyphs=UNICODE)
BY_NAME = {series.name: series for series in SERIES}


def course(
    *columns: HistoryColumn, marks: tuple[tuple[int, str], ...] = ((0, "started"),)
) -> ChartedHistory:
    return ChartedHistory(history=history(columns, *marks), cursor=None, is_priced=True)


def at(
    shown: ChartedHistory, cursor: int | None, *, is_priced: bool = True
) -> ChartedHistory:
    return ChartedHistory(history=shown.history, cursor=cursor, is_priced=is_priced)


def test_all_figures_of_a_column_stand_in_a_line() -> None:
    shown = course(*(column(number) for number in range(10)))
    line = (
        "done 7/min · retried 2/min · in 1 k/s · out 10/s · $30.00/h · "
        "in flight 12 of 32"
    )
    assert figures(at(shown, 7), 120) == line
    assert figures(at(shown, 7), 78) == line.replace(" · ", "  ")
    assert len(figures(at(shown, 7), 78)) <= 78
    assert figures(shown, 120) == line.replace("done 7", "done 9")
    assert "cost ?" in figures(at(shown, 7, is_priced=False), 120)


def test_rates_are_of_minutes_in_which_a_process_was_at_work() -> None:
    half = column(4, width=10, lived=5)
    assert BY_NAME["goodput"].value(half) == 8.0
    assert BY_NAME["goodput"].value(column(4, width=10)) == 4.0
    assert BY_NAME["goodput"].value(column(4, row=None)) == 0.0
    assert BY_NAME["goodput"].value(column(4, row=None, lived=0)) is None
    assert BY_NAME["in-flight"].value(column(4, lived=0)) is None


def test_the_time_read_off_comes_with_what_happened_then_or_last() -> None:
    marks = ((1, "started"), (3, "paused"), (3, "limits: 6"))
    shown = course(*(column(number) for number in range(10)), marks=marks)
    assert column_caption(at(shown, 0)) == "2026-01-01 00:00–00:01 UTC"
    assert column_caption(at(shown, 3)).endswith(
        " · 00:03:30 paused · 00:03:30 limits: 6"
    )
    assert column_caption(shown).endswith("00:10 UTC · last before: 00:03:30 limits: 6")
    assert shown.axis.flagged == {1, 3}


def test_a_column_over_midnight_has_both_dates() -> None:
    late = column(0, first=column(0).first + 24 * 60 - 30, width=60)
    shown = ChartedHistory(
        history=history([late], width=60), cursor=None, is_priced=True
    )
    assert column_caption(shown) == "2026-01-01 23:30–2026-01-02 00:30 UTC"


@pytest.mark.parametrize(
    ("name", "shown", "said"),
    [
        ("goodput", course(), "No whole minute is over"),
        (
            "goodput",
            course(column(0, lived=0, row=None), marks=((1, "began"),)),
            "No whole",
        ),
        ("goodput", course(column(0, lived=0, row=None)), "z shows a longer one"),
        ("in-flight", course(column(0, in_flight=None)), "cannot be told"),
        (COST, at(course(column(0)), None, is_priced=False), "price"),
    ],
)
def test_where_there_is_no_chart_a_sentence_says_why(
    name: str, shown: ChartedHistory, said: str
) -> None:
    text = chart(BY_NAME[name], shown, ROOM).plain
    assert said in text
    assert figures(course(), 80) == column_caption(course()) == ""


def test_a_gap_says_that_nobody_worked() -> None:
    shown = course(column(0), column(1, lived=0, row=None))
    assert figures(shown, 80) == "no process worked on the run"
