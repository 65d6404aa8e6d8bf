"""A gate before an endpoint: so many requests pass, the next ones are kept waiting.

A run behind it stays in its middle until a test has hit it there, however long a slow
or busy machine takes for that.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from asyncio import StreamReader, StreamWriter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from urllib.parse import urlsplit

from tests.processes import Process

READ_BYTES = 1 << 16


class Gate:
    """Carries what clients and an endpoint say to each other."""

    def __init__(self, endpoint: str, passes: float) -> None:
        self._endpoint = urlsplit(endpoint)
        self._passes = passes  #: requests that may still pass
        self._moved = asyncio.Condition()
        self._loop = asyncio.get_running_loop()
        self.url = ""
        self._waiting = 0

    @property
    def is_keeping(self) -> bool:
        """Whether as many passed as were to, and somebody waits."""
        return self._waiting > 0 and self._passes <= 0

    def wait(self, process: Process) -> None:
        """Until the gate keeps a request of *process*, which is then in its middle."""
        while not self.is_keeping:
            assert process.poll() is None, "it has ended, and was to be in its middle"
            time.sleep(0.01)

    def let(self, passes: float) -> None:
        """Let so many requests pass from now on, those that wait included."""
        asyncio.run_coroutine_threadsafe(self._let(passes), self._loop).result()

    def open(self) -> None:
        """Let all requests pass from now on."""
        self.let(math.inf)

    async def _let(self, passes: float) -> None:
        async with self._moved:
            self._passes = passes
            self._moved.notify_all()

    async def converse(self, reader: StreamReader, writer: StreamWriter) -> None:
        """Carry one connection, until either side ends it."""
        host, port = self._endpoint.hostname, self._endpoint.port
        with suppress(ConnectionError), closing(writer):
            answers, asks = await asyncio.open_connection(host, port)
            with closing(asks):
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(self._ask(reader, asks))
                    tasks.create_task(_carry(answers, writer))

    async def _ask(self, reader: StreamReader, asks: StreamWriter) -> None:
        with suppress(ConnectionError), closing(asks):
            while data := await reader.read(READ_BYTES):
                # a client asks one thing at a time of a connection
                if data.startswith(b"POST ") and not await self._is_let(reader):
                    break
                asks.write(data)
                await asks.drain()

    async def _is_let(self, reader: StreamReader) -> bool:
        """Wait to pass; False for who left meanwhile, of whom nothing is to pass."""
        self._waiting += 1
        try:
            async with self._moved:
                await self._moved.wait_for(lambda: self._passes > 0)
                if reader.at_eof():
                    return False
                self._passes -= 1
                return True
        finally:
            self._waiting -= 1


async def _carry(answers: StreamReader, writer: StreamWriter) -> None:
    with suppress(ConnectionError), closing(writer):
        while data := await answers.read(READ_BYTES):
            writer.write(data)
            await writer.drain()


@contextmanager
def gated(endpoint: str, *, passes: float) -> Iterator[Gate]:
    """A gate before the base URL *endpoint*, which lets so many requests pass."""
    with asyncio.Runner() as runner:

        async def begin() -> tuple[Gate, asyncio.Server]:
            gate = Gate(endpoint, passes)
            server = await asyncio.start_server(gate.converse, "127.0.0.1", 0)
            port = server.sockets[0].getsockname()[1]
            gate.url = f"http://127.0.0.1:{port}{urlsplit(endpoint).path}"
            return gate, server

        gate, server = runner.run(begin())
        loop = runner.get_loop()
        thread = threading.Thread(target=loop.run_forever)
        thread.start()
        try:
            yield gate
        finally:
            loop.call_soon_threadsafe(server.close)
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
