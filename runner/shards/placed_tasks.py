"""Runs alongside a placed run: places shards, relays commands, reads logs.

`ShardPlacer` carries out the supervisor's decisions through an engine, `CommandRelay`
relays commands to the run, and `UnionRefresher` keeps the union of its logs current.

Commands are in the `control.jsonl` of the run's folder. Shards that share the folder
read them there; those on other disks get each line through the broker. The broker
handles limits and budget of the whole run, and no shard is restarted after a command to
end the run.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from runner.errors import RunnerError
from runner.limits.limiter import Limits
from runner.run.context import RunContext
from runner.run.control import (
    KINDS,
    CommandRefused,
    LimitsChange,
    is_amount,
    limits_change,
    limits_in_force,
    waiting,
)
from runner.shards.broker import BrokerServer
from runner.shards.engines import (
    ExitKind,
    ShardEngine,
    ShardExit,
    ShardHandle,
    ShardSpec,
)
from runner.shards.supervisor import (
    DrainShard,
    KillShard,
    PlacementPhase,
    PlaceShard,
    RunClosing,
    RunDraining,
    RunStopping,
    ShardDied,
    ShardFinished,
    ShardLost,
    Supervisor,
    SupervisorAction,
    SupervisorEvent,
    Tick,
)
from store.clock import Clock
from store.control import ALL, Command, CommandTail
from store.database import open_reader
from store.errors import StoreError
from store.read.status import Status, status
from store.read.tasks import events
from store.read.usage import Spending, spending
from store.runs import RunFolder
from store.task import pico

POLL_S: Final = 0.2
"""Time for which an engine is polled at a time; commands are delayed as much."""


class ShardPlacer:
    """Keeps the shards of one run running until each has ended for good."""

    def __init__(
        self,
        *,
        specs: Sequence[ShardSpec],
        engine: ShardEngine,
        supervisor: Supervisor,
        silence: Callable[[], Mapping[int, float]],
        revoke: Callable[[str], None],
        clock: Clock,
        notify: Callable[[str], None],
    ) -> None:
        """Start without placements.

        Args:
            specs: the shards, by index.
            engine: starts and ends them.
            supervisor: decides when.
            silence: seconds since the last message of each shard, if any.
            revoke: ends a shard's lease for good.
            clock: times the events.
            notify: receives messages about shards.
        """
        self._specs = specs
        self._engine = engine
        self._supervisor = supervisor
        self._silence = silence
        self._revoke = revoke
        self._clock = clock
        self._notify = notify
        self._handles: dict[int, ShardHandle] = {}
        self._pending_events: list[SupervisorEvent] = []

    def close(self) -> None:
        """Place no more shards: they were told to end."""
        self._pending_events.append(RunClosing())

    def drain(self) -> None:
        """Make every shard finish its calls in flight and end."""
        self._pending_events.append(RunDraining())

    def stop(self) -> None:
        """End every shard at once."""
        self._pending_events.append(RunStopping())

    async def work(self, listen: Callable[[], None]) -> None:
        """Run until every shard has ended.

        Args:
            listen: reads commands; called before each end is handled, because a shard
                may have ended on a command that it read first.
        """
        await self._handle(Tick())
        while not self._supervisor.is_over:
            ended = await asyncio.to_thread(self._engine.wait_any, POLL_S)
            listen()
            while self._pending_events:
                await self._handle(self._pending_events.pop(0))
            if ended is not None and self._handles.get(ended.handle.index) == (
                ended.handle
            ):
                await self._handle(self._event(ended))
            for index in self._overdue():
                self._say(index, "has been silent for too long")
                await self._handle(self._lost(index))
            await self._handle(Tick())

    def _overdue(self) -> list[int]:
        """Return shards silent for so long that they should have ended.

        A message from before the placement is from an earlier process of the shard.
        """
        now = self._clock.monotonic()
        longest_s = self._supervisor.policy.fence_s
        return [
            shard.index
            for shard in self._supervisor.shards
            if shard.phase is PlacementPhase.PLACED
            and longest_s < self._silence().get(shard.index, 0.0) < now - shard.since
        ]

    def _event(self, ended: ShardExit) -> SupervisorEvent:
        index = ended.handle.index
        if ended.kind is ExitKind.FINISHED and ended.code is not None:
            return ShardFinished(
                index=index, exit_code=ended.code, last_line=ended.last_line
            )
        if ended.kind is ExitKind.DIED:
            if not self._supervisor.is_ending:
                self._say(index, "died")
            return ShardDied(index=index)
        self._say(index, "is out of reach")
        return self._lost(index)

    def _lost(self, index: int) -> ShardLost:
        """Revoke the lease of a shard that may run but is unreachable."""
        self._revoke(self._specs[index].name)
        return ShardLost(index=index)

    async def _handle(self, event: SupervisorEvent) -> None:
        for action in self._supervisor.handle(event, self._clock.monotonic()):
            await self._do(action)

    async def _do(self, action: SupervisorAction) -> None:
        match action:
            case PlaceShard():
                await self._place(action)
            case DrainShard() | KillShard():
                await asyncio.to_thread(
                    self._engine.stop,
                    self._handles[action.index],
                    at_once=isinstance(action, KillShard),
                )

    async def _place(self, action: PlaceShard) -> None:
        index = action.index
        before = self._handles.get(index)
        if before is not None:
            self._say(index, "is placed again")
        try:
            self._handles[index] = await asyncio.to_thread(
                self._engine.place,
                self._specs[index],
                near=before if action.is_near else None,
            )
        except RunnerError as error:
            await self._handle(
                ShardFinished(index=index, exit_code=1, last_line=str(error))
            )

    def _say(self, index: int, message: str) -> None:
        self._notify(f"Shard {self._specs[index].name} {message}.")


REFRESH_S: Final = 1.0
"""Delay between two refreshes; monitors lag by about as much."""

FIRST_S: Final = 0.1
"""The same before the first status, or while another process merges."""

FAILURE_TIMEOUT_S: Final = 3.0
"""Duration of failures after which a message is shown."""


class UnionRefresher:
    """The union of one run, as of the last refresh."""

    def __init__(self, folder: RunFolder, context: RunContext) -> None:
        """Start without a status; calls `context.launched` at the first one."""
        self._folder = folder
        self._context = context
        self._merging = threading.Lock()
        self.status: Status | None = None  #: None: no shard has written yet

    async def keep(self) -> None:
        """Refresh until cancelled; failures do not stop the run.

        Only repeated failures are shown: a log that is being created is unreadable for
        a moment.
        """
        clock = self._context.clock
        began: float | None = None  #: to fail
        is_announced = False
        while True:
            pause = FIRST_S if self.status is None else REFRESH_S
            await clock.sleep_until(clock.monotonic() + pause)
            try:
                await self.refresh()
            except StoreError as error:
                now = clock.monotonic()
                began = now if began is None else began
                if now - began > FAILURE_TIMEOUT_S and not is_announced:
                    is_announced = True
                    self._context.notify(str(error))
            else:
                began, is_announced = None, False

    async def refresh(self, *, to_the_end: bool = False) -> None:
        """Merge new events of the shards, and update the status.

        Args:
            to_the_end: wait for another process that merges, which may miss the last
                events.

        Raises:
            StoreError: a log or a place cannot be read.
        """
        had_status = self.status is not None
        self.status = await asyncio.to_thread(self._merged, to_the_end=to_the_end)
        if self.status is not None and not had_status:
            self._context.launched()

    def _merged(self, *, to_the_end: bool) -> Status | None:
        folder = self._folder
        # a cancelled refresh continues in its thread
        with self._merging:
            while folder.refresh() is None and to_the_end and folder.shards():
                time.sleep(FIRST_S)
        if not folder.log.exists():
            return None
        with open_reader(folder.log) as reader:
            return status(reader)


class CommandRelay:
    """Reads new commands for one run and relays them."""

    def __init__(
        self,
        *,
        folder: RunFolder,
        server: BrokerServer,
        close: Callable[[], None],
        limits: Mapping[str, Limits],
    ) -> None:
        """Start before the first command.

        Args:
            folder: the run's folder.
            server: reaches the shards, and manages limits and money.
            close: called when the run must end.
            limits: the limits of the server, by model.
        """
        self._tail = CommandTail(folder.control)
        self._server = server
        self._close = close
        self._limits = dict(limits)

    def take_up(self, waiting: Collection[str]) -> None:
        """Relay existing commands; shards ignore those they have answered.

        Args:
            waiting: ids of commands without a final answer.
        """
        for command in self._tail.read():
            # commands to end were for earlier processes
            if command.id in waiting and command.kind in {"budget", "limits"}:
                self._obey(command)
            self._server.relay(msgspec.json.encode(command))

    def listen(self) -> None:
        """Relay new commands."""
        for command in self._tail.read():
            self._obey(command)
            self._server.relay(msgspec.json.encode(command))

    def _obey(self, command: Command) -> None:
        match command.kind:
            case "drain" | "cancel":
                self._close()
            case "budget":
                usd = command.payload.get("add_usd")
                if is_amount(usd):
                    self._server.add_budget(pico(usd))
            case "limits":
                self._set_limits(command)
            case _:
                pass  # handled by each shard

    def _set_limits(self, command: Command) -> None:
        try:
            change = limits_change(command.payload)
        except CommandRefused:
            return  # every shard records it in its log
        for model in filter(change.concerns, self._limits):
            self._limits[model] = change.applied_to(self._limits[model])
            self._server.set_limits(model, self._limits[model])


NOTHING_SPENT = Spending(
    spent_pico=0, possible_pico=0, in_flight_pico=0, cap_pico=None, is_whole=False
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierProgress:
    """State of a run before it continues."""

    money: Spending = NOTHING_SPENT
    limits: Sequence[LimitsChange] = ()  #: commanded limits, in order
    waiting: frozenset[str] = frozenset()  #: ids of commands without an answer


def earlier_progress(folder: RunFolder) -> EarlierProgress:
    """Read the state of a run from its union; empty for a new run."""
    if not folder.log.exists():
        return EarlierProgress()
    with open_reader(folder.log) as reader:
        return EarlierProgress(
            money=spending(reader),
            limits=limits_in_force(events(reader, limit=ALL, kinds=KINDS)),
            waiting=frozenset(request.id for request in waiting(folder)),
        )
