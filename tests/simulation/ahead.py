"""A process's log: acknowledged when durable, and behind the process by some time.

The log's thread does one thing after another: a commit takes all units that were
appended before it began, a read sees all that was appended before it. A crash leaves
what was committed, acknowledged or not, and loses what waited.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, NamedTuple, TypeVar

from store.errors import IllegalMove, LogClosed
from store.events import NAMES, Entry, Event, RecordedEvent
from store.log.interface import LogStatistics, Planning, StoredReply
from store.task import TaskRow
from tests.simulation.disk import Disk
from tests.simulation.loop import SimulatedLoop

_T = TypeVar("_T")


class _Waiting(NamedTuple):
    entries: Sequence[Entry | Event]
    durable: asyncio.Future[int] | None


class LogAhead:
    """One process's way to the disk."""

    def __init__(
        self,
        disk: Disk,
        loop: SimulatedLoop,
        chance: random.Random,
        turn_s: tuple[float, float],
        say: Callable[[str], None] | None,
    ) -> None:
        self._disk = disk
        self._inner = disk.open()
        self._loop = loop
        self._chance = chance
        self._turn_s = turn_s
        self._say = say
        self._waiting: list[_Waiting] = []
        self._free_at = self._heard_at = 0.0
        self._is_dead = False
        self.longest_s = 0.0  #: that anybody waited for an append
        self.refused: IllegalMove | None = None  #: a unit that nobody waits for

    @property
    def epoch(self) -> int:
        """Which opening of the log this is."""
        return self._inner.epoch

    def die(self) -> None:
        """Lose what is not durable; record nothing more."""
        self._is_dead = True
        self._waiting.clear()

    def _turn(self) -> float:
        """When the thread will have done one more thing."""
        self._free_at = max(self._loop.time(), self._free_at) + self._draw()
        return self._free_at

    def _told(self) -> float:
        """When the loop hears of what the thread has done just now, in its turn."""
        self._heard_at = max(self._loop.time(), self._heard_at) + self._draw()
        return self._heard_at

    def _draw(self) -> float:
        return self._chance.uniform(*self._turn_s)

    # -- appending -------------------------------------------------------------

    async def append(self, *entries: Entry | Event) -> int:
        """Record *entries* as one unit; return the last one's seq once durable."""
        durable: asyncio.Future[int] = self._loop.create_future()
        asked_s = self._loop.time()
        self._put(entries, durable)
        seq = await durable
        self.longest_s = max(self.longest_s, self._loop.time() - asked_s)
        return seq

    def append_nowait(self, *entries: Entry | Event) -> None:
        """Record *entries* with the next commit, without waiting for it."""
        self._put(entries, None)

    def _put(
        self, entries: Sequence[Entry | Event], durable: asyncio.Future[int] | None
    ) -> None:
        if self._is_dead:
            raise LogClosed("the process is gone")
        if not self._waiting:
            self._loop.call_at(self._turn(), self._commit)
        self._waiting.append(_Waiting(entries, durable))

    def _commit(self) -> None:
        if self._is_dead:
            return
        batch, self._waiting = self._waiting, []
        outcomes = self._disk.commit([unit.entries for unit in batch])
        if self._say is not None:
            self._say(f"durable to {self._disk.seq}: {_names(batch)}")
        self._loop.call_at(self._told(), self._acknowledge, batch, outcomes)

    def _acknowledge(
        self, batch: list[_Waiting], outcomes: list[int | IllegalMove]
    ) -> None:
        for unit, outcome in zip(batch, outcomes, strict=True):
            if unit.durable is None:
                if isinstance(outcome, IllegalMove):
                    self.refused = outcome
            elif not unit.durable.done():
                if isinstance(outcome, IllegalMove):
                    unit.durable.set_exception(outcome)
                else:
                    unit.durable.set_result(outcome)

    async def heartbeat(self) -> None:
        """Say that the process is alive."""
        await self._read(self._inner.heartbeat())

    # -- reading ---------------------------------------------------------------

    async def _read(self, reading: Coroutine[Any, Any, _T]) -> _T:
        """What stands in the log at the thread's turn, told a little later."""
        if self._is_dead:
            reading.close()
            raise LogClosed("the process is gone")
        try:
            await self._at(self._turn())
        except BaseException:
            reading.close()
            raise
        found = await reading
        await self._at(self._told())
        return found

    async def _at(self, when: float) -> None:
        due: asyncio.Future[None] = self._loop.create_future()
        self._loop.call_at(when, _wake, due)
        await due

    async def planning(self) -> Planning:
        """How far the plan has come."""
        return await self._read(self._inner.planning())

    async def open_tasks(
        self, stage: str, model: str, *, after: int, limit: int
    ) -> list[TaskRow]:
        """Queued and waiting tasks."""
        return await self._read(
            self._inner.open_tasks(stage, model, after=after, limit=limit)
        )

    async def final_tasks(
        self, stage: str, model: str, *, after: int, limit: int
    ) -> list[TaskRow]:
        """Completed and failed tasks."""
        return await self._read(
            self._inner.final_tasks(stage, model, after=after, limit=limit)
        )

    async def tasks(self, numbers: Sequence[int]) -> list[TaskRow]:
        """The named tasks."""
        return await self._read(self._inner.tasks(numbers))

    async def family(self, root: int) -> list[TaskRow]:
        """A first-stage task and all that descend from it."""
        return await self._read(self._inner.family(root))

    async def group(
        self, stage: str, model: str, replicate: int, group: str
    ) -> list[TaskRow]:
        """The tasks that a gathering stage collects under one key."""
        return await self._read(self._inner.group(stage, model, replicate, group))

    async def group_is_open(
        self, stage: str, model: str, replicate: int, group: str
    ) -> bool:
        """Whether any task of a group is open."""
        return await self._read(
            self._inner.group_is_open(stage, model, replicate, group)
        )

    async def in_flight(self) -> list[tuple[int, int]]:
        """Attempts without a recorded outcome."""
        return await self._read(self._inner.in_flight())

    async def unread_answers(self, *, after: int, limit: int) -> list[TaskRow]:
        """Running tasks whose stored reply has not been parsed."""
        return await self._read(self._inner.unread_answers(after=after, limit=limit))

    async def reply(self, task: int) -> StoredReply | None:
        """The reply that counts for *task*."""
        return await self._read(self._inner.reply(task))

    async def started(self, task: int) -> str | None:
        """`request_sha256` of the task's latest started attempt."""
        return await self._read(self._inner.started(task))

    async def task_events(self, task: int) -> list[RecordedEvent]:
        """The events that are about one task alone."""
        return await self._read(self._inner.task_events(task))

    async def events(
        self, *, after: int = 0, limit: int = 1000, kinds: Sequence[str] | None = None
    ) -> list[RecordedEvent]:
        """Events with seq above *after*."""
        return await self._read(
            self._inner.events(after=after, limit=limit, kinds=kinds)
        )

    async def payload(self, seq: int) -> bytes | None:
        """The bytes beside an event."""
        return await self._read(self._inner.payload(seq))

    async def last_seq(self) -> int:
        """Seq of the latest event that is durable."""
        return await self._read(self._inner.last_seq())

    def statistics(self) -> LogStatistics:
        """The writer's figures."""
        return self._inner.statistics()

    async def close(self) -> None:
        """Commit what waits."""
        await self.last_seq()


def _wake(due: asyncio.Future[None]) -> None:
    if not due.done():
        due.set_result(None)


def _names(batch: list[_Waiting]) -> str:
    """The kinds of a batch's events with their tasks, for a trace."""
    shown = []
    for unit in batch:
        events = [e.event if isinstance(e, Entry) else e for e in unit.entries]
        shown.append(
            "+".join(
                f"{NAMES[type(event)]} {getattr(event, 'task', '')}".strip()
                for event in events
            )
        )
    return ", ".join(shown)
