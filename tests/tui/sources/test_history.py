"""What is read off charts: a minute that stays while columns come and change.

A run's course in columns: gaps are gaps, and what happened is told once.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.events import (
    CommandAccepted,
    CommandApplied,
    CommandRejected,
    Event,
    RecordedEvent,
    RunDrained,
    RunFinished,
    RunPaused,
    RunResumed,
    TasksReopened,
    UnknownEvent,
)
from store.read.history import ConcurrencyLimit
from tests.store.samples import RUN_STARTED
from tui.screens.metrics import TimeCursor
from tui.sources.history import (
    US_PER_MINUTE,
    HistoryColumn,
    HistoryRequest,
    RunHistory,
    WorkedMinutes,
    extent,
    limits_at,
    lived,
    run_marks,
    under_way,
    whole_until,
    width_for,
    worked_minutes,
)


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


RESUMED = RunResumed(code_sha256="", settings="{}", unknown=2)
DRAINED = RunDrained(by="operator", why="drained on request", open=1)
FINISHED = RunFinished(completed=1, failed=0, skipped=0)


def recorded(*events: tuple[int, Event | UnknownEvent]) -> list[RecordedEvent]:
    """Events, each with the minute that it was recorded in."""
    return [
        RecordedEvent(
            seq=number, ts_us=t * US_PER_MINUTE, epoch=1, event=event, payload_bytes=0
        )
        for number, (t, event) in enumerate(events, start=1)
    ]


def spans(*ends: tuple[int, int]) -> tuple[WorkedMinutes, ...]:
    return tuple(WorkedMinutes(first=first, last=last) for first, last in ends)


@pytest.mark.parametrize(
    ("events", "lasts", "beat", "worked"),
    [
        ([(3, RUN_STARTED)], {}, 9, spans((3, 9))),
        ([(3, RUN_STARTED)], {}, None, spans((3, 3))),
        ([(3, RUN_STARTED), (5, DRAINED)], {}, 9, spans((3, 5))),
        ([(3, RUN_STARTED), (8, RESUMED)], {2: 5}, 9, spans((3, 5), (8, 9))),
        ([(3, RUN_STARTED), (8, RESUMED)], {}, 9, spans((3, 3), (8, 9))),
        # a minute of two processes is one minute
        ([(3, RUN_STARTED), (5, DRAINED), (5, RESUMED)], {}, 7, spans((3, 5), (6, 7))),
        ([(3, RUN_STARTED), (3, DRAINED), (3, RESUMED)], {}, 3, spans((3, 3))),
        ([], {}, 9, ()),
    ],
)
def test_minutes_with_a_process_at_work(
    events: Sequence[tuple[int, Event]],
    lasts: dict[int, int],
    beat: int | None,
    worked: tuple[WorkedMinutes, ...],
) -> None:
    found = worked_minutes(
        recorded(*events),
        {seq: minute * US_PER_MINUTE for seq, minute in lasts.items()},
        None if beat is None else beat * US_PER_MINUTE,
    )
    assert found == worked


def test_only_what_lies_within_a_column_counts_as_lived() -> None:
    worked = spans((3, 5), (8, 9))
    assert [lived(worked, first, first + 3) for first in (0, 3, 6, 9)] == [0, 3, 1, 1]


def test_the_minute_that_is_not_over_is_left_out_and_an_end_is_not() -> None:
    assert whole_until(spans((3, 9)), now=9) == 9
    assert whole_until(spans((3, 9)), now=500) == 10
    assert whole_until((), now=9) == 9


@given(st.integers(-5, 10**6), st.integers(-1, 400))
def test_the_width_is_the_finest_that_fits(minutes: int, columns: int) -> None:
    width = width_for(minutes, columns)
    room = max(1, columns)
    assert minutes <= width * room
    finer = [
        each for each in range(1, width) if width_for(each * room, columns) == each
    ]
    assert all(minutes > each * room for each in finer)


@given(
    st.sampled_from((15, 60, 360, None)),
    st.integers(2, 300),
    st.integers(0, 20_000),
    st.integers(1, 20_000),
)
def test_columns_hold_all_minutes_of_the_window_in_the_room_there_is(
    minutes: int | None, columns: int, begin: int, length: int
) -> None:
    until = begin + length
    ask = HistoryRequest(minutes=minutes, columns=columns, model=None)
    part = extent(ask, spans((begin, until)), until)
    assert 0 < len(part.numbers) <= columns
    since = begin if minutes is None else max(begin, until - minutes)
    assert part.first <= since < part.first + part.width
    last = part.numbers[-1] * part.width
    assert last < until <= last + part.width


def test_edges_of_columns_stay_where_they_are_as_time_goes_on() -> None:
    ask = HistoryRequest(minutes=360, columns=100, model=None)
    parts = [extent(ask, spans((0, 9)), until) for until in (1000, 1001, 1007)]
    assert {part.width for part in parts} == {5}


@given(
    st.integers(0, 5),
    st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 2)), min_size=2),
)
def test_calls_under_way_are_told_only_where_the_books_balance(
    before: int, steps: list[tuple[int, int]]
) -> None:
    nets, lost = ([step[at] for step in steps] for at in (0, 1))
    levels = [before + sum(nets[:n]) - sum(lost[:n]) for n in range(1, len(nets) + 1)]
    found = under_way(before, nets, lost, levels[-1])
    assert found == (levels[:-1] if min(levels) >= 0 else None)
    assert under_way(before, nets, lost, levels[-1] + 1) is None


def test_limits_of_all_models_are_summed_and_unknown_before_they_were_seen() -> None:
    seen = [
        ConcurrencyLimit(at_us=20, model="a", concurrency=8),
        ConcurrencyLimit(at_us=20, model="b", concurrency=2),
        ConcurrencyLimit(at_us=40, model="a", concurrency=4),
    ]
    assert limits_at(seen, [10, 20, 30, 40, 50], 0) == [None, None, 10, 10, 6]
    assert limits_at(seen, [30, 50], 30) == [None, 6]
    assert limits_at([], [30], 0) == [None]


def test_each_fact_leaves_one_mark_that_says_who() -> None:
    asked = [
        CommandAccepted(command=kind, kind=kind, author="ops", payload="{}")
        for kind in ("pause", "limits")
    ]
    marks = run_marks(
        recorded(
            (1, RUN_STARTED),
            (2, asked[0]),
            (2, RunPaused(by="ops", paused=True, stage="judge")),
            (2, CommandApplied(command="pause", effect="paused")),
            (3, RunPaused(by="resume", paused=False)),
            (4, asked[1]),
            (4, CommandApplied(command="limits", effect="every model: 6 at a time")),
            (5, CommandRejected(command="x", kind="retry", author="ops", reason="no")),
            (6, RESUMED),
            (7, TasksReopened(tasks=[1, 2], by="ops")),
            (8, DRAINED),
            (9, FINISHED),
            (9, UnknownEvent(kind="run_rested", version=1, facts=b"{}")),
        )
    )
    assert [mark.text for mark in marks] == [
        "started, sample-job",
        "paused: judge, by ops",
        "went on: the run, by resume",
        "every model: 6 at a time, by ops",
        "retry of ops refused: no",
        "resumed, 2 calls without outcome",
        "2 reopened, by ops",
        "ended with 1 open: drained on request",
        "finished",
    ]
