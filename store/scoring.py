"""Reads a run's answers in a fixed order for scoring, and stores verdicts.

Families are ordered by the number of their first-stage task; in each, that task comes
first and its descendants follow by number. The order depends on the plan only, not on
when answers arrived, so the same answers always give the same result.

Verdicts are stored in a small separate database, written once and replaced as a whole;
the log itself never holds a verdict, because a better scorer changes them all. A task
may have several verdicts: one of a batch call per question.
"""

from __future__ import annotations

import json
import sqlite3
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import groupby, islice
from operator import attrgetter
from pathlib import Path
from typing import Final

from store.database import SQL, UNION, has_plan_positions
from store.errors import CorruptLog
from store.log.interface import StoredReply
from store.statements import statements_by_name, text
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


BATCH = 10_000

_SQL: Final = statements_by_name(text("verdicts"))


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredVerdict:
    """One verdict of one task in one scoring."""

    task: int
    value: str  #: the parsed reply
    expected: str
    correct: bool | None  #: None where there is no right or wrong
    rule: str  #: the parsing rule that fired, or the reason of the failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Verdict counts of one task in one scoring."""

    verdicts: int  #: at least one
    judged: int  #: of them, those that are right or wrong
    right: int
    value: str = ""  #: the parsed reply, of the first verdict
    rule: str = ""  #: its parsing rule, or the reason of the failure


def write_verdicts(path: Path, verdicts: Iterable[object]) -> None:
    """Write *verdicts* to a new database at *path*, in flat memory.

    They have the fields of a `StoredVerdict`, and maybe others.
    """
    columns = attrgetter("task", "value", "expected", "correct", "rule")
    rows = map(columns, verdicts)
    with closing(sqlite3.connect(path)) as db:
        db.execute(_SQL["create"])
        while batch := list(islice(rows, BATCH)):
            db.executemany(_SQL["insert"], batch)
        db.execute(_SQL["create_index"])
        db.commit()


def read_verdicts(path: Path, task: int) -> list[StoredVerdict]:
    """The verdicts of one task, in the order they were given.

    Raises:
        sqlite3.Error: the file is not there, or is no database of verdicts.
    """
    with closing(_reader(path)) as db:
        return [_verdict(row) for row in db.execute(_SQL["of_task"], (task,))]


def all_verdicts(path: Path) -> Iterator[StoredVerdict]:
    """Every verdict by its task's number, those of a task in the order given.

    Raises:
        sqlite3.Error: the file is not there, or is no database of verdicts.
    """
    with closing(_reader(path)) as db:
        yield from map(_verdict, db.execute(_SQL["all"]))


def _verdict(row: tuple[int, str, str, int | None, str]) -> StoredVerdict:
    task, value, expected, correct, rule = row
    return StoredVerdict(
        task=task,
        value=value,
        expected=expected,
        correct=None if correct is None else bool(correct),
        rule=rule,
    )


def read_scores(path: Path, tasks: Iterable[int]) -> dict[int, Score]:
    """Return the scores of some tasks; omit those without a verdict.

    Raises:
        sqlite3.Error: the file is missing or is not a database of verdicts.
    """
    tasks_json = json.dumps(list(tasks))
    with closing(_reader(path)) as db:
        return {
            task: Score(
                verdicts=verdicts, judged=judged, right=right, value=value, rule=rule
            )
            for task, verdicts, judged, right, value, rule, _ in db.execute(
                _SQL["scores"], (tasks_json,)
            ).fetchall()
        }


def read_wrong(path: Path) -> Sequence[int]:
    """Return the tasks with a wrong verdict, ascending.

    Raises:
        sqlite3.Error: the file is missing or is not a database of verdicts.
    """
    with closing(_reader(path)) as db:
        return array("q", (task for (task,) in db.execute(_SQL["wrong"])))


def _reader(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
