"""How tasks went, read back by families and without bodies.

A list of tasks holds every one of them once, in the order that it names.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest

from store.database import open_reader
from store.events import AttemptAnswered, AttemptsAbandoned, Entry, Event
from store.log.sqlite import SqliteLog
from store.query import parse_query
from store.read.tasks import (
    AttemptHistory,
    TaskOrder,
    attempt_histories,
    changed_tasks,
    list_tasks,
    recoveries,
    tasks,
)
from store.read.usage import usage_counts
from store.tables import last_seq
from tests.store.logs import COURSE, written
from tests.store.memory_log import FakeClock
from tests.store.samples import (
    RUN_STARTED,
    completed,
    failed,
    plan,
    plan_first,
    started,
    task,
)
from tests.store.samples import reply as answer


def _written(path: Path, *units: tuple[float, Sequence[Entry | Event]]) -> Path:
    """A log whose units were appended so many seconds apart."""
    clock = FakeClock()

    async def write() -> None:
        async with await SqliteLog.create(
            path, run_id="r1", config_sha256=b"", clock=clock, owner="tester"
        ) as log:
            for seconds, unit in units:
                clock.advance(seconds)
                await log.append(*unit)

    asyncio.run(write())
    return path


def _names(family: tuple[AttemptHistory, ...]) -> list[int]:
    return [course.row.task for course in family]


def test_attempts_stand_in_order_with_the_time_that_they_took(tmp_path: Path) -> None:
    path = _written(
        tmp_path / "log.db",
        (0, [RUN_STARTED, plan([task(1)])]),
        (1, [started(1)]),
        (2, [failed(1)]),
        (5, [started(1, 2)]),
        (3, [answer(1, b"body", 2), completed(1, 2)]),
    )
    with open_reader(path) as reader:
        ((course,),) = attempt_histories(reader, "m-large")
        recovered = recoveries(reader, tasks(reader))
    assert recovered == {1: "Overloaded 503"}
    assert [round((e.duration_us or 0) / 1e6, 3) for e in course.attempts] == [2, 3]
    outcomes = [type(ended.outcome).__name__ for ended in course.attempts]
    assert outcomes == ["AttemptFailed", "AttemptAnswered"]
    last = course.attempts[-1].outcome
    assert isinstance(last, AttemptAnswered)
    assert last.tokens_in == 50


def test_an_attempt_without_an_outcome_is_none(tmp_path: Path) -> None:
    path = _written(
        tmp_path / "log.db",
        (0, [RUN_STARTED, plan([task(1), task(2)])]),
        (1, [started(1), started(2)]),
        (1, [AttemptsAbandoned(attempts=[(1, 1), (2, 1)])]),
        (1, [started(1, 2)]),
        (1, [answer(1, b"body", 2), completed(1, 2)]),
    )
    with open_reader(path) as reader:
        first, second = (family[0] for family in attempt_histories(reader, "m-large"))
    assert [ended.outcome.attempt for ended in first.attempts] == [2]
    assert second.attempts == ()


def test_an_answer_made_elsewhere_took_nobody_knows_how_long(tmp_path: Path) -> None:
    path = _written(
        tmp_path / "log.db",
        (0, [RUN_STARTED, plan([task(1)])]),
        (1, [answer(1, b"body", latency_ms=None), completed(1)]),
    )
    with open_reader(path) as reader:
        ((course,),) = attempt_histories(reader, "m-large")
    assert course.attempts[0].duration_us is None


def test_families_come_by_pages_of_one_model(tmp_path: Path) -> None:
    first = [task(n, model="m-small" if n % 2 else "m-large") for n in range(1, 8)]
    later = [
        task(8, stage="judge", root=2),
        task(9, stage="judge", root=1),
        task(10, stage="judge", root=2, model="m-small"),
    ]
    path = _written(
        tmp_path / "log.db",
        (0, [RUN_STARTED, plan(first), plan(later, first=8)]),
    )
    with open_reader(path) as reader:
        assert [_names(f) for f in attempt_histories(reader, "m-large", limit=2)] == [
            [2, 8, 10],
            [4],
        ]
        assert [_names(f) for f in attempt_histories(reader, "m-large", after=4)] == [
            [6]
        ]
        assert [_names(f) for f in attempt_histories(reader, "m-small", limit=1)] == [
            [1, 9]
        ]
        assert attempt_histories(reader, "m-large", after=6) == []


def test_usage_is_summed_by_stage_and_model_without_the_cache_s_answers(
    tmp_path: Path,
) -> None:
    cached = answer(4, b"x", latency_ms=None, cached=True)
    path = _written(
        tmp_path / "log.db",
        (
            0,
            [RUN_STARTED, plan([task(1), task(2), task(3, model="m-small"), task(4)])],
        ),
        (1, [e for n in (1, 3) for e in (started(n), answer(n, b"x"), completed(n))]),
        (90, [started(2), answer(2, b"x"), completed(2)]),
        (95, [started(4), cached, completed(4)]),
    )
    with open_reader(path) as reader:
        large, small = usage_counts(reader)
    assert (large.model, large.replies, large.tokens_in) == ("m-large", 2, 100)
    assert (small.model, small.replies, small.tokens_out) == ("m-small", 1, 7)


def _whole(
    conn: sqlite3.Connection, expression: str, order: TaskOrder, limit: int
) -> list[int]:
    query = parse_query(expression)
    step = list_tasks(conn, query, order, limit=limit)
    numbers = list(step.numbers)
    while step.after is not None:
        step = list_tasks(conn, query, order, after=step.after, limit=limit)
        numbers += step.numbers
    return numbers


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
@pytest.mark.parametrize("expression", ["", "stage:ask", "-state:skipped", "item:none"])
def test_a_list_by_number_is_what_the_filter_lets_through(
    path: Path, expression: str, limit: int
) -> None:
    with open_reader(written(path, *COURSE)) as reader:
        found = _whole(reader, expression, TaskOrder.NUMBER, limit)
        rows = tasks(reader, parse_query(expression))
    assert found == [row.task for row in rows]


@pytest.mark.parametrize("limit", [1, 2, 100])
def test_the_newest_first_is_what_changed_last(path: Path, limit: int) -> None:
    with open_reader(written(path, *COURSE)) as reader:
        found = _whole(reader, "-state:skipped", TaskOrder.NEWEST, limit)
        rows = tasks(reader, parse_query("-state:skipped"))
    newest = sorted(rows, key=lambda row: (row.updated_seq, row.task), reverse=True)
    assert found == [row.task for row in newest]


def test_a_top_list_begins_with_the_most(path: Path) -> None:
    with open_reader(written(path, *COURSE)) as reader:
        assert _whole(reader, "", TaskOrder.DEAREST, 1) == [3, 1]
        assert _whole(reader, "", TaskOrder.MOST_TRIED, 1) == [2, 3, 1, 5]
        assert set(_whole(reader, "", TaskOrder.SLOWEST, 1)) == {1, 3}


def test_a_plain_list_of_any_length_holds_no_numbers_in_memory(path: Path) -> None:
    course = ([RUN_STARTED], [plan_first(5_000)])
    with open_reader(written(path, *course)) as reader:
        step = list_tasks(reader, parse_query(""))
    assert step.numbers == range(1, 5_001)
    assert (step.after, step.seq) == (None, 2)


def test_what_changed_since_a_list_was_read_can_be_asked(path: Path) -> None:
    done: list[Entry | Event] = [started(2), answer(2, b"two"), completed(2)]
    log = written(path, [RUN_STARTED], [plan_first(3)], done)
    with open_reader(log) as reader:
        assert changed_tasks(reader, parse_query(""), 2) == [2]
        assert changed_tasks(reader, parse_query("state:queued"), 2) == []
        assert changed_tasks(reader, parse_query(""), last_seq(reader)) == []
        assert changed_tasks(reader, parse_query(""), 0, limit=1) == [1]
