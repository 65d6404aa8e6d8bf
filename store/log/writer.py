"""Writes commits: many appenders share one transaction and one disk sync.

A `Writer` belongs to one thread and one connection and knows no event loop. In one
transaction go the events, their bodies and blobs, what the fold changed, and a link of
the hash chain; the epoch is compared first, so that a writer which was replaced while
it slept can add nothing.

The system text, the 60 KB paper and the question of a prompt are parts of their own:
twenty questions about a paper store it once.

Appending puts a unit into a queue; the thread of one aiosqlite connection takes
whatever has queued up while it was busy and commits it as one transaction. There is no
timer: a lone append is committed at once, and under load the batches grow by
themselves. All waiters of a batch are woken by a single call into the event loop.

The queue needs no task of its own, so that nothing has to be cancelled or awaited but
the appends themselves; a cancelled appender's entries are committed all the same.
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
from store.errors import Fenced, IllegalMove, LogClosed, StoreError
from store.events import NAMES, Blob, Entry, Event, TasksPlanned
from store.log.integrity import EventRow, HeadWriter, link
from store.tables import Encoding, Packer, facts_of
from store.task import PlannedTask, planned_tasks


class KindIds:
    """The ids of kinds in one log; a kind enters its table with its first event."""

    def __init__(self, conn: sqlite3.Connection) -> None:
        self._conn = conn
        self._ids: dict[tuple[str, int], int] = {}

    def id_of(self, name: str, version: int) -> int:
        """The id of a kind in that version."""
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
        # by position, as the statement's columns stand: a look at each name costs more
        [(*row[:3], kinds.id_of(row.kind, row.ver), *row[4:11]) for row in rows],
    )
    bodies = [(row.seq, row.body) for row in rows if row.body is not None]
    if bodies:
        conn.executemany(SQL["insert_body"], bodies)


#: Hashes remembered as stored, so that a paper asked about twenty times
#: is looked up once. Forgetting one costs a lookup, nothing else.
REMEMBERED = 8192


class BlobStore:
    """Writes the blobs that are not there yet; belongs to the writer's thread."""

    def __init__(self, conn: sqlite3.Connection, packer: Packer) -> None:
        self._conn = conn
        self._packer = packer
        self._stored_hashes: OrderedDict[bytes, None] = OrderedDict()

    def write(self, blobs: Iterable[Blob]) -> tuple[list[bytes], int]:
        """Store the new ones of *blobs* in the open transaction.

        Returns:
            The hashes now stored, to be given to `remember` once they are committed,
            and the bytes written.
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
        """Skip the lookup of these from now on: they are durable."""
        for sha256 in hashes:
            self._stored_hashes[sha256] = None
        while len(self._stored_hashes) > REMEMBERED:
            self._stored_hashes.popitem(last=False)


class PreparedEntry(NamedTuple):
    """An entry made ready for the writer's thread."""

    ts_us: int  #: when it was appended; the writer may move it up, never down
    entry: Entry
    facts: bytes
    size: int  #: bytes held until the commit

    @classmethod
    def of(cls, entry: Entry | Event, ts_us: int) -> PreparedEntry:
        """Encode now: what is appended is what the caller saw."""
        if not isinstance(entry, Entry):
            entry = Entry(event=entry)
        facts = facts_of(entry.event)
        size = len(facts) + len(entry.payload or b"")
        for blob in entry.blobs:
            size += len(blob.data)
        return cls(ts_us, entry, facts, size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Where a log ends."""

    seq: int
    ts_us: int
    link: bytes


@dataclass(slots=True, kw_only=True)
class WriterStatistics:
    """What a writer has committed since it was made."""

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
        """Go on from where a log ends.

        Args:
            conn: the log's, to which nobody else writes.
            epoch: which opening of the log this is.
            position: where it ends.
            head_writer: notes every commit outside of the database; None: nothing does.
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
        """Record *units*, each whole or not at all, in their order.

        Returns:
            For every unit the seq of its last event, or why its task forbids it: a
            unit that is refused takes nobody else's down.

        Raises:
            Fenced: another writer has taken the log over; nothing was recorded.
            sqlite3.Error: the disk refused; what is in the file is unknown.
        """
        try:
            return list(self._transact(units))
        except IllegalMove as error:
            if len(units) == 1:
                return [error]
            return [outcome for unit in units for outcome in self.commit([unit])]

    def write_heartbeat(self, now_us: int) -> None:
        """Say that the process is alive; a plain row, outside of the events."""
        sign = (now_us, self._epoch, os.getpid(), socket.gethostname())
        self._conn.execute(SQL["set_heartbeat"], sign)

    def end(self) -> None:
        """Empty the WAL, and note beside the log that it is closed in good order."""
        # a courtesy to whoever copies the file: the next opening would do as well
        with contextlib.suppress(sqlite3.Error):
            self._conn.execute(SQL["checkpoint_truncate"]).fetchone()
        if self._head_writer is not None:
            self._head_writer.end(self._position.seq, self._position.link)

    def release(self) -> None:
        """Let go of what was opened for it; harmless when repeated."""
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
            # not earlier: what a power cut takes back must never have been noted
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


#: One transaction takes at most this much: the commit stays a few milliseconds long.
BATCH_EVENTS = 1024
BATCH_BYTES = 4 << 20

_P = ParamSpec("_P")
_T = TypeVar("_T")


class WriterThread(aiosqlite.Connection):
    """aiosqlite's connection, used for whole functions instead of single statements.

    A batch as one function costs one hop between threads, where statement by statement
    it would cost one each; hence the protected members, here and nowhere else.
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
        """Call *function* on the thread, in turn, and tell nobody."""
        self._tx.put_nowait((None, function))


class _Unit(NamedTuple):
    """What one call to `append` wants committed together."""

    facts: tuple[PreparedEntry, ...]
    size: int
    durable: asyncio.Future[int] | None


@dataclass(slots=True)
class _Queue:
    """Units waiting for a commit; shared by the loop and the thread.

    A deque's ends may be used from both without a lock. `bytes` belongs to the loop.
    """

    units: deque[_Unit] = field(default_factory=deque)
    bytes: int = 0
    is_announced: bool = False  #: the thread has been told that there is something

    def take(self) -> list[_Unit]:
        """The next batch."""
        batch: list[_Unit] = []
        events = size = 0
        while self.units and events < BATCH_EVENTS and size < BATCH_BYTES:
            unit = self.units.popleft()
            batch.append(unit)
            events += len(unit.facts)
            size += unit.size
        return batch


class Committer:
    """The way from appenders on the event loop to the writer on its thread."""

    def __init__(self, path: Path, thread: WriterThread, writer: Writer) -> None:
        self._path = path
        self._thread = thread
        self._writer = writer
        self._queue = _Queue()
        self._loop = asyncio.get_running_loop()
        self.failure: StoreError | None = None  #: why nothing more can be committed

    @property
    def queued_bytes(self) -> int:
        """What waits for a commit."""
        return self._queue.bytes

    def put(
        self, facts: tuple[PreparedEntry, ...], durable: asyncio.Future[int] | None
    ) -> None:
        """Have *facts* committed together; *durable* is told the last one's seq."""
        queue = self._queue
        unit = _Unit(facts, sum([fact.size for fact in facts]), durable)
        queue.units.append(unit)
        queue.bytes += unit.size
        self._announce()

    async def drain(self) -> None:
        """Return when everything queued so far has been committed, or has failed."""
        while self._queue.units:
            # the thread works in order, so each turn comes after a batch
            await self._thread.run(_no_op)

    def _announce(self) -> None:
        if not self._queue.is_announced:
            self._queue.is_announced = True
            self._thread.submit(self._commit)

    def _commit(self) -> None:
        """Commit one batch; on the thread."""
        # withdrawn before taking, so that a unit which comes too late announces itself
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
        except Exception as error:  # noqa: BLE001 - nobody may wait for ever for a bug
            self.failure = LogClosed(
                f"{self._path} could not be written because of a bug in "
                f"siftlog ({error!r}): please report it; acknowledged "
                "events are safe"
            )
            self.failure.__cause__ = error
            return self.failure

    def fail(self, error: sqlite3.Error) -> LogClosed:
        """Write nothing more, since the disk refused; the error to be raised.

        After a failed sync nobody knows what the page cache holds, so there is no
        second try on this connection.
        """
        return self.close(
            f"{self._path} could not be written ({error}): free space "
            "or repair the disk, then resume the run; acknowledged "
            "events are safe"
        )

    def close(self, reason: str) -> LogClosed:
        """Write nothing more, for the reason *reason*; the error to be raised."""
        self.failure = LogClosed(reason)
        return self.failure

    def _acknowledge(
        self, batch: list[_Unit], outcomes: list[int | IllegalMove] | StoreError
    ) -> None:
        """Wake everybody who waits for a batch; on the loop."""
        self._queue.bytes -= sum(unit.size for unit in batch)
        if isinstance(outcomes, StoreError):
            for unit in batch:
                _settle(unit.durable, copied_error(outcomes))
            return
        for unit, outcome in zip(batch, outcomes, strict=True):
            _settle(unit.durable, outcome)


def copied_error(error: StoreError) -> StoreError:
    """The error once more, for another waiter: a traceback belongs to one of them."""
    copy = type(error)(str(error))
    copy.__cause__ = error.__cause__
    return copy


def _settle(durable: asyncio.Future[int] | None, outcome: int | StoreError) -> None:
    if durable is None or durable.done():  # nobody waits, or not any more
        return
    if isinstance(outcome, StoreError):
        durable.set_exception(outcome)
    else:
        durable.set_result(outcome)


def _no_op(_conn: sqlite3.Connection) -> None:
    """Only wait for one's turn."""
