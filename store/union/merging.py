"""Brings the union of a run up to date with its logs.

Every reader of a split run merges when it opens the run. One process at a time merges,
under the union's lock; others read what is already merged. The union is derived: only
scorings recorded in it would be lost with it.

The rows travel as they are stored; only task numbers are rewritten
(`store.union.numbering`). A new log is grafted as a whole, with its own projections, if
it shares no task with another (`store.union.parts`). Otherwise each range is copied and
folded in one transaction, so an interrupted merge continues where it stopped.
"""

from __future__ import annotations

import json
import sqlite3
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeGuard

from store import tables
from store.database import FACTS, SQL, UNION, WriterLock, connect, is_union, open_reader
from store.errors import CorruptLog, LogBusy, NoSuchRun, NotALog, StoreError
from store.events import UnknownEvent
from store.filesystem import network_problem
from store.log import opening
from store.log.integrity import EventRow, Position, link, link_of_stored
from store.log.interface import Heartbeat
from store.log.projections import fold_between
from store.log.writer import KindIds, insert_events
from store.tables import load_run_state
from store.union import folding
from store.union.numbering import TaskNumbers
from store.union.parts import Graft, adopts
from store.union.source import CommitRange, LocalLogFile, LogIdentity, UnionSource


@dataclass(frozen=True, slots=True, kw_only=True)
class _Progress:
    """Progress of merging one log, and the union."""

    part: int
    seq: int  #: of the log
    link: bytes  #: of the log
    blobs_upto: int
    end: Position  #: of the union
    tasks: int  #: of the union


class _MeetsAnother(Exception):
    """A log has tasks of another log, or answers that it did not pay for."""


def create_union(
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
        extra_setup=_union_tables,
    )


def _union_tables(conn: sqlite3.Connection) -> None:
    for table in FACTS:
        conn.execute(UNION[f"create_{table}"])
    conn.execute(UNION["create_numbered_skip"])
    conn.execute(UNION["number_freely"])
    folding.create_tables(conn)


class Merger:
    """Takes logs into one union; belongs to one thread, under the union's lock."""

    def __init__(self, conn: sqlite3.Connection, path: Path) -> None:
        """Continue with the union behind a writing connection.

        Raises:
            NewerLog: it holds events of a later siftlog.
            CorruptLog: its last commit is damaged.
        """
        self._conn = conn
        self._path = path
        self._end = opening.ready(conn, path)
        # changes lost in a power cut are merged again
        conn.execute(SQL["synchronous_normal"])
        self._run_id, _, self._config, _ = conn.execute(SQL["run"]).fetchone()
        self._kinds = KindIds(conn)

    def merge(self, source: UnionSource) -> int:
        """Merge the new events of a log; return their number.

        Raises:
            StoreError: it is of another run, or of other settings.
            CorruptLog: it has changed since it was merged.
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
        conn, progress = self._conn, self._progress_of(identity)
        before = progress.seq
        if before == 0:
            progress = self._grafted(progress, source)
        for commits in source.commit_ranges(progress.seq, progress.blobs_upto):
            with self._transaction():
                after = self._copied(progress, commits)
                deque(
                    fold_between(conn, conn, progress.end.seq, after.end.seq), maxlen=0
                )
            self._end, progress = after.end, after
        return progress.seq - before

    def _progress_of(self, identity: LogIdentity) -> _Progress:
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
        """Run the block in one transaction."""
        self._conn.execute(SQL["begin"])
        try:
            yield
            self._conn.execute(SQL["commit"])
        except BaseException:
            if self._conn.in_transaction:
                self._conn.execute(SQL["rollback"])
            raise

    def _grafted(self, progress: _Progress, source: UnionSource) -> _Progress:
        """Return the progress after a complete graft, or None."""
        after = progress
        try:
            with source.snapshot() as log, self._transaction():
                if log is None:
                    return progress
                graft = Graft(self._conn, progress.part)
                for commits in log.commit_ranges(0, progress.blobs_upto):
                    after = self._copied(after, commits, graft)
                graft.write(log.reader, progress.end.seq, progress.tasks, after.end.seq)
        except _MeetsAnother:
            self._kinds = KindIds(self._conn)  # ids that were rolled back are forgotten
            return progress
        self._end = after.end
        return after

    def _copied(
        self, progress: _Progress, commits: CommitRange, graft: Graft | None = None
    ) -> _Progress:
        """Write the rows of a range; return the log's progress after it.

        Raises:
            CorruptLog: it does not continue the merged events.
            _MeetsAnother: it cannot be grafted.
        """
        head = self._followed(progress, commits)
        self._conn.executemany(UNION["add_blob"], commits.blobs)
        after = replace(
            progress,
            link=head,
            seq=commits.rows[-1].seq if commits.rows else progress.seq,
            blobs_upto=max(progress.blobs_upto, commits.blobs_upto),
        )
        if commits.rows:
            after = self._recorded(after, commits, graft)
        self._conn.execute(
            UNION["took_in"], (after.seq, after.link, after.blobs_upto, after.part)
        )
        return after

    def _followed(self, progress: _Progress, commits: CommitRange) -> bytes:
        """Return the log's link after a range, which must continue the merged events.

        Raises:
            CorruptLog: it does not.
        """
        head, at, first = progress.link, progress.seq, progress.seq
        for end_seq, stored in commits.links:
            commit = commits.rows[at - first : end_seq - first]
            dense = [row.seq for row in commit] == list(range(at + 1, end_seq + 1))
            head = link_of_stored(head, commit)
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
        self, progress: _Progress, commits: CommitRange, graft: Graft | None
    ) -> _Progress:
        conn, end, seq = self._conn, progress.end, progress.end.seq
        epochs = self._openings(progress.part, commits)
        numbers = TaskNumbers(conn, progress.part, commits.rows, progress.tasks)
        last_of = self._last_events(numbers.known_tasks)
        moved = seq + 1 - commits.rows[0].seq
        conn.execute(UNION["add_origin"], (seq + 1, commits.rows[0].seq))
        rows: list[EventRow] = []
        for row in commits.rows:
            seq += 1
            (
                _,
                ts_us,
                epoch,
                kind,
                ver,
                log_task,
                attempt,
                prev,
                enc,
                blen,
                facts,
                body,
            ) = row
            task = None
            if log_task is None:
                event, ver, enc, blen, facts, body = numbers.of_many(row)
                if graft is not None and not isinstance(event, UnknownEvent):
                    graft.apply(seq, ts_us, event)
            else:
                task, facts = numbers.of_one(row, log_task)
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
            progress,
            end=Position(seq=seq, ts_us=ts_us, link=head),
            tasks=numbers.tasks,
        )

    def _openings(self, part: int, commits: CommitRange) -> dict[int, int]:
        """Map each opening of the log to its number in the union."""
        conn = self._conn
        openings: dict[int, int] = {}
        for epoch, writer in commits.writers.items():
            row = conn.execute(UNION["opening_of"], (writer,)).fetchone()
            if row is None:
                (lowest,) = conn.execute(UNION["lowest_opening"]).fetchone()
                row = (lowest - 1, part)
                conn.execute(UNION["add_opening"], row)
                conn.execute(
                    UNION["add_writer"], (row[0], writer, commits.rows[0].ts_us)
                )
            openings[epoch] = row[0]
        return openings

    def _last_events(self, tasks: Iterable[int]) -> dict[int, int | None]:
        """Return the latest event of each task, in any log."""
        numbered = (json.dumps(sorted(set(tasks))),)
        return dict(self._conn.execute(UNION["last_events"], numbered).fetchall())


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshResult:
    """Result of updating a union."""

    logs: int  #: that the union is of
    events: int  #: taken in just now


def refresh(
    log: Path, shards: Sequence[Path], others: Sequence[UnionSource] = ()
) -> RefreshResult | None:
    """Merge the new events of a run's logs into its union.

    Args:
        log: path of the union, which may not exist yet.
        shards: local logs of the run.
        others: logs at other places.

    Returns:
        None if there are no logs, another process is merging them, or this one has no
            permission.

    Raises:
        StoreError: a log is of another run, or the run has an unsplit log.
        CorruptLog: a log is damaged, or was changed since it was merged.
    """
    with ExitStack() as opened:
        sources = [*_written(shards), *others]
        if not sources:
            return None
        if logs := _followed(log, sources):
            return RefreshResult(logs=logs, events=0)
        if (refused := network_problem(log.parent)) is not None:
            raise StoreError(refused)
        lock = WriterLock(log.with_suffix(".lock"))
        try:
            lock.acquire()
        except LogBusy:
            return None
        except OSError as error:
            if log.exists():
                return None  # of a read-only folder: in its current state
            raise StoreError(
                f"the logs in {log.parent} cannot be merged there ({error.strerror}): "
                "copy the folder to a place of your own"
            ) from error
        opened.callback(lock.release)
        conn = opened.enter_context(closing(connect(log)))
        return _merged(conn, log, sources)


def _written(shards: Sequence[Path]) -> Iterable[UnionSource]:
    """Return the shards' logs that hold an event; a new one may hold none."""
    for path in shards:
        try:
            yield LocalLogFile(path)
        except NotALog:
            continue  # its shard is about to make it


def _followed(log: Path, sources: Sequence[UnionSource]) -> int:
    """Return the number of logs in a union that has all of *sources*; 0: it is behind.

    Checked before any lock or write, since usually nothing is new.
    """
    try:
        union = open_reader(log)
    except (NoSuchRun, NotALog):
        return 0  # it is still to be made, or just being made
    with union:
        if not is_union(union) or not tables.projections_are_current(union):
            return 0
        marks = {log: mark for log, *mark in union.execute(UNION["marks"]).fetchall()}
        union_heartbeat = union.execute(SQL["heartbeat"]).fetchone()
        is_behind = any(
            _is_later(source.heartbeat, union_heartbeat)
            or (mark := marks.get(source.identity.log)) is None
            or source.has_more(*mark)
            for source in sources
        )
        return 0 if is_behind else len(marks)


def _merged(
    conn: sqlite3.Connection, log: Path, sources: Sequence[UnionSource]
) -> RefreshResult:
    if not conn.execute(SQL["tables"]).fetchone()[0]:
        matching_sources = [s for s in sources if s.identity.run_id == log.parent.name]
        create_union(
            conn, log, (matching_sources or sources)[0].identity, owner="union"
        )
    elif not is_union(conn):
        raise StoreError(
            f"{log} is the log of a run that is not split: give the shards "
            "another --run-id"
        )
    merger = Merger(conn, log)
    events = sum(merger.merge(source) for source in _in_order(sources))
    (logs,) = conn.execute(UNION["count_logs"]).fetchone()
    for source in sources:
        heartbeat = source.heartbeat
        if _is_later(heartbeat, conn.execute(SQL["heartbeat"]).fetchone()):
            conn.execute(
                SQL["set_heartbeat"],
                (heartbeat.at_us, 0, heartbeat.pid, heartbeat.host),
            )
    return RefreshResult(logs=logs, events=events)


def _in_order(sources: Sequence[UnionSource]) -> list[UnionSource]:
    """By the logs' ids; of one log in two places, the order does not matter."""
    return sorted(sources, key=lambda source: source.identity.log)


def _is_later(
    heartbeat: Heartbeat | None, stored: tuple[int, int, str] | None
) -> TypeGuard[Heartbeat]:
    """Return whether a shard's heartbeat is later than the one in the union."""
    return heartbeat is not None and (stored is None or stored[0] < heartbeat.at_us)
