"""Courses over time: they fill the age of the run, and count each task once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.fold_state import US_PER_S
from store.read.history import CompletedSecond, Completions
from tests.replacing import replace
from tests.tui.sights import later, snapshot, with_signs
from tui.render.glyphs import UNICODE
from tui.render.layout import Room
from tui.render.pace import STEPS, TASKS_A_STEP, completed, cost, per_second
from tui.render.progress import rate
from tui.sources.run_snapshot import RunSnapshot

MINUTE = 60


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> RunSnapshot:
    return snapshot(tmp_path_factory.mktemp("pace") / "r1")


def aged(
    seen: RunSnapshot,
    seconds: int,
    *,
    rate: int = 1,
    since_s: int = 0,
    by_minute: Mapping[int, int] | None = None,
) -> RunSnapshot:
    """A run of some age that completed *rate* tasks in each second.

    Its seconds are known from *since_s* after the start on.
    """
    start = seen.created_us // US_PER_S
    end = start + seconds
    counted: dict[int, int] = {}
    for second in range(start, end):
        counted[second // MINUTE] = counted.get(second // MINUTE, 0) + rate
    completions = Completions(
        since_us=(start + since_s) * US_PER_S,
        seconds=tuple(
            CompletedSecond(second=second, n=rate, cost_usd=0.5)
            for second in range(start + since_s, end)
        ),
    )
    seen = later(seen, seconds)
    facts = replace(
        seen.facts,
        completed=counted if by_minute is None else by_minute,
        completions=completions,
    )
    seen = replace(seen, facts=facts)
    return with_signs(seen, heartbeat_us=seen.now_us, success_us=seen.now_us)


@given(
    seconds=st.integers(11, 100_000),
    rate=st.integers(1, 40),
    columns=st.integers(20, 250),
    is_over=st.booleans(),
)
def test_a_chart_is_filled_by_the_age_of_the_run(
    live: RunSnapshot, seconds: int, rate: int, columns: int, *, is_over: bool
) -> None:
    # what the minutes hold does not matter to where the steps are
    seen = aged(live, 0)
    counted = {0: rate * seconds}
    facts = replace(seen.facts, completed=counted)
    seen = later(replace(seen, facts=facts), seconds)
    seen = with_signs(seen, heartbeat_us=seen.now_us, success_us=seen.now_us)
    if is_over:
        seen = with_signs(seen, phase="run_finished", phase_us=seen.now_us)
    course = completed(seen, columns)
    window = seconds if is_over else min(seconds, 3600)
    if course is None:
        assert window < 3 * MINUTE
        return
    axis = course.axis
    assert axis.width in STEPS
    assert axis.count == len(course.values) <= max(columns, 60) + 1
    # less than a step is missing at either end
    assert axis.count * axis.width > window - 2 * axis.width
    if axis.width < MINUTE and window < 3600:
        assert rate * axis.width >= TASKS_A_STEP or axis.width * columns >= window


def test_a_steady_run_is_flat_whether_seconds_or_minutes_are_known(
    live: RunSnapshot,
) -> None:
    for since_s in (0, 130, 290):
        course = completed(aged(live, 300, since_s=since_s), 100)
        assert course is not None
        # steps before the seconds are known have the mean of their minute
        assert course.axis.width == 30
        assert set(course.values) == {60.0}


def test_seconds_that_are_neither_known_nor_in_a_minute_are_gaps(
    live: RunSnapshot,
) -> None:
    course = completed(aged(live, 300, since_s=180, by_minute={1: 240}), 100)
    assert course is not None
    assert course.axis.width == 30
    assert course.values == (None,) * 6 + (60.0,) * 4


def test_an_older_run_is_shown_in_minutes(live: RunSnapshot) -> None:
    course = completed(aged(live, 5 * 3600), 100)
    assert course is not None
    assert (course.axis.width, course.axis.count) == (MINUTE, 60)
    assert set(course.values) == {60.0}


def test_a_run_that_is_over_is_shown_as_a_whole_whenever_somebody_looks(
    live: RunSnapshot,
) -> None:
    seen = aged(live, 300)
    over = with_signs(seen, phase="run_finished", phase_us=seen.now_us)
    now, next_day = completed(over, 100), completed(later(over, 86_400), 100)
    assert now == next_day
    assert now is not None
    assert now.values == (60.0,) * 10


def test_before_the_first_minute_the_rate_is_that_of_seconds(live: RunSnapshot) -> None:
    assert per_second(aged(live, 5)) is None
    assert per_second(aged(live, 40)) == pytest.approx(1.0)
    assert completed(aged(live, 5), 100) is None
    paused = with_signs(aged(live, 40), paused_by="ops")
    assert per_second(paused) is None


def test_cost_is_per_hour(live: RunSnapshot, tmp_path: Path) -> None:
    del tmp_path
    course = cost(aged(live, 300), 100)
    assert course is not None
    assert set(course.values) == {0.5 * 3600}


def test_the_mean_of_a_run_that_has_ended_is_over_its_sessions(
    live: RunSnapshot,
) -> None:
    day_us = 86_400 * US_PER_S
    over = with_signs(live, phase="run_finished", phase_us=live.created_us + day_us)
    over = replace(over, facts=replace(over.facts, worked_s=30.0))
    words = rate(over, Room(width=80, height=1, glyphs=UNICODE)).plain
    assert words == "1 task in 30 s, 2/min"
