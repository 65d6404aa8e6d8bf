"""Reads requests from outside, answers each by events, and has it carried out.

A request is a line of `control.jsonl`. It is accepted or rejected, and once accepted
applied; whoever asked sees all of that in the log. A request that was rejected or
applied is never looked at again; one that a crash broke off in between is carried out
by the next process. What each kind comes to stands in `runner.control.effects`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager

from runner.control.effects import EFFECTS, WAITING, Effects, Target, unknown
from runner.control.standing import KINDS, Refused, standing
from runner.engine.beside import beside
from runner.engine.driver import Driver
from store.clock import Clock
from store.control import (
    ALL,
    OPEN,
    Command,
    CommandRecord,
    CommandTail,
    command_log,
    withdrawals,
)
from store.database import open_reader
from store.errors import StoreError
from store.events import CommandAccepted, CommandApplied, CommandRejected
from store.log.interface import Log
from store.read.status import liveness, status
from store.runs import RunFolder

POLL_S = 0.5
"""Half of the second within which what was asked is seen to take effect."""


def waiting(folder: RunFolder) -> list[CommandRecord]:
    """What was asked of a run and has not been answered for good, oldest first."""
    with open_reader(folder.log) as reader:
        found = command_log(reader, CommandTail(folder.control).read())
    return [request for request in found if request.answer in OPEN]


class Listener:
    """Carries out what is asked of one live run."""

    def __init__(
        self,
        *,
        folder: RunFolder,
        log: Log,
        driver: Driver,
        clock: Clock,
        stages: tuple[str, ...],
        models: tuple[str, ...],
        tell: Callable[[str], None],
        found: str | None = None,
        own: Collection[str] = (),
        answered: Collection[str] = (),
    ) -> None:
        """Listen for a run that is about to go on.

        Args:
            folder: the run's.
            log: where the answers go.
            driver: what requests act on.
            clock: says when to look.
            stages: those of the job.
            models: all that are asked.
            tell: takes a sentence for whoever takes the run up.
            found: the state in which this process found the run; None: it is new.
            own: names of the limits that this process was started with.
            answered: ids of requests that were carried out before there was this log.
        """
        self._folder = folder
        self._log = log
        self._driver = driver
        self._clock = clock
        self._stages = stages
        self._models = models
        self.tell = tell  #: takes a sentence for people
        self._found = found
        self._own = own
        self._tail = CommandTail(folder.control)
        self._answered = set(answered)
        self._begun: frozenset[str] = frozenset()
        self.drained_by: str | None = None  #: who asked for the drain, if one did
        self.cancels: list[Command] = []  #: accepted; applied as the process ends

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Carry out what is waiting in the file, then listen while the body runs."""
        await self._take_up()
        await self._poll(WAITING, self._found)
        async with beside(self._driver.guard(self._listen)):
            yield

    async def _take_up(self) -> None:
        """Go by what earlier processes were asked, and were not to forget."""
        recorded = await self._log.events(limit=ALL, kinds=[*KINDS, "command_rejected"])
        accepted = set()
        for event in (r.event for r in recorded):
            if isinstance(event, CommandAccepted):
                accepted.add(event.command)
            if isinstance(event, CommandRejected | CommandApplied):
                self._answered.add(event.command)
        self._begun = frozenset(accepted - self._answered)
        for change in (c.without(self._own) for c in standing(recorded)):
            for model in filter(change.concerns, self._models):
                limits = change.applied_to(self._driver.limits(model))
                self._driver.set_limits(model, limits)

    async def _listen(self) -> None:
        while True:
            await self._clock.sleep_until(self._clock.monotonic() + POLL_S)
            await self._poll(EFFECTS, None)

    async def _poll(self, effects: Effects, found: str | None) -> None:
        try:
            read = self._tail.read()
        except OSError:
            return  # as with too many connections open: it is read a moment later
        new = [command for command in read if command.id not in self._answered]
        withdrawn = withdrawals(new)
        for command in new:
            if command.id in self._answered:
                continue
            self._answered.add(command.id)
            if command.id in withdrawn and command.id not in self._begun:
                await self._drop(command, withdrawn[command.id], found)
            else:
                await self._obey(command, effects, found)

    async def _drop(
        self, command: Command, withdrawal: Command, found: str | None
    ) -> None:
        """Answer a request that was taken back, and the one that took it back.

        All of it is one transaction: a crash leaves both unanswered, or neither.
        """
        self._answered.add(withdrawal.id)
        said = f"withdrawn by {withdrawal.author}"
        rejected = _rejected(command, said)
        applied = CommandApplied(
            command=withdrawal.id,
            effect=f"{command.kind} (by {command.author}) dropped",
        )
        await self._log.append(rejected, _accepted(withdrawal), applied)
        self._answer(command, found, said)

    async def _obey(
        self, command: Command, effects: Effects, found: str | None
    ) -> None:
        target = Target(
            folder=self._folder,
            log=self._log,
            driver=self._driver,
            stages=self._stages,
            models=self._models,
            begun=self._begun,
        )
        try:
            await self._check_state(command, found)
            act = effects.get(command.kind, unknown)(command, target)
        except (Refused, StoreError) as error:
            # a log that cannot be looked at may still be written; if not, this raises
            await self._log.append(_rejected(command, str(error)))
            self._answer(command, found, f"refused: {error}")
            return
        if command.kind == "cancel":
            # before it is durable: the process may end at that very moment
            self.cancels.append(command)
        await self._log.append(_accepted(command))
        done = await act()
        if command.kind == "drain":
            self.drained_by = command.author
        if done is not None:
            applied = CommandApplied(command=command.id, effect=done.said)
            await self._log.append(*done.events, applied)
            self._answer(command, found, done.said)

    def _answer(self, command: Command, found: str | None, said: str) -> None:
        """Tell what became of a request that waited: who asked may be gone by now."""
        if found is not None:
            self.tell(f"Waiting was {command.kind} (by {command.author}): {said}.")

    async def _check_state(self, command: Command, found: str | None) -> None:
        """Refuse what was decided on a run that has changed meanwhile."""
        if command.expected_state is None:
            return
        state = found or await asyncio.to_thread(self._state)
        if state != command.expected_state:
            raise Refused(f"the run is now {state}, not {command.expected_state}")

    def _state(self) -> str:
        with open_reader(self._folder.log) as reader:
            signs = status(reader).signs
        return liveness(signs, self._clock.now_us(), is_alive=True)


def _accepted(command: Command) -> CommandAccepted:
    return CommandAccepted(
        command=command.id,
        kind=command.kind,
        author=command.author,
        payload=json.dumps(command.payload, sort_keys=True),
    )


def _rejected(command: Command, reason: str) -> CommandRejected:
    return CommandRejected(
        command=command.id, kind=command.kind, author=command.author, reason=reason
    )
