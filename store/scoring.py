"""Reads a run's answers in a fixed order for scoring.

Families are ordered by the number of their first-stage task; in each, that task comes
first and its descendants follow by number. The order depends on the plan only, not on
when answers arrived, so the same answers always give the same result.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from operator import attrgetter

from store.database import SQL, UNION, has_plan_positions
from store.errors import CorruptLog
from store.log.interface import StoredReply
from store.tables import (
    last_planned_task,
    reply_of,
    task_rows,
    tasks_numbered,
    visible_seq,
)
from store.task import TaskRow, TaskState

#: First-stage tasks read at a time, with all that descends from them.
FAMILIES = 256
#: Replies read at a time: bodies take most of the memory.
REPLIES = 256


def families(
    conn: sqlite3.Connection, through_seq: int | None = None
) -> Iterator[tuple[TaskRow, StoredReply | None]]:
    """Yield every task with the reply that counts for it, family by family.

    During a live run *through_seq* fixes the view: later tasks are left out, and a task
    that has changed since is shown as open.

    Args:
        conn: a reader.
        through_seq: the last visible event; None: the last event of the log.
    """
    for rows in _pages(conn, through_seq):
        for start in range(0, len(rows), REPLIES):
            yield from _with_replies(conn, rows[start : start + REPLIES])


def task_families(
    conn: sqlite3.Connection, through_seq: int | None = None
) -> Iterator[TaskRow]:
    """The tasks of `families` in the same order, without reading a reply."""
    for rows in _pages(conn, through_seq):
        yield from rows


def _pages(
    conn: sqlite3.Connection, through_seq: int | None
) -> Iterator[list[TaskRow]]:
    """Some whole families at a time."""
    end_seq = visible_seq(conn) if through_seq is None else through_seq
    last_task = last_planned_task(conn, end_seq)
    in_order = _placed if has_plan_positions(conn) else _numbered
    for roots in in_order(conn, last_task):
        numbers = json.dumps([root.task for root in roots])
        descendants = {
            root: list(rows)
            for root, rows in groupby(
                task_rows(conn, SQL["descendants"], (numbers, last_task)),
                attrgetter("root"),
            )
        }
        yield [
            row if row.updated_seq <= end_seq else _as_open(row)
            for root in roots
            for row in (root, *descendants.get(root.task, ()))
        ]


def _numbered(conn: sqlite3.Connection, last_task: int) -> Iterator[list[TaskRow]]:
    """Some first-stage tasks at a time, as one process numbers them: in plan order."""
    after = 0
    while roots := task_rows(conn, SQL["roots"], (after, last_task, FAMILIES)):
        after = roots[-1].task
        yield roots


def _placed(conn: sqlite3.Connection, last_task: int) -> Iterator[list[TaskRow]]:
    """Do the same for a union, where numbers follow the order of merging."""
    after = -1
    while positions := conn.execute(
        UNION["places"], (after, last_task, FAMILIES)
    ).fetchall():
        after = positions[-1][0]
        rows = {
            row.task: row
            for row in tasks_numbered(conn, [task for _, task in positions])
        }
        yield [rows[task] for _, task in positions]


def _as_open(row: TaskRow) -> TaskRow:
    return replace(
        row, state=TaskState.RUNNING, reply_seq=None, error=None, reason=None
    )


def _with_replies(
    conn: sqlite3.Connection, rows: list[TaskRow]
) -> Iterator[tuple[TaskRow, StoredReply | None]]:
    seqs = json.dumps([row.reply_seq for row in rows if row.reply_seq is not None])
    replies = {
        reply_row[0]: reply_of(*reply_row)
        for reply_row in conn.execute(SQL["replies"], (seqs,)).fetchall()
    }
    for row in rows:
        stored = None if row.reply_seq is None else replies.get(row.reply_seq)
        if row.reply_seq is not None and stored is None:
            raise CorruptLog(
                f"event {row.reply_seq}, the reply to task {row.task}, is missing: see "
                "'siftlog verify', then restore a copy of the run's folder"
            )
        yield row, stored
