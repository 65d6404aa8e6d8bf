"""How tasks went, read back by families and without bodies."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from store.database import open_reader
from store.events import AttemptAnswered, AttemptsAbandoned, Entry, Event
from store.log.sqlite import SqliteLog
from store.read.tasks import AttemptHistory, attempt_histories
from store.read.usage import usage_counts
from tests.store.memory_log import FakeClock
from tests.store.samples import RUN_STARTED, completed, failed, plan, started, task
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
