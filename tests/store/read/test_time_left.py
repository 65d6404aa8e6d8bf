"""How long a run still takes: its models work side by side, a model's stages share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.database import open_reader
from store.events import RunPaused
from store.read.forecast import ForecastInterval
from store.read.observed_work import (
    Break,
    CallTime,
    ModelLimit,
    ObservedWork,
    work_breaks,
)
from store.read.remaining import Remaining, remaining_tasks
from store.read.status import QueueCounts
from store.read.time_left import TimeLeft, time_left
from store.task import TaskState
from tests.replacing import replace
from tests.store.logs import taken_up_again, written
from tests.store.samples import RUN_STARTED

S = TaskState
MINUTE_US = 60_000_000
START_US = 1_000 * MINUTE_US


@dataclass(frozen=True)
class Minute:
    """What one stage and model did in a minute since the start."""

    minute: int
    ended: int
    stage: str = "ask"
    model: str = "m"
    running: int = 0
    retried: int = 0

    @property
    def t(self) -> int:
        return 1_000 + self.minute

    @property
    def started(self) -> int:
        return self.ended + self.running + self.retried


def queue(stage: str, queued: int, *, model: str = "m", done: int = 0) -> QueueCounts:
    states = {S.COMPLETED: done, S.QUEUED: queued}
    return QueueCounts(stage=stage, model=model, states=states)


def planned(*queues: QueueCounts) -> Remaining:
    """Tasks without follow-ups."""
    stages = tuple(dict.fromkeys(each.stage for each in queues))
    return remaining_tasks(
        queues,
        order=stages,
        first=stages,
        expected=None,
        consumed=0,
        is_exhausted=True,
    )


def seen(rows: Iterable[Minute], minutes: float, **changed: Any) -> ObservedWork:
    """What was seen when *minutes* had passed; a second a call, all rate-limited."""
    listed = list(rows)
    fields: dict[str, Any] = {
        "rows": sorted(listed, key=lambda row: row.minute),
        "now_us": START_US + round(minutes * MINUTE_US),
        "started_us": START_US,
        "call_times": {
            (row.stage, row.model): CallTime(n=100, mean_s=1.0) for row in listed
        },
        "running": {},
        "limits": {},
    }
    return ObservedWork(**(fields | changed))


def steady(count: int, **named: Any) -> list[Minute]:
    return [Minute(minute=at, ended=count, **named) for at in range(10)]


def seconds(found: TimeLeft) -> ForecastInterval:
    assert found.seconds is not None
    return found.seconds


def test_stages_of_a_model_share_its_speed() -> None:
    rows = steady(30, stage="ask") + steady(30, stage="judge")
    work = planned(queue("ask", 300), queue("judge", 300))
    found = seconds(time_left(work, seen(rows, 10)))
    # a maximum over stages would be 600 s as well, but only by chance: see below
    assert found.expected == pytest.approx(600, rel=0.05)
    uneven = planned(queue("ask", 500), queue("judge", 100))
    assert seconds(time_left(uneven, seen(rows, 10))).expected == pytest.approx(
        600, rel=0.05
    )


def test_models_do_not_and_the_slowest_decides() -> None:
    rows = steady(60, model="fast") + steady(10, model="slow")
    work = planned(queue("ask", 60, model="fast"), queue("ask", 60, model="slow"))
    found = seconds(time_left(work, seen(rows, 10)))
    assert found.expected == pytest.approx(360, rel=0.05)


def test_models_that_share_a_learned_limit_finish_together() -> None:
    rows = steady(30, model="a") + steady(30, model="b")
    limits = {name: ModelLimit(concurrency=256, rpm=60.0) for name in "ab"}
    work = planned(queue("ask", 60, model="a"), queue("ask", 300, model="b"))
    alone = seconds(time_left(work, seen(rows, 10)))
    shared = seconds(time_left(work, seen(rows, 10, limits=limits)))
    assert alone.expected == pytest.approx(600, rel=0.05)
    assert shared.expected == pytest.approx(360, rel=0.05)
    # by hand each has such a limit of its own, and both together exceed it
    rows = steady(60, model="a") + steady(60, model="b")
    own = seconds(time_left(work, seen(rows, 10, limits=limits)))
    assert own.expected == pytest.approx(300, rel=0.05)


def test_what_an_ended_model_leaves_of_a_shared_limit_goes_to_the_other() -> None:
    rows = steady(30, model="a") + steady(30, model="b")
    limits = {name: ModelLimit(concurrency=256, rpm=60.0) for name in "ab"}
    work = planned(queue("ask", 0, model="a", done=300), queue("ask", 300, model="b"))
    found = seconds(time_left(work, seen(rows, 10, limits=limits)))
    assert found.expected == pytest.approx(300, rel=0.05)


def test_a_rate_shows_at_the_starts_of_calls_before_they_end() -> None:
    rows = [Minute(0, 20, running=40, retried=9)]
    # 60 a minute, of which 40 are on their way; retries are no new work
    for latency_s in (1.0, 40.0):
        times = {("ask", "m"): CallTime(n=20, mean_s=latency_s)}
        found = seconds(
            time_left(planned(queue("ask", 560)), seen(rows, 1, call_times=times))
        )
        assert found.expected == pytest.approx(560, rel=0.02)


def test_the_slowest_of_the_last_calls_decides_the_end() -> None:
    work = planned(queue("ask", 560))

    def at(spread: float, each_minute: int) -> float:
        times = {("ask", "m"): CallTime(n=600, mean_s=20.0, spread=spread)}
        rows = steady(each_minute)
        found = seconds(time_left(work, seen(rows, 10, call_times=times)))
        return found.expected - 560 / (each_minute / 60)

    assert at(0.0, 60) == pytest.approx(0, abs=1)
    # of 20 calls in flight the slowest takes 1.67 standard deviations of the logarithm
    # more than the median: 46 s of a mean of 20
    assert at(0.6, 60) == pytest.approx(
        20 * (math.exp(0.6 * 1.67 - 0.18) - 1), rel=0.02
    )
    assert at(0.6, 60) < at(0.6, 600)


def test_minutes_of_an_outage_hardly_count() -> None:
    rows = [Minute(minute=at, ended=2 if at in {5, 6, 7} else 60) for at in range(10)]
    found = seconds(time_left(planned(queue("ask", 600)), seen(rows, 10)))
    assert found.expected == pytest.approx(600, rel=0.1)


def test_a_paused_model_has_no_part_in_the_time() -> None:
    rows = [
        *steady(60, model="a"),
        *(Minute(minute=at, ended=60, model="b") for at in range(2)),
    ]
    work = planned(queue("ask", 600, model="a"), queue("ask", 900, model="b"))
    pause = Break(begin_us=START_US + 2 * MINUTE_US, end_us=None, model="b")
    observed = seen(rows, 10, breaks=(pause,))
    found = time_left(work, observed, lambda _, model: model == "b")
    assert seconds(found).expected == pytest.approx(600, rel=0.05)
    assert found.paused == 900
    assert [stage.left for stage in found.stages] == [1500]
    # eight minutes without a call are no slow ones once it goes on
    ended = replace(observed, breaks=(replace(pause, end_us=observed.now_us),))
    assert seconds(time_left(work, ended)).expected == pytest.approx(900, rel=0.05)


def test_a_stage_that_is_paused_as_a_whole_has_no_time() -> None:
    rows = steady(30, stage="ask") + steady(30, stage="judge")
    work = planned(queue("ask", 300), queue("judge", 300))
    ask, judge = time_left(
        work, seen(rows, 10), lambda stage, _: stage == "judge"
    ).stages
    assert ask.seconds is not None
    assert (judge.left, judge.seconds) == (300, None)


def test_one_model_that_goes_on_gets_the_rest_of_a_shared_limit() -> None:
    rows = [
        *(Minute(minute=at, ended=30, model="b") for at in range(2)),
        *(Minute(minute=at, ended=30, model="a") for at in range(2)),
        *(Minute(minute=at, ended=60, model="a") for at in range(2, 20)),
    ]
    limits = {name: ModelLimit(concurrency=256, rpm=60.0) for name in "ab"}
    work = planned(queue("ask", 600, model="a"), queue("ask", 900, model="b"))
    pause = Break(begin_us=START_US + 2 * MINUTE_US, end_us=None, model="b")
    found = time_left(
        work,
        seen(rows, 20, limits=limits, breaks=(pause,)),
        lambda _, model: model == "b",
    )
    assert seconds(found).expected == pytest.approx(600, rel=0.15)


@given(running=st.integers(0, 10))
def test_calls_in_flight_do_not_move_a_settled_forecast(running: int) -> None:
    work = planned(queue("ask", 600))
    usual = {"limits": {"m": ModelLimit(concurrency=10, rpm=None)}}
    found = [
        seconds(
            time_left(work, seen(steady(540), 10, running={("ask", "m"): n}, **usual))
        ).expected
        for n in (9, running)
    ]
    assert found[1] == pytest.approx(found[0], rel=0.05)


def test_longer_calls_are_more_work_where_slots_are_the_limit() -> None:
    rows = [*steady(600, stage="ask"), Minute(9, 110, "judge"), Minute(10, 0)]
    work = planned(queue("ask", 0), queue("judge", 100))
    times = {
        ("ask", "m"): CallTime(n=600, mean_s=1.0),
        ("judge", "m"): CallTime(n=600, mean_s=5.0),
    }
    busy = {
        "running": {("judge", "m"): 10},
        "limits": {"m": ModelLimit(concurrency=10, rpm=None)},
    }
    found = seconds(time_left(work, seen(rows, 10, call_times=times, **busy)))
    # ten slots with five seconds each do two tasks a second, whatever came before
    assert found.expected == pytest.approx(50, rel=0.25)


def test_minutes_before_a_change_of_speed_do_not_count() -> None:
    def left(before: int) -> float:
        rows = [Minute(minute=at, ended=before if at < 15 else 30) for at in range(20)]
        return seconds(time_left(planned(queue("ask", 600)), seen(rows, 20))).expected

    assert left(before=60) == pytest.approx(1200)
    assert 1030 < left(before=35) < 1190  # which may be chance


def test_an_outage_that_lasts_is_no_new_speed() -> None:
    rows = [Minute(minute=at, ended=60) for at in range(10)]
    found = seconds(time_left(planned(queue("ask", 600)), seen(rows, 12)))
    assert 599 < found.expected < 1200


def test_a_model_gets_what_another_leaves_only_as_far_as_its_slots_allow() -> None:
    rows = [
        *(Minute(minute=at, ended=60, model="a") for at in range(10)),
        *(Minute(minute=at, ended=60, model="b") for at in range(10)),
    ]
    work = planned(queue("ask", 600, model="a"), queue("ask", 1200, model="b"))
    times = {("ask", name): CallTime(n=600, mean_s=8.0) for name in "ab"}

    def left(ceiling: int) -> float:
        limits = {
            "a": ModelLimit(concurrency=64, rpm=120.0),
            "b": ModelLimit(concurrency=ceiling, rpm=120.0, ceiling=ceiling),
        }
        given = {"call_times": times, "limits": limits}
        return seconds(time_left(work, seen(rows, 10, **given))).expected

    assert left(64) == pytest.approx(900, rel=0.1)  # two a second together
    assert left(12) == pytest.approx(1000, rel=0.1)  # 600 s, then 1.5 a second


def test_a_limiter_that_has_just_started_is_expected_to_grow() -> None:
    rows = [Minute(minute=0, ended=30, running=16)]
    work = planned(queue("ask", 6000))
    given: dict[str, Any] = {
        "call_times": {("ask", "m"): CallTime(n=30, mean_s=8.0)},
        "running": {("ask", "m"): 16},
    }

    def left(ceiling: int | None) -> float:
        limits = {"m": ModelLimit(concurrency=16, rpm=None, ceiling=ceiling)}
        return seconds(
            time_left(work, seen(rows, 0.5, limits=limits, **given))
        ).expected

    assert left(16) == pytest.approx(left(None))
    assert left(16) / 4 < left(64) < left(16) / 1.5


def test_less_is_known_from_fewer_calls() -> None:
    work = planned(queue("ask", 600, done=4))
    few = seconds(time_left(work, seen([Minute(minute=0, ended=4)], 0.5)))
    many = seconds(time_left(work, seen([Minute(minute=0, ended=400)], 0.5)))
    assert few.high is not None
    assert many.high is not None
    assert few.high / few.low > many.high / many.low


def test_before_the_first_answer_nothing_is_known() -> None:
    found = time_left(planned(queue("ask", 600)), seen([], 0.1))
    assert found.seconds is None
    assert [(stage.left, stage.seconds) for stage in found.stages] == [(600, None)]


def test_a_pause_of_four_seconds_changes_nothing() -> None:
    rows = [Minute(minute=0, ended=60), Minute(minute=1, ended=30)]
    work = planned(queue("ask", 600))
    before = time_left(work, seen(rows, 1.5))
    pause = Break(begin_us=START_US + 90_000_000, end_us=None)
    during = time_left(work, replace(seen(rows, 1.5 + 2 / 60), breaks=(pause,)))
    after = time_left(
        work,
        replace(
            seen(rows, 1.5 + 4 / 60),
            breaks=(replace(pause, end_us=START_US + 94_000_000),),
        ),
    )
    assert before.seconds is not None
    assert before == during == after


def test_a_night_without_a_process_does_not_slow_the_run() -> None:
    rows = [Minute(minute=0, ended=60), Minute(minute=600, ended=60)]
    night = Break(begin_us=START_US + MINUTE_US, end_us=START_US + 600 * MINUTE_US)
    work = planned(queue("ask", 600))
    found = seconds(time_left(work, seen(rows, 601, breaks=(night,))))
    assert found.expected == pytest.approx(600, rel=0.05)


def test_pauses_of_the_run_and_of_models_are_breaks(
    path: Path,
) -> None:
    course: list[list[Any]] = [
        [RUN_STARTED],
        [RunPaused(by="a", paused=True)],
        [RunPaused(by="b", paused=True)],
        [RunPaused(by="a", paused=False)],
        [RunPaused(by="a", paused=True, stage="ask")],
        [RunPaused(by="a", paused=False, stage="ask")],
        [RunPaused(by="a", paused=True, model="m")],
        [RunPaused(by="a", paused=True)],
        [RunPaused(by="a", paused=False, model="m")],
    ]
    with open_reader(written(path, *course)) as reader:
        first, last, of_model = work_breaks(reader)
    assert first.end_us is not None
    assert first.begin_us < first.end_us < last.begin_us
    assert last.end_us is None
    assert of_model.model == "m"
    assert of_model.begin_us < last.begin_us
    assert of_model.end_us is not None


def test_the_time_without_a_process_is_a_break(path: Path) -> None:
    with open_reader(taken_up_again(path)) as reader:
        (gap,) = work_breaks(reader)
    assert gap.end_us is not None
    assert (gap.end_us - gap.begin_us) / 1e6 == pytest.approx(80, abs=1)


def test_a_stage_that_gets_no_more_tasks_ends_before_the_run() -> None:
    rows = steady(30, stage="ask") + steady(30, stage="judge")
    work = planned(queue("ask", 500), queue("judge", 100))
    ask, judge = time_left(work, seen(rows, 10)).stages
    assert ask.seconds is not None
    assert judge.seconds is not None
    assert judge.seconds.expected < ask.seconds.expected / 4


counts = st.integers(0, 500)


@given(
    st.lists(st.tuples(counts, counts, counts), max_size=40),
    counts,
    counts,
    st.floats(0.01, 50),
    st.integers(0, 30),
)
def test_every_time_lies_in_its_interval_and_repeats(
    ended: list[tuple[int, int, int]],
    asks: int,
    judged: int,
    minutes: float,
    running: int,
) -> None:
    rows = [
        Minute(minute=at, ended=n, stage=stage, model=model)
        for at, row in enumerate(ended)
        for n, (stage, model) in zip(
            row, (("ask", "m"), ("judge", "m"), ("ask", "n")), strict=True
        )
        if at < minutes
    ]
    work = planned(
        queue("ask", asks), queue("judge", judged), queue("ask", asks, model="n")
    )
    limits: Mapping[str, ModelLimit] = {"m": ModelLimit(concurrency=8, rpm=100.0)}
    observed = {"running": {("ask", "m"): running}, "limits": limits}
    found = time_left(work, seen(rows, minutes, **observed))
    assert found == time_left(work, seen(rows, minutes, **observed))
    for span in (found.seconds, *(stage.seconds for stage in found.stages)):
        if span is not None:
            assert 0 <= span.low <= span.expected
            assert span.high is None or span.expected <= span.high
