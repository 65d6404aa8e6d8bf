"""Real stand-ins for tests: a log in memory and a clock that is set by hand.

`MemoryLog` keeps the same contract as `store.log.sqlite.SqliteLog` with the same fold
and state machine, and forgets everything with the process. One suite runs against both.
"""

from __future__ import annotations

import asyncio
import copy
import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from operator import attrgetter
from types import TracebackType
from typing import Self

from store.clock import Clock
from store.errors import LogClosed
from store.events import (
    AttemptAnswered,
    AttemptStarted,
    Entry,
    Event,
    RecordedEvent,
    TasksPlanned,
)
from store.fold import Fold, touched
from store.fold_state import RunState
from store.log.interface import LogStatistics, Planning, StoredReply
from store.task import TaskDraft, TaskRow, TaskState, planned_tasks, task_row

#: 2026-01-01 00:00 UTC: where a fake clock starts.
START_US = 1_767_225_600_000_000

_COLUMNS = attrgetter(*(field.name for field in fields(TaskDraft)))


class FakeClock:
    """A clock that stands still until it is told to move.

    `sleep_until` wakes when `advance` has passed its moment, so hours of work take as
    long as their computing takes.
    """

    def __init__(self, start_us: int = START_US) -> None:
        self._start_us = start_us
        self._now = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._slept = 0

    def now_us(self) -> int:
        """Wall clock, microseconds since 1970-01-01 UTC."""
        return self._start_us + round(self._now * 1e6)

    def monotonic(self) -> float:
        """Seconds since the clock was made."""
        return self._now

    async def sleep_until(self, when: float) -> None:
        """Return once the clock has been moved to *when*."""
        if when <= self._now:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._slept += 1
        heapq.heappush(self._sleepers, (when, self._slept, woken))
        await woken

    def advance(self, seconds: float) -> None:
        """Move on, waking everybody whose moment has come."""
        self._now += seconds
        while self._sleepers and self._sleepers[0][0] <= self._now:
            _when, _order, woken = heapq.heappop(self._sleepers)
            if not woken.done():
                woken.set_result(None)


class MemoryLog:
    """A log in memory; durable as soon as it is appended."""

    epoch = 1

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock = clock or FakeClock()
        self.heartbeats = 0
        self._run = RunState()
        self._tasks: dict[int, TaskDraft] = {}
        self._events: list[RecordedEvent] = []
        self._payloads: list[bytes | None] = []
        self._blobs: dict[bytes, bytes] = {}
        self._commits = 0
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def append(self, *entries: Entry | Event) -> int:
        """Record *entries* as one unit; return the last one's seq."""
        self._commit(entries)
        seq = len(self._events)
        await asyncio.sleep(0)
        return seq

    def append_nowait(self, *entries: Entry | Event) -> None:
        """Record *entries*."""
        self._commit(entries)

    def _commit(self, entries: Sequence[Entry | Event]) -> None:
        if self._closed:
            raise LogClosed("the log is closed")
        if not entries:
            raise ValueError("nothing to append")
        units = [e if isinstance(e, Entry) else Entry(event=e) for e in entries]
        fold = Fold(
            run=copy.copy(self._run),
            tasks={
                task: copy.copy(self._tasks[task])
                for unit in units
                for task in touched(unit.event)
                if task in self._tasks
            },
        )
        recorded: list[RecordedEvent] = []
        for seq, unit in enumerate(units, len(self._events) + 1):
            last_us = recorded[-1].ts_us if recorded else self._last_us()
            ts_us = max(self.clock.now_us(), last_us + 1)
            if isinstance(unit.event, TasksPlanned):
                fold.apply(seq, ts_us, unit.event, planned_tasks(unit.payload or b""))
            else:
                fold.apply(seq, ts_us, unit.event)
            recorded.append(
                RecordedEvent(
                    seq=seq,
                    ts_us=ts_us,
                    epoch=self.epoch,
                    event=unit.event,
                    payload_bytes=len(unit.payload or b""),
                )
            )
        self._run = fold.run
        for block in fold.blocks:
            for number, plan in enumerate(block.tasks, block.first):
                self._tasks[number] = TaskDraft.planned(number, plan, block.seq)
        self._tasks.update(fold.tasks)
        self._events += recorded
        self._payloads += [unit.payload for unit in units]
        for unit in units:
            for blob in unit.blobs:
                self._blobs.setdefault(blob.sha256, blob.data)
        self._commits += 1

    def _last_us(self) -> int:
        return self._events[-1].ts_us if self._events else 0

    async def heartbeat(self) -> None:
        """Say that the process is alive."""
        self.heartbeats += 1

    async def planning(self) -> Planning:
        """How far the plan has come."""
        run = self._run
        return Planning(tasks=run.tasks, consumed=run.consumed, exhausted=run.exhausted)

    def _select(self, wanted: Callable[[TaskDraft], bool]) -> Iterator[TaskRow]:
        return (
            task_row(_COLUMNS(draft))
            for _task, draft in sorted(self._tasks.items())
            if wanted(draft)
        )

    def _page(
        self, after: int, limit: int, wanted: Callable[[TaskDraft], bool]
    ) -> list[TaskRow]:
        rows = self._select(lambda draft: draft.task > after and wanted(draft))
        return list(rows)[:limit]

    async def open_tasks(
        self, stage: str, model: str, *, after: int, limit: int
    ) -> list[TaskRow]:
        """Queued and waiting tasks with a number above *after*, ascending."""
        idle = (TaskState.QUEUED, TaskState.WAITING)
        return self._page(
            after,
            limit,
            lambda d: d.stage == stage and d.model == model and d.state in idle,
        )

    async def final_tasks(
        self, stage: str, model: str, *, after: int, limit: int
    ) -> list[TaskRow]:
        """Completed and failed tasks with a number above *after*, ascending."""
        final = (TaskState.COMPLETED, TaskState.FAILED)
        return self._page(
            after,
            limit,
            lambda d: d.stage == stage and d.model == model and d.state in final,
        )

    async def tasks(self, numbers: Sequence[int]) -> list[TaskRow]:
        """The named tasks, ascending; unknown numbers are left out."""
        named = set(numbers)
        return list(self._select(lambda d: d.task in named))

    async def family(self, root: int) -> list[TaskRow]:
        """The first-stage task *root* and all that descend from it, ascending."""
        return list(self._select(lambda d: root in (d.task, d.root)))

    async def group(
        self, stage: str, model: str, replicate: int, group: str
    ) -> list[TaskRow]:
        """The tasks that a gathering stage collects under one key, ascending."""
        key = (stage, model, replicate, group)
        return list(
            self._select(lambda d: (d.stage, d.model, d.replicate, d.group) == key)
        )

    async def group_is_open(
        self, stage: str, model: str, replicate: int, group: str
    ) -> bool:
        """Whether any task of a group is open; cheaper than to read all of it."""
        rows = await self.group(stage, model, replicate, group)
        return any(row.state.is_open for row in rows)

    async def in_flight(self) -> list[tuple[int, int]]:
        """Attempts that were started and have no recorded outcome, ascending."""
        return sorted((d.task, d.attempts) for d in self._tasks.values() if d.sent)

    async def unread_answers(self, *, after: int, limit: int) -> list[TaskRow]:
        """Running tasks whose reply has not been parsed, above *after*, ascending."""
        return self._page(
            after,
            limit,
            lambda d: (
                d.state is TaskState.RUNNING and not d.sent and d.reply_seq is not None
            ),
        )

    async def reply(self, task: int) -> StoredReply | None:
        """The reply that counts for *task*."""
        draft = self._tasks.get(task)
        if draft is None or draft.reply_seq is None:
            return None
        seq = draft.reply_seq
        answered = self._events[seq - 1].event
        if not isinstance(answered, AttemptAnswered):
            raise TypeError(f"event {seq} is no answer")
        return StoredReply(
            seq=seq, answered=answered, body=self._payloads[seq - 1] or b""
        )

    async def started(self, task: int) -> str | None:
        """`request_sha256` of the task's latest started attempt."""
        draft = self._tasks.get(task)
        if draft is None or draft.started_seq is None:
            return None
        event = self._events[draft.started_seq - 1].event
        return event.request_sha256 if isinstance(event, AttemptStarted) else None

    async def task_events(self, task: int) -> list[RecordedEvent]:
        """The events that are about one task alone, ascending."""
        return [r for r in self._events if getattr(r.event, "task", None) == task]

    async def events(
        self, *, after: int = 0, limit: int = 1000, kinds: Sequence[str] | None = None
    ) -> list[RecordedEvent]:
        """Events with seq above *after*, ascending."""
        found = [
            recorded
            for recorded in self._events[after:]
            if kinds is None or recorded.kind in kinds
        ]
        return found[:limit]

    async def payload(self, seq: int) -> bytes | None:
        """The bytes beside an event."""
        return self._payloads[seq - 1] if 0 < seq <= len(self._payloads) else None

    async def last_seq(self) -> int:
        """Seq of the latest committed event; 0 in an empty log."""
        return len(self._events)

    def statistics(self) -> LogStatistics:
        """The writer's figures."""
        return LogStatistics(
            commits=self._commits,
            events=len(self._events),
            bytes_written=sum(len(p) for p in self._payloads if p is not None)
            + sum(len(data) for data in self._blobs.values()),
            queued_bytes=0,
            wal_bytes=0,
        )

    async def close(self) -> None:
        """Refuse everything from now on."""
        self._closed = True
