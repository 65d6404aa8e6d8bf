"""Has one engine do what the supervisor decides, and tells it what came of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from runner.errors import RunnerError
from runner.placing.engine import Engine, Exit, Handle, How
from runner.placing.spec import ShardSpec
from runner.placing.supervisor import (
    Action,
    Closing,
    Died,
    Drain,
    Draining,
    Event,
    Finished,
    Kill,
    Lost,
    Phase,
    Place,
    Stopping,
    Supervisor,
    Tick,
)
from store.clock import Clock

LOOK_S: Final = 0.2
"""How long an engine is waited for at a time; what people ask is heard as late."""


class Foreman:
    """Keeps the shards of one run at work until each has ended for good."""

    def __init__(
        self,
        *,
        specs: Sequence[ShardSpec],
        engine: Engine,
        supervisor: Supervisor,
        silence: Callable[[], Mapping[int, float]],
        revoke: Callable[[str], None],
        clock: Clock,
        tell: Callable[[str], None],
    ) -> None:
        """Nobody is at work yet.

        Args:
            specs: the shards, by index.
            engine: starts and ends them.
            supervisor: says when.
            silence: seconds since a process of each was heard, of those that were.
            revoke: has what is left of a shard lose its lease, for good.
            clock: tells it how long things took.
            tell: takes a sentence about a shard.
        """
        self._specs = specs
        self._engine = engine
        self._supervisor = supervisor
        self._silence = silence
        self._revoke = revoke
        self._clock = clock
        self._tell = tell
        self._handles: dict[int, Handle] = {}
        self._asked: list[Event] = []

    def close(self) -> None:
        """Place nobody any more: the shards have been told to end, or know it."""
        self._asked.append(Closing())

    def drain(self) -> None:
        """Have every shard finish its calls in flight and end."""
        self._asked.append(Draining())

    def stop(self) -> None:
        """End every shard at once."""
        self._asked.append(Stopping())

    async def work(self, listen: Callable[[], None]) -> None:
        """Go on until every shard has ended.

        Args:
            listen: hears what people ask; before each end is judged, for a shard may
                have heard it first and ended for that.
        """
        await self._handle(Tick())
        while not self._supervisor.is_over:
            ended = await asyncio.to_thread(self._engine.wait_any, LOOK_S)
            listen()
            while self._asked:
                await self._handle(self._asked.pop(0))
            if ended is not None and self._handles.get(ended.handle.index) == (
                ended.handle
            ):
                await self._handle(self._event(ended))
            for index in self._overdue():
                self._say(index, "has not been heard of for long")
                await self._handle(self._lost(index))
            await self._handle(Tick())

    def _overdue(self) -> list[int]:
        """Shards that should have ended by themselves, so long were they silent.

        What was heard last before a shard was placed was another process of it.
        """
        now = self._clock.monotonic()
        longest_s = self._supervisor.policy.fence_s
        return [
            shard.index
            for shard in self._supervisor.shards
            if shard.phase is Phase.PLACED
            and longest_s < self._silence().get(shard.index, 0.0) < now - shard.since
        ]

    def _event(self, ended: Exit) -> Event:
        index = ended.handle.index
        if ended.how is How.FINISHED and ended.code is not None:
            return Finished(index=index, code=ended.code, said=ended.said)
        if ended.how is How.DIED:
            if not self._supervisor.is_ending:
                self._say(index, "died")
            return Died(index=index)
        self._say(index, "is out of reach")
        return self._lost(index)

    def _lost(self, index: int) -> Lost:
        """It may be at work, where nobody reaches it but by its lease."""
        self._revoke(self._specs[index].name)
        return Lost(index=index)

    async def _handle(self, event: Event) -> None:
        for action in self._supervisor.handle(event, self._clock.monotonic()):
            await self._do(action)

    async def _do(self, action: Action) -> None:
        match action:
            case Place():
                await self._place(action)
            case Drain() | Kill():
                await asyncio.to_thread(
                    self._engine.stop,
                    self._handles[action.index],
                    at_once=isinstance(action, Kill),
                )

    async def _place(self, place: Place) -> None:
        index = place.index
        before = self._handles.get(index)
        if before is not None:
            self._say(index, "is placed again")
        try:
            self._handles[index] = await asyncio.to_thread(
                self._engine.place,
                self._specs[index],
                near=before if place.near else None,
            )
        except RunnerError as error:
            await self._handle(Finished(index=index, code=1, said=str(error)))

    def _say(self, index: int, what: str) -> None:
        self._tell(f"Shard {self._specs[index].name} {what}.")
