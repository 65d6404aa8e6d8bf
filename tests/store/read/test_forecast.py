"""When a run ends and what it costs follows from its last whole minutes.

An estimate against its run's course.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.events import ExpectedUsage
from store.read.forecast import (
    Forecast,
    UsageSoFar,
    best_rate,
    estimate_accuracy,
    forecast,
    left_by_stage,
)
from store.read.status import QueueCounts
from store.task import TaskState
from tests.replacing import replace

NOW = 1000


@dataclass(frozen=True)
class Minute:
    t: int
    ended: int
    cost_usd: float = 0.0
    stage: str = "ask"


def of(ended: list[int], left: dict[str, int], *, each_usd: float = 0.0) -> Forecast:
    """The forecast after minutes in which so many tasks ended, the last one first."""
    rows = [
        Minute(t=NOW - len(ended) + at, ended=n, cost_usd=n * each_usd)
        for at, n in enumerate(ended)
    ]
    return forecast(rows, left, since=NOW - len(ended), until=NOW)


def test_an_even_pace_leaves_no_doubt() -> None:
    told = of([50, 50, 50], {"ask": 100}, each_usd=0.5)
    assert told.seconds is not None
    assert told.seconds.low == told.seconds.expected == told.seconds.high == 120
    assert told.cost_usd is not None
    assert told.cost_usd.expected == pytest.approx(50)


def test_an_uneven_pace_widens_the_interval() -> None:
    told = of([10, 90, 20, 80, 30, 70, 5, 95, 12, 88] * 3, {"ask": 1000})
    assert told.seconds is not None
    assert told.seconds.low < told.seconds.expected
    assert told.seconds.high is not None
    assert told.seconds.expected < told.seconds.high


def test_too_few_completions_say_how_many_are_wanting() -> None:
    told = of([9, 9], {"ask": 100})
    assert told.seconds is None
    assert told.needs == 12
    assert told.cost_usd is None


def test_the_minute_that_is_not_over_and_those_before_the_work_do_not_count() -> None:
    rows = [Minute(t=NOW - 3, ended=1000), Minute(t=NOW, ended=1000)]
    assert forecast(rows, {"ask": 5}, since=NOW - 2, until=NOW).seconds is None


def test_only_as_many_minutes_count_as_hold_enough_completions() -> None:
    told = of([1000] * 5 + [30, 30], {"ask": 60})
    assert told.seconds is not None
    assert told.seconds.expected == 120


def test_the_slowest_stage_decides_and_one_without_work_does_not() -> None:
    rows = [
        Minute(t=t, ended=n, stage=stage)
        for t in (NOW - 2, NOW - 1)
        for stage, n in (("ask", 100), ("judge", 20))
    ]
    left = {"ask": 100, "judge": 100, "done": 0}
    told = forecast(rows, left, since=NOW - 2, until=NOW)
    assert told.seconds is not None
    assert told.seconds.expected == 300


def test_follow_ups_to_come_are_counted_as_those_that_came() -> None:
    lanes = [
        QueueCounts(
            stage="ask",
            model="m",
            states={TaskState.COMPLETED: 10, TaskState.QUEUED: 5},
        ),
        QueueCounts(
            stage="judge",
            model="m",
            states={
                TaskState.COMPLETED: 30,
                TaskState.RUNNING: 10,
                TaskState.SKIPPED: 9,
            },
        ),
    ]
    assert left_by_stage(lanes, {"ask"}) == {"ask": 5, "judge": 10 + 20}
    assert left_by_stage(lanes, ()) == {"ask": 5, "judge": 10}


@given(
    ended=st.lists(st.integers(0, 500), min_size=0, max_size=40),
    left=st.integers(0, 10_000),
    each_usd=st.floats(0, 2),
)
def test_an_estimate_lies_in_its_interval(
    ended: list[int], left: int, each_usd: float
) -> None:
    told = of(ended, {"ask": left}, each_usd=each_usd)
    assert told == of(ended, {"ask": left}, each_usd=each_usd)
    for span in (told.seconds, told.cost_usd):
        if span is not None:
            assert span.low <= span.expected
            assert span.high is None or span.expected <= span.high


@given(st.dictionaries(st.integers(0, 60), st.integers(0, 99)))
def test_the_best_minutes_are_those_of_every_window(by_minute: dict[int, int]) -> None:
    first, last = min(by_minute, default=0), max(by_minute, default=0)
    windows = [
        sum(by_minute.get(t, 0) for t in range(at, at + 10)) / 10
        for at in range(first, last - 8)
    ]
    assert best_rate(by_minute) == (max(windows) if windows and by_minute else None)


S = TaskState
EXPECTED = ExpectedUsage(
    tried=64,
    first=["read"],
    calls=(2.0, 3.0, 5.0),
    tokens_in=(100.0, 200.0, 300.0),
    tokens_out=(1.0, 2.0, 9.0),
    cost_usd=(0.1, 0.2, 0.5),
)


@dataclass(frozen=True)
class Lane:
    """Tasks of one stage, by state."""

    stage: str
    states: Mapping[TaskState, int]


def test_what_is_done_so_far_tells_what_it_comes_to() -> None:
    lanes = [
        Lane("read", {S.COMPLETED: 9, S.FAILED: 1, S.QUEUED: 30, S.SKIPPED: 10}),
        Lane("ask", {S.COMPLETED: 15, S.RUNNING: 5}),
    ]
    # 40 readings with two questions each: 120 tasks, of which 25 have ended
    found = estimate_accuracy(
        EXPECTED,
        50,
        lanes,
        UsageSoFar(calls=25, tokens_in=0, tokens_out=5, cost_usd=2.0),
    )
    assert found.done == pytest.approx(25 / 120)
    assert found.calls.low == 100
    assert found.calls.comes_to == pytest.approx(120)
    assert found.cost_usd is not None
    assert found.cost_usd.expected == pytest.approx(10.0)
    assert found.cost_usd.comes_to == pytest.approx(2.0 * 120 / 25)


def test_before_anything_has_ended_nothing_is_foretold() -> None:
    lanes = [Lane("read", {S.RUNNING: 8, S.QUEUED: 30})]
    found = estimate_accuracy(
        EXPECTED,
        38,
        lanes,
        UsageSoFar(calls=0, tokens_in=0, tokens_out=0, cost_usd=None),
    )
    assert found.done == 0
    assert found.calls.comes_to is None


def test_an_unknown_price_is_no_prospect() -> None:
    lanes = [Lane("read", {S.COMPLETED: 1})]
    so_far = UsageSoFar(calls=1, tokens_in=1, tokens_out=1, cost_usd=1.0)
    unpriced = replace(EXPECTED, cost_usd=None)
    assert estimate_accuracy(unpriced, 1, lanes, so_far).cost_usd is None
    unknown = replace(so_far, cost_usd=None)
    assert estimate_accuracy(EXPECTED, 1, lanes, unknown).cost_usd is None


counts = st.integers(0, 50)


@given(st.lists(st.tuples(st.sampled_from(["read", "ask"]), counts, counts, counts)))
def test_no_run_is_more_than_done_and_a_finished_one_is(
    rows: list[tuple[str, int, int, int]],
) -> None:
    lanes = [
        Lane(stage, {S.COMPLETED: done, S.QUEUED: queued, S.SKIPPED: skipped})
        for stage, done, queued, skipped in rows
    ]
    so_far = UsageSoFar(calls=7, tokens_in=0, tokens_out=0, cost_usd=None)
    found = estimate_accuracy(EXPECTED, 9, lanes, so_far)
    assert 0 <= found.done <= 1
    first = sum(done for stage, done, _, _ in rows if stage == "read")
    if first and not any(queued for _, _, queued, _ in rows):
        assert found.done == 1
        assert found.calls.comes_to == 7
