"""A reply of lines: any number of them, each in turn, keys masked."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import httpx
import pytest
from aiohttp import web

from runner.clients.client import ClientOptions, Keyring, Secret
from runner.clients.http_client import HttpSender, StreamRefused
from runner.errors import ConnectionLost, MalformedReply

pytestmark = pytest.mark.asyncio

KEY = "sk-a-long-enough-key"


@asynccontextmanager
async def _sending(
    pieces: Sequence[bytes | None], status: int = 200
) -> AsyncIterator[str]:
    """A server that sends *pieces*; None: it hangs up instead."""

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(status=status)
        response.content_length = 100 if None in pieces else sum(map(len, pieces))
        await response.prepare(request)
        for piece in pieces:
            if piece is None:
                assert request.transport is not None
                request.transport.close()
                break
            await response.write(piece)
        return response

    server = web.ServerRunner(web.Server(handle))
    await server.setup()
    try:
        await web.TCPSite(server, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{server.addresses[0][1]}/"
    finally:
        await server.cleanup()


async def _read(url: str, read: list[bytes], most: int = 1000) -> None:
    options = replace(ClientOptions(), max_reply_bytes=most)
    sender = HttpSender(url, options, Keyring(Secret(KEY)))
    try:
        async for line in sender.lines(httpx.Request("GET", url)):
            read += [line]
    finally:
        await sender.close()


async def test_lines_come_whole_however_the_pieces_are_cut() -> None:
    read: list[bytes] = []
    async with _sending([b"one\ntw", b"o\n\nthr", b"ee " + KEY.encode()]) as url:
        await _read(url, read)
    assert read == [b"one", b"two", b"", b"three ***"]


async def test_what_came_before_the_connection_broke_was_whole() -> None:
    read: list[bytes] = []
    async with _sending([b"one\ntwo\nthr", None]) as url:
        with pytest.raises(ConnectionLost):
            await _read(url, read)
    assert read == [b"one", b"two"]


async def test_many_lines_may_be_longer_than_a_reply_but_none_alone() -> None:
    read: list[bytes] = []
    async with _sending([b"123456789\n" * 10, b"x" * 200]) as url:
        with pytest.raises(MalformedReply, match="more than 50 bytes"):
            await _read(url, read, most=50)
    assert len(read) == 10


async def test_another_status_is_told_with_what_came_with_it() -> None:
    async with _sending([b'{"error": "gone"}'], status=404) as url:
        with pytest.raises(StreamRefused) as refused:
            await _read(url, [])
    assert (refused.value.status, refused.value.body) == (404, b'{"error": "gone"}')
