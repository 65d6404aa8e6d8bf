"""Taking the events of a log into the union, under numbers of the union's own.

The rows travel as they are stored; only what names tasks by number is written anew
(`store.union.numbering`). A new log is taken in as a whole, with its own projections,
if it meets no other (`store.union.grafting`). Of all others each stretch is copied and
folded in one transaction, so that a merge which is cut off goes on where it was.
"""

from __future__ import annotations

import json
import sqlite3
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from store import opening
from store.appending import Kinds, insert_events
from store.chain import EventRow, link, link_again
from store.errors import CorruptLog, StoreError
from store.events import Unknown
from store.projections import load_run_state
from store.rebuild import fold_between
from store.statements import SQL
from store.union import folding
from store.union.grafting import Graft, adopts
from store.union.numbering import Numbers
from store.union.source import LogIdentity, Source, Stretch
from store.union.statements import FACTS, UNION
from store.writer import Position


@dataclass(frozen=True, slots=True, kw_only=True)
class _Progress:
    """How far a log has been taken in, and the union with it."""

    part: int
    seq: int  #: of the log
    link: bytes  #: of the log
    blobs_upto: int
    end: Position  #: of the union
    tasks: int  #: of the union


class _MeetsAnother(Exception):
    """A log is not of tasks of its own alone, or not of answers that it paid for."""


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
    conn.execute(UNION["number_freely"])
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
        self._end = opening.ready(conn, path)
        # what a power cut takes away is merged again
        conn.execute(SQL["synchronous_normal"])
        self._run_id, _, self._config, _ = conn.execute(SQL["run"]).fetchone()
        self._kinds = Kinds(conn)

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
        conn, known = self._conn, self._known(identity)
        before = known.seq
        if before == 0:
            known = self._grafted(known, source)
        for stretch in source.stretches(known.seq, known.blobs_upto):
            with self._transaction():
                after = self._copied(known, stretch)
                deque(fold_between(conn, conn, known.end.seq, after.end.seq), maxlen=0)
            self._end, known = after.end, after
        return known.seq - before

    def _known(self, identity: LogIdentity) -> _Progress:
        conn = self._conn
        row = conn.execute(UNION["known_log"], (identity.log,)).fetchone()
        if row is None:
            first = identity.genesis
            (part,) = conn.execute(UNION["add_log"], (identity.log, first)).fetchone()
            row = (part, 0, first, 0)
        part, seq, head, blobs_upto = row
        return _Progress(
            part=part,
            seq=seq,
            link=head,
            blobs_upto=blobs_upto,
            end=self._end,
            tasks=load_run_state(conn).tasks,
        )

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Record all that is done inside, or nothing of it."""
        self._conn.execute(SQL["begin"])
        try:
            yield
            self._conn.execute(SQL["commit"])
        except BaseException:
            if self._conn.in_transaction:
                self._conn.execute(SQL["rollback"])
            raise

    def _grafted(self, known: _Progress, source: Source) -> _Progress:
        """How far a new log is in when all of it was taken over, or nothing was."""
        after = known
        try:
            with source.held() as log, self._transaction():
                if log is None:
                    return known
                graft = Graft(self._conn, known.part)
                for stretch in log.stretches(0, known.blobs_upto):
                    after = self._copied(after, stretch, graft)
                graft.write(log.reader, known.end.seq, known.tasks, after.end.seq)
        except _MeetsAnother:
            self._kinds = Kinds(self._conn)  # ids that were rolled back are forgotten
            return known
        self._end = after.end
        return after

    def _copied(
        self, known: _Progress, stretch: Stretch, graft: Graft | None = None
    ) -> _Progress:
        """How far a log is in with a stretch, whose rows are written here.

        Raises:
            CorruptLog: it does not follow what is here.
            _MeetsAnother: it cannot be grafted.
        """
        head = self._followed(known, stretch)
        self._conn.executemany(UNION["add_blob"], stretch.blobs)
        after = replace(
            known,
            link=head,
            seq=stretch.rows[-1].seq if stretch.rows else known.seq,
            blobs_upto=max(known.blobs_upto, stretch.blobs_upto),
        )
        if stretch.rows:
            after = self._recorded(after, stretch, graft)
        self._conn.execute(
            UNION["took_in"], (after.seq, after.link, after.blobs_upto, after.part)
        )
        return after

    def _followed(self, known: _Progress, stretch: Stretch) -> bytes:
        """The log's link after a stretch, which must follow what is here.

        Raises:
            CorruptLog: it does not.
        """
        head, at, first = known.link, known.seq, known.seq
        for end_seq, stored in stretch.links:
            commit = stretch.rows[at - first : end_seq - first]
            dense = [row.seq for row in commit] == list(range(at + 1, end_seq + 1))
            head = link_again(head, commit)
            if not dense or head != stored:
                raise CorruptLog(
                    f"events {at + 1} to {end_seq} of a log of {self._run_id} do not "
                    "follow those that were merged before: it was changed, or went on "
                    "in two places; keep the one that is right and delete "
                    f"{self._path}"
                )
            at = end_seq
        return head

    def _recorded(
        self, known: _Progress, stretch: Stretch, graft: Graft | None
    ) -> _Progress:
        conn, end, seq = self._conn, known.end, known.end.seq
        epochs = self._openings(known.part, stretch)
        numbers = Numbers(conn, known.part, stretch.rows, known.tasks)
        last_of = self._last_events(numbers.known)
        moved = seq + 1 - stretch.rows[0].seq
        conn.execute(UNION["add_origin"], (seq + 1, stretch.rows[0].seq))
        rows: list[EventRow] = []
        for row in stretch.rows:
            seq += 1
            _, ts_us, epoch, kind, ver, own, attempt, prev, enc, blen, facts, body = row
            task = None
            if own is None:
                event, ver, enc, blen, facts, body = numbers.of_many(row)
                if graft is not None and not isinstance(event, Unknown):
                    graft.hear(seq, ts_us, event)
            else:
                task, facts = numbers.of_one(row, own)
                if graft is None:
                    prev, last_of[task] = last_of.get(task), seq
                elif prev is not None:
                    prev += moved
            rows.append(
                EventRow(
                    seq,
                    ts_us,
                    epochs[epoch],
                    kind,
                    ver,
                    task,
                    attempt,
                    prev,
                    enc,
                    blen,
                    facts,
                    body,
                )
            )
        if graft is not None and (numbers.meets or adopts(rows)):
            raise _MeetsAnother
        insert_events(conn, rows, self._kinds)
        numbers.write()
        head = link(end.link, rows)
        conn.execute(SQL["insert_link"], (seq, head))
        ts_us = max(end.ts_us, *(row.ts_us for row in rows))
        return replace(
            known,
            end=Position(seq=seq, ts_us=ts_us, link=head),
            tasks=numbers.tasks,
        )

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
        numbered = (json.dumps(sorted(set(tasks))),)
        return dict(self._conn.execute(UNION["last_events"], numbered).fetchall())
