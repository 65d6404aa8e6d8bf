"""Reads outcomes of tasks and bodies of replies for scoring, page by page.

The order is that of `store.scoring.families`. A row has the columns that a scoring
reads, and replies are read apart: a scoring that knows what a reply says needs no body.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from store.database import SQL, UNION, LogReader, has_plan_positions
from store.errors import CorruptLog
from store.tables import form_and_body, last_planned_task, last_seq
from store.task import TaskState

#: First-stage tasks read at a time, with all that descends from them.
FAMILIES = 256

_STATES = tuple(TaskState)


class Outcome(NamedTuple):
    """A task and what came of it."""

    task: int
    stage: str
    key: str
    model: str
    replicate: int
    root: int
    context: str | None
    state: TaskState
    reply_seq: int | None
    error: str | None
    reason: str | None
    cost_pico: int | None


def outcome_pages(
    conn: sqlite3.Connection, through_seq: int
) -> Iterator[list[Outcome]]:
    """Yield some whole families at a time, each with its first-stage task first.

    Args:
        conn: a reader.
        through_seq: the last visible event. Tasks planned later are left out, and one
            that has changed since is shown as running.

    Raises:
        CorruptLog: a row is not a valid task.
    """
    reader = _Reader(conn, through_seq)
    last_task = last_planned_task(conn, through_seq)
    in_order = _placed if has_plan_positions(conn) else _numbered
    for roots in in_order(reader, last_task):
        if conn.execute(SQL["has_descendants"]).fetchone() is None:
            yield roots
            continue
        numbers = json.dumps([root.task for root in roots])
        below = {
            root: list(rows)
            for root, rows in groupby(
                reader.rows("outcome_descendants", (numbers, last_task)),
                attrgetter("root"),
            )
        }
        yield [row for root in roots for row in (root, *below.get(root.task, ()))]


class _Reader:
    """Reads rows with the names of their stages and models."""

    def __init__(self, conn: sqlite3.Connection, through_seq: int) -> None:
        self.conn = conn
        self._through = through_seq
        self._stages = _names(conn, "ids_stage")
        self._models = _names(conn, "ids_model")

    def rows(self, statement: str, parameters: Sequence[object]) -> list[Outcome]:
        """Return the rows that a statement selects."""
        stages, models, through = self._stages, self._models, self._through
        try:
            return [
                Outcome(
                    task,
                    stages[stage],
                    key,
                    models[model],
                    replicate,
                    root,
                    context,
                    _STATES[state],
                    reply_seq,
                    error,
                    reason,
                    cost_pico,
                )
                if updated_seq <= through
                else Outcome(
                    task,
                    stages[stage],
                    key,
                    models[model],
                    replicate,
                    root,
                    context,
                    TaskState.RUNNING,
                    None,
                    None,
                    None,
                    cost_pico,
                )
                for (
                    task,
                    stage,
                    key,
                    model,
                    replicate,
                    root,
                    context,
                    state,
                    reply_seq,
                    error,
                    reason,
                    cost_pico,
                    updated_seq,
                ) in self.conn.execute(SQL[statement], parameters).fetchall()
            ]
        except (KeyError, IndexError, TypeError) as problem:
            raise CorruptLog(
                f"a task in the log is damaged ({problem}): see 'siftlog verify', then "
                "restore a copy of the run's folder"
            ) from problem


def outcomes_numbered(
    conn: sqlite3.Connection, numbers: Sequence[int]
) -> list[Outcome]:
    """Return some tasks in no order, each in its last state.

    Raises:
        CorruptLog: a row is not a valid task.
    """
    reader = _Reader(conn, last_seq(conn))
    return reader.rows("outcomes_numbered", (json.dumps(numbers),))


def _names(conn: sqlite3.Connection, statement: str) -> dict[int, str]:
    return {number: name for name, number in conn.execute(SQL[statement]).fetchall()}


def _numbered(reader: _Reader, last_task: int) -> Iterator[list[Outcome]]:
    """Some first-stage tasks at a time, as one process numbers them: in plan order."""
    after = 0
    while roots := reader.rows("outcome_roots", (after, last_task, FAMILIES)):
        after = roots[-1].task
        yield roots


def _placed(reader: _Reader, last_task: int) -> Iterator[list[Outcome]]:
    """Do the same for a union, where numbers follow the order of merging."""
    after = -1
    while positions := reader.conn.execute(
        UNION["places"], (after, last_task, FAMILIES)
    ).fetchall():
        after = positions[-1][0]
        numbers = [task for _, task in positions]
        rows = {
            row.task: row
            for row in reader.rows("outcomes_numbered", (json.dumps(numbers),))
        }
        yield [rows[task] for task in numbers]


def stable_link(conn: sqlite3.Connection, through_seq: int) -> tuple[int, bytes] | None:
    """Return the last link of the hash chain up to an event, with that link's event.

    It stands for the bytes of all events and bodies up to there; None: there is none.
    """
    row = conn.execute(SQL["link_upto"], (through_seq,)).fetchone()
    return None if row is None else (row[0], bytes(row[1]))


def link_at(conn: sqlite3.Connection, seq: int) -> bytes | None:
    """Return the link of the hash chain that ends with an event, if one does."""
    row = conn.execute(SQL["link_at"], (seq,)).fetchone()
    return None if row is None else bytes(row[0])


def stored_bodies(
    conn: sqlite3.Connection, seqs: Sequence[int]
) -> dict[int, tuple[str, bytes]]:
    """Return wire form and body of replies, by their events.

    Raises:
        CorruptLog: one of them is missing or damaged.
        StoreError: the log cannot be read, or one that it adopted replies from.
    """
    try:
        rows = conn.execute(SQL["replies"], (json.dumps(seqs),)).fetchall()
    except sqlite3.DatabaseError as error:
        if isinstance(conn, LogReader):  # a job reads answers while it scores
            raise conn.failure(error) from error
        raise
    bodies = {row[0]: form_and_body(*row) for row in rows}
    for seq in seqs:
        if seq not in bodies:
            raise CorruptLog(
                f"event {seq}, the reply to a task, is missing: see 'siftlog verify', "
                "then restore a copy of the run's folder"
            )
    return bodies
