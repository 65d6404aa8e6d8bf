"""The projection tables: loading what a fold needs, writing what it changed.

They are derived: `store.rebuild` empties them and folds the whole log again with
the code of this module, and the rows come out the same.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import astuple

from store.events import Event
from store.fold import CODE_VERSION, Block, Fold, touched
from store.run_state import RunState
from store.statements import SQL
from store.sums import lanes_of
from store.task import TaskDraft, TaskState, planned_state

_STATES = tuple(TaskState)
#: Columns of the view `tasks` that make a draft; the ids behind them do not.
_DRAFT = 23


def draft_of(row: Sequence[object]) -> TaskDraft:
    """A task from a row of the view `tasks`."""
    draft = TaskDraft(*row[:_DRAFT])  # type: ignore[arg-type]
    draft.state = _STATES[draft.state]
    draft.sent = bool(draft.sent)
    return draft


def load(conn: sqlite3.Connection, events: Iterable[Event]) -> Fold:
    """A fold that is ready to take *events* in."""
    numbers = sorted({task for event in events for task in touched(event)})
    tasks: dict[int, TaskDraft] = {}
    if numbers:
        for row in conn.execute(SQL["drafts"], (json.dumps(numbers),)).fetchall():
            tasks[row[0]] = draft_of(row)
    return Fold(run=load_run_state(conn), tasks=tasks)


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


def write(conn: sqlite3.Connection, fold: Fold, applied_seq: int) -> None:
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
                    lane.started,
                    lane.succeeded,
                    lane.replies,
                    lane.tokens_in,
                    lane.tokens_out,
                    lane.cost_pico,
                )
                for key, lane in lanes_of(fold.minutes, fold.latencies).items()
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
            [(*key, who) for key, who in fold.pauses.items() if who is not None],
        ),
        ("lift_pause", [key for key, who in fold.pauses.items() if who is None]),
        ("set_run_state", [_run_state(fold.run)]),
        ("set_projection", [(CODE_VERSION, applied_seq)]),
    ):
        if rows:
            conn.executemany(SQL[statement], rows)


def _planned(
    conn: sqlite3.Connection, blocks: Sequence[Block]
) -> list[tuple[object, ...]]:
    """Rows of the tasks that were planned, as their plan leaves them."""
    if not blocks:
        return []
    stages = ids(conn, "stage", (t.stage for block in blocks for t in block.tasks))
    models = ids(conn, "model", (t.model for block in blocks for t in block.tasks))
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


def ids(conn: sqlite3.Connection, table: str, names: Iterable[str]) -> dict[str, int]:
    """The numbers that stand for names; new names get one."""
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


def is_current(conn: sqlite3.Connection, last_seq: int) -> bool:
    """Whether the projections are of this code and of the whole log."""
    row = conn.execute(SQL["projection"]).fetchone()
    return row == (CODE_VERSION, last_seq) or (row is None and last_seq == 0)
