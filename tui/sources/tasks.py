"""Reads tasks: lists, pages, and one task in detail."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Protocol

from store.events import AttemptAnswered, AttemptFailed
from store.fold_state import US_PER_S
from store.query import Query
from store.read.status import run_started, scorings, status
from store.read.tasks import (
    AttemptRow,
    TaskListStep,
    TaskOrder,
    attempts,
    changed_tasks,
    event_times,
    list_tasks,
    recoveries,
    reply_heads,
)
from store.read.usage import error_counts
from store.runs import RunFolder
from store.tables import planned_seq, task_events, tasks_numbered, visible_seq
from store.task import TaskRow, TaskState
from store.titles import read_titles
from store.verdicts import (
    Score,
    StoredVerdict,
    latest_verdicts,
    read_scores,
    read_tasks,
    read_verdicts,
)
from tui.render.event_text import event_line
from tui.sources.connection import LogConnection
from tui.sources.task_texts import AttemptText, TextKind, read_text


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLine:
    """A task as a line of the table."""

    row: TaskRow
    updated_us: int | None  #: time of its last event
    score: Score | None = None  #: from the latest scoring; None: not scored there
    title: str = ""  #: of its item; empty: not known
    head: str = ""  #: the beginning of its reply; empty: not read
    recovered: str = ""  #: its last problem, if a later attempt had none


HEAD_CHARS = 120
"""Maximum characters of a reply in a line."""
HEADS = 4_096
"""Beginnings of replies that are kept: replies do not change."""


class ReplyHeads:
    """The beginnings of replies, read once."""

    def __init__(self) -> None:
        self._heads: dict[int, str] = {}

    def read(self, conn: sqlite3.Connection, seqs: Sequence[int]) -> Mapping[int, str]:
        """Return the beginnings of replies by their events."""
        missing = [seq for seq in seqs if seq not in self._heads]
        if missing:
            if len(self._heads) + len(missing) > HEADS:
                self._heads.clear()
            self._heads.update(reply_heads(conn, missing, HEAD_CHARS))
        return self._heads


def read_lines(
    conn: sqlite3.Connection,
    folder: RunFolder,
    numbers: Sequence[int],
    heads: ReplyHeads,
) -> dict[int, TaskLine]:
    """Return tasks by number; missing ones are omitted."""
    rows = tasks_numbered(conn, numbers)
    times = event_times(conn, {row.updated_seq for row in rows})
    scores = _scores(folder, [row.task for row in rows])
    titles = read_titles(folder.titles, {row.key for row in rows})
    unscored = [
        row.reply_seq
        for row in rows
        if row.reply_seq is not None and row.task not in scores
    ]
    texts = heads.read(conn, unscored)
    recovered = recoveries(conn, rows)
    return {
        row.task: TaskLine(
            row=row,
            updated_us=times.get(row.updated_seq),
            score=scores.get(row.task),
            title=titles.get(row.key, ""),
            head="" if row.reply_seq is None else texts.get(row.reply_seq, ""),
            recovered=recovered.get(row.task, ""),
        )
        for row in rows
    }


def verdicts_of(folder: RunFolder, scoring: int) -> Path:
    """Return the path of a scoring's verdicts, which may be missing."""
    return folder.scores / str(scoring) / "verdicts.db"


def _scores(folder: RunFolder, tasks: Sequence[int]) -> dict[int, Score]:
    path = latest_verdicts(folder.log)
    try:
        return {} if path is None else read_scores(path, tasks)
    except sqlite3.Error:
        return {}  # the list works without it


def wrong_tasks(folder: RunFolder) -> Sequence[int]:
    """Return the tasks that the latest scoring judged wrong, ascending."""
    path = latest_verdicts(folder.log)
    try:
        return () if path is None else read_tasks(path, "wrong")
    except sqlite3.Error:
        return ()  # failed and unparsed tasks are found without it


SCORINGS = 10
"""Maximum scorings whose verdicts are read, the latest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptLine:
    """An attempt as a line of the table."""

    row: AttemptRow
    #: time from its earliest possible start to its start; None: unknown
    waited_s: float | None
    is_lost: bool = False  #: it will never have an outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEventLine:
    """An event of a task as a line of text."""

    seq: int
    at_us: int
    kind: str
    facts: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskScoring:
    """One scoring's verdicts on a task."""

    number: int
    scorer: str  #: job and version
    code: str  #: hash of the job's code, in hexadecimal
    seq: int  #: the last event of the log that it read
    verdicts: tuple[StoredVerdict, ...] | None  #: None: no longer readable


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDetail:
    """One task with its attempts; their texts are read on demand."""

    line: TaskLine
    attempts: tuple[AttemptLine, ...]
    happenings: tuple[TaskEventLine, ...]
    scored: tuple[TaskScoring, ...]  #: the latest first, at most `SCORINGS`
    scorings: int  #: number of scorings


def read_detail(
    conn: sqlite3.Connection, folder: RunFolder, task: int
) -> TaskDetail | None:
    """Return everything about a task except its texts; None if it does not exist."""
    line = read_lines(conn, folder, [task], ReplyHeads()).get(task)
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
            TaskEventLine(
                seq=record.seq,
                at_us=record.ts_us,
                kind=record.kind,
                facts=event_line(record.event),
            )
            for record in task_events(conn, task)
        ),
        scored=tuple(
            TaskScoring(
                number=scoring.number,
                scorer=f"{job} {scoring.job_version}",
                code=scoring.code_sha256,
                seq=scoring.seq,
                verdicts=_verdicts(folder, scoring.number, task),
            )
            for scoring in scored[:SCORINGS]
        ),
        scorings=len(scored),
    )


def attempt_lines(
    state: TaskState, planned_us: int | None, rows: Sequence[AttemptRow]
) -> Iterator[AttemptLine]:
    """Yield attempts with what follows from their neighbours.

    Args:
        state: the task's current state.
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
    """Return when the next attempt could start; None: no event defines that."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Names of this run for completion of filters."""

    total: int  #: tasks planned so far
    replicates: int = 1  #: planned replicates of each item
    stages: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    parse_failures: tuple[str, ...] = ()


class TaskSource(Protocol):
    """Source of tasks: a log, or a test's list.

    Cancelling a request stops it.
    """

    @property
    def run_id(self) -> str:
        """The run's id."""
        ...

    async def list_tasks(
        self, query: Query, order: TaskOrder, after: tuple[int, int] | None, limit: int
    ) -> TaskListStep:
        """Return the next numbers of a list."""
        ...

    async def lines(self, numbers: Sequence[int]) -> Mapping[int, TaskLine]:
        """Return tasks by number."""
        ...

    async def changed(self, query: Query, since: int) -> Sequence[int]:
        """Return matching tasks that changed after an event."""
        ...

    async def wrong(self) -> Sequence[int]:
        """Return the tasks that the latest scoring judged wrong, ascending."""
        ...

    async def last_seq(self) -> int:
        """Return the log's last event: if unchanged, nothing has happened."""
        ...

    async def names(self) -> Names:
        """Return the names for filters."""
        ...

    async def detail(self, task: int) -> TaskDetail | None:
        """Return everything about a task except its texts; None: no such task."""
        ...

    async def text(self, attempt: AttemptRow, kind: TextKind, sign: str) -> AttemptText:
        """Return one of an attempt's texts; *sign* marks an error."""
        ...

    def close(self) -> None:
        """Close the log."""
        ...


class LogTasks:
    """Tasks of a run's log, with separate connections for pages and lists."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._heads = ReplyHeads()
        self._quick = LogConnection(folder)
        self._slow = LogConnection(folder)

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self._folder.run_id

    async def list_tasks(
        self, query: Query, order: TaskOrder, after: tuple[int, int] | None, limit: int
    ) -> TaskListStep:
        """Return the next numbers of a list."""
        return await self._slow.ask(list_tasks, query, order, after=after, limit=limit)

    async def lines(self, numbers: Sequence[int]) -> Mapping[int, TaskLine]:
        """Return tasks by number."""
        return await self._quick.ask(read_lines, self._folder, numbers, self._heads)

    async def changed(self, query: Query, since: int) -> Sequence[int]:
        """Return matching tasks that changed after an event."""
        return await self._slow.ask(changed_tasks, query, since)

    async def wrong(self) -> Sequence[int]:
        """Return the tasks that the latest scoring judged wrong, ascending."""
        return await asyncio.to_thread(wrong_tasks, self._folder)

    async def last_seq(self) -> int:
        """Return the log's last event."""
        return await self._quick.ask(visible_seq)

    async def names(self) -> Names:
        """Return the names for filters."""
        return await self._quick.ask(names_of)

    async def detail(self, task: int) -> TaskDetail | None:
        """Return everything about a task except its texts; None: no such task."""
        return await self._quick.ask(read_detail, self._folder, task)

    async def text(self, attempt: AttemptRow, kind: TextKind, sign: str) -> AttemptText:
        """Return one of an attempt's texts; *sign* marks an error."""
        return await self._quick.ask(read_text, attempt, kind, sign)

    def close(self) -> None:
        """Close the log."""
        self._quick.close()
        self._slow.close()


def names_of(conn: sqlite3.Connection) -> Names:
    """Return a run's names for filters."""
    seen = status(conn)
    return Names(
        total=seen.tasks.planned,
        replicates=run_started(conn).replicates,
        stages=tuple(sorted({queue.stage for queue in seen.queues})),
        models=tuple(sorted({queue.model for queue in seen.queues})),
        errors=tuple(sorted({error.error for error in error_counts(conn)})),
        parse_failures=tuple(sorted(seen.parse_failures)),
    )
