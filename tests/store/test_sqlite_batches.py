"""What is committed together, and what becomes of it when that fails."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from store.database import open_reader
from store.errors import IllegalMove, LogBehind, LogClosed
from store.events import Entry, LimitObserved
from store.log import sqlite as sqlite_log
from store.log import writer
from store.log.sqlite import SqliteLog
from store.read.tasks import events
from tests.store.logs import create, edit, refused
from tests.store.samples import RUN_STARTED, plan_first, started

pytestmark = pytest.mark.asyncio


async def test_everybody_in_a_failed_batch_is_told(path: Path) -> None:
    async with await create(path) as log:
        await log.append(RUN_STARTED, plan_first(20))
        edit(path, "DROP TABLE counter")
        async with asyncio.TaskGroup() as group:
            for number in range(1, 21):
                group.create_task(refused(log, number))


async def test_a_plan_that_cannot_be_read_is_refused_and_the_log_goes_on(
    path: Path,
) -> None:
    async with await create(path) as log:
        planned = plan_first(1).event
        for payload in (None, b"", b"[{}]"):
            with pytest.raises(IllegalMove, match="this payload"):
                await log.append(Entry(event=planned, payload=payload))
        assert await log.append(plan_first(1)) == 1


async def test_a_mistake_of_our_own_is_told_and_never_waited_for(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mistaken(*_: object) -> None:
        raise AttributeError("no such thing")

    log = await create(path)
    monkeypatch.setattr("store.tables.write_fold", mistaken)
    with pytest.raises(LogClosed, match="report it") as caught:
        await log.append(RUN_STARTED)
    assert isinstance(caught.value.__cause__, AttributeError)
    await log.close()
    with open_reader(path) as reader:
        assert events(reader) == []


async def test_a_burst_is_committed_in_few_transactions(path: Path) -> None:
    async with await create(path) as log:
        await log.append(RUN_STARTED, plan_first(500))
        before = log.statistics().commits
        async with asyncio.TaskGroup() as group:
            for number in range(1, 501):
                group.create_task(_append(log, number))
        figures = log.statistics()
        assert figures.events == 502
        assert figures.commits - before < 50
        assert figures.wal_bytes > 0


async def _append(log: SqliteLog, number: int) -> None:
    await log.append(started(number))


async def test_a_batch_is_bounded_and_the_rest_follows(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "BATCH_EVENTS", 10)
    async with await create(path) as log:
        await log.append(RUN_STARTED, plan_first(95))
        async with asyncio.TaskGroup() as group:
            for number in range(1, 96):
                group.create_task(_append(log, number))
        assert log.statistics().commits >= 1 + 95 // 10
        assert await log.last_seq() == 97


async def test_too_much_waiting_is_refused_without_waiting(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_log, "QUEUE_BYTES", 100)
    limit = LimitObserved(model="m", concurrency=1, in_flight=1)
    async with await create(path) as log:
        log.append_nowait(limit, limit)
        with pytest.raises(LogBehind, match="append and wait"):
            log.append_nowait(limit)
        assert await log.append(limit) == 3
        log.append_nowait(limit)
        assert log.statistics().queued_bytes > 0
    with open_reader(path) as reader:
        assert len(events(reader)) == 4


async def test_closing_commits_what_is_queued(path: Path) -> None:
    async with await create(path) as log:
        for number in range(3000):
            log.append_nowait(LimitObserved(model="m", concurrency=number, in_flight=0))
    with open_reader(path) as reader:
        assert len(events(reader, limit=5000)) == 3000
