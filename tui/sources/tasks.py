"""What the screens of tasks read: lists, pages and everything about one task."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from store.events import Event, Unknown
from store.query import Query
from store.runs import RunFolder
from store.task import TaskRow
from store.views import (
    AttemptRow,
    Order,
    Step,
    StoredVerdict,
    attempts,
    changed_tasks,
    error_counts,
    event_times,
    last_seq,
    list_tasks,
    parts,
    payload,
    read_verdicts,
    scorings,
    status,
    task_events,
    tasks_numbered,
)
from tui.drawing.flatten import readable
from tui.sources.reading import Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLine:
    """A task as a line of the table."""

    row: TaskRow
    updated_us: int | None  #: when something last happened to it


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What filters can name in this run, for completion."""

    total: int  #: tasks planned so far
    stages: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    parse_failures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """An event of a task as a line of text."""

    seq: int
    at_us: int
    kind: str
    facts: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDetail:
    """One task with its attempts; their texts are read when they are asked for."""

    line: TaskLine
    attempts: tuple[AttemptRow, ...]
    happenings: tuple[Happening, ...]
    scoring: int | None  #: number of the latest scoring; None: never scored
    verdicts: tuple[StoredVerdict, ...]


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

    async def text(self, seq: int, *, is_request: bool) -> str:
        """The payload beside an event, as a person reads it; it may hold anything."""
        ...

    def close(self) -> None:
        """Let go of the log."""
        ...


class LogTasks:
    """The tasks of a run's log: pages by one connection, whole lists by another."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._quick = Reading(folder.log)
        self._slow = Reading(folder.log)

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
        return await self._quick.ask(_lines, numbers)

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
        return await self._quick.ask(_detail, self._folder, task)

    async def text(self, seq: int, *, is_request: bool) -> str:
        """The payload beside an event, as a person reads it."""
        return await self._quick.ask(body_text, seq, is_request=is_request)

    def close(self) -> None:
        """Let go of the log."""
        self._quick.close()
        self._slow.close()


def _lines(conn: sqlite3.Connection, numbers: Sequence[int]) -> dict[int, TaskLine]:
    rows = tasks_numbered(conn, numbers)
    times = event_times(conn, {row.updated_seq for row in rows})
    return {
        row.task: TaskLine(row=row, updated_us=times.get(row.updated_seq))
        for row in rows
    }


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


def _detail(
    conn: sqlite3.Connection, folder: RunFolder, task: int
) -> TaskDetail | None:
    line = _lines(conn, [task]).get(task)
    if line is None:
        return None
    latest = max((scoring.number for scoring in scorings(conn)), default=None)
    return TaskDetail(
        line=line,
        attempts=tuple(attempts(conn, task)),
        happenings=tuple(
            Happening(
                seq=each.seq,
                at_us=each.ts_us,
                kind=each.kind,
                facts=_facts(each.event),
            )
            for each in task_events(conn, task)
        ),
        scoring=latest,
        verdicts=_verdicts(folder, latest, task),
    )


def _facts(event: Event | Unknown) -> str:
    if isinstance(event, Unknown):
        return event.facts.decode(errors="replace")
    said = {name: value for name, value in asdict(event).items() if value is not None}
    return "  ".join(f"{name} {value}" for name, value in said.items())


def _verdicts(
    folder: RunFolder, scoring: int | None, task: int
) -> tuple[StoredVerdict, ...]:
    if scoring is None:
        return ()
    path = folder.scores / str(scoring) / "verdicts.db"
    return tuple(read_verdicts(path.absolute(), task)) if path.is_file() else ()


def body_text(conn: sqlite3.Connection, seq: int, *, is_request: bool) -> str:
    """The payload beside an event, as a person reads it; empty where it has none."""
    body = payload(conn, seq)
    if body is None:
        return ""
    return _prompt(conn, body) if is_request else readable(body)


def _prompt(conn: sqlite3.Connection, skeleton: bytes) -> str:
    """A request with its texts in the places of their hashes."""
    try:
        request = json.loads(skeleton)
    except ValueError:
        return readable(skeleton)
    hashes = {bytes.fromhex(text) for text in _hashes(request)}
    texts = {
        sha256.hex(): data.decode(errors="replace")
        for sha256, data in parts(conn, hashes).items()
    }
    return readable(json.dumps(_filled(request, texts)).encode())


_HEX = 64
"""Length of a SHA-256 in hexadecimal."""


def _hashes(value: Any) -> set[str]:  # noqa: ANN401 - any JSON
    match value:
        case dict():
            return set().union(*map(_hashes, value.values()))
        case list():
            return set().union(*map(_hashes, value))
        case str() if len(value) == _HEX and not value.strip("0123456789abcdef"):
            return {value}
        case _:
            return set()


def _filled(value: Any, texts: Mapping[str, str]) -> Any:  # noqa: ANN401 - any JSON
    match value:
        case dict():
            return {key: _filled(inner, texts) for key, inner in value.items()}
        case list():
            return [_filled(inner, texts) for inner in value]
        case str():
            return texts.get(value, value)
        case _:
            return value
