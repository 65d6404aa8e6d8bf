"""Connects a shard to its broker and holds its leases.

Sans-IO: `receive` takes the broker's messages, `says` returns messages to send; both
take the time of this process. The lease on the shard itself is its fence: calls may be
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
"""Fraction of a TTL after which the lease is renewed: two requests may be lost."""
EARLY: Final = 1 / 5
"""Fraction of a TTL before that from which it is renewed together with other messages,
so a busy shard never renews separately."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessIdentity:
    """Identity of one process of one shard."""

    run_id: str
    process: str  #: unique name of the process
    shard: str  #: i/n
    slices: str  #: as `store.slices.Slices` formats them
    log: str  #: hex
    recorded_pico: int = 0  #: possible spending of earlier processes


class LeaseHolder:
    """Leases of one process; implements `runner.limits.rate_limits.Lender`."""

    def __init__(
        self,
        identity: ProcessIdentity,
        *,
        token: str,
        wake: Callable[[], None],
        on_line: Callable[[bytes], None],
    ) -> None:
        """Start without leases.

        Args:
            identity: the identity of this process.
            token: shared secret of the broker.
            wake: called when there is a message to send.
            on_line: receives a line for the shard's control file.
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
        self._offset_s = math.nan  #: lower bound of this clock minus the broker's
        self._sent_at: float | None = None  #: time of the unanswered renewal
        self._renewed_at = -math.inf  #: time of sending of the last answered renewal

    # -- calls of the engine ------------------------------------------------------

    def holds(self, now: float) -> bool:
        """Return whether calls may be sent."""
        return now < self.holds_until

    @property
    def holds_until(self) -> float:
        """Time until which calls may be sent, without a further renewal."""
        return (
            self._renewed_at + self._ttl_s
            if self._renewed_at > -math.inf
            else -math.inf
        )

    def gates(
        self, endpoint: Pausable, model: str, *, rpm: float | None, tpm: float | None
    ) -> tuple[LeasedGate, LeasedGate]:
        """Return a model's gates for requests and for tokens."""
        share = CreditShare(endpoint.name, model, self._wake, rpm=rpm, tpm=tpm)
        self._shares[endpoint.name, model] = share
        self._endpoints[endpoint.name] = endpoint
        return share.gates

    def paused(self, endpoint: str, now: float, until: float) -> None:
        """Report a pause that an endpoint asked for, which applies to all shards."""
        self._waits.append(EndpointPaused(endpoint=endpoint, for_s=until - now))
        self._wake()

    # -- with the broker -----------------------------------------------------------

    def connected(self, now: float) -> Hello:
        """Return the first message on a new connection; earlier requests are lost."""
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
        """Handle a message of the broker."""
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
        """Record the answer to the last renewal, which arrived after it was sent."""
        if self._sent_at is not None:
            self._renewed_at = self._sent_at
            self._offset_s = self._sent_at - broker_now
            self._sent_at = None

    def says(
        self, now: float, figures: Callable[[], ShardProgress]
    ) -> list[LeaseMessage]:
        """Return the messages to send now; usually none."""
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
        """Return the last message."""
        return Goodbye(spent_pico=self.money_share.spent_pico)

    @property
    def _is_answered(self) -> bool:
        return self._sent_at is None

    @property
    def _renews_at(self) -> float:
        return self._renewed_at + DUE * self._ttl_s

    def wake_at(self) -> float:
        """Latest time of the next call of `says`."""
        renews_at = self._renews_at if self._is_answered else self.holds_until
        back_at = self.money_share.gives_back_at
        return min([renews_at, back_at, *(x.expires_at for x in self._shares.values())])


AGAIN_S = 0.5
"""Delay between two attempts to connect."""
ANSWER_S = 10.0
"""Timeout of a connection, and of its first answer."""
WELCOME_TIMEOUT_S = 2 * TTL_S
"""Timeout of the first welcome: slices of a silent process are not free at once."""


class ShardStatistics(Protocol):
    """Progress of a shard, as reported to the broker."""

    @property
    def tasks_ended(self) -> int:
        """Tasks ended by this process."""
        ...

    @property
    def in_flight(self) -> int:
        """Calls in flight."""
        ...

    @property
    def budget(self) -> BudgetStatistics:
        """Spending, including earlier processes."""
        ...


class ShardDriver(Protocol):
    """The driver of a shard."""

    def statistics(self) -> ShardStatistics:
        """Return its figures."""
        ...

    def recheck(self) -> None:
        """Wake the driver: a lease may let waiting calls start."""
        ...

    def drain(self) -> None:
        """Start nothing more; calls in flight get the grace time."""
        ...


class LeaseClient:
    """Keeps a shard's leases current."""

    def __init__(
        self,
        holder: LeaseHolder,
        address: tuple[str, int],
        *,
        clock: Clock,
        wake: asyncio.Event,
        notify: Callable[[str], None],
    ) -> None:
        """Start without a connection; use `leasing`.

        Args:
            holder: the leases of the shard.
            address: address of the broker.
            clock: the time of leases.
            wake: set when the holder has a message to send.
            notify: shows a message to the user.
        """
        self.holder = holder
        self.is_fenced = False  #: it ended without an answer of the broker
        self._address = address
        self._clock = clock
        self._wake = wake
        self._notify = notify
        self._welcomed = asyncio.Event()
        self._writer: asyncio.StreamWriter | None = None

    @asynccontextmanager
    async def leasing(self, driver: ShardDriver) -> AsyncIterator[None]:
        """Hold the leases while the body runs; *driver* drains when the fence expires.

        Raises:
            RunnerError: the broker does not answer, or refuses the shard.
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
        """Stay connected while the fence holds or a first welcome is expected."""
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
        """Exchange messages on one connection until it breaks or the fence expires."""
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
        """Report the end, if connected."""
        if self._writer is not None:
            self._writer.write(encode_messages_line([self.holder.bye()]))
            with suppress(OSError):
                await self._writer.drain()


def lease_client_of(
    folder: RunFolder, part: ShardPart, context: RunContext
) -> LeaseClient | None:
    """Return the lease client of a shard, not connected; None: it has no broker.

    Args:
        folder: the shard's folder; its log is open for writing.
        part: the part of the run.
        context: the context of the process.

    Raises:
        UsageError: the address or the token is missing or invalid.
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
