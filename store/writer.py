"""One commit: everything that happens between BEGIN and COMMIT.

A `Writer` belongs to one thread and one connection and knows no event loop. In one
transaction go the events, their bodies and blobs, what the fold changed, and a link of
the hash chain; the epoch is compared first, so that a writer which was replaced while
it slept can add nothing.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from store import projections
from store.appending import Kinds, insert_events
from store.blobs import BlobStore
from store.chain import EventRow, link
from store.codec import Encoding, Packer, facts_of
from store.errors import Fenced, IllegalMove
from store.events import NAMES, Entry, Event, TasksPlanned
from store.heads import Heads
from store.manifest import PlannedTask, planned_tasks
from store.statements import SQL


class Fact(NamedTuple):
    """An entry made ready for the writer's thread."""

    ts_us: int  #: when it was appended; the writer may move it up, never down
    entry: Entry
    facts: bytes
    size: int  #: bytes held until the commit

    @classmethod
    def of(cls, entry: Entry | Event, ts_us: int) -> Fact:
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
class Written:
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
        heads: Heads | None = None,
    ) -> None:
        """Go on from where a log ends.

        Args:
            conn: the log's, to which nobody else writes.
            epoch: which opening of the log this is.
            position: where it ends.
            heads: notes every commit outside of the database; None: nothing does.
        """
        self._conn = conn
        self._heads = heads
        self._epoch = epoch
        self._position = position
        self._packer = Packer()
        self._blobs = BlobStore(conn, self._packer)
        self._kinds = Kinds(conn)
        self.written = Written()

    def commit(self, units: Sequence[Sequence[Fact]]) -> list[int | IllegalMove]:
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

    def beat(self, now_us: int) -> None:
        """Say that the process is alive; a plain row, outside of the events."""
        sign = (now_us, self._epoch, os.getpid(), socket.gethostname())
        self._conn.execute(SQL["set_heartbeat"], sign)

    def end(self) -> None:
        """Empty the WAL, and note beside the log that it is closed in good order."""
        # a courtesy to whoever copies the file: the next opening would do as well
        with contextlib.suppress(sqlite3.Error):
            self._conn.execute(SQL["checkpoint_truncate"]).fetchone()
        if self._heads is not None:
            self._heads.end(self._position.seq, self._position.link)

    def release(self) -> None:
        """Let go of what was opened for it; harmless when repeated."""
        if self._heads is not None:
            self._heads.close()

    def _transact(self, units: Sequence[Sequence[Fact]]) -> list[int]:
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
        if self._heads is not None:
            # not earlier: what a power cut takes back must never have been noted
            self._heads.note(position.seq, position.link)
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
        self, units: Sequence[Sequence[Fact]]
    ) -> tuple[list[EventRow], Position, list[bytes], int]:
        conn = self._conn
        facts = [fact for unit in units for fact in unit]
        fold = projections.load(conn, (fact.entry.event for fact in facts))
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
        projections.write(conn, fold, seq)
        head = link(self._position.link, rows)
        conn.execute(SQL["insert_link"], (seq, head))
        size += sum(len(row.body) for row in rows if row.body is not None)
        return rows, Position(seq=seq, ts_us=ts_us, link=head), fresh, size
