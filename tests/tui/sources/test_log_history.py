"""The history of a log: what is remembered of it is what is read anew."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from store.errors import StoreError
from store.events import AttemptsAbandoned, LimitObserved, RunDrained, RunResumed
from store.log.sqlite import SqliteLog
from store.runs import RunFolder
from tests.store.logs import create
from tests.store.memory_log import START_US, FakeClock
from tests.store.samples import (
    RUN_STARTED,
    completed,
    failed,
    plan,
    reply,
    started,
    task,
)
from tui.sources.history import HistoryRequest, RunHistory
from tui.sources.log_history import LogHistory

MINUTE = START_US // 60_000_000
ALL = HistoryRequest(minutes=None, columns=50, model=None)
TASKS = [task(n, model="m-large" if n % 2 else "m-small") for n in range(1, 9)]


def _limit(model: str, concurrency: int) -> LimitObserved:
    return LimitObserved(model=model, concurrency=concurrency, in_flight=0)


async def _steps(path: Path, clock: FakeClock) -> AsyncIterator[None]:
    """A run that is killed in minute 3 and taken up in minute 7, minute by minute."""
    log = await create(path, clock=clock)
    await log.append(
        RUN_STARTED, plan(TASKS), _limit("m-large", 8), _limit("m-small", 2)
    )
    await log.append(started(1), started(2))
    await log.planning()  # which writes the projections
    yield
    clock.advance(60)
    await log.append(reply(1, b"one"), completed(1), started(3), started(4))
    await log.planning()
    yield
    clock.advance(120)
    await log.append(failed(4), started(5), _limit("m-large", 4))
    await log.heartbeat()
    await log.planning()
    yield
    await log.close()
    clock.advance(240)
    log = await SqliteLog.open(path, clock=clock, owner="tester")
    await log.append(AttemptsAbandoned(attempts=[(2, 1), (3, 1), (5, 1)]))
    await log.append(RunResumed(code_sha256="", settings="{}", unknown=3))
    await log.append(started(6))
    await log.heartbeat()
    await log.planning()
    yield
    clock.advance(60)
    await log.append(reply(6, b"six"), completed(6))
    await log.append(RunDrained(by="operator", why="drained on request", open=6))
    await log.planning()
    yield
    await log.close()
    clock.advance(3600)
    yield


async def _read(folder: RunFolder, clock: FakeClock, ask: HistoryRequest) -> RunHistory:
    source = LogHistory(folder, clock)
    try:
        return await source.read(ask)
    finally:
        source.close()


@pytest.mark.asyncio
async def test_a_run_that_was_killed_has_a_gap_and_its_books_balance(
    tmp_path: Path,
) -> None:
    folder, clock = RunFolder(tmp_path), FakeClock()
    asks = [
        HistoryRequest(minutes=minutes, columns=50, model=model)
        for minutes in (None, 5)
        for model in (None, "m-large", "m-small")
    ]
    kept = {ask: LogHistory(folder, clock) for ask in asks}
    async for _ in _steps(folder.log, clock):
        for ask, source in kept.items():
            assert await source.read(ask) == await _read(folder, clock, ask)
    whole = await kept[ALL].read(ALL)
    assert [column.first - MINUTE for column in whole.columns] == list(range(9))
    assert [column.lived for column in whole.columns] == [1, 1, 1, 1, 0, 0, 0, 1, 1]
    done = [column.row.succeeded if column.row else 0 for column in whole.columns]
    assert done == [0, 1, 0, 0, 0, 0, 0, 0, 1]
    assert [column.in_flight for column in whole.columns] == [2, 3, 3, 3, 3, 3, 3, 1, 0]
    assert [column.limit for column in whole.columns] == [10] * 3 + [6] * 6
    assert [mark.text for mark in whole.happenings] == [
        "started, sample-job",
        "resumed, 3 calls without outcome",
        "ended with 6 open: drained on request",
    ]
    large = await kept[asks[1]].read(asks[1])
    assert [column.in_flight for column in large.columns] == [1, 1, 1, 2, 2, 2, 2, 0, 0]
    last = await kept[asks[3]].read(asks[3])
    assert last.columns == whole.columns[-5:]
    for source in kept.values():
        source.close()


@pytest.mark.asyncio
async def test_answers_without_a_call_leave_the_calls_in_flight_unknown(
    tmp_path: Path,
) -> None:
    folder, clock = RunFolder(tmp_path), FakeClock()
    log = await create(folder.log, clock=clock)
    await log.append(RUN_STARTED, plan(TASKS), started(1))
    await log.append(reply(1, b"one", cached=True), completed(1))
    await log.close()
    clock.advance(300)
    found = await _read(folder, clock, ALL)
    assert [column.in_flight for column in found.columns] == [None]


@pytest.mark.asyncio
async def test_a_run_in_its_first_minute_has_no_column_yet(tmp_path: Path) -> None:
    folder, clock = RunFolder(tmp_path), FakeClock()
    log = await create(folder.log, clock=clock)
    await log.append(RUN_STARTED)
    await log.heartbeat()
    assert (await _read(folder, clock, ALL)).columns == ()
    hour = await _read(
        folder, clock, HistoryRequest(minutes=60, columns=80, model=None)
    )
    assert {column.lived for column in hour.columns} == {0}
    assert hour.is_before_first_minute
    await log.close()


@pytest.mark.asyncio
async def test_a_log_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="was deleted or moved"):
        await _read(RunFolder(tmp_path), FakeClock(), ALL)
