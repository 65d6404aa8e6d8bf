"""A thread reads a log for a loop, and stops when nobody waits any more."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from pathlib import Path

import pytest

from store.errors import StoreError
from store.read.status import status
from store.runs import RunFolder
from store.tables import last_seq
from tests.store.logs import COURSE, written
from tui.sources.connection import LogConnection

#: Counts for hours, until it is interrupted.
ENDLESS = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
    "SELECT count(*) FROM n"
)


def run(path: Path) -> RunFolder:
    """A run with a log."""
    folder = RunFolder(path)
    written(folder.log, *COURSE)
    return folder


class Endless:
    """A view that never ends by itself, and says when it has begun and how it ended."""

    def __init__(self) -> None:
        self.has_begun = threading.Event()
        self.ended: Exception | None = None

    def __call__(self, conn: sqlite3.Connection) -> None:
        self.has_begun.set()
        try:
            conn.execute(ENDLESS).fetchall()
        except sqlite3.OperationalError as error:
            self.ended = error
            raise


@pytest.mark.asyncio
async def test_it_answers_whoever_asks(tmp_path: Path) -> None:
    folder = await asyncio.to_thread(run, tmp_path)
    reading = LogConnection(folder)
    assert await reading.ask(last_seq) > 0
    reading.close()


@pytest.mark.asyncio
async def test_who_stops_waiting_stops_the_query_and_the_next_one_is_answered(
    tmp_path: Path,
) -> None:
    folder = await asyncio.to_thread(run, tmp_path)
    reading, endless = LogConnection(folder), Endless()
    asked = asyncio.get_running_loop().create_task(reading.ask(endless))
    await asyncio.to_thread(endless.has_begun.wait)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert await reading.ask(last_seq) > 0
    assert "interrupted" in str(endless.ended)
    reading.close()


@pytest.mark.asyncio
async def test_a_question_that_has_not_begun_never_does(tmp_path: Path) -> None:
    folder = await asyncio.to_thread(run, tmp_path)
    reading, first, second = LogConnection(folder), Endless(), Endless()
    loop = asyncio.get_running_loop()
    asked = [loop.create_task(reading.ask(view)) for view in (first, second)]
    await asyncio.to_thread(first.has_begun.wait)
    for task in reversed(asked):
        task.cancel()
    await asyncio.wait(asked)
    assert await reading.ask(last_seq) > 0
    assert not second.has_begun.is_set()
    reading.close()


@pytest.mark.asyncio
async def test_closing_stops_what_is_running(tmp_path: Path) -> None:
    folder = await asyncio.to_thread(run, tmp_path)
    reading, endless = LogConnection(folder), Endless()
    asked = asyncio.get_running_loop().create_task(reading.ask(endless))
    await asyncio.to_thread(endless.has_begun.wait)
    reading.close()
    with pytest.raises(sqlite3.OperationalError, match="interrupted"):
        await asked


@pytest.mark.asyncio
async def test_a_log_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    reading = LogConnection(RunFolder(tmp_path))
    with pytest.raises(StoreError, match="was deleted or moved"):
        await reading.ask(last_seq)
    reading.close()


@pytest.mark.asyncio
async def test_a_log_that_is_damaged_or_deleted_is_told_and_read_on_when_mended(
    tmp_path: Path,
) -> None:
    folder = await asyncio.to_thread(run, tmp_path)
    reading, whole = LogConnection(folder), folder.log.read_bytes()
    seq = await reading.ask(last_seq)
    folder.log.write_bytes(whole[:4096])
    with pytest.raises(StoreError, match="siftlog"):
        await reading.ask(status)
    folder.log.write_bytes(whole)
    assert await reading.ask(last_seq) == seq
    away = folder.log.rename(tmp_path / "away")
    with pytest.raises(StoreError, match="was deleted or moved"):
        await reading.ask(last_seq)
    away.rename(folder.log)
    assert await reading.ask(last_seq) == seq
    reading.close()
