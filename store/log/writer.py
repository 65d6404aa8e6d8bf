"""Writes commits: many appenders share one transaction and one disk sync.

A `Writer` belongs to one thread and one connection and knows no event loop. One
transaction holds the events, their bodies and blobs, the changed projections and a link
of the hash chain. The epoch is compared first, so a writer that was replaced while it
was suspended can add nothing.

The system text, the 60 KB paper and the question of a prompt are stored as separate
parts: twenty questions about a paper store it once.

Appending puts a unit into a queue; the thread of one aiosqlite connection commits
everything queued while it was busy as one transaction. There is no timer: a lone append
is committed at once, and under load the batches grow by themselves. All waiters of a
batch are woken by a single call into the event loop.

The queue needs no task, so only the appends themselves can be cancelled or awaited;
entries of a cancelled append are still committed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sqlite3
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Concatenate, NamedTuple, ParamSpec, TypeVar

import aiosqlite
import msgspec

from store import tables
from store.database import SQL
from store.encoding import Encoding, Packer, facts_of
from store.errors import Fenced, IllegalMove, LogClosed, StoreError
from store.events import NAMES, Blob, Entry, Event, TasksPlanned
from store.log.integrity import EventRow, HeadWriter, link
from store.task import PlannedTask, planned_tasks


class KindIds:
    """The ids of kinds in one log; a kind enters its table with its first event."""

    def __init__(self, conn: sqlite3.Connection) -> None:
        self._conn = conn
        self._ids: dict[tuple[str, int], int] = {}

    def id_of(self, name: str, version: int) -> int:
        """Return the id of a kind in that version."""
        number = self._ids.get((name, version))
        if number is None:
            row = self._conn.execute(SQL["register_kind"], (name, version)).fetchone()
            number = self._ids[name, version] = row[0]
        return number


def insert_events(
    conn: sqlite3.Connection, rows: Sequence[EventRow], kinds: KindIds
) -> None:
    """Write *rows* and their bodies in the open transaction."""
    conn.executemany(
        SQL["insert_event"],
        # by position, in the order of the statement's columns: access by name costs
        # more
        [(*row[:3], kinds.id_of(row.kind, row.ver), *row[4:11]) for row in rows],
    )
    bodies = [(row.seq, row.body) for row in rows if row.body is not None]
    if bodies:
        conn.executemany(SQL["insert_body"], bodies)


#: Hashes remembered as stored, so that a paper asked about twenty times is looked up
#: once. A forgotten one only costs a lookup.
REMEMBERED = 8192


class BlobStore:
    """Writes blobs that are not stored yet; belongs to the writer's thread."""

    def __init__(self, conn: sqlite3.Connection, packer: Packer) -> None:
        self._conn = conn
        self._packer = packer
        self._stored_hashes: OrderedDict[bytes, None] = OrderedDict()

    def write(self, blobs: Iterable[Blob]) -> tuple[list[bytes], int]:
        """Store the new ones of *blobs* in the open transaction.

        Returns:
            The hashes now stored, to pass to `remember` after the commit, and the bytes
            written.
        """
        fresh: dict[bytes, None] = {}
        rows = []
        size = 0
        for blob in blobs:
            if blob.sha256 in self._stored_hashes:
                self._stored_hashes.move_to_end(blob.sha256)
                continue
            if blob.sha256 in fresh:
                continue
            fresh[blob.sha256] = None
            if self._conn.execute(SQL["blob_known"], (blob.sha256,)).fetchone():
                continue
            encoding, data = self._packer.pack(blob.data)
            rows.append((blob.sha256, encoding, len(blob.data), data))
            size += len(data)
        if rows:
            self._conn.executemany(SQL["insert_blob"], rows)
        return list(fresh), size

    def remember(self, hashes: Iterable[bytes]) -> None:
        """Skip the lookup of *hashes* from now on, because they are durable."""
        for sha256 in hashes:
            self._stored_hashes[sha256] = None
        while len(self._stored_hashes) > REMEMBERED:
            self._stored_hashes.popitem(last=False)


class PreparedEntry(NamedTuple):
    """An entry prepared for the writer's thread."""

    ts_us: int  #: time of the append; the writer may increase it, never decrease it
    entry: Entry
    facts: bytes
    size: int  #: bytes held until the commit

    @classmethod
    def of(cls, entry: Entry | Event, ts_us: int) -> PreparedEntry:
        """Encode at once, so later changes by the caller have no effect."""
        if not isinstance(entry, Entry):
            entry = Entry(event=entry)
        facts = facts_of(entry.event)
        size = len(facts) + len(entry.payload or b"")
        for blob in entry.blobs:
            size += len(blob.data)
        return cls(ts_us, entry, facts, size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """The end of a log."""

    seq: int
    ts_us: int
    link: bytes


@dataclass(slots=True, kw_only=True)
class WriterStatistics:
    """Statistics of a writer since it was created."""

    commits: int = 0
    events: int = 0
    bytes: int = 0  #: bodies and blobs after compression


def _manifest(payload: bytes | None) -> list[PlannedTask]:
    try:
        return planned_tasks(payload or b"")
    except msgspec.DecodeError as error:
        raise IllegalMove(
            f"tasks cannot be planned by this payload: {error}"
        ) from error


class Writer:
    """Appends batches of units to one log, each batch in one transaction."""

    def __init__(
        self,
        conn: sqlite3.Connection,
        *,
        epoch: int,
        position: Position,
        head_writer: HeadWriter | None = None,
    ) -> None:
        """Continue at the end of a log.

        Args:
            conn: the connection of the log's only writer.
            epoch: which opening of the log this is.
            position: its end.
            head_writer: records every commit outside the database; None: no record.
        """
        self._conn = conn
        self._head_writer = head_writer
        self._epoch = epoch
        self._position = position
        self._packer = Packer()
        self._blobs = BlobStore(conn, self._packer)
        self._kinds = KindIds(conn)
        self.written = WriterStatistics()

    def commit(
        self, units: Sequence[Sequence[PreparedEntry]]
    ) -> list[int | IllegalMove]:
        """Record *units* in order, each completely or not at all.

        Returns:
            For every unit the seq of its last event, or the error that refused it; a
            refused unit does not affect others.

        Raises:
            Fenced: another writer has taken the log over; nothing was recorded.
            sqlite3.Error: the disk refused; the state of the file is unknown.
        """
        try:
            return list(self._transact(units))
        except IllegalMove as error:
            if len(units) == 1:
                return [error]
            return [outcome for unit in units for outcome in self.commit([unit])]

    def write_heartbeat(self, now_us: int) -> None:
        """Record that the process is alive; a plain row, outside the events."""
        sign = (now_us, self._epoch, os.getpid(), socket.gethostname())
        self._conn.execute(SQL["set_heartbeat"], sign)

    def end(self) -> None:
        """Empty the WAL, and record in the sidecar that the log was closed properly."""
        # helps people who copy the file; the next opening would do the same
        with contextlib.suppress(sqlite3.Error):
            self._conn.execute(SQL["checkpoint_truncate"]).fetchone()
        if self._head_writer is not None:
            self._head_writer.end(self._position.seq, self._position.link)

    def release(self) -> None:
        """Release its resources; harmless when repeated."""
        if self._head_writer is not None:
            self._head_writer.close()

    def _transact(self, units: Sequence[Sequence[PreparedEntry]]) -> list[int]:
        conn = self._conn
        conn.execute(SQL["begin"])
        try:
            self._check_epoch()
            rows, position, fresh, size = self._record(units)
            conn.execute(SQL["commit"])
        except BaseException:
            if conn.in_transaction:
                conn.execute(SQL["rollback"])
            raise
        if self._head_writer is not None:
            # not earlier: the record must never contain what a power cut can undo
            self._head_writer.note(position.seq, position.link)
        self._blobs.remember(fresh)
        seq = self._position.seq
        self._position = position
        self.written.commits += 1
        self.written.events += len(rows)
        self.written.bytes += size
        last = []
        for unit in units:
            seq += len(unit)
            last.append(seq)
        return last

    def _check_epoch(self) -> None:
        (epoch,) = self._conn.execute(SQL["epoch"]).fetchone()
        if epoch != self._epoch:
            raise Fenced(
                "another process has taken this log over: leave the run to it, or "
                "stop it and resume here"
            )

    def _record(
        self, units: Sequence[Sequence[PreparedEntry]]
    ) -> tuple[list[EventRow], Position, list[bytes], int]:
        conn = self._conn
        facts = [fact for unit in units for fact in unit]
        fold = tables.load_fold(conn, (fact.entry.event for fact in facts))
        seq, ts_us = self._position.seq, self._position.ts_us
        rows: list[EventRow] = []
        for fact in facts:
            seq += 1
            ts_us = max(fact.ts_us, ts_us + 1)
            event, payload = fact.entry.event, fact.entry.payload
            task: int | None = getattr(event, "task", None)
            prev = fold.previous(task)
            if isinstance(event, TasksPlanned):
                fold.apply(seq, ts_us, event, _manifest(payload))
            else:
                fold.apply(seq, ts_us, event)
            encoding, body = Encoding.NONE, None
            if payload is not None:
                encoding, body = self._packer.pack(payload)
            rows.append(
                EventRow(
                    seq,
                    ts_us,
                    self._epoch,
                    NAMES[type(event)],
                    event.VERSION,
                    task,
                    getattr(event, "attempt", None),
                    prev,
                    encoding,
                    0 if payload is None else len(payload),
                    fact.facts,
                    body,
                )
            )
        insert_events(conn, rows, self._kinds)
        fresh, size = self._blobs.write(
            blob for fact in facts for blob in fact.entry.blobs
        )
        tables.write_fold(conn, fold, seq)
        head = link(self._position.link, rows)
        conn.execute(SQL["insert_link"], (seq, head))
        size += sum(len(row.body) for row in rows if row.body is not None)
        return rows, Position(seq=seq, ts_us=ts_us, link=head), fresh, size


#: Limits of one transaction, so that a commit takes a few milliseconds.
BATCH_EVENTS = 1024
BATCH_BYTES = 4 << 20

_P = ParamSpec("_P")
_T = TypeVar("_T")


class WriterThread(aiosqlite.Connection):
    """aiosqlite's connection, used for whole functions instead of single statements.

    A batch as one function costs one hop between threads instead of one per statement;
    hence the protected members, here only.
    """

    def __init__(self, connector: Callable[[], sqlite3.Connection]) -> None:
        super().__init__(connector, iter_chunk_size=64)

    async def run(
        self,
        function: Callable[Concatenate[sqlite3.Connection, _P], _T],
        *args: _P.args,
        **kwargs: _P.kwargs,
    ) -> _T:
        """Call *function* with the connection, on its thread."""
        result: _T = await self._execute(function, self._conn, *args, **kwargs)  # type: ignore[no-untyped-call]
        return result

    def submit(self, function: Callable[[], None]) -> None:
        """Call *function* on the thread, in turn, without a result."""
        self._tx.put_nowait((None, function))


class _Unit(NamedTuple):
    """The entries of one call to `append`, committed together."""

    facts: tuple[PreparedEntry, ...]
    size: int
    durable: asyncio.Future[int] | None


@dataclass(slots=True)
class _Queue:
    """Units waiting for a commit; shared by the loop and the thread.

    Both may use a deque's ends without a lock. `bytes` belongs to the loop.
    """

    units: deque[_Unit] = field(default_factory=deque)
    bytes: int = 0
    is_announced: bool = False  #: the thread has been notified

    def take(self) -> list[_Unit]:
        """Remove and return the next batch."""
        batch: list[_Unit] = []
        events = size = 0
        while self.units and events < BATCH_EVENTS and size < BATCH_BYTES:
            unit = self.units.popleft()
            batch.append(unit)
            events += len(unit.facts)
            size += unit.size
        return batch


class Committer:
    """Passes units from the event loop to the writer on its thread."""

    def __init__(self, path: Path, thread: WriterThread, writer: Writer) -> None:
        self._path = path
        self._thread = thread
        self._writer = writer
        self._queue = _Queue()
        self._loop = asyncio.get_running_loop()
        self.failure: StoreError | None = None  #: why the log accepts no more commits

    @property
    def queued_bytes(self) -> int:
        """Bytes that wait for a commit."""
        return self._queue.bytes

    def put(
        self, facts: tuple[PreparedEntry, ...], durable: asyncio.Future[int] | None
    ) -> None:
        """Queue *facts* to be committed together; *durable* gets the last seq."""
        queue = self._queue
        unit = _Unit(facts, sum([fact.size for fact in facts]), durable)
        queue.units.append(unit)
        queue.bytes += unit.size
        self._announce()

    async def drain(self) -> None:
        """Wait until everything queued so far is committed or has failed."""
        while self._queue.units:
            # the thread works in order, so each turn comes after a batch
            await self._thread.run(_no_op)

    def _announce(self) -> None:
        if not self._queue.is_announced:
            self._queue.is_announced = True
            self._thread.submit(self._commit)

    def _commit(self) -> None:
        """Commit one batch; on the thread."""
        # reset before taking, so that a unit which arrives later announces itself
        self._queue.is_announced = False
        batch = self._queue.take()
        if not batch:
            return
        outcomes = self._outcomes(batch)
        if self._queue.units:
            self._announce()
        self._loop.call_soon_threadsafe(self._acknowledge, batch, outcomes)

    def _outcomes(self, batch: list[_Unit]) -> list[int | IllegalMove] | StoreError:
        if self.failure is not None:
            return self.failure
        try:
            return self._writer.commit([unit.facts for unit in batch])
        except Fenced as error:
            self.failure = error
            return error
        except sqlite3.Error as error:
            return self.fail(error)
        except Exception as error:  # noqa: BLE001 - a bug must not block waiters forever
            self.failure = LogClosed(
                f"{self._path} could not be written because of a bug in "
                f"siftlog ({error!r}): please report it; acknowledged "
                "events are safe"
            )
            self.failure.__cause__ = error
            return self.failure

    def fail(self, error: sqlite3.Error) -> LogClosed:
        """Stop writing because the disk refused; return the error to raise.

        After a failed sync the state of the page cache is unknown, so this connection
        does not retry.
        """
        return self.close(
            f"{self._path} could not be written ({error}): free space "
            "or repair the disk, then resume the run; acknowledged "
            "events are safe"
        )

    def close(self, reason: str) -> LogClosed:
        """Stop writing for the reason *reason*; return the error to raise."""
        self.failure = LogClosed(reason)
        return self.failure

    def _acknowledge(
        self, batch: list[_Unit], outcomes: list[int | IllegalMove] | StoreError
    ) -> None:
        """Wake all waiters of a batch; on the loop."""
        self._queue.bytes -= sum(unit.size for unit in batch)
        if isinstance(outcomes, StoreError):
            for unit in batch:
                _settle(unit.durable, copied_error(outcomes))
            return
        for unit, outcome in zip(batch, outcomes, strict=True):
            _settle(unit.durable, outcome)


def copied_error(error: StoreError) -> StoreError:
    """Return a copy of the error for another waiter: each needs its own traceback."""
    copy = type(error)(str(error))
    copy.__cause__ = error.__cause__
    return copy


def _settle(durable: asyncio.Future[int] | None, outcome: int | StoreError) -> None:
    if durable is None or durable.done():  # no waiter, or it was cancelled
        return
    if isinstance(outcome, StoreError):
        durable.set_exception(outcome)
    else:
        durable.set_result(outcome)


def _no_op(_conn: sqlite3.Connection) -> None:
    """Do nothing: `drain` waits for its turn in the thread's queue."""
