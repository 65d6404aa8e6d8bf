"""A loopback server that says what a test tells it to, and keeps what it heard."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias


@dataclass(frozen=True, kw_only=True)
class Said:
    """One reply."""

    body: object  #: JSON, or bytes as they are
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    hangs: bool = False  #: never says it
    resets: bool = False  #: breaks the connection instead

    @property
    def bytes(self) -> bytes:
        body = self.body
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"content-length": str(len(data)), "content-type": "application/json"}
        head = "".join(f"{n}: {v}\r\n" for n, v in (headers | self.headers).items())
        return f"HTTP/1.1 {self.status} X\r\n{head}\r\n".encode() + data


@dataclass(frozen=True, kw_only=True)
class Heard:
    """One request."""

    path: str
    headers: dict[str, str]  #: names in lower case
    body: Any  #: JSON; None where it is of another type
    raw: bytes = b""  #: the body as it came


Speech: TypeAlias = Said | Callable[[Heard], Said]
"""A reply, or what makes one of what was heard."""


class WireServer:
    """Says *replies* in turn, the last one for ever."""

    def __init__(self, *replies: Speech) -> None:
        self._replies = list(replies)
        self._talks: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self.heard: list[Heard] = []
        self.url = ""

    async def converse(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        talk = asyncio.current_task()
        assert talk is not None
        self._talks[talk] = writer
        try:
            while True:
                said = await self._listen(reader)
                if said.resets:
                    # with no time to linger, closing sends a reset and not an end
                    writer.get_extra_info("socket").setsockopt(
                        socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
                    )
                    writer.transport.abort()
                    return
                if said.hangs:
                    await reader.read()
                    return
                writer.write(said.bytes)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            """Whoever asked is gone."""
        finally:
            writer.close()

    async def hang_up(self) -> None:
        """End all talks."""
        for writer in self._talks.values():
            writer.transport.abort()
        if self._talks:
            await asyncio.wait(self._talks)

    async def _listen(self, reader: asyncio.StreamReader) -> Said:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.strip().split("\r\n")
        headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines)
        }
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        path = first.split(" ")[1]
        is_json = "json" in headers.get("content-type", "json")
        asked = json.loads(body) if body and is_json else None
        heard = Heard(path=path, headers=headers, body=asked, raw=body)
        self.heard.append(heard)
        last = len(self._replies) == 1
        said = self._replies[0] if last else self._replies.pop(0)
        return said(heard) if callable(said) else said


@asynccontextmanager
async def saying(*replies: Speech) -> AsyncIterator[WireServer]:
    """A server on loopback that says *replies*."""
    wire = WireServer(*replies)
    server = await asyncio.start_server(wire.converse, "127.0.0.1", 0)
    wire.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield wire
    finally:
        server.close()
        await wire.hang_up()
