"""Connects a shard to its broker and holds its leases.

Sans-IO: `receive` takes the broker's messages, `says` returns messages to send, both
with the time of this process. The lease on the shard itself is its fence: calls may be
sent only if the broker has answered a message that was sent less than a TTL ago
(`holds`). The shard's TTL runs from when the message was sent, the broker's from when
it was received, which is later, so the shard expires first.

There is one connection at a time, reopened after a break as long as the fence holds.
After that the shard drains: calls in flight end, and nothing more is sent.
"""

from __future__ import annotations

import asyncio
import math
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol, assert_never

from runner.engine.background import run_alongside
from runner.errors import RunnerError, UsageError
from runner.limits.rate_limits import Pausable
from runner.money.budget import BudgetStatistics
from runner.run.context import RunContext
from runner.shards.lease_protocol import (
    LONGEST_LINE,
    TTL_S,
    VARIABLE,
    BrokerMessage,
    BudgetRaised,
    ControlLine,
    CreditLease,
    EndpointPaused,
    Goodbye,
    Hello,
    LeaseMessage,
    LeaseRenewed,
    MoneyExhausted,
    MoneyLease,
    MoneyShort,
    RenewLease,
    ShardProgress,
    ShardRefused,
    Welcome,
    decode_from_broker,
    encode_messages_line,
)
from runner.shards.lease_shares import CreditShare, LeasedGate, MoneyShare
from runner.shards.parts import ShardPart
from store.clock import Clock
from store.control import forward_command
from store.database import open_reader
from store.read.usage import spending
from store.runs import RunFolder
from store.union.source import LocalLogSource

DUE: Final = 1 / 3
"""Of a TTL, after which the lease is renewed: two questions may be lost."""
EARLY: Final = 1 / 5
"""Of a TTL before it is due, from when on it is renewed with whatever else is said: so
a busy shard never has to say that alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessIdentity:
    """Who takes part: one process of one shard."""

    run_id: str
    process: str  #: a name that no other process ever has
    shard: str  #: i/n
    slices: str  #: as `store.slices.Slices` writes them
    log: str  #: hex
    recorded_pico: int = 0  #: what the log says earlier processes spent, or may have


class LeaseHolder:
    """One process's part; the `runner.limits.rate_limits.Lender` of its endpoints."""

    def __init__(
        self,
        identity: ProcessIdentity,
        *,
        token: str,
        wake: Callable[[], None],
        on_line: Callable[[bytes], None],
    ) -> None:
        """Nothing is held yet.

        Args:
            identity: who this process is.
            token: what the broker knows it by.
            wake: called where something is to be said.
            on_line: takes a line for the shard's control file.
        """
        self.identity = identity
        self.money_share = MoneyShare(wake)
        self.refused: ShardRefused | None = None
        self._token = token
        self._wake = wake
        self._on_line = on_line
        self._endpoints: dict[str, Pausable] = {}
        self._shares: dict[tuple[str, str], CreditShare] = {}
        self._waits: list[EndpointPaused] = []
        self._ttl_s = math.nan
        self._offset_s = math.nan  #: this clock less the broker's, at the least
        self._sent_at: float | None = None  #: when what is not answered was sent
        self._renewed_at = -math.inf  #: when what was answered last was sent

    # -- what the engine asks ----------------------------------------------------

    def holds(self, now: float) -> bool:
        """Whether calls may be sent."""
        return now < self.holds_until

    @property
    def holds_until(self) -> float:
        """Until when calls may be sent, as things stand."""
        return (
            self._renewed_at + self._ttl_s
            if self._renewed_at > -math.inf
            else -math.inf
        )

    def gates(
        self, endpoint: Pausable, model: str, *, rpm: float | None, tpm: float | None
    ) -> tuple[LeasedGate, LeasedGate]:
        """A model's gates for requests and for tokens."""
        share = CreditShare(endpoint.name, model, self._wake, rpm=rpm, tpm=tpm)
        self._shares[endpoint.name, model] = share
        self._endpoints[endpoint.name] = endpoint
        return share.gates

    def paused(self, endpoint: str, now: float, until: float) -> None:
        """An endpoint asked to be left alone, which concerns the others too."""
        self._waits.append(EndpointPaused(endpoint=endpoint, for_s=until - now))
        self._wake()

    # -- with the broker -----------------------------------------------------------

    def connected(self, now: float) -> Hello:
        """What is said first on a new connection; what was asked before is lost."""
        self._sent_at = now
        self.refused = None
        self.money_share.reconnected()
        for share in self._shares.values():
            share.reconnected()
        identity = self.identity
        return Hello(
            token=self._token,
            run_id=identity.run_id,
            process=identity.process,
            shard=identity.shard,
            slices=identity.slices,
            log=identity.log,
            recorded_pico=identity.recorded_pico,
            granted_pico=self.money_share.granted_pico,
        )

    def receive(self, message: BrokerMessage, now: float) -> None:
        """The broker says something."""
        match message:
            case Welcome():
                self._ttl_s = message.ttl_s
                self._answered(message.now)
            case LeaseRenewed():
                self._answered(message.now)
            case ShardRefused():
                self.refused = message
            case CreditLease():
                share = self._shares.get((message.endpoint, message.model))
                if share is not None:
                    share.lend(message, message.until + self._offset_s)
            case EndpointPaused():
                endpoint = self._endpoints.get(message.endpoint)
                if endpoint is not None:
                    endpoint.pause(now + message.for_s)
            case MoneyLease() | MoneyExhausted() | MoneyShort() | BudgetRaised():
                self.money_share.receive(message)
            case ControlLine():
                self._on_line(message.line)
            case _:
                assert_never(message)

    def _answered(self, broker_now: float) -> None:
        """What was sent last is answered; it was heard no earlier than it was sent."""
        if self._sent_at is not None:
            self._renewed_at = self._sent_at
            self._offset_s = self._sent_at - broker_now
            self._sent_at = None

    def says(
        self, now: float, figures: Callable[[], ShardProgress]
    ) -> list[LeaseMessage]:
        """What is to be said now; nothing, mostly."""
        is_due = self._is_answered and now >= self._renews_at
        messages: list[LeaseMessage] = [*self._waits]
        self._waits = []
        for share in self._shares.values():
            messages += share.says(now, is_due=is_due)
        messages += self.money_share.says(now)
        early_at = self._renews_at - EARLY * self._ttl_s
        if is_due or (messages and self._is_answered and now >= early_at):
            self._sent_at = now
            messages.append(RenewLease(figures=figures()))
        return messages

    def bye(self) -> Goodbye:
        """What is said last."""
        return Goodbye(spent_pico=self.money_share.spent_pico)

    @property
    def _is_answered(self) -> bool:
        return self._sent_at is None

    @property
    def _renews_at(self) -> float:
        return self._renewed_at + DUE * self._ttl_s

    def wake_at(self) -> float:
        """When to ask `says` again, at the latest."""
        renews_at = self._renews_at if self._is_answered else self.holds_until
        back_at = self.money_share.gives_back_at
        return min([renews_at, back_at, *(x.expires_at for x in self._shares.values())])


AGAIN_S = 0.5
"""Between two tries to connect."""
ANSWER_S = 10.0
"""For a connection, and for the first answer on it."""
WELCOME_TIMEOUT_S = 2 * TTL_S
"""For the first welcome: slices of a process that fell silent are not free at once."""


class ShardStatistics(Protocol):
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


class ShardDriver(Protocol):
    """The driver of the shard's work."""

    def statistics(self) -> ShardStatistics:
        """Its figures."""
        ...

    def recheck(self) -> None:
        """Something was lent that calls may have waited for."""
        ...

    def drain(self) -> None:
        """Start nothing more; calls in flight get the grace time."""
        ...


class LeaseClient:
    """Keeps what a shard holds up to date."""

    def __init__(
        self,
        holder: LeaseHolder,
        address: tuple[str, int],
        *,
        clock: Clock,
        wake: asyncio.Event,
        notify: Callable[[str], None],
    ) -> None:
        """Not connected yet; use `leasing`.

        Args:
            holder: what the shard holds.
            address: the broker's.
            clock: the time of leases.
            wake: set where the holder has something to say.
            notify: shows a sentence to people.
        """
        self.holder = holder
        self.is_fenced = False  #: it ended for want of an answer
        self._address = address
        self._clock = clock
        self._wake = wake
        self._notify = notify
        self._welcomed = asyncio.Event()
        self._writer: asyncio.StreamWriter | None = None

    @asynccontextmanager
    async def leasing(self, driver: ShardDriver) -> AsyncIterator[None]:
        """Hold the shard's part while the body runs; *driver* drains at the fence.

        Raises:
            RunnerError: the broker does not answer, or does not take the shard.
        """
        before = driver.statistics().budget

        def figures() -> ShardProgress:
            now = driver.statistics()
            return ShardProgress(
                final=now.tasks_ended,
                in_flight=now.in_flight,
                spent_pico=now.budget.spent_pico
                + now.budget.possible_pico
                - before.spent_pico
                - before.possible_pico,
                phase="working" if self._holds else "draining",
            )

        async with run_alongside(self._stay(figures, driver)):
            await self._welcomed.wait()
            yield
            await self._leave()

    @property
    def _holds(self) -> bool:
        return self.holder.holds(self._clock.monotonic())

    async def _stay(
        self, figures: Callable[[], ShardProgress], driver: ShardDriver
    ) -> None:
        """Be connected for as long as that is worth anything."""
        patient_until = self._clock.monotonic() + WELCOME_TIMEOUT_S
        reason = ""
        while self._holds or (
            not self._welcomed.is_set() and self._clock.monotonic() < patient_until
        ):
            try:
                await self._converse(figures, driver.recheck)
            except (OSError, ValueError, EOFError, TimeoutError) as error:
                reason = str(error) or type(error).__name__
            refused = self.holder.refused
            if refused is not None:
                reason = refused.why
                if not refused.for_s:
                    break
            await self._clock.sleep_until(self._clock.monotonic() + AGAIN_S)
        name = f"{self._address[0]}:{self._address[1]}"
        if not self._welcomed.is_set():
            raise RunnerError(
                f"The broker at {name} does not take shard "
                f"{self.holder.identity.shard} in: {reason}; see whether the process "
                "that started it is alive."
            )
        self._notify(
            f"The broker at {name} is lost ({reason}): no further call "
            "is sent, because another process may have taken this part "
            "of the run."
        )
        self.is_fenced = True
        driver.drain()

    async def _converse(
        self, figures: Callable[[], ShardProgress], on_message: Callable[[], None]
    ) -> None:
        """Talk on one connection until it breaks or nothing holds any more."""
        async with asyncio.timeout(ANSWER_S):
            reader, writer = await asyncio.open_connection(
                *self._address, limit=LONGEST_LINE
            )
        try:
            hello = self.holder.connected(self._clock.monotonic())
            writer.write(encode_messages_line([hello]))
            async with asyncio.timeout(ANSWER_S):
                await self._listen_once(reader, on_message)
            if self.holder.refused is not None:
                return
            self._writer = writer
            self._welcomed.set()
            async with run_alongside(self._listen(reader, on_message)):
                await self._speak(writer, figures)
        finally:
            self._writer = None
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _listen(
        self, reader: asyncio.StreamReader, on_message: Callable[[], None]
    ) -> None:
        while True:
            await self._listen_once(reader, on_message)

    async def _listen_once(
        self, reader: asyncio.StreamReader, on_message: Callable[[], None]
    ) -> None:
        line = await reader.readline()
        if not line:
            raise EOFError("it has hung up")
        for message in decode_from_broker(line):
            self.holder.receive(message, self._clock.monotonic())
        on_message()
        self._wake.set()

    async def _speak(
        self, writer: asyncio.StreamWriter, figures: Callable[[], ShardProgress]
    ) -> None:
        while self._holds:
            self._wake.clear()
            messages = self.holder.says(self._clock.monotonic(), figures)
            if messages:
                writer.write(encode_messages_line(messages))
                await writer.drain()
            delay = self.holder.wake_at() - self._clock.monotonic()
            with suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    await self._wake.wait()

    async def _leave(self) -> None:
        """Say how it ended, if anybody listens."""
        if self._writer is not None:
            self._writer.write(encode_messages_line([self.holder.bye()]))
            with suppress(OSError):
                await self._writer.drain()


def lease_client_of(
    folder: RunFolder, part: ShardPart, context: RunContext
) -> LeaseClient | None:
    """What a process holds for its shard, not yet connected; None: it has no broker.

    Args:
        folder: the shard's; its log is open for writing.
        part: which part of the run it does.
        context: what surrounds the process.

    Raises:
        UsageError: there is no such address, or no token.
    """
    if context.broker is None:
        return None
    shard, address = part.shard, context.broker
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise UsageError(f"--broker {address}: write it as HOST:PORT.")
    token = context.environment.get(VARIABLE)
    if not token:
        raise UsageError(
            f"--broker needs {VARIABLE} in the environment: siftlog run --engine sets "
            "it for the shards that it starts."
        )
    with open_reader(folder.log) as reader:
        log = LocalLogSource(reader).identity.log
        money = spending(reader)
    wake = asyncio.Event()
    holder = LeaseHolder(
        ProcessIdentity(
            run_id=folder.run_id,
            process=secrets.token_hex(8),
            shard=str(shard),
            slices=shard.slices,
            log=log.hex(),
            recorded_pico=money.spent_pico + money.possible_pico,
        ),
        token=token,
        wake=wake.set,
        on_line=partial(forward_command, folder),
    )
    return LeaseClient(
        holder,
        (host, int(port)),
        clock=context.clock,
        wake=wake,
        notify=context.notify,
    )
