"""Reads requests from outside and carries them out: drain and retry.

A request is a line of `control.jsonl`. It is answered by events, so that whoever asked
sees what became of it, and a request that was answered once is never carried out again.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeAlias

from runner.beside import beside
from runner.driver import Driver
from store.clock import Clock
from store.commands import Command, CommandTail
from store.errors import QueryError
from store.events import (
    CommandAccepted,
    CommandApplied,
    CommandRejected,
    Event,
    TasksReopened,
)
from store.log import Log
from store.query import parse_query
from store.runs import RunFolder
from store.views import open_reader, tasks

POLL_S = 0.5
PAGE = 2000
REOPEN_AT_ONCE = 10_000
"""Task numbers in one event; more go into several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Effect:
    """What a request comes to."""

    said: str
    events: tuple[Event, ...] = ()
    drains: bool = False


class _Refused(Exception):
    """A request that is not carried out; the message says why."""


_Effects: TypeAlias = Mapping[str, Callable[[Command, RunFolder], Awaitable[_Effect]]]


class Listener:
    """Carries out what is asked of one live run."""

    def __init__(
        self, *, folder: RunFolder, log: Log, driver: Driver, clock: Clock
    ) -> None:
        self._folder = folder
        self._log = log
        self._driver = driver
        self._clock = clock
        self._tail = CommandTail(folder.control)
        self._answered: set[str] = set()
        self.drained_by: str | None = None  #: who asked for the drain, if one did

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Carry out what is waiting in the file, then listen while the body runs."""
        for recorded in await self._log.events(
            limit=1_000_000, kinds=["command_accepted", "command_rejected"]
        ):
            if isinstance(recorded.event, CommandAccepted | CommandRejected):
                self._answered.add(recorded.event.command)
        await self._poll(_WAITING)
        async with beside(self._listen()):
            yield

    async def _listen(self) -> None:
        while True:
            await self._clock.sleep_until(self._clock.monotonic() + POLL_S)
            await self._poll(_EFFECTS)

    async def _poll(self, effects: _Effects) -> None:
        for command in self._tail.read():
            if command.id not in self._answered:
                self._answered.add(command.id)
                await self._obey(command, effects)

    async def _obey(self, command: Command, effects: _Effects) -> None:
        try:
            carry_out = effects.get(command.kind, _unknown)
            effect = await carry_out(command, self._folder)
        except (_Refused, QueryError) as error:
            await self._log.append(
                CommandRejected(
                    command=command.id,
                    kind=command.kind,
                    author=command.author,
                    reason=str(error),
                )
            )
            return
        await self._log.append(
            CommandAccepted(
                command=command.id,
                kind=command.kind,
                author=command.author,
                payload=json.dumps(command.payload, sort_keys=True),
            ),
            *effect.events,
            CommandApplied(command=command.id, effect=effect.said),
        )
        if effect.drains:
            self.drained_by = command.author
            self._driver.drain()
        if effect.events:
            self._driver.reopened()


async def _drain(command: Command, folder: RunFolder) -> _Effect:
    del command, folder
    return _Effect(said="no further task is started", drains=True)


async def _unknown(command: Command, folder: RunFolder) -> _Effect:
    del folder
    raise _Refused(f"this siftlog cannot {command.kind}")


async def _too_late(command: Command, folder: RunFolder) -> _Effect:
    """What was said to one process is not meant for the next."""
    del folder
    raise _Refused(f"the process that was to {command.kind} had ended")


async def _retry(command: Command, folder: RunFolder) -> _Effect:
    """Reopen the tasks that a filter names, of those that are final."""
    tasks = await asyncio.to_thread(
        retriable, folder, str(command.payload.get("filter", ""))
    )
    return _Effect(
        said=f"{len(tasks)} tasks reopened",
        events=tuple(
            TasksReopened(tasks=tasks[i : i + REOPEN_AT_ONCE], by=command.author)
            for i in range(0, len(tasks), REOPEN_AT_ONCE)
        ),
    )


_EFFECTS: _Effects = {"drain": _drain, "retry": _retry}
_WAITING: _Effects = {**_EFFECTS, "drain": _too_late}
"""For what was asked while nobody wrote the run."""


def retriable(folder: RunFolder, expression: str) -> list[int]:
    """Numbers of the final tasks that a filter names; failed ones if it is empty.

    Raises:
        QueryError: the filter cannot be read.
    """
    query = parse_query(expression or "state:failed")
    numbers: list[int] = []
    after = 0
    with open_reader(folder.log) as reader:
        while rows := tasks(reader, query, after=after, limit=PAGE):
            after = rows[-1].task
            numbers.extend(row.task for row in rows if not row.state.is_open)
    return numbers
