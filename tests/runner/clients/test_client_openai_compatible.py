"""tests.runner.clients.test_client_openai_compatible"""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx
import pytest

from runner import errors as e
from runner.clients import (
    Call,
    ClientOptions,
    ModelClient,
    Received,
    Secret,
    Timeouts,
    open_client,
)
from runner.clients.http_client import (
    OPENAI_URL,
    OpenAICompatibleClient,
    endpoint_url,
    proxy_for,
)
from runner.clients.wire_openai import encode_chat, encode_reply
from runner.clients.wire_shared import Shape
from runner.job import Task
from runner.messages import ChatRequest, Message, Schema, TextPart

pytestmark = pytest.mark.asyncio

KEY = "sk-canary/0123456789"
CALL = Call(
    task=Task(number=1, stage="extract", key="PMC1", model="openai/x", replicate=1),
    request=ChatRequest(
        messages=(Message(role="user", parts=(TextPart(text="Which variants?"),)),),
        max_tokens=10,
        schema=Schema(name="s", json='{"type":"object"}'),
    ),
)
HANG_UP = b""


def http(body: bytes, status: str = "200 OK", **headers: str) -> bytes:
    lines = {"content-length": str(len(body)), **headers}
    head = "".join(f"{name.replace('_', '-')}: {v}\r\n" for name, v in lines.items())
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + body


GOOD = http(encode_reply("rs1"))


@dataclass
class Server:
    """Says what it is told to, byte for byte, and keeps what it heard."""

    replies: list[bytes]
    stall_at: int | None = None  #: byte before which it stops talking
    heard: list[bytes] = field(default_factory=list)
    connections: int = 0

    async def serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.connections += 1
        try:
            while await self._exchange(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _exchange(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        self.heard.append(head + await reader.readexactly(length))
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        writer.write(reply[: self.stall_at])
        await writer.drain()
        if self.stall_at is not None:
            await reader.read()
        said, _, body = reply.partition(b"\r\n\r\n")
        return b"content-length: %d" % len(body) in said


@asynccontextmanager
async def speaking(
    *replies: bytes, stall_at: int | None = None, **options: object
) -> AsyncIterator[tuple[Server, ModelClient]]:
    """A server that speaks raw bytes, and a client for it."""
    said = Server(list(replies), stall_at)
    server = await asyncio.start_server(said.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    values = {"base_url": f"http://127.0.0.1:{port}", "api_key": Secret(KEY)} | options
    client = open_client("openai/x", ClientOptions(**values))
    try:
        yield said, client
    finally:
        await client.close()
        server.close()


async def ask(*replies: bytes, **options: object) -> Received:
    async with speaking(*replies, **options) as (_, client):
        return await client.call(CALL)


async def test_the_request_is_the_encoded_body_with_the_key_in_its_header() -> None:
    async with speaking(GOOD) as (server, client):
        await client.call(CALL)
    head, _, body = server.heard[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /v1/chat/completions HTTP/1.1\r\n")
    assert b"Bearer " + KEY.encode() in head
    assert body == encode_chat(CALL.request, "x", Shape())


async def test_without_a_key_none_is_sent_and_schemas_can_be_left_out() -> None:
    async with speaking(GOOD, api_key=None, structured=False) as (server, client):
        await client.call(CALL)
    assert b"authorization" not in server.heard[0].lower()
    assert b"response_format" not in server.heard[0]


async def test_a_reply_is_kept_byte_for_byte_with_the_headers_that_matter() -> None:
    body = encode_reply("rs1")
    received = await ask(
        http(body, x_ratelimit_remaining_requests="7", x_request_id="r", date="now")
    )
    assert received.body == body
    assert received.reply.text == "rs1"
    assert received.status == 200
    assert received.headers == {
        "x-ratelimit-remaining-requests": "7",
        "x-request-id": "r",
    }


async def test_a_compressed_reply_is_stored_as_it_was_before() -> None:
    body = encode_reply("rs1")
    received = await ask(http(gzip.compress(body), content_encoding="gzip"))
    assert received.body == body


async def test_calls_in_a_row_share_one_connection() -> None:
    async with speaking(GOOD) as (server, client):
        for _ in range(20):
            await client.call(CALL)
    assert server.connections == 1
    assert len(server.heard) == 20


async def test_a_reply_without_length_ends_with_its_connection() -> None:
    assert (await ask(b"HTTP/1.1 200 OK\r\n\r\n" + encode_reply("a"))).reply.text == "a"


@pytest.mark.parametrize(
    ("reply", "expected", "words"),
    [
        (HANG_UP, e.ConnectionLost, "connection broke"),
        (GOOD[:-9], e.ConnectionLost, "in the reply .it is shorter than announced"),
        (b"SSH-2.0-OpenSSH_9\r\n\r\n", e.MalformedReply, "not HTTP"),
        (
            http(b"no gzip", content_encoding="gzip"),
            e.MalformedReply,
            "compression is damaged",
        ),
        (http(b"<html>"), e.MalformedReply, "answered with a web page"),
        (http(b"", "204 No Content"), e.BadRequest, "204"),
        (http(b"{}", "429 Too Many", retry_after="2"), e.RateLimited, "429"),
        (http(b"", "302 Found", location="/v2"), e.BadRequest, "redirects"),
    ],
)
async def test_what_goes_wrong_on_the_wire_has_one_name_and_is_not_tried_again(
    reply: bytes, expected: type[e.AttemptError], words: str
) -> None:
    async with speaking(reply) as (server, client):
        with pytest.raises(e.AttemptError, match=words) as raised:
            await client.call(CALL)
    assert type(raised.value) is expected
    assert raised.value.was_sent
    assert len(server.heard) == 1
    assert client.statistics().failed == 1
    assert client.statistics().in_flight == 0


async def test_a_malformed_reply_keeps_its_status_and_its_body() -> None:
    with pytest.raises(e.MalformedReply) as raised:
        await ask(http(b"<html>"))
    assert (raised.value.status, raised.value.body) == (200, b"<html>")


async def test_a_wait_that_the_server_asks_for_is_passed_on() -> None:
    with pytest.raises(e.RateLimited) as raised:
        await ask(http(b"{}", "429 Too Many", retry_after_ms="1500"))
    assert raised.value.retry_after_s == 1.5


async def test_nobody_at_the_address_is_a_lost_connection_that_names_it() -> None:
    async with speaking(GOOD) as (_, other):
        options = ClientOptions(base_url="http://127.0.0.1:9")
        client = open_client("openai/x", options)
        with pytest.raises(e.ConnectionLost, match=r"http://127\.0\.0\.1:9/v1") as lost:
            await client.call(CALL)
        assert not lost.value.was_sent
        await client.close()
        await other.call(CALL)


@pytest.mark.parametrize(
    ("timeouts", "stall_at", "words"),
    [
        (Timeouts(silence_s=0.05), 0, "no byte in time"),
        (Timeouts(silence_s=0.05), len(GOOD) - 1, "no byte in time"),
        (Timeouts(total_s=0.05), 0, "not whole in time"),
        (Timeouts(total_s=0.05), len(GOOD) - 1, "not whole in time"),
    ],
)
async def test_silence_and_slowness_are_timeouts_that_say_which(
    timeouts: Timeouts, stall_at: int, words: str
) -> None:
    async with speaking(GOOD, stall_at=stall_at, timeouts=timeouts) as (_, client):
        with pytest.raises(e.Timeout, match=words):
            await client.call(CALL)


async def test_a_reply_longer_than_allowed_is_cut_off() -> None:
    endless = b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 100_000
    with pytest.raises(e.MalformedReply, match="more than 1000 bytes"):
        await ask(endless, max_reply_bytes=1000)


async def test_a_call_cancelled_from_outside_stays_cancelled_and_counts_as_none() -> (
    None
):
    async with speaking(GOOD, stall_at=0) as (_, client):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await client.call(CALL)
        figures = client.statistics()
    assert (figures.in_flight, figures.answered, figures.failed) == (0, 0, 0)


async def test_the_figures_add_up() -> None:
    async with speaking(GOOD, http(b"{}", "500 Oh"), GOOD) as (_, client):
        await client.call(CALL)
        with pytest.raises(e.ServerError):
            await client.call(CALL)
        await client.call(CALL)
        figures = client.statistics()
    sent = len(encode_chat(CALL.request, "x", Shape()))
    assert (figures.answered, figures.failed) == (2, 1)
    assert figures.bytes_sent == 3 * sent
    assert figures.bytes_received == 2 * len(encode_reply("rs1")) + 2


def _garbled(key: str) -> bytes:
    return f"{key} is no HTTP\r\n\r\n".encode()


def _echoed(key: str) -> bytes:
    message = json.dumps({"error": {"message": f"wrong key {key}"}}).encode()
    return http(message, f"401 No {key}", x_request_id=key, retry_after=key)


def _escaped(key: str) -> bytes:
    return http(json.dumps({"error": key}).replace("/", "\\/").encode(), "400 Bad")


def _in_two(key: str) -> bytes:
    body = f"<html>{key}".encode()
    return http(gzip.compress(body), content_encoding="gzip")


def _bad_header(key: str) -> bytes:
    return f"HTTP/1.1 200 OK\r\n{key}\r\n\r\n".encode()


@pytest.mark.parametrize("spoken", [_garbled, _echoed, _escaped, _in_two, _bad_header])
async def test_a_key_that_the_server_echoes_gets_no_further(
    spoken: Callable[[str], bytes],
) -> None:
    async with speaking(spoken(KEY)) as (server, client):
        with pytest.raises(e.AttemptError) as raised:
            await client.call(CALL)
    assert KEY.encode() in server.heard[0]
    error: BaseException | None = raised.value
    assert isinstance(error, e.AttemptError)
    assert KEY.encode() not in (error.body or b"").replace(b"\\/", b"/")
    while error is not None:
        assert KEY not in f"{error!s} {error!r} {vars(error)}"
        error = error.__cause__


async def test_a_key_in_an_answer_is_masked_in_body_text_and_headers() -> None:
    received = await ask(http(encode_reply(f"my key is {KEY}"), x_request_id=KEY))
    assert received.reply.text == "my key is ***"
    assert KEY not in f"{received!r}"


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000/v1"),
        ("http://127.0.0.1:8000/", "http://127.0.0.1:8000/v1"),
        ("http://127.0.0.1:8000/v1/", "http://127.0.0.1:8000/v1"),
        ("https://host/api/v1", "https://host/api/v1"),
        ("https://host/v1beta/openai/", "https://host/v1beta/openai"),
        (" https://host/v1/chat/completions ", "https://host/v1"),
    ],
)
async def test_a_base_url_is_taken_with_or_without_its_version(
    given: str, used: str
) -> None:
    assert endpoint_url(given) == used


@pytest.mark.parametrize(
    "given",
    ["", "host:8000", "ftp://host", "http://", "http://u:p@host", "http://h?k=1"],
)
async def test_what_is_no_base_url_is_a_usage_error(given: str) -> None:
    with pytest.raises(e.UsageError, match="base URL"):
        open_client("openai/x", ClientOptions(base_url=given))


async def test_openai_itself_is_asked_by_the_names_it_knows() -> None:
    async with speaking(GOOD) as (_, other):
        direct = open_client("openai/x", ClientOptions(api_key=Secret(KEY)))
        assert isinstance(direct, OpenAICompatibleClient)
        assert isinstance(other, OpenAICompatibleClient)
        assert direct._endpoint == OPENAI_URL
        assert direct._ladder.shape.limit == "max_completion_tokens"
        assert other._ladder.shape.limit == "max_tokens"
        await direct.close()


async def test_a_proxy_of_the_environment_is_used_but_not_for_loopback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, "http://proxy:3128")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "inside.example")
    proxy = proxy_for(httpx.URL("http://outside.example/v1"))
    assert proxy is not None
    assert str(proxy.url) == "http://proxy:3128"
    for url in ("http://127.0.0.1:1/v1", "http://localhost", "http://inside.example"):
        assert proxy_for(httpx.URL(url)) is None
