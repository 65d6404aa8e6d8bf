"""The ideal: bare sockets, ready-made requests, replies not even read as JSON."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from urllib.parse import urlsplit

from tests.bench.floor_prompts import Watch, Work, body, timed, work
from tests.bench.floor_server import REPLY


class Asker(asyncio.Protocol):
    """Sends the next request of the common queue as soon as a reply is whole."""

    def __init__(
        self, queue: list[bytes], done: asyncio.Future[None], watch: Watch
    ) -> None:
        self.queue = queue
        self.done = done
        self.watch = watch
        self.buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.ask()

    def ask(self) -> None:
        if self.queue:
            self.transport.write(self.queue.pop())
        else:
            self.transport.close()
            self.done.set_result(None)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        if self.buffer.endswith(REPLY):
            self.buffer = b""
            self.replied()

    def replied(self) -> None:
        """A reply is whole."""
        self.watch.answered()
        self.ask()


async def main(todo: Work) -> None:
    watch = timed(todo)
    await ask_all(todo, lambda queue, done: Asker(queue, done, watch))
    watch.stop()


async def ask_all(
    todo: Work, connection: Callable[[list[bytes], asyncio.Future[None]], Asker]
) -> None:
    """Send all requests over connections of this kind."""
    where = urlsplit(todo.url)
    requests = []
    for number in range(todo.calls):
        content = json.dumps(body(number)).encode()
        head = (
            f"POST {where.path} HTTP/1.1\r\nhost: {where.netloc}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(content)}\r\n\r\n"
        )
        requests.append(head.encode() + content)
    loop = asyncio.get_running_loop()
    waiting = []
    for _ in range(todo.concurrency):
        done = loop.create_future()
        waiting.append(done)
        await loop.create_connection(
            lambda done=done: connection(requests, done), where.hostname, where.port
        )
    await asyncio.wait(waiting)


if __name__ == "__main__":
    asyncio.run(main(work()))
