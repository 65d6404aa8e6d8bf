"""Lends one run's limits and money to its shards, and serves them over a socket.

`Broker` is sans-IO: `receive` takes a shard's messages with the time of receipt, `step`
returns the messages to send and the time of the next step. `BrokerServer` has a task
for each connection, and one for the clock.

A client without the token learns nothing and is disconnected; so is one that sends
invalid messages or does not read its own. The others are not affected.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import assert_never

from runner.engine.background import run_alongside
from runner.limits.limiter import Limits
from runner.shards.lease_pools import (
    CreditPool,
    MemberProcess,
    Membership,
    MoneyPool,
    ProcessRecord,
)
from runner.shards.lease_protocol import (
    LIFE_S,
    LONGEST_LINE,
    TTL_S,
    BrokerMessage,
    BudgetRaised,
    ControlLine,
    CreditLease,
    EndpointPaused,
    Goodbye,
    HeaderLimitSeen,
    Hello,
    LeaseRenewed,
    MoneyExhausted,
    MoneyLease,
    MoneyShort,
    RenewLease,
    RequestCredit,
    RequestMoney,
    ReturnCredit,
    ReturnMoney,
    ShardMessage,
    ShardRefused,
    Welcome,
    decode_from_shard,
    encode_messages_line,
)
from store.clock import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerStep:
    """Messages to send now, and the time of the next step."""

    say: Mapping[str, list[BrokerMessage]]  #: messages by process
    wake_at: float | None  #: time of the next step; None: after the next message


class Broker:
    """Everything that the shards of one run share."""

    def __init__(
        self,
        *,
        run_id: str,
        limits: Mapping[str, Limits],
        budget_pico: int | None = None,
        spent_pico: int = 0,
        ttl_s: float = TTL_S,
    ) -> None:
        """Start without members and with empty pools.

        Args:
            run_id: the run of the shards.
            limits: the user's limits for all shards together, by model.
            budget_pico: the budget, earlier processes included; None: there is none.
            spent_pico: actual and possible spending of earlier processes.
            ttl_s: how long a shard may be silent.
        """
        self._limits = dict(limits)
        self._money_pool = (
            None if budget_pico is None else MoneyPool(budget_pico, spent_pico)
        )
        self._was_short = False
        self._ttl_s = ttl_s
        self._members = Membership(run_id, ttl_s)
        self._pools: dict[tuple[str, str], CreditPool] = {}
        self._paused: dict[str, float] = {}  #: end of the pause, by endpoint
        self._lines: list[bytes] = []
        self._outbox: dict[str, list[BrokerMessage]] = {}

    # -- messages of shards ------------------------------------------------------

    def join(self, hello: Hello, now: float) -> ShardRefused | None:
        """Admit a shard; return the reason if it is refused."""
        refused = self._members.join(hello, now)
        if refused is not None:
            return refused
        for process in self._members.before(hello):
            self._forget(process)
        if self._money_pool is not None:
            self._money_pool.join(hello)
        self._enqueue(
            hello.process,
            Welcome(now=now, ttl_s=self._ttl_s),
            *(ControlLine(line=line) for line in self._lines),
        )
        if self._was_short:
            self._enqueue(hello.process, MoneyShort(is_short=True))
        return None

    def receive(self, process: str, message: ShardMessage, now: float) -> None:
        """Handle a message of an admitted shard."""
        member = self._members.get(process)
        if member is None:
            return  # it has ended; the message is late
        self._members.renew(member, now)
        match message:
            case Hello():
                pass  # already admitted
            case RenewLease():
                self._renew(process, member, message, now)
            case RequestCredit() | ReturnCredit() | HeaderLimitSeen():
                self._receive_credit(process, member, message, now)
            case EndpointPaused():
                self._relay_pause(process, message, now)
            case RequestMoney() | ReturnMoney():
                self._receive_money(process, member, message)
            case Goodbye():
                self._forget(process)
                if self._money_pool is not None:
                    self._money_pool.close(process, message.spent_pico)
            case _:
                assert_never(message)

    def _renew(
        self, process: str, member: MemberProcess, renew: RenewLease, now: float
    ) -> None:
        member.figures = renew.figures
        if self._money_pool is not None:
            self._money_pool.record_spent(process, renew.figures.spent_pico)
        if member.is_alive and member.is_renewed:
            self._enqueue(process, LeaseRenewed(now=now))

    def _receive_credit(
        self,
        process: str,
        member: MemberProcess,
        message: RequestCredit | ReturnCredit | HeaderLimitSeen,
        now: float,
    ) -> None:
        key = message.endpoint, message.model
        if key not in self._pools:
            self._pools[key] = CreditPool(self._limits.get(message.model), now)
        pool = self._pools[key]
        match message:
            case ReturnCredit():
                pool.take_back(message.requests, message.tokens)
            case HeaderLimitSeen():
                pool.apply_header_limit(message, now)
            case RequestCredit():
                if member.is_alive:
                    pool.ask(process, message)

    def _receive_money(
        self, process: str, member: MemberProcess, message: RequestMoney | ReturnMoney
    ) -> None:
        if self._money_pool is None:
            return
        if isinstance(message, ReturnMoney):
            self._money_pool.take_back(process, message.back_pico, message.spent_pico)
        elif member.is_alive:
            lent_pico = self._money_pool.ask(process, message)
            if lent_pico is not None:
                self._enqueue(process, MoneyLease(pico=lent_pico))

    def _relay_pause(self, process: str, pause: EndpointPaused, now: float) -> None:
        """Pause an endpoint for all shards when one was asked to wait."""
        until = now + pause.for_s
        if until <= self._paused.get(pause.endpoint, now):
            return
        self._paused[pause.endpoint] = until
        for other in self._members.alive(but=process):
            self._enqueue(other, pause)

    def _enqueue(self, process: str, *messages: BrokerMessage) -> None:
        self._outbox.setdefault(process, []).extend(messages)

    def _forget(self, process: str) -> None:
        """Remove a process that has ended."""
        self._members.forget(process)
        for pool in self._pools.values():
            pool.forget(process)

    # -- calls of the driver ------------------------------------------------------

    def revoke(self, shard: str) -> None:
        """Make the processes of a shard, i/n, stop by themselves within a TTL."""
        self._members.revoke(shard)

    def relay(self, line: bytes) -> None:
        """Send a line to every shard's control file, including later shards."""
        self._lines.append(line)
        for process in self._members.alive():
            self._enqueue(process, ControlLine(line=line))

    def set_limits(self, model: str, limits: Limits, now: float) -> None:
        """Apply new limits of the user."""
        self._limits[model] = limits
        for (_, of_model), pool in self._pools.items():
            if of_model == model:
                pool.set(limits, now)

    def add_budget(self, pico: int) -> None:
        """Raise the budget, if there is one."""
        if self._money_pool is None:
            return
        self._money_pool.add(pico)
        for process in self._members.alive():
            self._enqueue(process, BudgetRaised())

    # -- actions ------------------------------------------------------------------

    def step(self, now: float) -> BrokerStep:
        """Return the messages to send at *now*."""
        self._notice_silence(now)
        for (endpoint, model), pool in self._pools.items():
            for part in pool.lend(now, self._paused.get(endpoint, now)):
                self._enqueue(
                    part.process,
                    CreditLease(
                        endpoint=endpoint,
                        model=model,
                        requests=part.requests,
                        tokens=part.tokens,
                        until=now + LIFE_S,
                    ),
                )
        if self._money_pool is not None:
            self._lend_money(self._money_pool)
        say, self._outbox = self._outbox, {}
        wakes = [pool.due for pool in self._pools.values() if pool.due is not None]
        if (silent_at := self._members.next_silent_at) is not None:
            wakes.append(silent_at)
        return BrokerStep(say=say, wake_at=min(wakes, default=None))

    def _notice_silence(self, now: float) -> None:
        for process in self._members.falls_silent(now):
            for pool in self._pools.values():
                pool.forget(process)
            if self._money_pool is not None:
                self._money_pool.presume_spent(process)

    def _lend_money(self, money_pool: MoneyPool) -> None:
        for loan in money_pool.lend():
            answer = (
                MoneyLease(pico=loan.pico)
                if loan.pico is not None
                else MoneyExhausted(
                    cap_pico=money_pool.cap_pico, taken_pico=money_pool.taken_pico
                )
            )
            self._enqueue(loan.process, answer)
        if money_pool.is_short != self._was_short:
            self._was_short = money_pool.is_short
            for process in self._members.alive():
                self._enqueue(process, MoneyShort(is_short=self._was_short))

    # -- state --------------------------------------------------------------------

    def processes(self, now: float) -> tuple[ProcessRecord, ...]:
        """Return every process that is alive or silent, in the order of arrival."""
        return self._members.processes(now)


HELLO_S = 10.0
"""Timeout of the first message; a whole job array may connect at once."""
MOST_UNREAD = 4 * 1024 * 1024
"""Maximum bytes queued for a shard: a suspended one reads nothing."""


class BrokerServer:
    """Serves leases to connected shards; the driver's side of `lease_protocol`.

    Created by `serve_broker`. All calls of the driver go through here, so that messages
    to the shards are sent at once.
    """

    def __init__(self, broker: Broker, *, token: str, clock: Clock) -> None:
        """Start without connections; use `serve_broker`."""
        self._broker = broker
        self._token = token.encode()
        self._clock = clock
        self._connected: dict[str, asyncio.StreamWriter] = {}
        self._attending: dict[asyncio.StreamWriter, asyncio.Task[None] | None] = {}
        self._wake = asyncio.Event()
        self.address = ""  #: HOST:PORT, as `run --broker` takes it

    # -- for the driver ----------------------------------------------------------

    def processes(self) -> tuple[ProcessRecord, ...]:
        """Return every process that is alive or silent, in order of arrival."""
        return self._broker.processes(self._clock.monotonic())

    def revoke(self, shard: str) -> None:
        """Make the processes of a shard, i/n, stop by themselves within a TTL.

        For an unreachable shard, which may still run and renew its lease.
        """
        self._broker.revoke(shard)

    def relay(self, line: bytes) -> None:
        """Send a line to every shard's control file, including later shards."""
        self._broker.relay(line)
        self._step()

    def set_limits(self, model: str, limits: Limits) -> None:
        """Apply new limits of the user, for all shards together."""
        self._broker.set_limits(model, limits, self._clock.monotonic())
        self._step()

    def add_budget(self, pico: int) -> None:
        """Raise the budget of all shards together."""
        self._broker.add_budget(pico)
        self._step()

    # -- the sockets -------------------------------------------------------------

    async def lend_until_cancelled(self) -> None:
        """Grant leases as credit accumulates, until cancelled."""
        while True:
            self._wake.clear()
            wake_at = self._step()
            delay = None if wake_at is None else wake_at - self._clock.monotonic()
            with suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    await self._wake.wait()

    async def attend(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Handle one connection until it ends."""
        process = None
        self._attending[writer] = asyncio.current_task()
        try:
            async with asyncio.timeout(HELLO_S):
                process = await self._greet(reader, writer)
            while process is not None and (line := await reader.readline()):
                for message in decode_from_shard(line):
                    self._broker.receive(process, message, self._clock.monotonic())
                self._wake.set()
        except (OSError, ValueError, TimeoutError):
            pass  # disconnected or invalid; its lease expires
        finally:
            if process is not None and self._connected.get(process) is writer:
                del self._connected[process]
            del self._attending[writer]
            writer.close()

    async def disconnect_all(self) -> None:
        """Close every connection."""
        tasks = [task for task in self._attending.values() if task is not None]
        for writer in self._attending:
            writer.transport.abort()
        if tasks:
            await asyncio.wait(tasks)

    async def _greet(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> str | None:
        """Admit a client with the right token; return its process name."""
        first = decode_from_shard(await reader.readline())
        if not first or not isinstance(first[0], Hello):
            return None
        hello = first[0]
        if not hmac.compare_digest(hello.token.encode(), self._token):
            return None
        refused = self._broker.join(hello, self._clock.monotonic())
        if refused is not None:
            writer.write(encode_messages_line([refused]))
            await writer.drain()
            return None
        self._connected[hello.process] = writer
        self._wake.set()
        return hello.process

    def _step(self) -> float | None:
        """Send pending messages; return the time of the next step."""
        step = self._broker.step(self._clock.monotonic())
        for process, messages in step.say.items():
            self._send(process, messages)
        return step.wake_at

    def _send(self, process: str, messages: list[BrokerMessage]) -> None:
        """Send to a process, if connected; it repeats its requests on reconnect."""
        writer = self._connected.get(process)
        if writer is None or writer.is_closing():
            return
        if writer.transport.get_write_buffer_size() > MOST_UNREAD:
            writer.transport.abort()
            return
        writer.write(encode_messages_line(messages))


@asynccontextmanager
async def serve_broker(
    broker: Broker, *, token: str, clock: Clock, host: str = "127.0.0.1", port: int = 0
) -> AsyncIterator[BrokerServer]:
    """Serve *broker* while the body runs.

    Args:
        broker: manages the leases.
        token: shared secret of the shards.
        clock: the time of leases.
        host: address of this machine for the shards.
        port: 0: any free port.

    Raises:
        OSError: cannot listen on the address.
    """
    server = BrokerServer(broker, token=token, clock=clock)
    socket = await asyncio.start_server(server.attend, host, port, limit=LONGEST_LINE)
    server.address = f"{host}:{socket.sockets[0].getsockname()[1]}"
    async with run_alongside(server.lend_until_cancelled()):
        try:
            yield server
        finally:
            socket.close()
            await server.disconnect_all()
            await socket.wait_closed()
