"""What the screens of tasks read: lists, pages and everything about one task."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from store.query import Query
from store.runs import RunFolder
from store.views import (
    AttemptRow,
    Order,
    Step,
    changed_tasks,
    error_counts,
    last_seq,
    list_tasks,
    status,
)
from tui.sources.reading import Reading
from tui.sources.task_detail import TaskDetail, read_detail
from tui.sources.task_lines import TaskLine, read_lines
from tui.sources.task_texts import Text, TextKind, read_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What filters can name in this run, for completion."""

    total: int  #: tasks planned so far
    stages: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    parse_failures: tuple[str, ...] = ()


class TaskSource(Protocol):
    """Where the screens of tasks read: a log, or a test's list.

    Whoever cancels a question thereby stops it.
    """

    @property
    def run_id(self) -> str:
        """The run's id."""
        ...

    async def list_tasks(
        self, query: Query, order: Order, after: tuple[int, int] | None, limit: int
    ) -> Step:
        """The next numbers of a list."""
        ...

    async def lines(self, numbers: Sequence[int]) -> Mapping[int, TaskLine]:
        """Tasks by number."""
        ...

    async def changed(self, query: Query, since: int) -> Sequence[int]:
        """Tasks that changed after an event and that a filter lets through."""
        ...

    async def last_seq(self) -> int:
        """The log's last event: unchanged, nothing has happened."""
        ...

    async def names(self) -> Names:
        """What filters can name."""
        ...

    async def detail(self, task: int) -> TaskDetail | None:
        """Everything about a task but its texts; None where there is no such task."""
        ...

    async def text(self, attempt: AttemptRow, kind: TextKind, sign: str) -> Text:
        """One of an attempt's texts; *sign* stands where it could not be read."""
        ...

    def close(self) -> None:
        """Let go of the log."""
        ...


class LogTasks:
    """The tasks of a run's log: pages by one connection, whole lists by another."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._quick = Reading(folder)
        self._slow = Reading(folder)

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self._folder.run_id

    async def list_tasks(
        self, query: Query, order: Order, after: tuple[int, int] | None, limit: int
    ) -> Step:
        """The next numbers of a list."""
        return await self._slow.ask(list_tasks, query, order, after=after, limit=limit)

    async def lines(self, numbers: Sequence[int]) -> Mapping[int, TaskLine]:
        """Tasks by number."""
        return await self._quick.ask(read_lines, self._folder, numbers)

    async def changed(self, query: Query, since: int) -> Sequence[int]:
        """Tasks that changed after an event and that a filter lets through."""
        return await self._slow.ask(changed_tasks, query, since)

    async def last_seq(self) -> int:
        """The log's last event."""
        return await self._quick.ask(last_seq)

    async def names(self) -> Names:
        """What filters can name."""
        return await self._quick.ask(names_of)

    async def detail(self, task: int) -> TaskDetail | None:
        """Everything about a task but its texts; None where there is no such task."""
        return await self._quick.ask(read_detail, self._folder, task)

    async def text(self, attempt: AttemptRow, kind: TextKind, sign: str) -> Text:
        """One of an attempt's texts; *sign* stands where it could not be read."""
        return await self._quick.ask(read_text, attempt, kind, sign)

    def close(self) -> None:
        """Let go of the log."""
        self._quick.close()
        self._slow.close()


def names_of(conn: sqlite3.Connection) -> Names:
    """What filters can name in a run."""
    seen = status(conn)
    return Names(
        total=seen.tasks.planned,
        stages=tuple(sorted({lane.stage for lane in seen.lanes})),
        models=tuple(sorted({lane.model for lane in seen.lanes})),
        errors=tuple(sorted({error.error for error in error_counts(conn)})),
        parse_failures=tuple(sorted(seen.parse_failures)),
    )
