"""Logs on disk with a known course in them."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TypeAlias

import pytest

from store.errors import LogClosed
from store.events import (
    Entry,
    Event,
    RunDrained,
    RunFinished,
    RunResumed,
    ScoringRecorded,
    TaskFailed,
)
from store.log.sqlite import SqliteLog
from store.task import PlannedTask
from tests.store.memory_log import FakeClock
from tests.store.samples import (
    ASIDE,
    RUN_STARTED,
    completed,
    failed,
    plan,
    started,
    task,
)
from tests.store.samples import reply as answer


def written(path: Path, *units: Sequence[Entry | Event]) -> Path:
    """A closed log with *units* in it."""

    async def write() -> None:
        async with await SqliteLog.create(
            path, run_id="r1", config_sha256=b"", clock=FakeClock(), owner="tester"
        ) as log:
            for unit in units:
                await log.append(*unit)
            await log.heartbeat()

    asyncio.run(write())
    return path


RESUMED, FINISHED, SCORED = (
    next(event for event in ASIDE if isinstance(event, kind))
    for kind in (RunResumed, RunFinished, ScoringRecorded)
)


Life: TypeAlias = tuple[float, Sequence[tuple[Entry | Event, float]]]
"""Seconds before a process opens the log, its events, and the seconds after each."""


def taken_up_again(path: Path) -> Path:
    """A run that was killed after 30 s and taken up 80 s later for 60 s, then scored.

    Six events: at 0, 10 and 30 s, at 110 and 170 s, and an hour after that.
    """
    return lived(
        path,
        (0, ((RUN_STARTED, 10), (plan([task(1), task(2)]), 20), (started(1), 0))),
        (80, ((RESUMED, 60), (FINISHED, 0))),
        (3600, ((SCORED, 0),)),
    )


def lived(path: Path, *lives: Life) -> Path:
    """A log that one process after another opened."""
    clock = FakeClock()

    async def live() -> None:
        log = await SqliteLog.create(
            path, run_id="r1", config_sha256=b"", clock=clock, owner="tester"
        )
        await log.close()
        for absence_s, steps in lives:
            clock.advance(absence_s)
            async with await SqliteLog.open(path, clock=clock, owner="tester") as log:
                for event, then_s in steps:
                    await log.append(event)
                    clock.advance(then_s)

    asyncio.run(live())
    return path


def _judge(number: int, root: int) -> PlannedTask:
    return task(number, stage="judge", root=root)


COURSE: tuple[Sequence[Entry | Event], ...] = (
    [RUN_STARTED],
    [plan([task(1), task(2), task(3, model="m-small"), task(4, skip="no text")])],
    [started(1), answer(1, b"one", cost_usd=0.25), completed(1)],
    [started(2), failed(2), started(2, 2), failed(2, 2, retry_in_s=None)],
    [TaskFailed(task=2, attempt=2, error="Overloaded")],
    [started(3), answer(3, b"three", cost_usd=0.5, reask="no_list")],
    [plan([task(5, stage="judge", root=1)], first=5), started(5)],
    [started(3, 2), answer(3, b"better", 2, cost_usd=0.125)],
    [completed(3, 2, unparsed="truncated"), *ASIDE[-4:]],
    [plan([], first=6), RunDrained(by="operator", why="drained on request", open=1)],
)


async def create(path: Path, **changed: object) -> SqliteLog:
    fields: dict[str, object] = {
        "run_id": "r1",
        "config_sha256": b"c" * 32,
        "clock": FakeClock(),
        "owner": "tester",
    }
    return await SqliteLog.create(path, **(fields | changed))  # type: ignore[arg-type]


async def reopen(path: Path) -> SqliteLog:
    return await SqliteLog.open(path, clock=FakeClock(), owner="tester")


def edit(path: Path, *statements: str) -> None:
    """Change a log behind its back, as a foreign program could."""
    with closing(sqlite3.connect(path)) as conn, conn:
        for statement in statements:
            conn.execute(statement)


async def refused(log: SqliteLog, number: int) -> None:
    with pytest.raises(LogClosed):
        await log.append(started(number))
