"""Declares the interface of an event log for the engine.

It has two implementations: `store.log.sqlite.SqliteLog`, the real one, and
`tests.store.memory_log.MemoryLog`, for tests of everything above. One suite
(`tests/contract/test_log.py`) runs against both.

An acknowledged append is durable: it survives kill -9 and power loss. Events are
committed in the order of the calls to `append` and `append_nowait`, regardless of what
is awaited later. The log's own reads see everything appended before them; other readers
see events at once and task states, counts and sums within a quarter of a second.
Reading never needs a transaction: events are immutable, so a reader that wants a stable
view takes `visible_seq` once and stays below it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from store.events import AttemptAnswered, Entry, Event, RecordedEvent
from store.task import TaskRow


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredReply:
    """A reply as it was received."""

    seq: int
    answered: AttemptAnswered
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Planning:
    """Progress of the plan, as a resume needs it."""

    tasks: int  #: highest task number so far
    consumed: int  #: first-stage specs taken from the job's plan
    exhausted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStatistics:
    """The writer's statistics since it was opened."""

    commits: int
    events: int
    bytes_written: int  #: payloads and blobs after compression
    queued_bytes: int  #: waiting for a commit
    wal_bytes: int


class Log(Protocol):
    """One run's log, open for writing by exactly one process."""

    @property
    def epoch(self) -> int:
        """Number of this opening of the log, from 1."""
        ...

    async def append(self, *entries: Entry | Event) -> int:
        """Record *entries* as one unit; return the last one's seq once durable.

        All of them are committed in one transaction or none is. Waiting for the disk is
        the back-pressure: a caller is never ahead by more than one unit. Entries of a
        cancelled caller are still recorded.

        Raises:
            IllegalMove: a task's state forbids it; nothing of the unit was recorded.
            LogClosed: a commit failed, this one or an earlier one.
            Fenced: another writer has taken the log over.
        """
        ...

    def append_nowait(self, *entries: Entry | Event) -> None:
        """Record *entries* with the next commit, without waiting for it.

        For facts that may be lost with the process, such as `LimitObserved`.

        Raises:
            LogBehind: more than 64 MiB are already waiting.
            LogClosed: a commit failed.
            Fenced: another writer has taken the log over.
        """
        ...

    async def heartbeat(self) -> None:
        """Record that the process is alive (a plain row, outside the events)."""
        ...

    async def planning(self) -> Planning:
        """Return the progress of the plan."""
        ...

    async def open_tasks(
        self, stage: str, model: str, *, after: int, limit: int
    ) -> list[TaskRow]:
        """Return queued and waiting tasks with a number above *after*, ascending.

        Held tasks are included; `TaskRow.is_held` marks them.
        """
        ...

    async def final_tasks(
        self, stage: str, model: str, *, after: int, limit: int
    ) -> list[TaskRow]:
        """Return completed and failed tasks with a number above *after*, ascending."""
        ...

    async def tasks(self, numbers: Sequence[int]) -> list[TaskRow]:
        """Return the tasks with these numbers, ascending; omit unknown numbers."""
        ...

    async def family(self, root: int) -> list[TaskRow]:
        """Return the first-stage task *root* and all its descendants, ascending."""
        ...

    async def group(
        self, stage: str, model: str, replicate: int, group: str
    ) -> list[TaskRow]:
        """Return the tasks that a gathering stage collects under one key, ascending."""
        ...

    async def group_is_open(
        self, stage: str, model: str, replicate: int, group: str
    ) -> bool:
        """Return whether any task of a group is open; cheaper than a full read."""
        ...

    async def in_flight(self) -> list[tuple[int, int]]:
        """Return started attempts without a recorded outcome, ascending.

        As (task, attempt). Right after opening they belong to an earlier writer; the
        caller closes them by appending `AttemptsAbandoned`.
        """
        ...

    async def unread_answers(self, *, after: int, limit: int) -> list[TaskRow]:
        """Return running tasks with an unparsed stored reply: ascending, > *after*.

        They exist only right after a crash: their answers are parsed from the log.
        """
        ...

    async def reply(self, task: int) -> StoredReply | None:
        """Return the current reply of *task*."""
        ...

    async def started(self, task: int) -> str | None:
        """Return `request_sha256` of the task's latest started attempt."""
        ...

    async def task_events(self, task: int) -> list[RecordedEvent]:
        """Return the events about one task only, ascending."""
        ...

    async def events(
        self, *, after: int = 0, limit: int = 1000, kinds: Sequence[str] | None = None
    ) -> list[RecordedEvent]:
        """Return events with seq above *after*, ascending."""
        ...

    async def payload(self, seq: int) -> bytes | None:
        """Return the payload of an event."""
        ...

    async def last_seq(self) -> int:
        """Return the seq of the latest committed event; 0 in an empty log.

        Readers of the log see all projections up to it from then on.
        """
        ...

    def statistics(self) -> LogStatistics:
        """Return the writer's statistics."""
        ...

    async def close(self) -> None:
        """Commit queued entries and release the log."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """The last sign of life of the run's process."""

    at_us: int
    pid: int
    host: str
