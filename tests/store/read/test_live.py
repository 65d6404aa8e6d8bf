"""One number has one value: what all readers take from a run's present.

What a run is doing, as its projections have it.
"""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from runner.cli.status import forecast_json, status_json
from runner.cli.status_page import progress_facts
from store.database import connect, open_reader, read_transaction
from store.events import Entry, Event, RunCancelled, RunFinished, TaskSkipped
from store.log.interface import Heartbeat
from store.read.course import Course
from store.read.forecast import rate_text
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
from store.read.observed_work import Break
from store.read.remaining import remaining_cost, remaining_tasks
from store.read.status import Pause, status
from store.runs import RunFolder
from tests.replacing import replace
from tests.store.logs import COURSE, written
from tests.store.memory_log import START_US
from tests.store.samples import (
    RUN_STARTED,
    answered,
    completed,
    plan,
    plan_first,
    started,
    task,
)
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


PAST = Course(started_us=START_US, ended_us=None, worked_us=0, sessions=1)


def first_us(after_us: int) -> int:
    """The start of the next minute."""
    return (after_us // MINUTE_US + 1) * MINUTE_US


@pytest.fixture
def busy(tmp_path: Path) -> LiveStatus:
    """A run in its seventh minute, with 40 completed in each whole one."""
    more = [task(number) for number in range(6, 86)]
    path = written(tmp_path / "log.db", *COURSE[:7], [plan(more, first=6)])
    with open_reader(path) as reader:
        seen = live_status(reader, START_US, is_held=True)
    now_us = START_US + (MINUTES + 1) * MINUTE_US
    first = START_US // MINUTE_US + 1
    queues = tuple(lane for lane in seen.status.queues if lane.stage == "ask")
    remaining = remaining_tasks(
        queues,
        order=("ask",),
        first=("ask",),
        expected=None,
        consumed=85,
        is_exhausted=True,
    )
    status = replace(
        seen.status,
        created_us=first_us(START_US),
        cost_usd=2.0,
        signs=replace(seen.status.signs, heartbeat_us=now_us, running=0),
        queues=queues,
        remaining=remaining,
        remaining_cost=remaining_cost(
            remaining, {("ask", "m-large"): (1.0, 100)}, None
        ),
    )
    rows = [_minute(first + at, 40) for at in range(MINUTES)]
    return replace(seen, status=status, rows=rows, now_us=now_us)


def test_rates_are_of_the_last_minutes_and_the_end_follows(busy: LiveStatus) -> None:
    assert (busy.state, busy.recent_minutes, busy.rate) == ("live", 5, 40.0)
    assert busy.cost_an_hour == pytest.approx(24.0)
    told = busy.forecast
    assert told is not None
    (stage,) = told.stages
    assert told.seconds is not None
    assert told.seconds.expected == pytest.approx(60 * stage.left / 40, rel=0.02)
    assert busy.comes_to_usd is not None
    assert busy.comes_to_usd.expected == pytest.approx(2.0 + 0.01 * stage.left)


def test_a_budget_that_stops_the_run_says_when(busy: LiveStatus) -> None:
    forecast = busy.forecast
    assert forecast is not None
    assert forecast.seconds is not None
    assert forecast.cost_usd is not None
    half = 2.0 + forecast.cost_usd.expected / 2
    seen = replace(busy, status=replace(busy.status, budget_usd=half))
    stop = seen.forecast.budget_seconds if seen.forecast else None
    assert stop is not None
    assert stop.expected == pytest.approx(forecast.seconds.expected / 2, rel=0.05)
    assert stop.low < stop.expected
    assert stop.high is not None
    assert stop.high > stop.expected
    facts = {fact.label: fact.text for fact in progress_facts(seen, PAST)}
    assert facts["stops"].startswith("budget spent in ")
    shown = forecast_json(seen)
    assert shown is not None
    assert shown["budget_seconds"]["expected"] == pytest.approx(stop.expected, abs=0.1)


@pytest.mark.parametrize(("budget_usd", "group"), [(100.0, None), (2.1, "trial")])
def test_a_budget_that_lasts_or_is_shared_says_nothing(
    busy: LiveStatus, budget_usd: float, group: str | None
) -> None:
    status = replace(busy.status, budget_usd=budget_usd, group=group)
    forecast = replace(busy, status=status).forecast
    assert forecast is not None
    assert forecast.budget_seconds is None


def test_a_budget_that_is_spent_stops_the_run_at_once(busy: LiveStatus) -> None:
    status = replace(busy.status, budget_usd=1.5)
    forecast = replace(busy, status=status).forecast
    assert forecast is not None
    assert forecast.budget_seconds is not None
    assert forecast.budget_seconds.expected == 0.0


def test_programs_and_people_are_told_the_same_end(busy: LiveStatus) -> None:
    told, shown = busy.forecast, forecast_json(busy)
    assert told is not None
    assert told.seconds is not None
    assert shown is not None
    assert shown["seconds"]["expected"] == pytest.approx(told.seconds.expected, abs=0.1)
    assert shown["stages"][0]["left"] == told.stages[0].left
    facts = {fact.label: fact.text for fact in progress_facts(busy, PAST)}
    assert list(facts) == ["progress", "left", "cost", "projected", "rate"]
    assert facts["left"].endswith("); 9 of 10 runs end within it")
    assert facts["rate"] == rate_text(busy.rate or 0)
    as_json = status_json(busy)
    assert as_json["tasks_a_minute"] == 40.0
    assert as_json["left_s"] == shown["seconds"]
    assert as_json["progress"] == {
        "done": busy.progress.done,
        "remaining": {
            "low": busy.progress.remaining.low,
            "expected": busy.progress.remaining.expected,
            "high": busy.progress.remaining.high,
        },
        "share": round(busy.progress.share, 4),
    }


def test_what_holds_still_keeps_the_time_that_its_work_takes(busy: LiveStatus) -> None:
    now_us = busy.now_us + 4_000_000
    held = replace(busy.status.signs, paused_by="ops", heartbeat_us=now_us)
    pause = Break(begin_us=busy.now_us, end_us=None)
    status = replace(busy.status, signs=held, breaks=(pause,))
    paused = replace(busy, status=status, now_us=now_us)
    assert (paused.state, paused.rate) == ("paused", None)
    assert paused.forecast == busy.forecast
    assert paused.progress == busy.progress


def test_a_forecast_sets_apart_what_a_pause_of_a_part_holds(busy: LiveStatus) -> None:
    pause = Pause(stage="ask", model=None, by="ops")
    held = replace(busy, status=replace(busy.status, pauses=(pause,)))
    assert held.state == "live"
    assert held.forecast is not None
    assert held.forecast.paused_tasks == round(busy.status.remaining.left) > 0


def test_a_killed_run_has_its_progress_and_no_end(busy: LiveStatus) -> None:
    killed = replace(busy, is_alive=False)
    assert (killed.state, killed.forecast) == ("lost", None)
    assert killed.progress == busy.progress
    as_json = status_json(killed)
    assert (as_json["left_s"], as_json["forecast"]) == (None, None)


def test_a_finished_run_is_all_done(path: Path) -> None:
    ended = RunFinished(completed=1, failed=0, skipped=0)
    course = ([RUN_STARTED], [plan_first(1)], [started(1), answered(1), completed(1)])
    with open_reader(written(path, *course, [ended])) as reader:
        seen = live_status(reader, START_US, is_held=False)
    assert (seen.state, seen.progress.share, seen.forecast) == ("finished", 1.0, None)


def test_a_cancelled_run_lacks_what_its_end_skipped(path: Path) -> None:
    course: list[list[Entry | Event]] = [
        [RUN_STARTED],
        [plan_first(4)],
        [started(1), answered(1), completed(1)],
        [*(TaskSkipped(task=number, reason="cancelled") for number in (2, 3, 4))],
        [RunCancelled(by="ops")],
    ]
    with open_reader(written(path, *course)) as reader:
        seen = live_status(reader, START_US, is_held=False)
    assert (seen.state, seen.progress.share) == ("cancelled", 0.25)


def test_first_seconds_have_a_rate(busy: LiveStatus) -> None:
    now_us = busy.status.created_us + 20_000_000
    first = [_minute(now_us // MINUTE_US, 10)]
    signs = replace(busy.status.signs, heartbeat_us=now_us)
    young = replace(
        busy, rows=first, now_us=now_us, status=replace(busy.status, signs=signs)
    )
    assert young.rate == pytest.approx(30.0)
    assert replace(young, now_us=now_us - 19_000_000).rate is None


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
    assert eta(shown).startswith("2.0 min")


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
