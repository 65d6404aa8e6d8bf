"""Taking the events of a log into the union, under numbers of the union's own.

The rows travel as they are stored; only what names tasks by number is written anew
(`store.union.numbering`). Each stretch of a log is one transaction, so that a merge
which is cut off goes on where it was.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from store import opening
from store.appending import Kinds, insert_events
from store.chain import EventRow, link, link_again
from store.codec import Packer
from store.errors import CorruptLog, StoreError
from store.events import (
    TasksPlanned,
    Unknown,
)
from store.manifest import manifest_bytes
from store.statements import SQL
from store.union import folding
from store.union.folding import Item
from store.union.numbering import Numbers
from store.union.source import LogIdentity, Source, Stretch
from store.union.statements import FACTS, UNION
from store.writer import Position


@dataclass(slots=True, kw_only=True)
class _Progress:
    """How far a log has been taken in."""

    part: int
    seq: int
    link: bytes
    blobs_upto: int


def create(
    conn: sqlite3.Connection, path: Path, identity: LogIdentity, owner: str
) -> None:
    """Make an empty union for the run that a log is of."""
    opening.create(
        conn,
        path,
        run_id=identity.run_id,
        owner=owner,
        config_sha256=identity.config_sha256,
        now_us=identity.created_us,
        beside=_union_tables,
    )


def _union_tables(conn: sqlite3.Connection) -> None:
    for table in FACTS:
        conn.execute(UNION[f"create_{table}"])
    conn.execute(UNION["create_numbered_skip"])
    folding.create(conn)


class Merger:
    """Takes logs into one union; belongs to one thread, under the union's lock."""

    def __init__(self, conn: sqlite3.Connection, path: Path) -> None:
        """Go on with the union behind a writing connection.

        Raises:
            NewerLog: it holds events of a later siftlog.
            CorruptLog: its last commit is damaged.
        """
        self._conn = conn
        self._path = path
        self._position = opening.ready(conn, path)
        # what a power cut takes away is merged again
        conn.execute(SQL["synchronous_normal"])
        self._run_id, _, self._config, _ = conn.execute(SQL["run"]).fetchone()
        self._kinds = Kinds(conn)
        self._packer = Packer()

    def merge(self, source: Source) -> int:
        """Take in what is new in a log; the number of its events that were.

        Raises:
            StoreError: it is of another run, or of other settings.
            CorruptLog: it is not what it was when it was merged before.
        """
        identity = source.identity
        if identity.run_id != self._run_id:
            raise StoreError(
                f"beside the logs of run {self._run_id!r} there is one of run "
                f"{identity.run_id!r}: give each run a folder, and a place, of its own"
            )
        if identity.config_sha256 != self._config:
            raise StoreError(
                f"a log of run {identity.run_id!r} with other models or replicates "
                f"cannot be merged into {self._path}: give every shard of a run the "
                "same options"
            )
        known = self._known(identity)
        before = known.seq
        for stretch in source.stretches(known.seq, known.blobs_upto):
            self._take_in(known, stretch)
        return known.seq - before

    def _known(self, identity: LogIdentity) -> _Progress:
        conn = self._conn
        row = conn.execute(UNION["known_log"], (identity.log,)).fetchone()
        if row is not None:
            return _Progress(part=row[0], seq=row[1], link=row[2], blobs_upto=row[3])
        first = identity.genesis
        (part,) = conn.execute(UNION["add_log"], (identity.log, first)).fetchone()
        return _Progress(part=part, seq=0, link=first, blobs_upto=0)

    def _take_in(self, known: _Progress, stretch: Stretch) -> None:
        """Record one stretch, whole or not at all."""
        conn = self._conn
        head = self._followed(known, stretch)
        conn.execute(SQL["begin"])
        try:
            conn.executemany(UNION["add_blob"], stretch.blobs)
            position = self._position
            if stretch.rows:
                position = self._record(known.part, stretch)
            last = stretch.rows[-1].seq if stretch.rows else known.seq
            blobs_upto = max(known.blobs_upto, stretch.blobs_upto)
            conn.execute(UNION["took_in"], (last, head, blobs_upto, known.part))
            conn.execute(SQL["commit"])
        except BaseException:
            if conn.in_transaction:
                conn.execute(SQL["rollback"])
            raise
        self._position = position
        known.seq, known.link, known.blobs_upto = last, head, blobs_upto

    def _followed(self, known: _Progress, stretch: Stretch) -> bytes:
        """The log's link after a stretch, which must follow what is here.

        Raises:
            CorruptLog: it does not.
        """
        head, at, rows = known.link, known.seq, list(stretch.rows)
        for last_seq, stored in stretch.links:
            commit, rows = rows[: last_seq - at], rows[last_seq - at :]
            dense = [row.seq for row in commit] == list(range(at + 1, last_seq + 1))
            head = link_again(head, commit)
            if not dense or head != stored:
                raise CorruptLog(
                    f"events {at + 1} to {last_seq} of a log of {self._run_id} do not "
                    "follow those that were merged before: it was changed, or went on "
                    "in two places; keep the one that is right and delete "
                    f"{self._path}"
                )
            at = last_seq
        return head

    def _record(self, part: int, stretch: Stretch) -> Position:
        conn = self._conn
        epochs = self._openings(part, stretch)
        numbers = Numbers(conn, part, stretch.rows)
        last_of = self._last_events(numbers.known)
        seq = self._position.seq
        conn.execute(UNION["add_origin"], (seq + 1, stretch.rows[0].seq))
        rows: list[EventRow] = []
        items: list[Item] = []
        for row in stretch.rows:
            seq += 1
            here = numbers.translated(row)
            event, encoding, length, body = here.event, row.enc, row.blen, row.body
            if not isinstance(event, Unknown):
                items.append(Item(seq, row.ts_us, event, here.manifest))
            if isinstance(event, TasksPlanned):
                payload = manifest_bytes(here.manifest)
                encoding, body = self._packer.pack(payload)
                length = len(payload)
            prev = None
            if here.task is not None:
                prev, last_of[here.task] = last_of.get(here.task), seq
            rows.append(
                EventRow(
                    seq,
                    row.ts_us,
                    epochs[row.epoch],
                    row.kind,
                    here.ver,
                    here.task,
                    row.attempt,
                    prev,
                    encoding,
                    length,
                    here.facts,
                    body,
                )
            )
        insert_events(conn, rows, self._kinds)
        numbers.write()
        folding.fold(conn, conn, part, items, seq)
        head = link(self._position.link, rows)
        conn.execute(SQL["insert_link"], (seq, head))
        ts_us = max(self._position.ts_us, *(row.ts_us for row in rows))
        return Position(seq=seq, ts_us=ts_us, link=head)

    def _openings(self, part: int, stretch: Stretch) -> dict[int, int]:
        """The union's number for each opening of the log, by the log's own."""
        conn = self._conn
        found: dict[int, int] = {}
        for epoch, writer in stretch.writers.items():
            row = conn.execute(UNION["opening_of"], (writer,)).fetchone()
            if row is None:
                (lowest,) = conn.execute(UNION["lowest_opening"]).fetchone()
                row = (lowest - 1, part)
                conn.execute(UNION["add_opening"], row)
                conn.execute(
                    UNION["add_writer"], (row[0], writer, stretch.rows[0].ts_us)
                )
            found[epoch] = row[0]
        return found

    def _last_events(self, tasks: Iterable[int]) -> dict[int, int | None]:
        """The latest event of its own of each task, whichever log's."""
        found = self._conn.execute(
            SQL["drafts"], (json.dumps(sorted(set(tasks))),)
        ).fetchall()
        return {row[0]: row[22] for row in found}
