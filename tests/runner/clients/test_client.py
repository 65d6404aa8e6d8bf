"""tests.runner.clients.test_client

Endpoints that do harm, by design or by mistake: an error each, bounded memory.
"""

from __future__ import annotations

import asyncio
import base64
import gzip
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from urllib.parse import quote

import httpx
import pytest
import zstandard

from runner import errors as e
from runner.clients import Call, ClientOptions, Received, Secret, Timeouts, open_client
from runner.clients.client import ClientTally, Keyring
from runner.clients.http_client import HttpSender
from runner.clients.litellm_client import LiteLLMExchange
from runner.clients.wire_openai import encode_reply
from runner.errors import ConnectionLost
from runner.job import Task
from runner.messages import ChatRequest, Message, TextPart
from tests.wire_server import Said, WireServer, saying

pytestmark = pytest.mark.asyncio


@asynccontextmanager
async def exchanging(
    *replies: Said,
) -> AsyncIterator[tuple[WireServer, LiteLLMExchange]]:
    async with saying(*replies) as wire:
        sender = HttpSender(wire.url, ClientOptions(), Keyring())
        yield wire, LiteLLMExchange(lambda _url: sender, ClientTally())
        await sender.close()


def post(wire: WireServer, path: str = "/ask") -> httpx.Request:
    return httpx.Request("POST", wire.url + path, json={"question": 1})


async def test_a_request_made_again_gets_the_first_reply_and_is_not_sent() -> None:
    said = Said(body={"n": 1}, status=422), Said(body={"n": 2})
    async with exchanging(*said) as (wire, exchange):
        first = await exchange.send(post(wire))
        second = await exchange.send(post(wire))
    assert [reply.json() for reply in (first, second)] == [{"n": 1}, {"n": 1}]
    assert [reply.status_code for reply in (first, second)] == [422, 422]
    assert len(wire.heard) == 1
    assert exchange.status == 422


async def test_a_failure_is_a_reply_to_the_library_and_an_error_to_us() -> None:
    async with exchanging(Said(body=b"", resets=True)) as (wire, exchange):
        shown = [await exchange.send(post(wire)) for _ in range(2)]
    assert [reply.status_code for reply in shown] == [502, 502]
    assert isinstance(exchange.failure, ConnectionLost)
    assert exchange.status is None
    assert len(wire.heard) == 1


async def test_asking_how_far_a_job_is_may_go_on_and_the_last_reply_is_kept() -> None:
    said = [Said(body={"n": n}) for n in range(3)]
    async with exchanging(*said) as (wire, exchange):
        await exchange.send(post(wire, "/jobs"))
        for _ in range(2):
            await exchange.send(httpx.Request("GET", wire.url + "/jobs/1?key=k"))
    assert [heard.path for heard in wire.heard] == [
        "/jobs",
        "/jobs/1?key=k",
        "/jobs/1?key=k",
    ]
    assert exchange.body == b'{"n": 2}'
    assert exchange.endpoint == f"{wire.url}/jobs/1"


async def test_no_library_is_told_to_try_again_or_led_elsewhere() -> None:
    headers = {"location": "/there", "retry-after": "7", "x-request-id": "r"}
    said = Said(body={}, status=302, headers=headers)
    async with exchanging(said) as (wire, exchange):
        shown = await exchange.send(post(wire))
    assert shown.headers["x-should-retry"] == "false"
    assert not shown.has_redirect_location
    assert exchange.headers == {"retry-after": "7", "x-request-id": "r"}


KEY = "sk-canary/0123456789"
CALL = Call(
    task=Task(number=1, stage="s", key="k", model="openai/x", replicate=1),
    request=ChatRequest(
        messages=(Message(role="user", parts=(TextPart(text="?"),)),), max_tokens=10
    ),
)
BODY = encode_reply("rs1")
MIB = 1 << 20
MOST_MEMORY = 64 * MIB
"""A piece is unpacked before it can be counted: 64 KiB give 48 MiB at most."""


def _head(length: int, **headers: str) -> bytes:
    lines = {"content-length": str(length), **headers}
    head = "".join(f"{name.replace('_', '-')}: {v}\r\n" for name, v in lines.items())
    return f"HTTP/1.1 200 OK\r\n{head}\r\n".encode()


@asynccontextmanager
async def _saying(
    *pieces: bytes, pause_s: float = 0.0, after: bytes = b"\r\n\r\n"
) -> AsyncIterator[str]:
    """A server that says the same to everybody, piece by piece, and hangs up.

    It begins when it has heard *after*.
    """

    async def converse(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            await reader.readuntil(after)
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(pause_s)
        except (ConnectionError, asyncio.IncompleteReadError):
            """Whoever asked has heard enough."""
        finally:
            writer.close()

    server = await asyncio.start_server(converse, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


async def _ask(url: str, **options: object) -> Received:
    values = {"base_url": url, "api_key": Secret(KEY)} | options
    client = open_client("openai/x", ClientOptions(**values))
    try:
        return await client.call(CALL)
    finally:
        await client.close()


@pytest.mark.parametrize(
    ("compression", "pack"),
    [
        ("gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("zstd", zstandard.compress),
        ("gzip, gzip", lambda data: gzip.compress(gzip.compress(data))),
    ],
)
async def test_a_few_kilobytes_do_not_fill_the_memory(
    compression: str, pack: Callable[[bytes], bytes]
) -> None:
    bomb = pack(bytes(200 * MIB))
    async with _saying(_head(len(bomb), content_encoding=compression), bomb) as url:
        tracemalloc.start()
        try:
            with pytest.raises(e.MalformedReply):
                await _ask(url, max_reply_bytes=MIB)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < MOST_MEMORY


async def test_a_compression_that_was_not_asked_for_is_named() -> None:
    async with _saying(_head(len(BODY), content_encoding="br\x1b[31m"), BODY) as url:
        with pytest.raises(e.AttemptError) as raised:
            await _ask(url)
    assert "\x1b" not in str(raised.value)
    async with _saying(_head(len(BODY), content_encoding="br"), BODY) as url:
        with pytest.raises(e.MalformedReply, match="'br', which was not requested"):
            await _ask(url)


@pytest.mark.parametrize("compression", ["identity", "GZip", " deflate "])
async def test_what_was_asked_for_is_read_however_it_is_spelled(
    compression: str,
) -> None:
    packed = {"GZip": gzip.compress, " deflate ": zlib.compress}.get(compression, bytes)
    body = packed(BODY)
    async with _saying(_head(len(body), content_encoding=compression), body) as url:
        assert (await _ask(url)).reply.text == "rs1"


async def test_a_reply_of_one_byte_at_a_time_ends_at_the_total_timeout() -> None:
    """No pause is long enough for the timeout on silence; the sum is too long."""
    drip = [b" "] * 100_000  # of half an hour
    async with _saying(_head(len(drip)), *drip, pause_s=0.02) as url:
        with pytest.raises(e.Timeout, match="not whole in time"):
            await _ask(url, timeouts=Timeouts(silence_s=600, total_s=0.3))


@pytest.mark.parametrize(
    ("length", "meaning"),
    [
        (len(BODY) + 1, e.ConnectionLost),  # promised more than came
        (len(BODY) - 1, e.MalformedReply),  # and less: what is over is not read
        (0, e.MalformedReply),
    ],
)
async def test_a_length_that_is_not_the_bodys_is_no_answer(
    length: int, meaning: type[e.AttemptError]
) -> None:
    async with _saying(_head(length), BODY) as url:
        with pytest.raises(e.AttemptError) as raised:
            await _ask(url)
    assert type(raised.value) is meaning


@pytest.mark.parametrize("length", ["-1", "99999999999999999999", "many", "1, 2"])
async def test_a_length_that_is_no_length_is_no_answer(length: str) -> None:
    head = f"HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n".encode()
    async with _saying(head, BODY) as url:
        with pytest.raises((e.MalformedReply, e.ConnectionLost)):
            await _ask(url)


async def test_headers_without_end_are_cut_off() -> None:
    line = b"x-filler: " + b"x" * 8000 + b"\r\n"
    async with _saying(b"HTTP/1.1 200 OK\r\n", *[line] * 500) as url:
        with pytest.raises(e.MalformedReply, match="not HTTP"):
            await _ask(url)


async def test_an_encrypted_address_where_plain_http_is_spoken_is_named() -> None:
    hello = b"\x16\x03"  # how TLS begins
    async with _saying(b"HTTP/1.1 400 Bad Request\r\n\r\n", after=hello) as url:
        secure = url.replace("http:", "https:")
        with pytest.raises(e.ConnectionLost) as raised:
            await _ask(secure)
    assert str(raised.value).startswith(f"{secure}/v1: no connection")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "url",
    [
        "http://nowhere.invalid:8000",  # RFC 6761: never resolves
        "http://[::1]:9",
        "http://127.0.0.1:9",
        "http://xn--bcher-kva.invalid",
    ],
)
async def test_nobody_at_an_address_is_a_lost_connection_that_names_it(
    url: str,
) -> None:
    with pytest.raises(e.ConnectionLost) as raised:
        await _ask(url, timeouts=Timeouts(connect_s=5))
    said = str(raised.value)
    assert said.startswith(url)
    assert "\n" not in said


async def test_a_redirect_is_not_followed_and_its_address_not_shown() -> None:
    """A `Location` may carry a key, and following it would take ours along."""
    location = f"http://127.0.0.1:9/v1?key={KEY}"
    head = f"HTTP/1.1 307 Elsewhere\r\nlocation: {location}\r\n\r\n".encode()
    async with _saying(head) as url:
        with pytest.raises(e.BadRequest, match="redirects") as raised:
            await _ask(url)
    assert KEY not in f"{raised.value} {vars(raised.value)}"


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_what_a_proxy_repeats_of_its_password_gets_no_further(
    scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    login = f"user:{KEY}"
    sent = base64.b64encode(login.encode()).decode()
    said = f"you sent {KEY}, which is {sent}".encode()
    head = f"HTTP/1.1 407 No {KEY}\r\ncontent-length: {len(said)}\r\n\r\n"
    async with _saying(head.encode(), said) as url:
        proxy = url.replace("http://", f"http://{quote(login, safe=':')}@")
        monkeypatch.setenv(f"{scheme}_proxy", proxy)
        with pytest.raises(e.AttemptError) as raised:
            await _ask(f"{scheme}://nowhere.invalid", api_key=None)
    shown = f"{raised.value} {vars(raised.value)}"
    assert "407" in shown
    assert KEY not in shown
    assert sent not in shown
