"""Writes commits: the units of many appenders in one transaction with one disk sync.

A `Writer` belongs to one thread and one connection and knows no event loop. One
transaction holds the events, their bodies and blobs and a link of the hash chain; the
projections follow a moment later, in one of their own. Both compare the epoch first, so
a writer that was replaced while it was suspended can add nothing. Events are folded,
compressed and hashed before the transaction begins.

The system text, the 60 KB paper and the question of a prompt are stored as separate
parts: twenty questions about a paper store it once.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sqlite3
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from store.database import SQL
from store.encoding import Encoding, Packer, facts_of
from store.errors import Fenced, IllegalMove
from store.events import NAMES, Blob, Entry, Event, TasksPlanned
from store.log.integrity import EventRow, HeadWriter, Position, link
from store.log.projections import (
    AT_ONCE,
    PendingProjections,
    manifest_of,
)


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


class StoredBlob(NamedTuple):
    """A blob as its table holds it."""

    sha256: bytes
    encoding: Encoding
    size: int  #: before compression
    data: bytes


class BlobStore:
    """Writes blobs that are not stored yet; belongs to the writer's thread."""

    def __init__(self, conn: sqlite3.Connection, packer: Packer) -> None:
        self._conn = conn
        self._packer = packer
        self._stored_hashes: OrderedDict[bytes, None] = OrderedDict()

    def prepare(self, blobs: Iterable[Blob]) -> dict[bytes, StoredBlob | None]:
        """Compress the new ones of *blobs*.

        Returns:
            By hash, the row to `write`, or None for one that was found stored; for
            `remember` after the commit.
        """
        fresh: dict[bytes, StoredBlob | None] = {}
        for blob in blobs:
            if blob.sha256 in self._stored_hashes:
                self._stored_hashes.move_to_end(blob.sha256)
            elif blob.sha256 not in fresh:
                fresh[blob.sha256] = self._packed(blob)
        return fresh

    def _packed(self, blob: Blob) -> StoredBlob | None:
        if self._conn.execute(SQL["blob_known"], (blob.sha256,)).fetchone():
            return None
        encoding, data = self._packer.pack(blob.data)
        return StoredBlob(blob.sha256, encoding, len(blob.data), data)

    def write(self, fresh: Mapping[bytes, StoredBlob | None]) -> int:
        """Store what `prepare` found new in the open transaction; return its bytes."""
        rows = [row for row in fresh.values() if row is not None]
        if rows:
            self._conn.executemany(SQL["insert_blob"], rows)
        return sum(len(row.data) for row in rows)

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


@dataclass(slots=True, kw_only=True)
class WriterStatistics:
    """Statistics of a writer since it was created."""

    commits: int = 0
    events: int = 0
    bytes: int = 0  #: bodies and blobs after compression


class _Batch(NamedTuple):
    """Content of one transaction."""

    rows: list[EventRow]
    end: Position
    blobs: Mapping[bytes, StoredBlob | None]
    shows_at_once: bool  #: its projections are written with it


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
        self._pending = PendingProjections(conn, position.seq)
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
        if self._pending.is_discarded:
            self.write_projections()
        try:
            batch = self._prepared([fact for unit in units for fact in unit])
        except IllegalMove as error:
            self._pending.discard()
            if len(units) == 1:
                return [error]
            return [outcome for unit in units for outcome in self.commit([unit])]
        except BaseException:
            self._pending.discard()
            raise
        self._write(batch)
        seq = batch.end.seq - len(batch.rows)
        last: list[int | IllegalMove] = []
        for unit in units:
            seq += len(unit)
            last.append(seq)
        return last

    def write_projections(self, *, of: int | None = None) -> None:
        """Write the projections of all committed events; waits for no disk.

        They are derived: after a power cut the next writer folds them again.

        Args:
            of: only if the row of this task is behind; None: in any case.

        Raises:
            Fenced: another writer has taken the log over; nothing was written.
            sqlite3.Error: the disk refused.
        """
        pending = self._pending
        if not pending.has_any or (of is not None and not pending.has_task(of)):
            return
        self._conn.execute(SQL["synchronous_normal"])
        with self._transaction():
            pending.write(self._position.seq)
        pending.written()
        self._conn.execute(SQL["synchronous"])

    def write_heartbeat(self, now_us: int) -> None:
        """Record that the process is alive; a plain row, outside the events."""
        sign = (now_us, self._epoch, os.getpid(), socket.gethostname())
        self._conn.execute(SQL["set_heartbeat"], sign)

    def end(self) -> None:
        """Write the projections, empty the WAL, and record the end in the sidecar."""
        try:
            self.write_projections()
        except Fenced:
            return  # the end is the other writer's
        except sqlite3.Error:
            pass  # the next opening folds what is missing
        # helps people who copy the file; the next opening would do the same
        with contextlib.suppress(sqlite3.Error):
            self._conn.execute(SQL["checkpoint_truncate"]).fetchone()
        if self._head_writer is not None:
            self._head_writer.end(self._position.seq, self._position.link)

    def release(self) -> None:
        """Release its resources; harmless when repeated."""
        if self._head_writer is not None:
            self._head_writer.close()

    def _write(self, batch: _Batch) -> None:
        """Commit a batch; it is durable afterwards."""
        rows, end, pending = batch.rows, batch.end, self._pending
        with_projections = batch.shows_at_once or pending.is_full
        try:
            with self._transaction():
                insert_events(self._conn, rows, self._kinds)
                size = self._blobs.write(batch.blobs)
                self._conn.execute(SQL["insert_link"], (end.seq, end.link))
                if with_projections:
                    pending.write(end.seq)
        except BaseException:
            pending.discard()
            raise
        if self._head_writer is not None:
            # not earlier: the record must never contain what a power cut can undo
            self._head_writer.note(end.seq, end.link)
        if with_projections:
            pending.written()
        self._blobs.remember(batch.blobs)
        self._position = end
        self.written.commits += 1
        self.written.events += len(rows)
        self.written.bytes += size + sum(
            len(row.body) for row in rows if row.body is not None
        )

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        """Run the block in one transaction of the log's writer.

        Raises:
            Fenced: another writer has taken the log over.
        """
        conn = self._conn
        conn.execute(SQL["begin"])
        try:
            self._check_epoch()
            yield
            conn.execute(SQL["commit"])
        except BaseException:
            if conn.in_transaction:
                conn.execute(SQL["rollback"])
            raise

    def _check_epoch(self) -> None:
        (epoch,) = self._conn.execute(SQL["epoch"]).fetchone()
        if epoch != self._epoch:
            raise Fenced(
                "another process has taken this log over: leave the run to it, or "
                "stop it and resume here"
            )

    def _prepared(self, entries: Sequence[PreparedEntry]) -> _Batch:
        """Fold, compress and hash *entries*, before the transaction begins.

        Raises:
            IllegalMove: an event does not fit earlier events.
        """
        fold = self._pending.load([fact.entry.event for fact in entries])
        seq, ts_us = self._position.seq, self._position.ts_us
        rows: list[EventRow] = []
        planned, shows_at_once = 0, False
        for fact in entries:
            seq += 1
            ts_us = max(fact.ts_us, ts_us + 1)
            event, payload = fact.entry.event, fact.entry.payload
            task: int | None = getattr(event, "task", None)
            kind = NAMES[type(event)]
            shows_at_once = shows_at_once or kind in AT_ONCE
            prev = fold.previous(task)
            if isinstance(event, TasksPlanned):
                fold.apply(seq, ts_us, event, manifest_of(payload))
                planned += event.count
            else:
                fold.apply(seq, ts_us, event)
            encoding, body = Encoding.NONE, None
            if fact.entry.is_elsewhere:
                encoding = Encoding.AS_RECEIVED
            elif payload is not None:
                encoding, body = self._packer.pack(payload)
            rows.append(
                EventRow(
                    seq,
                    ts_us,
                    self._epoch,
                    kind,
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
        self._pending.take(seq, planned)
        blobs = self._blobs.prepare(
            blob for fact in entries for blob in fact.entry.blobs
        )
        end = Position(seq=seq, ts_us=ts_us, link=link(self._position.link, rows))
        return _Batch(rows, end, blobs, shows_at_once)
