"""How a run's tasks went, attempt by attempt, without their bodies: for what-ifs.

Families come as in `store.replay`, page by page and one model at a time, so that who
reads them may ask for the models' pages in any order and holds one page of each.
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from store.codec import event_of
from store.events import AttemptAnswered, AttemptFailed, AttemptStarted, Event, Unknown
from store.reading import task_rows
from store.statements import SQL
from store.task import TaskRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """One attempt with its outcome."""

    took_us: int | None  #: from its start to its outcome; None: no request of ours
    outcome: AttemptAnswered | AttemptFailed


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """A task with those of its attempts whose outcome is known, in order."""

    row: TaskRow
    attempts: tuple[Ended, ...]


def courses(
    conn: sqlite3.Connection, model: str, *, after: int = 0, limit: int = 256
) -> list[tuple[Course, ...]]:
    """Families of a model's first-stage tasks numbered above *after*, ascending.

    In each, the first-stage task stands first and its descendants follow by number,
    whichever model they are for.
    """
    roots = task_rows(conn, SQL["roots_of_model"], (model, after, limit))
    numbers = [row.task for row in roots]
    rows = task_rows(conn, SQL["descendants_of"], (json.dumps(numbers),))
    descendants = {root: list(rows) for root, rows in groupby(rows, attrgetter("root"))}
    attempts = _attempts(conn, numbers + [row.task for row in rows])
    return [
        tuple(
            Course(row=row, attempts=attempts.get(row.task, ()))
            for row in (root, *descendants.get(root.task, ()))
        )
        for root in roots
    ]


def _attempts(
    conn: sqlite3.Connection, tasks: list[int]
) -> dict[int, tuple[Ended, ...]]:
    found: dict[int, list[Ended]] = {}
    began: dict[int, tuple[int, int]] = {}  # of a task: attempt, and when
    for task, ts_us, kind, version, facts in conn.execute(
        SQL["attempts_of"], (json.dumps(tasks),)
    ).fetchall():
        event: Event | Unknown = event_of(kind, version, facts)
        match event:
            case AttemptStarted(attempt=attempt):
                began[task] = (attempt, ts_us)
            case AttemptAnswered() | AttemptFailed():
                attempt, at_us = began.get(task, (0, 0))
                took_us = ts_us - at_us if attempt == event.attempt else None
                ended = Ended(took_us=took_us, outcome=event)
                found.setdefault(task, []).append(ended)
            case _:
                pass
    return {task: tuple(ended) for task, ended in found.items()}
