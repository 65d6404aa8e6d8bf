"""Rows of the log as typed values, for its own readers and for `store.views`."""

from __future__ import annotations

import json
import sqlite3
from bisect import bisect_left
from collections.abc import Sequence
from functools import partial

from store.codec import event_of, unpack
from store.errors import CorruptLog
from store.events import (
    AttemptAnswered,
    AttemptStarted,
    Event,
    Recorded,
    TasksPlanned,
    Unknown,
)
from store.fold import MARKED
from store.log import Planning, StoredReply
from store.projections import load_run_state
from store.statements import SQL
from store.task import TaskRow, task_row


def task_rows(
    conn: sqlite3.Connection, statement: str, parameters: Sequence[object]
) -> list[TaskRow]:
    """The tasks that a statement over the view `tasks` selects.

    Raises:
        CorruptLog: a row holds what no task has.
    """
    try:
        return [task_row(row) for row in conn.execute(statement, parameters).fetchall()]
    except (IndexError, TypeError) as error:
        raise damaged("a task", error) from error


def tasks_numbered(conn: sqlite3.Connection, numbers: Sequence[int]) -> list[TaskRow]:
    """The named tasks, ascending."""
    return task_rows(conn, SQL["drafts"], (json.dumps(list(numbers)),))


def planning(conn: sqlite3.Connection) -> Planning:
    """How far the plan has come."""
    run = load_run_state(conn)
    return Planning(tasks=run.tasks, consumed=run.consumed, exhausted=run.exhausted)


def phase(conn: sqlite3.Connection) -> str:
    """Kind of the last event that began or ended work."""
    return load_run_state(conn).phase


def planned_upto(conn: sqlite3.Connection, upto: int) -> int:
    """The highest task number that was planned by event *upto*."""
    row = conn.execute(SQL["planned_upto"], (upto,)).fetchone()
    event = None if row is None else event_in(*row)
    return event.first + event.count - 1 if isinstance(event, TasksPlanned) else 0


def planned_seq(conn: sqlite3.Connection, task: int) -> int | None:
    """The event that planned a task; None where there is no such task.

    Found by halving, since numbers are given densely and in order: some twenty looks
    at the marks of a log of any length.
    """
    seqs = range(1, last_seq(conn) + 1)
    at = bisect_left(seqs, task, key=partial(planned_upto, conn))
    return seqs[at] if task > 0 and at < len(seqs) else None


def group_is_open(
    conn: sqlite3.Connection, stage: str, model: str, replicate: int, group: str
) -> bool:
    """Whether any task of a group is open."""
    values = (stage, model, replicate, group)
    return conn.execute(SQL["group_is_open"], values).fetchone() is not None


def count_open(conn: sqlite3.Connection, stage: str, model: str) -> int:
    """Open tasks of a stage and model."""
    (count,) = conn.execute(SQL["count_open"], (stage, model)).fetchone()
    return int(count)


def in_flight(conn: sqlite3.Connection) -> list[tuple[int, int]]:
    """Attempts whose outcome is not recorded, as (task, attempt), ascending."""
    return list(conn.execute(SQL["sent_attempts"]).fetchall())


def reply(conn: sqlite3.Connection, task: int) -> StoredReply | None:
    """The reply that counts for a task."""
    row = conn.execute(SQL["reply"], (task,)).fetchone()
    return None if row is None else reply_of(*row)


def reply_of(
    seq: int, version: int, facts: bytes, *body: *tuple[int, int, bytes | None]
) -> StoredReply:
    """A reply from the columns that hold it.

    Raises:
        CorruptLog: the row is damaged, or of a later version.
    """
    answered = event_in(seq, "attempt_answered", version, facts)
    if not isinstance(answered, AttemptAnswered):
        raise CorruptLog(
            f"event {seq} should be an answer that this siftlog can read: upgrade it, "
            "or see 'siftlog verify'"
        )
    return StoredReply(seq=seq, answered=answered, body=_body(seq, *body))


def _body(seq: int, encoding: int, length: int, data: bytes | None) -> bytes:
    try:
        return unpack(encoding, data or b"", length)
    except ValueError as error:
        raise damaged(f"event {seq}", error) from error


def event_in(seq: int, kind: str, version: int, facts: bytes) -> Event | Unknown:
    """The event in a row.

    Raises:
        CorruptLog: the row is damaged.
    """
    try:
        return event_of(kind, version, facts)
    except (ValueError, TypeError) as error:
        raise damaged(f"event {seq}", error) from error


def damaged(what: str, error: Exception) -> CorruptLog:
    """The error that says *what* cannot be read any more."""
    return CorruptLog(
        f"{what} in the log is damaged ({error}): see 'siftlog verify', then restore "
        "a copy of the run's folder"
    )


def started(conn: sqlite3.Connection, task: int) -> str | None:
    """`request_sha256` of the task's latest started attempt."""
    found = last_started(conn, task)
    return None if found is None else found[1].request_sha256


def last_started(
    conn: sqlite3.Connection, task: int
) -> tuple[int, AttemptStarted] | None:
    """The task's latest started attempt and its seq, whose payload is the request."""
    row = conn.execute(SQL["started"], (task,)).fetchone()
    if row is None:
        return None
    seq, version, facts = row
    event = event_in(seq, "attempt_started", version, facts)
    return (int(seq), event) if isinstance(event, AttemptStarted) else None


def recorded(
    conn: sqlite3.Connection, after: int, limit: int, kinds: Sequence[str] | None
) -> list[Recorded]:
    """Events with seq above *after*, ascending; of some kinds only, if named.

    Kinds that are not about one task are found by their marks, whatever the log's
    length.
    """
    if kinds is None:
        return recorded_rows(conn, SQL["events"], (after, limit))
    if MARKED.issuperset(kinds):
        found = (
            row
            for kind in dict.fromkeys(kinds)
            for row in recorded_rows(conn, SQL["marked"], (kind, after, limit))
        )
        return sorted(found, key=lambda row: row.seq)[:limit]
    named = json.dumps(list(kinds))
    return recorded_rows(conn, SQL["events_of_kinds"], (after, named, limit))


def recorded_rows(
    conn: sqlite3.Connection, statement: str, parameters: Sequence[object]
) -> list[Recorded]:
    """The events that a statement selects."""
    return [
        Recorded(
            seq=seq,
            ts_us=ts_us,
            epoch=epoch,
            event=event_in(seq, kind, version, facts),
            payload_bytes=length,
        )
        for seq, ts_us, epoch, kind, version, facts, length in conn.execute(
            statement, parameters
        ).fetchall()
    ]


def task_events(conn: sqlite3.Connection, task: int) -> list[Recorded]:
    """The events that are about one task alone, ascending."""
    return recorded_rows(conn, SQL["task_events"], (task,))


def payload(conn: sqlite3.Connection, seq: int) -> bytes | None:
    """The bytes beside an event; None where it has none."""
    row = conn.execute(SQL["payload"], (seq,)).fetchone()
    if row is None or row[0] == 0:
        return None
    return _body(seq, *row)


def last_seq(conn: sqlite3.Connection) -> int:
    """Seq of the latest committed event."""
    (seq,) = conn.execute(SQL["last_seq"]).fetchone()
    return int(seq)


def head(conn: sqlite3.Connection) -> str:
    """Hex of the chain's last link; empty before the first commit."""
    links = conn.execute(SQL["last_links"]).fetchall()
    return bytes(links[0][1]).hex() if links else ""


def created_us(conn: sqlite3.Connection) -> int:
    """When the log was made, microseconds since 1970 UTC."""
    (created,) = conn.execute(SQL["created_us"]).fetchone()
    return int(created)
