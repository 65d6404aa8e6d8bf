"""Converts rows of the log's tables to typed values and back.

`store.encoding` encodes events and bodies.

Projections are derived: `store.log.opening` empties them and folds the whole log again
with the code of this module, and the rows are equal.
"""

from __future__ import annotations

import json
import sqlite3
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import astuple
from functools import partial

import msgspec

from store.database import SQL
from store.encoding import event_of, unpack
from store.errors import CorruptLog
from store.events import (
    AttemptAnswered,
    AttemptStarted,
    Event,
    RecordedEvent,
    TasksPlanned,
    UnknownEvent,
)
from store.fold import CODE_VERSION, MARKED, Fold, PlannedBlock, touched
from store.fold_state import RunState, queue_sums
from store.log.interface import Planning, StoredReply
from store.task import TaskDraft, TaskRow, TaskState, planned_state, task_row

_STATES = tuple(TaskState)
#: Columns of the view `tasks` that make a draft; the ids behind them do not.
_DRAFT = 23


def draft_of(row: Sequence[object]) -> TaskDraft:
    """A task from a row of the view `tasks`."""
    draft = TaskDraft(*row[:_DRAFT])  # type: ignore[arg-type]
    draft.state = _STATES[draft.state]
    draft.sent = bool(draft.sent)
    return draft


def load_fold(conn: sqlite3.Connection, events: Iterable[Event]) -> Fold:
    """A fold that is ready to take *events* in."""
    numbers = {task for event in events for task in touched(event)}
    return Fold(run=load_run_state(conn), tasks=drafts(conn, numbers))


def drafts(conn: sqlite3.Connection, numbers: Iterable[int]) -> dict[int, TaskDraft]:
    """Return the stored tasks with these numbers, to be changed by a fold."""
    numbers_json = json.dumps(sorted(numbers))
    if numbers_json == "[]":
        return {}
    rows = conn.execute(SQL["drafts"], (numbers_json,)).fetchall()
    return {row[0]: draft_of(row) for row in rows}


def load_run_state(conn: sqlite3.Connection) -> RunState:
    """The run's state as stored; a fresh one in an empty log."""
    row = conn.execute(SQL["run_state"]).fetchone()
    if row is None:
        return RunState()
    return RunState(
        phase=row[0],
        phase_by=row[1],
        phase_why=row[2],
        phase_us=row[3],
        paused_by=row[4],
        draining_by=row[5],
        tasks=row[6],
        consumed=row[7],
        exhausted=bool(row[8]),
        success_us=row[9],
    )


def write_fold(conn: sqlite3.Connection, fold: Fold, applied_seq: int) -> None:
    """Write a fold's changes in the open transaction."""
    for statement, rows in (
        ("insert_task", _planned(conn, fold.blocks)),
        ("update_task", _moved(fold)),
        ("add_counts", [(*key, n) for key, n in fold.counts.items()]),
        (
            "add_minute",
            [
                (
                    *key,
                    minute.started,
                    minute.succeeded,
                    minute.failed,
                    minute.retried,
                    minute.tokens_in,
                    minute.tokens_out,
                    minute.cost_pico,
                )
                for key, minute in fold.minutes.items()
            ],
        ),
        (
            "add_lane",
            [
                (
                    *key,
                    sums.started,
                    sums.succeeded,
                    sums.replies,
                    sums.tokens_in,
                    sums.tokens_out,
                    sums.cost_pico,
                )
                for key, sums in queue_sums(fold.minutes, fold.latencies).items()
            ],
        ),
        (
            "add_replies",
            [(*key, *astuple(tally)) for key, tally in fold.replies.items()],
        ),
        ("add_latency", [(*key, n) for key, n in fold.latencies.items()]),
        (
            "set_limiter",
            [
                (
                    limit.model,
                    limit.concurrency,
                    limit.in_flight,
                    limit.rpm,
                    limit.tpm,
                    limit.paused_until_us,
                    at_us,
                    limit.ceiling,
                )
                for limit, at_us in fold.limiters.values()
            ],
        ),
        (
            "add_error",
            [
                (*key, seen.n, seen.final, seen.last_seq, seen.sample_task)
                for key, seen in fold.errors.items()
            ],
        ),
        (
            "add_failures",
            [(*key, seen.n, seen.last_task) for key, seen in fold.failures.items()],
        ),
        ("add_reason", [(*key, n) for key, n in fold.reasons.items()]),
        ("add_counter", list(fold.counters.items())),
        ("insert_mark", fold.marks),
        (
            "set_pause",
            [
                (*key, paused_by)
                for key, paused_by in fold.pauses.items()
                if paused_by is not None
            ],
        ),
        (
            "lift_pause",
            [key for key, paused_by in fold.pauses.items() if paused_by is None],
        ),
        ("set_run_state", [_run_state(fold.run)]),
        ("set_projection", [(CODE_VERSION, applied_seq)]),
    ):
        if rows:
            conn.executemany(SQL[statement], rows)


def _planned(
    conn: sqlite3.Connection, blocks: Sequence[PlannedBlock]
) -> list[tuple[object, ...]]:
    """Return the rows of newly planned tasks."""
    if not blocks:
        return []
    stages = interned_ids(
        conn, "stage", (t.stage for block in blocks for t in block.tasks)
    )
    models = interned_ids(
        conn, "model", (t.model for block in blocks for t in block.tasks)
    )
    return [
        (
            number,
            stages[task.stage],
            models[task.model],
            task.key,
            task.replicate,
            task.root,
            task.group,
            task.context,
            planned_state(task.skip),
            task.skip,
            block.seq,
        )
        for block in blocks
        for number, task in enumerate(block.tasks, block.first)
    ]


def interned_ids(
    conn: sqlite3.Connection, table: str, names: Iterable[str]
) -> dict[str, int]:
    """Numbers of interned names; new names get one."""
    fresh = [(name,) for name in dict.fromkeys(names)]
    conn.executemany(SQL[f"intern_{table}"], fresh)
    return dict(conn.execute(SQL[f"ids_{table}"]).fetchall())


def _moved(fold: Fold) -> list[tuple[object, ...]]:
    """Rows of the tasks that moved, ascending: pages are then visited once."""
    return [(*_changeable(draft), task) for task, draft in sorted(fold.moved.items())]


def _changeable(draft: TaskDraft) -> tuple[object, ...]:
    return (
        draft.state,
        draft.attempts,
        draft.abandoned,
        draft.tries,
        draft.sent,
        draft.since_us,
        draft.started_seq,
        draft.reply_seq,
        draft.not_before_us,
        draft.error,
        draft.reason,
        draft.latency_ms,
        draft.cost_pico,
        draft.updated_seq,
        draft.event_seq,
    )


def _run_state(run: RunState) -> tuple[object, ...]:
    return (
        run.phase,
        run.phase_by,
        run.phase_why,
        run.phase_us,
        run.paused_by,
        run.draining_by,
        run.tasks,
        run.consumed,
        run.exhausted,
        run.success_us,
    )


def applied_seq(conn: sqlite3.Connection) -> int | None:
    """Return the last event that the projections hold.

    None: they are of another siftlog version and must be rebuilt.
    """
    row = conn.execute(SQL["projection"]).fetchone()
    if row is None:
        return 0
    code_version, seq = row
    return int(seq) if code_version == CODE_VERSION else None


def projections_are_current(conn: sqlite3.Connection) -> bool:
    """Return whether the projections are current and cover the whole log."""
    return applied_seq(conn) == last_seq(conn)


def task_rows(
    conn: sqlite3.Connection, statement: str, parameters: Sequence[object]
) -> list[TaskRow]:
    """Return the tasks that a statement over the view `tasks` selects.

    Raises:
        CorruptLog: a row is not a valid task.
    """
    try:
        return [task_row(row) for row in conn.execute(statement, parameters).fetchall()]
    except (IndexError, TypeError) as error:
        raise damaged("a task", error) from error


def tasks_numbered(conn: sqlite3.Connection, numbers: Sequence[int]) -> list[TaskRow]:
    """The named tasks, ascending."""
    return task_rows(conn, SQL["drafts"], (json.dumps(list(numbers)),))


def planning(conn: sqlite3.Connection) -> Planning:
    """Return the progress of the plan."""
    run = load_run_state(conn)
    return Planning(tasks=run.tasks, consumed=run.consumed, exhausted=run.exhausted)


def phase(conn: sqlite3.Connection) -> str:
    """Return the kind of the last event that started or ended work."""
    return load_run_state(conn).phase


def last_planned_task(conn: sqlite3.Connection, through_seq: int) -> int:
    """The highest task number that was planned by event *through_seq*."""
    row = conn.execute(SQL["planned_upto"], (through_seq,)).fetchone()
    event = None if row is None else event_in(*row)
    return event.first + event.count - 1 if isinstance(event, TasksPlanned) else 0


def planned_seq(conn: sqlite3.Connection, task: int) -> int | None:
    """Return the event that planned a task; None if there is no such task.

    Found by bisection, since numbers are dense and ascending: some twenty lookups in a
    log of any length.
    """
    seqs = range(1, last_seq(conn) + 1)
    at = bisect_left(seqs, task, key=partial(last_planned_task, conn))
    return seqs[at] if task > 0 and at < len(seqs) else None


def group_is_open(
    conn: sqlite3.Connection, stage: str, model: str, replicate: int, group: str
) -> bool:
    """Return whether any task of a group is open."""
    values = (stage, model, replicate, group)
    return conn.execute(SQL["group_is_open"], values).fetchone() is not None


def in_flight(conn: sqlite3.Connection) -> list[tuple[int, int]]:
    """Return attempts whose outcome is not recorded, as (task, attempt), ascending."""
    return list(conn.execute(SQL["sent_attempts"]).fetchall())


def reply(conn: sqlite3.Connection, task: int) -> StoredReply | None:
    """The reply that counts for a task."""
    row = conn.execute(SQL["reply"], (task,)).fetchone()
    return None if row is None else reply_of(*row)


def reply_of(
    seq: int, version: int, facts: bytes, *body: *tuple[int, int, bytes | None]
) -> StoredReply:
    """Return a reply from its columns.

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


class _Form(msgspec.Struct):
    form: str


_FORM = msgspec.json.Decoder(_Form)


def form_and_body(
    seq: int, version: int, facts: bytes, *body: *tuple[int, int, bytes | None]
) -> tuple[str, bytes]:
    """Return a reply's wire form and body from the columns that `reply_of` reads.

    It reads no other field of the event, which takes a fifth of the time.

    Raises:
        CorruptLog: the row is damaged, or of a later version.
    """
    if version == AttemptAnswered.VERSION:
        try:
            return _FORM.decode(facts).form, _body(seq, *body)
        except msgspec.DecodeError:
            pass  # the other decoder says what is wrong
    stored = reply_of(seq, version, facts, *body)
    return stored.answered.form, stored.body


def _body(seq: int, encoding: int, length: int, data: bytes | None) -> bytes:
    try:
        return unpack(encoding, data or b"", length)
    except ValueError as error:
        raise damaged(f"event {seq}", error) from error


def event_in(seq: int, kind: str, version: int, facts: bytes) -> Event | UnknownEvent:
    """The event in a row.

    Raises:
        CorruptLog: the row is damaged.
    """
    try:
        return event_of(kind, version, facts)
    except (ValueError, TypeError) as error:
        raise damaged(f"event {seq}", error) from error


def damaged(subject: str, error: Exception) -> CorruptLog:
    """Return the error for an unreadable *subject*."""
    return CorruptLog(
        f"{subject} in the log is damaged ({error}): see 'siftlog verify', then "
        "restore a copy of the run's folder"
    )


def started(conn: sqlite3.Connection, task: int) -> str | None:
    """`request_sha256` of the task's latest started attempt."""
    latest = last_started(conn, task)
    return None if latest is None else latest[1].request_sha256


def last_started(
    conn: sqlite3.Connection, task: int
) -> tuple[int, AttemptStarted] | None:
    """Return the task's latest `AttemptStarted` and its seq, for its payload."""
    row = conn.execute(SQL["started"], (task,)).fetchone()
    if row is None:
        return None
    seq, version, facts = row
    event = event_in(seq, "attempt_started", version, facts)
    return (int(seq), event) if isinstance(event, AttemptStarted) else None


def recorded(
    conn: sqlite3.Connection, after: int, limit: int, kinds: Sequence[str] | None
) -> list[RecordedEvent]:
    """Return events with seq above *after*, ascending; of some kinds only, if named.

    Kinds that are not about one task are found by an index, regardless of the log's
    length.
    """
    if kinds is None:
        return recorded_rows(conn, SQL["events"], (after, limit))
    if MARKED.issuperset(kinds):
        marked_rows = (
            row
            for kind in dict.fromkeys(kinds)
            for row in recorded_rows(conn, SQL["marked"], (kind, after, limit))
        )
        return sorted(marked_rows, key=lambda row: row.seq)[:limit]
    kinds_json = json.dumps(list(kinds))
    return recorded_rows(conn, SQL["events_of_kinds"], (after, kinds_json, limit))


def events_of_kinds(
    conn: sqlite3.Connection, after: int, limit: int, kinds: Sequence[str]
) -> list[tuple[int, Event | UnknownEvent]]:
    """Return the same with no more than seq and event, for a pass over a log."""
    rows = conn.execute(SQL["events_of_kinds"], (after, json.dumps(kinds), limit))
    return [
        (seq, event_in(seq, kind, version, facts))
        for seq, _, _, kind, version, facts, _ in rows.fetchall()
    ]


def recorded_rows(
    conn: sqlite3.Connection, statement: str, parameters: Sequence[object]
) -> list[RecordedEvent]:
    """The events that a statement selects."""
    return [
        RecordedEvent(
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


def task_events(conn: sqlite3.Connection, task: int) -> list[RecordedEvent]:
    """Return the events about one task only, ascending."""
    return recorded_rows(conn, SQL["task_events"], (task,))


def payload(conn: sqlite3.Connection, seq: int) -> bytes | None:
    """Return the payload of an event; None if it has none."""
    row = conn.execute(SQL["payload"], (seq,)).fetchone()
    if row is None or row[0] == 0:
        return None
    return _body(seq, *row)


def last_seq(conn: sqlite3.Connection) -> int:
    """Seq of the latest committed event; task states may be of a moment before."""
    (seq,) = conn.execute(SQL["last_seq"]).fetchone()
    return int(seq)


def visible_seq(conn: sqlite3.Connection) -> int:
    """Seq of the last event that task states and counts show.

    Who reads them together with events reads events up to this one. It is the log's
    last event unless a process is writing, and else at most a quarter of a second old.
    """
    (seq,) = conn.execute(SQL["visible_seq"]).fetchone()
    return int(seq)


def head(conn: sqlite3.Connection) -> str:
    """Hex of the chain's last link; empty before the first commit."""
    links = conn.execute(SQL["last_links"]).fetchall()
    return bytes(links[0][1]).hex() if links else ""


def created_us(conn: sqlite3.Connection) -> int:
    """Return when the log was created, microseconds since 1970 UTC."""
    (created,) = conn.execute(SQL["created_us"]).fetchone()
    return int(created)
