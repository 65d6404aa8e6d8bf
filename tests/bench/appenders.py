"""Ways to append a reply durably: the log itself, parts of it, and the floors.

Each is an async context that yields a function `append(number, body)`. The floors do
what a programmer would write first (`naive`), what group commit alone gives (`bare`),
and what the disk gives without a database (`plain_file`).
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TypeAlias

import aiosqlite

from store import encoding, tables
from store.clock import SystemClock
from store.database import SQL, connect
from store.events import AttemptAnswered, Entry
from store.log import writer
from store.log.committer import Committer, WriterThread
from store.log.integrity import HeadWriter
from store.log.sqlite import SqliteLog
from store.log.writer import PreparedEntry
from tests.store.samples import RUN_STARTED, answered, plan, task

Append: TypeAlias = Callable[[int, bytes], Awaitable[object]]
Way: TypeAlias = Callable[[Path], AbstractAsyncContextManager[Append]]

TABLE = (
    "CREATE TABLE event(seq INTEGER PRIMARY KEY, kind INTEGER, task INTEGER, body BLOB)"
)
INSERT = "INSERT INTO event(kind, task, body) VALUES (1, ?, ?)"


def _plain_connect(path: Path, synchronous: str) -> sqlite3.Connection:
    conn = connect(path)
    conn.execute("PRAGMA journal_mode = WAL")
    conn.execute(f"PRAGMA synchronous = {synchronous}")
    conn.execute(TABLE)
    return conn


def naive(synchronous: str = "FULL") -> Way:
    """A lock, an INSERT and a COMMIT for every event."""

    @asynccontextmanager
    async def way(path: Path) -> AsyncIterator[Append]:
        lock = asyncio.Lock()
        async with aiosqlite.connect(path, isolation_level=None) as conn:
            await conn.execute("PRAGMA journal_mode = WAL")
            await conn.execute(f"PRAGMA synchronous = {synchronous}")
            await conn.execute(TABLE)

            async def append(number: int, body: bytes) -> None:
                async with lock:
                    await conn.execute("BEGIN IMMEDIATE")
                    await conn.execute(INSERT, (number, body))
                    await conn.execute("COMMIT")

            yield append

    return way


class _BareWriter:
    """One INSERT an event into one table, and a COMMIT a batch."""

    def __init__(self, conn: sqlite3.Connection) -> None:
        self._conn = conn

    def commit(self, units: Sequence[Sequence[PreparedEntry]]) -> list[int]:
        self._conn.execute(SQL["begin"])
        rows = [(fact.ts_us, fact.entry.payload) for unit in units for fact in unit]
        self._conn.executemany(INSERT, rows)
        self._conn.execute(SQL["commit"])
        return [0] * len(units)


class _FileWriter:
    """Bodies one after another in a file, and one sync a batch."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def commit(self, units: Sequence[Sequence[PreparedEntry]]) -> list[int]:
        bodies = [fact.entry.payload or b"" for unit in units for fact in unit]
        os.write(self._file, b"".join(bodies))
        os.fdatasync(self._file)
        return [0] * len(units)


@asynccontextmanager
async def _committing(
    path: Path, conn: Callable[[], sqlite3.Connection], make: object
) -> AsyncIterator[Append]:
    event = answered(1)
    async with WriterThread(conn) as thread:
        part = await thread.run(make)  # type: ignore[operator]
        committer = Committer(path, thread, part)

        async def append(number: int, body: bytes) -> None:
            durable = asyncio.get_running_loop().create_future()
            fact = PreparedEntry(
                number, Entry(event=event, payload=body), b"", len(body)
            )
            committer.put((fact,), durable)
            await durable

        yield append
        await committer.drain()


def bare(synchronous: str = "FULL") -> Way:
    """Group commit and nothing else: one table, bodies as they are."""
    return lambda path: _committing(
        path, lambda: _plain_connect(path, synchronous), _BareWriter
    )


def plain_file() -> Way:
    """Group commit into a plain file."""
    return lambda path: _committing(
        path,
        lambda: sqlite3.connect(":memory:"),
        lambda _conn: _FileWriter(path.with_suffix(".bin")),
    )


#: The projections of event-log.md 7.2; the monitor's list is longer.
_CORE = {"intern_stage", "intern_model", "insert_task", "update_task", "add_counter"}
_CORE |= {"set_run_state", "set_projection"}


@contextmanager
def without(*parts: str) -> Iterator[None]:
    """Leave parts of the log out while it is measured: what do they cost?"""
    before = (encoding.COMPRESS_FROM, writer.link, tables.write_fold)
    note = HeadWriter.note
    try:
        if "zstd" in parts:
            encoding.COMPRESS_FROM = 1 << 40
        if "chain" in parts:
            writer.link = lambda previous, _rows: previous
        if "monitor" in parts:
            tables.write_fold = _write_core
        if "sidecar" in parts:
            HeadWriter.note = _note_nothing  # type: ignore[method-assign]
        yield
    finally:
        encoding.COMPRESS_FROM, writer.link, tables.write_fold = before
        HeadWriter.note = note  # type: ignore[method-assign]


def _note_nothing(
    self: HeadWriter, seq: int, link: bytes, *, closed: bool = False
) -> None:
    del self, seq, link, closed


def _write_core(conn: sqlite3.Connection, fold: object, applied_seq: int) -> None:
    write = without_write
    write(_Chosen(conn), fold, applied_seq)  # type: ignore[arg-type]


without_write = tables.write_fold


class _Chosen:
    """Passes the core projections' statements on, and drops the others."""

    def __init__(self, conn: sqlite3.Connection) -> None:
        self._conn = conn
        self._kept = {SQL[name] for name in _CORE}
        self.execute = conn.execute

    def executemany(self, sql: str, rows: Sequence[object]) -> None:
        if sql in self._kept:
            self._conn.executemany(sql, rows)


#: Indexes that 7.2 does not have.
MONITOR_INDEXES = ("task_lane", "task_state", "task_error", "task_updated")
TRIGGERS = tuple(
    f"{table}_no_{what}"
    for table in ("event", "body", "blob", "chain")
    for what in ("update", "delete")
)


def whole_log(count: int, *left_out: str) -> Way:
    """The log as it is: header, body, zstd, projections, chain, epoch, triggers.

    Answers go to *count* planned tasks in the order of the plan, as the engine works;
    parts named by *left_out* are left out.
    """

    @asynccontextmanager
    async def way(path: Path) -> AsyncIterator[Append]:
        with without(*left_out):
            async with await SqliteLog.create(
                path,
                run_id="bench",
                config_sha256=b"",
                clock=SystemClock(),
                owner="bench",
            ) as log:
                await log.append(RUN_STARTED)
                for first in range(1, count + 1, 1000):
                    numbers = range(first, min(first + 1000, count + 1))
                    await log.append(plan([task(n) for n in numbers], first=first))
                await log._read(_drop, left_out)

                async def append(number: int, body: bytes) -> None:
                    event = AttemptAnswered(
                        task=number + 1,
                        attempt=1,
                        form="chat",
                        status=200,
                        latency_ms=1000.0 + number % 997,
                        finish_reason="stop",
                        tokens_in=2000,
                        tokens_out=200,
                    )
                    await log.append(Entry(event=event, payload=body))

                yield append

    return way


def _drop(conn: sqlite3.Connection, left_out: Sequence[str]) -> None:
    if "monitor" in left_out:
        for name in MONITOR_INDEXES:
            conn.execute(f"DROP INDEX {name}")
    if "triggers" in left_out:
        for name in (*TRIGGERS, "event_dense"):
            conn.execute(f"DROP TRIGGER {name}")
