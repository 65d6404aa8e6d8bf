"""One number has one value: what all readers take from a run's present."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

import pytest

from runner.cli.status import forecast_json, forecast_lines, status_json
from store.database import open_reader
from store.log.interface import Heartbeat
from store.read.live import LiveStatus, MinuteRow, is_working, live_status
from store.runs import RunFolder
from tests.store.logs import COURSE, written
from tests.store.memory_log import START_US
from tests.store.samples import plan, task
from tui.render.sentences import eta
from tui.sources.run_snapshot import RunSnapshot, RunSource

MINUTE_US = 60_000_000
MINUTES = 6


def _minute(t: int, n: int) -> MinuteRow:
    return MinuteRow(
        t=t,
        stage="ask",
        model="m-large",
        started=n,
        succeeded=n,
        failed=0,
        retried=0,
        tokens_in=10 * n,
        tokens_out=n,
        cost_usd=0.01 * n,
    )


@pytest.fixture
def busy(tmp_path: Path) -> LiveStatus:
    """A run in its seventh minute, with 40 completed in each whole one."""
    more = [task(number) for number in range(6, 86)]
    path = written(tmp_path / "log.db", *COURSE[:7], [plan(more, first=6)])
    with open_reader(path) as reader:
        seen = live_status(reader, START_US, is_held=True)
    now_us = START_US + (MINUTES + 1) * MINUTE_US
    first = START_US // MINUTE_US + 1
    status = replace(
        seen.status,
        cost_usd=2.0,
        signs=replace(seen.status.signs, heartbeat_us=now_us, running=0),
        queues=tuple(lane for lane in seen.status.queues if lane.stage == "ask"),
    )
    rows = [_minute(first + at, 40) for at in range(MINUTES)]
    return replace(seen, status=status, rows=rows, now_us=now_us)


def test_rates_are_of_whole_minutes_and_the_end_follows(busy: LiveStatus) -> None:
    assert (busy.state, busy.recent_minutes, busy.rate) == ("live", 5, 40.0)
    assert busy.cost_an_hour == pytest.approx(24.0)
    told = busy.forecast
    assert told is not None
    (stage,) = told.stages
    assert told.seconds is not None
    assert told.seconds.expected == pytest.approx(60 * stage.left / 40)
    assert busy.comes_to_usd is not None
    assert busy.comes_to_usd.expected == pytest.approx(2.0 + 0.01 * stage.left)


def test_programs_and_people_are_told_the_same_end(busy: LiveStatus) -> None:
    told, shown = busy.forecast, forecast_json(busy)
    assert told is not None
    assert told.seconds is not None
    assert shown is not None
    assert shown["seconds"]["expected"] == pytest.approx(told.seconds.expected, abs=0.1)
    assert shown["stages"][0]["left"] == told.stages[0].left
    assert [line.split()[0] for line in forecast_lines(busy)] == [
        "pace",
        "ETA",
        "comes",
    ]
    as_json = status_json(busy)
    assert (as_json["tasks_a_minute"], as_json["schema"]) == (40.0, 2)


def test_what_holds_still_has_no_end(busy: LiveStatus) -> None:
    held = replace(busy.status.signs, paused_by="ops")
    paused = replace(busy, status=replace(busy.status, signs=held))
    assert paused.state == "paused"
    assert (paused.forecast, paused.rate, paused.comes_to_usd) == (None, None, None)
    assert forecast_json(paused) is None
    assert forecast_lines(paused) == []


def test_too_few_tasks_say_how_many_are_wanting(busy: LiveStatus) -> None:
    young = replace(busy, rows=[_minute(busy.now_us // MINUTE_US - 1, 3)])
    assert young.forecast is not None
    assert forecast_json(young) is not None
    assert "needs more ended tasks: 27" in forecast_lines(young)[1]


def test_the_monitor_shows_what_the_verb_says(busy: LiveStatus, tmp_path: Path) -> None:
    class Clock:
        def now_us(self) -> int:
            return busy.now_us

        def monotonic(self) -> float:
            return 0.0

        async def sleep_until(self, when: float) -> None:
            raise AssertionError(when)

    with RunSource(RunFolder(tmp_path), Clock()) as source:
        seen = source.poll()
    assert isinstance(seen, RunSnapshot)
    facts = replace(seen.facts, status=busy.status, minutes=tuple(busy.rows))
    shown = replace(seen, facts=facts, is_alive=True)
    assert shown.forecast == busy.forecast
    assert shown.rate == busy.rate
    assert eta(shown).startswith("2 min")


def test_a_lock_that_is_free_says_nothing_of_another_machine() -> None:
    here = Heartbeat(at_us=1, pid=1, host=socket.gethostname())
    there = replace(here, host="elsewhere")
    assert is_working(is_held=True, heartbeat=there) is True
    assert is_working(is_held=False, heartbeat=there) is None
    assert is_working(is_held=False, heartbeat=here) is False
    assert is_working(is_held=False, heartbeat=None) is False
