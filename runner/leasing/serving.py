"""The broker on a socket: one task a connection, one that looks at the clock.

Whoever does not know the token learns nothing and is let go; so is whoever says what
makes no sense, or does not read what is said to it. None of that disturbs the others.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from runner.engine.beside import beside
from runner.leasing.broker import Broker
from runner.leasing.messages import Down, Hello
from runner.leasing.roll import Seen
from runner.leasing.wire import LONGEST_LINE, heard_from_shard, line_of
from runner.limits.limiter import Limits
from store.clock import Clock

HELLO_S = 10.0
"""For what is said first; a whole job array may come at once."""
MOST_UNREAD = 4 * 1024 * 1024
"""Bytes that wait for a shard to read them: one that is stopped reads nothing."""


class Server:
    """Lends to shards that connect; the driver's side of `runner.leasing`.

    Made by `serving`. Everything the driver wants to know or to have done goes through
    here, so that it is said to the shards at once.
    """

    def __init__(self, broker: Broker, *, token: str, clock: Clock) -> None:
        """Nobody is connected; use `serving`."""
        self._broker = broker
        self._token = token.encode()
        self._clock = clock
        self._connected: dict[str, asyncio.StreamWriter] = {}
        self._attending: dict[asyncio.StreamWriter, asyncio.Task[None] | None] = {}
        self._wake = asyncio.Event()
        self.address = ""  #: HOST:PORT, as `run --broker` takes it

    # -- for the driver ----------------------------------------------------------

    def seen(self) -> tuple[Seen, ...]:
        """Every process that is at work or fell silent, in the order of coming."""
        return self._broker.seen(self._clock.monotonic())

    def revoke(self, shard: str) -> None:
        """Have the processes of a shard, i/n, stop by themselves within a TTL.

        For one that nobody can reach: it may be at work, and renew its lease.
        """
        self._broker.revoke(shard)

    def relay(self, line: bytes) -> None:
        """Have a line written to every shard's control file, later shards' too."""
        self._broker.relay(line)
        self._step()

    def set_limits(self, model: str, limits: Limits) -> None:
        """Go by other limits of a person's from now on, for all shards together."""
        self._broker.set_limits(model, limits, self._clock.monotonic())
        self._step()

    def add_budget(self, pico: int) -> None:
        """Raise the budget of all shards together."""
        self._broker.add_budget(pico)
        self._step()

    # -- the sockets -------------------------------------------------------------

    async def watch(self) -> None:
        """Lend what becomes free with time, until cancelled."""
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
        """Listen to one connection until it ends."""
        name = None
        self._attending[writer] = asyncio.current_task()
        try:
            async with asyncio.timeout(HELLO_S):
                name = await self._greet(reader, writer)
            while name is not None and (line := await reader.readline()):
                for message in heard_from_shard(line):
                    self._broker.hear(name, message, self._clock.monotonic())
                self._wake.set()
        except (OSError, ValueError, TimeoutError):
            pass  # it is gone, or makes no sense; its lease ends by itself
        finally:
            if name is not None and self._connected.get(name) is writer:
                del self._connected[name]
            del self._attending[writer]
            writer.close()

    async def hang_up(self) -> None:
        """End every connection."""
        tasks = [task for task in self._attending.values() if task is not None]
        for writer in self._attending:
            writer.transport.abort()
        if tasks:
            await asyncio.wait(tasks)

    async def _greet(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> str | None:
        """Take in whoever knows the token; its name."""
        first = heard_from_shard(await reader.readline())
        if not first or not isinstance(first[0], Hello):
            return None
        hello = first[0]
        if not hmac.compare_digest(hello.token.encode(), self._token):
            return None
        refused = self._broker.join(hello, self._clock.monotonic())
        if refused is not None:
            writer.write(line_of([refused]))
            await writer.drain()
            return None
        self._connected[hello.process] = writer
        self._wake.set()
        return hello.process

    def _step(self) -> float | None:
        """Say what is to be said; when to look again."""
        step = self._broker.step(self._clock.monotonic())
        for name, messages in step.say.items():
            self._say(name, messages)
        return step.wake_at

    def _say(self, name: str, messages: list[Down]) -> None:
        """To whoever is away: nothing; it asks again when it is back."""
        writer = self._connected.get(name)
        if writer is None or writer.is_closing():
            return
        if writer.transport.get_write_buffer_size() > MOST_UNREAD:
            writer.transport.abort()
            return
        writer.write(line_of(messages))


@asynccontextmanager
async def serving(
    broker: Broker, *, token: str, clock: Clock, host: str = "127.0.0.1", port: int = 0
) -> AsyncIterator[Server]:
    """Serve *broker* while the body runs.

    Args:
        broker: what is lent.
        token: what every shard has to know.
        clock: the time of leases.
        host: the address that shards reach this machine by.
        port: 0: any that is free.

    Raises:
        OSError: the address cannot be listened on.
    """
    server = Server(broker, token=token, clock=clock)
    socket = await asyncio.start_server(server.attend, host, port, limit=LONGEST_LINE)
    server.address = f"{host}:{socket.sockets[0].getsockname()[1]}"
    async with beside(server.watch()):
        try:
            yield server
        finally:
            socket.close()
            await server.hang_up()
            await socket.wait_closed()
