"""A shard's connection to its broker: says what is to be said, and comes back.

One connection at a time, made anew where it breaks, for as long as the fence holds.
After that the shard drains: what is in flight ends, and nothing more is sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Protocol

from runner.engine.beside import beside
from runner.errors import RunnerError
from runner.leasing.holder import Holder
from runner.leasing.messages import Figures
from runner.leasing.terms import TTL_S
from runner.leasing.wire import LONGEST_LINE, heard_from_broker, line_of
from runner.money.budget import BudgetStatistics
from store.clock import Clock

AGAIN_S = 0.5
"""Between two tries to connect."""
ANSWER_S = 10.0
"""For a connection, and for the first answer on it."""
PATIENCE_S = 2 * TTL_S
"""For the first welcome: slices of a process that fell silent are not free at once."""


class Course(Protocol):
    """How a shard's work gets on, as far as the broker is told."""

    @property
    def tasks_ended(self) -> int:
        """By this process."""
        ...

    @property
    def in_flight(self) -> int:
        """Calls."""
        ...

    @property
    def budget(self) -> BudgetStatistics:
        """What is spent, by earlier processes too."""
        ...


class Worker(Protocol):
    """The driver of the shard's work."""

    def statistics(self) -> Course:
        """Its figures."""
        ...

    def look_again(self) -> None:
        """Something was lent that calls may have waited for."""
        ...

    def drain(self) -> None:
        """Start nothing more; calls in flight get the grace time."""
        ...


class Lessee:
    """Keeps what a shard holds up to date."""

    def __init__(
        self,
        holder: Holder,
        address: tuple[str, int],
        *,
        clock: Clock,
        wake: asyncio.Event,
        tell: Callable[[str], None],
    ) -> None:
        """Not connected yet; use `leasing`.

        Args:
            holder: what the shard holds.
            address: the broker's.
            clock: the time of leases.
            wake: set where the holder has something to say.
            tell: shows a sentence to people.
        """
        self.holder = holder
        self.is_fenced = False  #: it ended for want of an answer
        self._address = address
        self._clock = clock
        self._wake = wake
        self._tell = tell
        self._welcomed = asyncio.Event()
        self._writer: asyncio.StreamWriter | None = None

    @asynccontextmanager
    async def leasing(self, driver: Worker) -> AsyncIterator[None]:
        """Hold the shard's part while the body runs; *driver* drains at the fence.

        Raises:
            RunnerError: the broker does not answer, or does not take the shard.
        """
        before = driver.statistics().budget

        def figures() -> Figures:
            now = driver.statistics()
            return Figures(
                final=now.tasks_ended,
                in_flight=now.in_flight,
                spent_pico=now.budget.spent_pico
                + now.budget.possible_pico
                - before.spent_pico
                - before.possible_pico,
                phase="working" if self._holds else "draining",
            )

        async with beside(self._stay(figures, driver)):
            await self._welcomed.wait()
            yield
            await self._leave()

    @property
    def _holds(self) -> bool:
        return self.holder.holds(self._clock.monotonic())

    async def _stay(self, figures: Callable[[], Figures], driver: Worker) -> None:
        """Be connected for as long as that is worth anything."""
        patient_until = self._clock.monotonic() + PATIENCE_S
        why = ""
        while self._holds or (
            not self._welcomed.is_set() and self._clock.monotonic() < patient_until
        ):
            try:
                await self._converse(figures, driver.look_again)
            except (OSError, ValueError, EOFError, TimeoutError) as error:
                why = str(error) or type(error).__name__
            refused = self.holder.refused
            if refused is not None:
                why = refused.why
                if not refused.for_s:
                    break
            await self._clock.sleep_until(self._clock.monotonic() + AGAIN_S)
        name = f"{self._address[0]}:{self._address[1]}"
        if not self._welcomed.is_set():
            raise RunnerError(
                f"The broker at {name} does not take shard "
                f"{self.holder.identity.shard} in: {why}; see whether the process "
                "that started it is alive."
            )
        self._tell(
            f"The broker at {name} is lost ({why}): nothing more is sent, for another "
            "process may have this part of the run by now."
        )
        self.is_fenced = True
        driver.drain()

    async def _converse(
        self, figures: Callable[[], Figures], heard: Callable[[], None]
    ) -> None:
        """Talk on one connection until it breaks or nothing holds any more."""
        async with asyncio.timeout(ANSWER_S):
            reader, writer = await asyncio.open_connection(
                *self._address, limit=LONGEST_LINE
            )
        try:
            hello = self.holder.connected(self._clock.monotonic())
            writer.write(line_of([hello]))
            async with asyncio.timeout(ANSWER_S):
                await self._listen_once(reader, heard)
            if self.holder.refused is not None:
                return
            self._writer = writer
            self._welcomed.set()
            async with beside(self._listen(reader, heard)):
                await self._speak(writer, figures)
        finally:
            self._writer = None
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _listen(
        self, reader: asyncio.StreamReader, heard: Callable[[], None]
    ) -> None:
        while True:
            await self._listen_once(reader, heard)

    async def _listen_once(
        self, reader: asyncio.StreamReader, heard: Callable[[], None]
    ) -> None:
        line = await reader.readline()
        if not line:
            raise EOFError("it has hung up")
        for message in heard_from_broker(line):
            self.holder.hear(message, self._clock.monotonic())
        heard()
        self._wake.set()

    async def _speak(
        self, writer: asyncio.StreamWriter, figures: Callable[[], Figures]
    ) -> None:
        while self._holds:
            self._wake.clear()
            said = self.holder.says(self._clock.monotonic(), figures)
            if said:
                writer.write(line_of(said))
                await writer.drain()
            delay = self.holder.wake_at() - self._clock.monotonic()
            with suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    await self._wake.wait()

    async def _leave(self) -> None:
        """Say how it ended, if anybody listens."""
        if self._writer is not None:
            self._writer.write(line_of([self.holder.bye()]))
            with suppress(OSError):
                await self._writer.drain()
