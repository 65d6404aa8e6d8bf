"""What is read off the charts of a run, and what stands where there is no chart.

The headline so far: its provenance first, then what fits of it.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.tui.fake_history import HEADLINE, column, history
from tests.tui.sights import HOSTILE
from tui.render.glyphs import UNICODE
from tui.render.headline import HeadlineState, headline, provenance
from tui.render.layout import Room
from tui.render.metrics import (
    COST,
    SERIES,
    ChartedHistory,
    chart,
    column_caption,
    figures,
)
from tui.sources.headline import HeadlineProgress
from tui.sources.history import HistoryColumn
from tui.sources.result import Headline, HeadlineMetric

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
        "rate 7/min · retried 2/min · tokens in 1 k/s · out 10/s · $30.00/h · "
        "in flight 12/32"
    )
    assert figures(at(shown, 7), 120) == line
    narrow = line.replace(" · ", "  ")
    assert figures(at(shown, 7), len(narrow)) == narrow
    assert figures(at(shown, 7), 78) == narrow.replace("tokens ", "")
    assert len(figures(at(shown, 7), 78)) <= 78
    assert figures(shown, 120) == line.replace("rate 7", "rate 9")
    assert "cost ?" in figures(at(shown, 7, is_priced=False), 120)


def test_rates_are_of_minutes_in_which_a_process_was_at_work() -> None:
    half = column(4, width=10, lived=5)
    assert BY_NAME["rate"].value(half) == 8.0
    assert BY_NAME["rate"].value(column(4, width=10)) == 4.0
    assert BY_NAME["rate"].value(column(4, row=None)) == 0.0
    assert BY_NAME["rate"].value(column(4, row=None, lived=0)) is None
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
        ("rate", course(), "The charts start after the first full minute"),
        (
            "rate",
            course(column(0, lived=0, row=None), marks=((1, "began"),)),
            "first full minute",
        ),
        ("rate", course(column(0, lived=0, row=None)), "z shows a longer one"),
        ("in-flight", course(column(0, in_flight=None)), "are unknown if"),
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


KNOWN = HeadlineProgress().started(0).answered(10, HEADLINE)
OF = "so far, of 812 done tasks, as of event 12,345, computed "


@pytest.mark.parametrize(
    ("reckoning", "said"),
    [
        (HeadlineProgress(), "not computed yet: r does"),
        (HeadlineProgress().started(38), "computing for 12 s"),
        (KNOWN, f"{OF}40 s ago"),
        (
            KNOWN.answered(10, replace(HEADLINE, seq=0, is_partial=False)),
            "of 812 done tasks, of the newest scoring",
        ),
        (KNOWN.started(49), f"{OF}40 s ago · computing for 1.0 s"),
        (
            KNOWN.started(49).failed(50, "the corpus is gone"),
            f"not computed: the corpus is gone; r tries again · {OF}40 s ago",
        ),
    ],
)
def test_what_it_is_made_of_and_how_old_it_is_comes_first(
    reckoning: HeadlineProgress, said: str
) -> None:
    assert provenance(HeadlineState(reckoning=reckoning, now_s=50)) == said


@pytest.mark.parametrize(("width", "height"), [(116, 8), (96, 5), (76, 14), (156, 40)])
def test_it_fits_its_room_and_counts_what_does_not(width: int, height: int) -> None:
    room = Room(width=width, height=height, glyphs=UNICODE)
    lines = headline(HeadlineState(reckoning=KNOWN, now_s=50), room).plain.split("\n")
    assert len(lines) <= height
    assert max(map(len, lines)) <= width
    assert "95% interval" in lines[1]
    assert "0.5000" in lines[2]
    shown = sum("metric_" in line for line in lines)
    more = 24 - shown
    assert lines[-1].strip().startswith(f"and {more} more" if more else "metric_11")


def test_names_from_outside_and_figures_without_an_interval_do_no_harm() -> None:
    metric = HeadlineMetric(path=HOSTILE, model=HOSTILE, value=7, n=7, lo=None, hi=None)
    found = Headline(metrics=(metric,), level=None, seq=1, ended=1, is_partial=False)
    known = HeadlineProgress().started(0).answered(0, found)
    room = Room(width=100, height=8, glyphs=UNICODE)
    text = headline(HeadlineState(reckoning=known, now_s=1), room).plain
    assert "\x1b" not in text
    _, heads, row = text.split("\n")
    assert "interval" in heads.split()
    assert row.split()[-3:] == ["7", "-", "7"]


def test_a_metric_has_its_name_and_where_there_is_room_its_key() -> None:
    metric = HeadlineMetric(
        path="all.micro.sensitivity",
        name="Sensitivity",
        model="m",
        value=0.5,
        n=7,
        lo=0.25,
        hi=0.75,
    )
    found = Headline(metrics=(metric,), level=0.9, seq=1, ended=1, is_partial=False)
    known = HeadlineProgress().started(0).answered(0, found)
    shown = {}
    for width in (76, 110):
        room = Room(width=width, height=8, glyphs=UNICODE)
        text = headline(HeadlineState(reckoning=known, now_s=1), room).plain
        _, heads, row = text.split("\n")
        shown[width] = (heads.split(), row.split())
    assert shown[110] == (
        ["metric", "model", "value", "90%", "interval", "n", "key"],
        ["Sensitivity", "m", "0.5000", "0.2500–0.7500", "7", "all.micro.sensitivity"],
    )
    assert shown[76] == tuple(cells[:-1] for cells in shown[110])
