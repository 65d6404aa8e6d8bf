"""All answers of a run in a fixed order, in flat memory: what scoring reads.

Families come by the number of their first-stage task; in each, that task stands first
and what descends from it follows by number. The order depends on the plan alone and
not on when answers arrived, so the same answers always come out the same way.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from operator import attrgetter

from store.errors import CorruptLog
from store.log import StoredReply
from store.reading import (
    last_seq,
    planned_upto,
    reply_of,
    task_rows,
    tasks_numbered,
)
from store.statements import SQL
from store.task import TaskRow, TaskState
from store.union.statements import UNION, has_places

#: First-stage tasks read at a time, with all that descends from them.
FAMILIES = 256
#: Replies read at a time: bodies are what takes memory.
REPLIES = 256


def families(
    conn: sqlite3.Connection, upto_seq: int | None = None
) -> Iterator[tuple[TaskRow, StoredReply | None]]:
    """Every task with the reply that counts for it, family by family.

    While the run goes on, *upto_seq* holds the view still: later tasks are left out,
    and a task that has moved since is shown as open.

    Args:
        conn: a reader.
        upto_seq: the last event to be seen; None: the last one there is.
    """
    for rows in _pages(conn, upto_seq):
        for start in range(0, len(rows), REPLIES):
            yield from _with_replies(conn, rows[start : start + REPLIES])


def task_families(
    conn: sqlite3.Connection, upto_seq: int | None = None
) -> Iterator[TaskRow]:
    """The tasks of `families` in the same order, without reading a reply."""
    for rows in _pages(conn, upto_seq):
        yield from rows


def _pages(conn: sqlite3.Connection, upto_seq: int | None) -> Iterator[list[TaskRow]]:
    """Some whole families at a time."""
    upto = last_seq(conn) if upto_seq is None else upto_seq
    last_task = planned_upto(conn, upto)
    in_order = _placed if has_places(conn) else _numbered
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
            row if row.updated_seq <= upto else _as_open(row)
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
    """The same in a union, where numbers come by the order of merging."""
    after = -1
    while places := conn.execute(
        UNION["places"], (after, last_task, FAMILIES)
    ).fetchall():
        after = places[-1][0]
        rows = {
            row.task: row for row in tasks_numbered(conn, [task for _, task in places])
        }
        yield [rows[task] for _, task in places]


def _as_open(row: TaskRow) -> TaskRow:
    return replace(
        row, state=TaskState.RUNNING, reply_seq=None, error=None, reason=None
    )


def _with_replies(
    conn: sqlite3.Connection, rows: list[TaskRow]
) -> Iterator[tuple[TaskRow, StoredReply | None]]:
    seqs = json.dumps([row.reply_seq for row in rows if row.reply_seq is not None])
    replies = {
        found[0]: reply_of(*found)
        for found in conn.execute(SQL["replies"], (seqs,)).fetchall()
    }
    for row in rows:
        stored = None if row.reply_seq is None else replies.get(row.reply_seq)
        if row.reply_seq is not None and stored is None:
            raise CorruptLog(
                f"event {row.reply_seq}, the reply to task {row.task}, is missing: see "
                "'siftlog verify', then restore a copy of the run's folder"
            )
        yield row, stored
