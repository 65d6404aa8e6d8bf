"""Tasks as lines of a table: their rows, when they changed, how they were scored."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from store.runs import RunFolder
from store.task import TaskRow
from store.views import Score, event_times, read_scores, scorings, tasks_numbered


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLine:
    """A task as a line of the table."""

    row: TaskRow
    updated_us: int | None  #: when something last happened to it
    score: Score | None = None  #: by the latest scoring; None: not scored there


def read_lines(
    conn: sqlite3.Connection, folder: RunFolder, numbers: Sequence[int]
) -> dict[int, TaskLine]:
    """Tasks by number; those that are not there are left out."""
    rows = tasks_numbered(conn, numbers)
    times = event_times(conn, {row.updated_seq for row in rows})
    scores = _scores(conn, folder, [row.task for row in rows])
    return {
        row.task: TaskLine(
            row=row,
            updated_us=times.get(row.updated_seq),
            score=scores.get(row.task),
        )
        for row in rows
    }


def verdicts_of(folder: RunFolder, scoring: int) -> Path:
    """Where the verdicts of a scoring lie, if they still do."""
    return folder.scores / str(scoring) / "verdicts.db"


def _scores(
    conn: sqlite3.Connection, folder: RunFolder, tasks: Sequence[int]
) -> dict[int, Score]:
    latest = max((scoring.number for scoring in scorings(conn)), default=None)
    if latest is None:
        return {}
    path = verdicts_of(folder, latest)
    try:
        return read_scores(path, tasks) if path.is_file() else {}
    except sqlite3.Error:
        return {}  # the log is whole without it, and so is the list
