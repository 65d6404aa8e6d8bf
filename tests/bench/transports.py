"""Transports to compare with the one in use, and the loop in C.

    python -m tests.bench.transports NAME generate ...       # siftlog over NAME
    python -m tests.bench.transports NAME BASE_URL CALLS CONCURRENCY    # without engine

`protocol` is only a floor: it has no proxies, deadlines, compression and guards, and
it takes nothing but a reply with a length. `pyreqwest` needs its package.
"""

from __future__ import annotations

import asyncio
import json
import sys
from importlib import import_module
from typing import Any, Final

import aiohttp
import httptools
import httpx

from runner.clients import http_client
from runner.clients.client import HTTP, ClientOptions, Keyring, Timeouts
from runner.clients.http_client import HttpSender
from runner.clients.transport import open_transport
from tests.bench.floor_prompts import Watch, Work, body, timed


class Wire(asyncio.Protocol):
    """One connection on httptools."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.reply: asyncio.Future[bytes]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def ask(self, data: bytes) -> asyncio.Future[bytes]:
        self.reply = self.loop.create_future()
        self.parser: Any = httptools.HttpResponseParser(self)
        self.headers: list[tuple[bytes, bytes]] = []
        self.body = b""
        self.transport.write(data)
        return self.reply

    def data_received(self, data: bytes) -> None:
        self.parser.feed_data(data)

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name, value))

    def on_body(self, data: bytes) -> None:
        self.body += data

    def on_message_complete(self) -> None:
        self.reply.set_result(self.body)


class ProtocolTransport(httpx.AsyncBaseTransport):
    """A pool of `Wire`s."""

    def __init__(self) -> None:
        self.idle: list[Wire] = []
        self.context = httpx.create_ssl_context()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        url = request.url
        if self.idle:
            wire = self.idle.pop()
        else:
            context = self.context if url.scheme == "https" else None
            _, wire = await asyncio.get_running_loop().create_connection(
                Wire, url.host, url.port, ssl=context
            )
        head = b"".join(b"%s: %s\r\n" % pair for pair in request.headers.raw)
        line = b"%s %s HTTP/1.1\r\n" % (request.method.encode(), url.raw_path)
        content = await wire.ask(line + head + b"\r\n" + request.content)
        self.idle.append(wire)
        status = wire.parser.get_status_code()
        return httpx.Response(
            status, headers=wire.headers, stream=httpx.ByteStream(content)
        )

    async def aclose(self) -> None:
        for wire in self.idle:
            wire.transport.close()


class ReqwestTransport(httpx.AsyncBaseTransport):
    """A client of pyreqwest, on reqwest and hyper."""

    def __init__(self) -> None:
        builder = import_module("pyreqwest.client").ClientBuilder
        trust = httpx.create_ssl_context().get_ca_certs(binary_form=True)
        client = builder().http1_only().follow_redirects(enable=False)
        for certificate in trust:
            client = client.add_root_certificate_der(certificate)
        self.client: Any = client.build()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        asked = self.client.request(request.method, str(request.url))
        names = [
            (name.decode(), value.decode())
            for name, value in request.headers.raw
            if name.lower() != b"content-length"
        ]
        reply = await asked.headers(names).body_bytes(request.content).build().send()
        content = bytes(await reply.bytes())
        headers = list(reply.headers.items())
        return httpx.Response(
            reply.status, headers=headers, stream=httpx.ByteStream(content)
        )

    async def aclose(self) -> None:
        await self.client.close()


def opened(name: str) -> httpx.AsyncBaseTransport:
    """The transport called *name*."""
    match name:
        case "protocol":
            return ProtocolTransport()
        case "pyreqwest":
            return ReqwestTransport()
        case "aiohttp" | "httpx":
            return open_transport(None, Timeouts(), {HTTP: name})
        case _:
            raise SystemExit(f"no transport is called {name}")


async def bare(todo: Work, watch: Watch) -> None:
    """A session of aiohttp as a script uses it."""
    numbers = iter(range(todo.calls))

    async def work(session: aiohttp.ClientSession) -> None:
        for number in numbers:
            content = json.dumps(body(number)).encode()
            async with session.post(todo.url, data=content, headers=JSON) as reply:
                await reply.read()

    connector = aiohttp.TCPConnector(limit=0, ssl=httpx.create_ssl_context())
    async with aiohttp.ClientSession(connector=connector) as session:
        async with asyncio.TaskGroup() as group:
            for _ in range(todo.concurrency):
                group.create_task(work(session))
        watch.stop()


JSON: Final = {"content-type": "application/json"}


async def sent(todo: Work, watch: Watch) -> None:
    """Calls through the sender of the client, without the engine."""
    numbers = iter(range(todo.calls))
    url = httpx.URL(todo.url)
    sender = HttpSender(todo.url, ClientOptions(), Keyring())

    async def work() -> None:
        for number in numbers:
            content = json.dumps(body(number)).encode()
            headers = {"host": url.netloc.decode(), **JSON}
            request = httpx.Request("POST", url, headers=headers, content=content)
            await sender.send(request)

    async with asyncio.TaskGroup() as group:
        for _ in range(todo.concurrency):
            group.create_task(work())
    watch.stop()
    await sender.close()


def main() -> None:
    """Do what the command line says."""
    name, *words = sys.argv[1:]
    if name.startswith("uvloop-"):
        import_module("uvloop").install()
        name = name.removeprefix("uvloop-")
    if name != "bare":
        http_client.open_transport = (  # type: ignore[attr-defined]
            lambda *_: opened(name)
        )
    if words[0] == "generate":
        sys.argv = ["siftlog", *words]
        import_module("runner.cli.main").main()
        return
    url, calls, concurrency = words
    todo = Work(
        url=f"{url}/chat/completions", calls=int(calls), concurrency=int(concurrency)
    )
    watch = timed(todo)
    asyncio.run(bare(todo, watch) if name == "bare" else sent(todo, watch))


if __name__ == "__main__":
    main()
