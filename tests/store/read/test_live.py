"""One number has one value: what all readers take from a run's present.

What a run is doing, as its projections have it.
"""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from runner.cli.status import forecast_facts, forecast_json, status_json
from store.database import connect, open_reader, read_transaction
from store.log.interface import Heartbeat
from store.read.live import (
    LiveStatus,
    MinuteRow,
    completed_by_minute,
    data_version,
    is_working,
    latencies,
    live_status,
    minutes,
    oldest_in_flight,
)
from store.read.status import status
from store.runs import RunFolder
from tests.replacing import replace
from tests.store.logs import COURSE, written
from tests.store.memory_log import START_US
from tests.store.samples import RUN_STARTED, plan, plan_first, started, task
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
    assert [fact.label.split()[0] for fact in forecast_facts(busy)] == [
        "rate",
        "ETA",
        "forecast",
    ]
    as_json = status_json(busy)
    assert as_json["tasks_a_minute"] == 40.0


def test_what_holds_still_has_no_end(busy: LiveStatus) -> None:
    held = replace(busy.status.signs, paused_by="ops")
    paused = replace(busy, status=replace(busy.status, signs=held))
    assert paused.state == "paused"
    assert (paused.forecast, paused.rate, paused.comes_to_usd) == (None, None, None)
    assert forecast_json(paused) is None
    assert forecast_facts(paused) == []


def test_too_few_tasks_say_how_many_are_wanting(busy: LiveStatus) -> None:
    young = replace(busy, rows=[_minute(busy.now_us // MINUTE_US - 1, 3)])
    assert young.forecast is not None
    assert forecast_json(young) is not None
    assert "needs more ended tasks: 27" in forecast_facts(young)[1].text


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


MINUTE = START_US // 60_000_000


def test_the_minutes_of_a_run_add_up_to_it(path: Path) -> None:
    with open_reader(written(path, *COURSE)) as reader:
        rows = minutes(reader, MINUTE)
        told = status(reader)
        assert minutes(reader, MINUTE + 1) == []
        assert completed_by_minute(reader) == {MINUTE: told.tasks.completed}
    assert {row.t for row in rows} == {MINUTE}
    assert sum(row.succeeded for row in rows) == told.tasks.completed
    assert sum(row.ended for row in rows) == told.tasks.completed + told.tasks.failed
    assert sum(row.cost_usd for row in rows) == told.cost_usd
    assert sum(row.started for row in rows) == told.attempts.started


def test_latencies_are_told_by_model(path: Path) -> None:
    with open_reader(written(path, *COURSE)) as reader:
        found = latencies(reader)
    assert [each.model for each in found] == ["m-large", "m-small"]
    assert found[0].p50_ms == pytest.approx(101, rel=0.03)


def test_the_oldest_calls_come_first_and_only_as_many_as_asked(path: Path) -> None:
    course = ([RUN_STARTED], [plan_first(5)], *([started(n)] for n in (3, 1, 5)))
    with open_reader(written(path, *course)) as reader:
        found = oldest_in_flight(reader, 2)
    assert [(call.task, call.attempt, call.key) for call in found] == [
        (3, 1, "item-3"),
        (1, 1, "item-1"),
    ]


def test_what_others_commit_is_noticed_and_not_seen_within_one_moment(
    path: Path,
) -> None:
    written(path, *COURSE)
    with open_reader(path) as reader:
        before = data_version(reader)
        assert data_version(reader) == before
        with read_transaction(reader):
            told = status(reader)
            other = connect(path)
            other.execute("UPDATE heartbeat SET at_us = 7")
            other.close()
            assert status(reader).heartbeat == told.heartbeat
        assert data_version(reader) != before
        beat = status(reader).heartbeat
        assert beat is not None
        assert beat.at_us == 7
        assert not reader.in_transaction
