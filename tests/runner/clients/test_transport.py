"""Connections: kept ones, proxies, trust, deadlines, over either library."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeAlias

import httpx
import pytest

from runner.clients.client import HTTP, ClientOptions, Keyring, Secret, Timeouts
from runner.clients.http_client import HttpSender
from runner.errors import ConnectionLost, MalformedReply, Timeout, UsageError
from tests.runner.clients.tls import server_context

pytestmark = pytest.mark.asyncio

Converse: TypeAlias = Callable[
    [asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]
]

each_library = pytest.mark.parametrize("library", ["aiohttp", "httpx"])


def reply(body: bytes, *headers: bytes) -> bytes:
    lines = (b"HTTP/1.1 200 OK", b"content-length: %d" % len(body), *headers)
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


@asynccontextmanager
async def serving(
    converse: Converse, context: ssl.SSLContext | None = None
) -> AsyncIterator[str]:
    """A server on loopback; yields its address."""
    talks: set[asyncio.Task[None]] = set()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        talks.add(task)
        try:
            await converse(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            """Whoever asked is gone, or the test is over."""
        finally:
            writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0, ssl=context)
    scheme = "https" if context else "http"
    try:
        yield f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in talks:
            task.cancel()
        if talks:
            await asyncio.wait(talks)


async def head(reader: asyncio.StreamReader) -> bytes:
    return await reader.readuntil(b"\r\n\r\n")


@asynccontextmanager
async def sending(
    url: str, library: str = "aiohttp", **options: object
) -> AsyncIterator[HttpSender]:
    values = {"environment": {HTTP: library}} | options
    sender = HttpSender(url, ClientOptions(**values), Keyring())
    try:
        yield sender
    finally:
        await sender.close()


async def body_of(sender: HttpSender, url: str, method: str = "POST") -> bytes:
    return (await sender.send(httpx.Request(method, url)))[2]


def stray(first: bytes, second: bytes) -> Converse:
    """Say *first*, once read *second*, and then what each connection is asked."""
    count = 0

    async def converse(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        nonlocal count
        count += 1
        if count == 1:
            await head(reader)
            writer.write(first)
            await writer.drain()
            await asyncio.sleep(0.02)
            writer.write(second)
            await reader.read()
            return
        while True:
            await head(reader)
            writer.write(reply(b"own"))

    return converse


FIRST = reply(b"first")
STRAY = reply(b"stray")


@pytest.mark.parametrize(
    ("first", "second", "library"),
    [
        (FIRST[:-2], FIRST[-2:] + STRAY, "aiohttp"),  # with the end of the reply
        *(
            (FIRST, second, library)
            for second in (STRAY, STRAY[:20], b"x", b"\r\n")
            for library in ("aiohttp", "httpx")
        ),
    ],
    ids=lambda value: value[-12:].hex() if isinstance(value, bytes) else value,
)
async def test_what_arrives_unasked_is_not_the_next_reply(
    first: bytes, second: bytes, library: str
) -> None:
    async with (
        serving(stray(first, second)) as url,
        sending(url, library) as sender,
    ):
        assert await body_of(sender, url) == b"first"
        await asyncio.sleep(0.05)
        assert await body_of(sender, url) == b"own"


@each_library
async def test_what_arrives_unasked_and_is_not_read_yet_is_no_reply_either(
    library: str,
) -> None:
    """The loop is kept busy, so that it is asked for while it waits in the socket."""
    reached = asyncio.Event()

    async def converse(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await head(reader)
        if reached.is_set():
            writer.write(reply(b"own"))
        else:
            writer.write(FIRST)
            reached.set()
            other.append(writer)
        await reader.read()

    other: list[asyncio.StreamWriter] = []
    async with serving(converse) as url, sending(url, library) as sender:
        assert await body_of(sender, url) == b"first"
        other[0].write(STRAY)  # at once, over loopback
        assert await body_of(sender, url) == b"own"


@each_library
async def test_a_connection_is_kept_and_its_cookies_are_not(library: str) -> None:
    heads = []
    connections = 0

    async def converse(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        nonlocal connections
        connections += 1
        while True:
            heads.append(await head(reader))
            writer.write(reply(b"", b"set-cookie: session=1; path=/"))

    async with serving(converse) as url, sending(url, library) as sender:
        for _ in range(3):
            await body_of(sender, url.replace("127.0.0.1", "localhost"))
    assert connections == 1
    assert len(heads) == 3
    assert not any(b"cookie" in head.lower() for head in heads)


@pytest.mark.parametrize(("method", "times"), [("POST", 2), ("GET", 3)])
async def test_only_what_costs_nothing_is_sent_again_over_another_connection(
    method: str, times: int
) -> None:
    """A server that hears a request and hangs up may have done the work."""
    heard = 0

    async def converse(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        nonlocal heard
        await head(reader)
        heard += 1
        writer.write(FIRST)
        await head(reader)
        heard += 1

    async with serving(converse) as url, sending(url) as sender:
        assert await body_of(sender, url, method) == b"first"
        if method == "GET":
            assert await body_of(sender, url, method) == b"first"
        else:
            with pytest.raises(ConnectionLost) as raised:
                await body_of(sender, url, method)
            assert raised.value.was_sent
    assert heard == times


@each_library
async def test_interim_replies_do_not_suspend_the_limit_on_silence(
    library: str,
) -> None:
    async def converse(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await head(reader)
        writer.write(b"HTTP/1.1 102 Processing\r\n\r\n")
        await reader.read()

    timeouts = Timeouts(connect_s=1, silence_s=0.2, total_s=60)
    async with (
        serving(converse) as url,
        sending(url, library, timeouts=timeouts) as sender,
    ):
        with pytest.raises(Timeout, match="no byte in time"):
            await body_of(sender, url)
        with pytest.raises(Timeout, match="no byte in time"):
            await anext(sender.lines(httpx.Request("GET", url)))


@each_library
async def test_silence_within_a_reply_ends_it(library: str) -> None:
    async def converse(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await head(reader)
        writer.write(FIRST[:-1])
        await reader.read()

    timeouts = Timeouts(silence_s=0.2)
    async with (
        serving(converse) as url,
        sending(url, library, timeouts=timeouts) as sender,
    ):
        with pytest.raises(Timeout, match="no byte in time"):
            await body_of(sender, url)


@each_library
async def test_one_who_hangs_up_and_one_who_speaks_no_http(library: str) -> None:
    async def hang_up(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await head(reader)

    async def babble(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await head(reader)
        writer.write(b"220 mail.example ESMTP\r\n\r\n")
        await reader.read()

    async with serving(hang_up) as url, sending(url, library) as sender:
        with pytest.raises(ConnectionLost, match="the connection broke") as raised:
            await body_of(sender, url)
        assert raised.value.was_sent
    async with serving(babble) as url, sending(url, library) as sender:
        with pytest.raises(MalformedReply, match="the reply is not HTTP"):
            await body_of(sender, url)


@each_library
async def test_nobody_there_means_that_nothing_was_sent(library: str) -> None:
    async with sending("http://127.0.0.1:9", library) as sender:
        with pytest.raises(ConnectionLost, match="no connection") as raised:
            await body_of(sender, "http://127.0.0.1:9")
    assert not raised.value.was_sent


@each_library
async def test_an_encrypted_endpoint_is_trusted_by_the_file_that_is_named(
    library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def converse(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while True:
            await head(reader)
            writer.write(FIRST)

    context, trusted = server_context(tmp_path)
    async with serving(converse, context) as url:
        async with sending(url, library) as sender:
            with pytest.raises(ConnectionLost, match="no connection") as raised:
                await body_of(sender, url)
            assert not raised.value.was_sent
        monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
        async with sending(url, library) as sender:
            assert [await body_of(sender, url) for _ in range(3)] == [b"first"] * 3


LOGIN = "user:pass%20word-of-12"
SENT = base64.b64encode(b"user:pass word-of-12")


@each_library
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_proxy_gets_its_login_and_the_endpoint_does_not(
    scheme: str, library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heads: list[bytes] = []
    context, trusted = server_context(tmp_path)

    async def endpoint(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while True:
            heads.append(await head(reader))
            writer.write(reply(b"endpoint"))

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            heads.append(await head(reader))
            if scheme == "http":
                writer.write(reply(b"endpoint"))
                continue
            port = int(inner.rpartition(":")[2])
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
            async with asyncio.TaskGroup() as group:
                group.create_task(_pipe(reader, far_writer))
                group.create_task(_pipe(far_reader, writer))

    async with serving(endpoint, context) as inner, serving(proxy) as outer:
        monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
        named = outer.replace("http://", f"http://{LOGIN}@")
        monkeypatch.setenv(f"{scheme}_proxy", named)
        monkeypatch.setenv("no_proxy", "")
        url = f"{scheme}://endpoint.example:9/v1"
        async with sending(url, library) as sender:
            for _ in range(2):
                assert await body_of(sender, url) == b"endpoint"
    lines = [head.split(b"\r\n")[0].rpartition(b" ")[0] for head in heads]
    has_login = [SENT in head for head in heads]
    if scheme == "http":
        assert lines == [b"POST http://endpoint.example:9/v1"] * 2
        assert has_login == [True, True]
    else:
        assert lines == [b"CONNECT endpoint.example:9", b"POST /v1", b"POST /v1"]
        assert has_login == [True, False, False]


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
    finally:
        writer.close()


async def test_another_library_is_no_library() -> None:
    with pytest.raises(UsageError, match="SIFTLOG_HTTP='curl' is unknown"):
        HttpSender("http://h", ClientOptions(environment={HTTP: "curl"}), Keyring())


@each_library
async def test_a_key_in_an_error_of_the_library_is_masked(library: str) -> None:
    key = "sk-canary-0123456789"

    async def converse(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await head(reader)
        writer.write(f"HTTP/1.1 200 OK\r\n{key} bad\x00header\r\n\r\n".encode())
        await reader.read()

    async with serving(converse) as url:
        options = ClientOptions(environment={HTTP: library})
        sender = HttpSender(url, options, Keyring(Secret(key)))
        with pytest.raises(MalformedReply) as raised:
            await sender.send(httpx.Request("POST", url))
        await sender.close()
    assert key not in f"{raised.value} {vars(raised.value)}"
