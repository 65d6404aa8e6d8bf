"""One task as a person studies it: its attempts, its events and its scorings."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from store.events import AttemptAnswered, AttemptFailed
from store.runs import RunFolder
from store.sums import US_PER_S
from store.task import TaskState
from store.views import (
    AttemptRow,
    StoredVerdict,
    attempts,
    event_times,
    planned_seq,
    read_verdicts,
    run_started,
    scorings,
    task_events,
)
from tui.drawing.tables.event_words import said
from tui.sources.task_lines import TaskLine, read_lines, verdicts_of

SCORINGS = 10
"""Scorings whose verdicts are read, the latest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptLine:
    """An attempt as a line of the table."""

    row: AttemptRow
    #: from when it could have started, as planned or decided, to when it did; None: no
    #: event says
    waited_s: float | None
    is_lost: bool = False  #: it has no outcome, and will not get one


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """An event of a task as a line of text."""

    seq: int
    at_us: int
    kind: str
    facts: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """What one scoring says of a task."""

    number: int
    scorer: str  #: the job and its version
    code: str  #: hash of the job's code, in hexadecimal
    seq: int  #: the log's last event that it read
    verdicts: tuple[StoredVerdict, ...] | None  #: None: they cannot be read any more


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDetail:
    """One task with its attempts; their texts are read when they are asked for."""

    line: TaskLine
    attempts: tuple[AttemptLine, ...]
    happenings: tuple[Happening, ...]
    scored: tuple[Scored, ...]  #: the latest first, at most `SCORINGS`
    scorings: int  #: how many there are


def read_detail(
    conn: sqlite3.Connection, folder: RunFolder, task: int
) -> TaskDetail | None:
    """Everything about a task but its texts; None where there is no such task."""
    line = read_lines(conn, folder, [task]).get(task)
    if line is None:
        return None
    scored = scorings(conn)[::-1]
    job = run_started(conn).job if scored else ""
    return TaskDetail(
        line=line,
        attempts=tuple(
            attempt_lines(line.row.state, _planned_us(conn, task), attempts(conn, task))
        ),
        happenings=tuple(
            Happening(
                seq=each.seq,
                at_us=each.ts_us,
                kind=each.kind,
                facts=said(each.event),
            )
            for each in task_events(conn, task)
        ),
        scored=tuple(
            Scored(
                number=each.number,
                scorer=f"{job} {each.job_version}",
                code=each.code_sha256,
                seq=each.seq,
                verdicts=_verdicts(folder, each.number, task),
            )
            for each in scored[:SCORINGS]
        ),
        scorings=len(scored),
    )


def attempt_lines(
    state: TaskState, planned_us: int | None, rows: Sequence[AttemptRow]
) -> Iterator[AttemptLine]:
    """Attempts with what follows from their neighbours.

    Args:
        state: the task's, by now.
        planned_us: when it was planned, microseconds since 1970.
        rows: its attempts, ascending.
    """
    due_us = planned_us
    for row, after in pairwise((*rows, None)):
        if row is None:
            return
        is_known = row.started_us is not None and due_us is not None
        waited_us = max(0, (row.started_us or 0) - (due_us or 0))
        yield AttemptLine(
            row=row,
            waited_s=waited_us / US_PER_S if is_known else None,
            is_lost=row.outcome is None
            and (after is not None or state is not TaskState.RUNNING),
        )
        due_us = _due_us(row)


def _due_us(row: AttemptRow) -> int | None:
    """When the attempt after one could start; None: nobody decided that in an event."""
    match row.outcome:
        case AttemptAnswered(reask=str()):
            return row.ended_us
        case AttemptFailed(retry_in_s=float() as wait_s) if row.ended_us is not None:
            return row.ended_us + round(wait_s * US_PER_S)
        case _:
            return None


def _planned_us(conn: sqlite3.Connection, task: int) -> int | None:
    seq = planned_seq(conn, task)
    return None if seq is None else event_times(conn, [seq]).get(seq)


def _verdicts(
    folder: RunFolder, scoring: int, task: int
) -> tuple[StoredVerdict, ...] | None:
    path = verdicts_of(folder, scoring)
    try:
        return tuple(read_verdicts(path, task)) if path.is_file() else None
    except sqlite3.Error:
        return None
