"""The loopback server that every floor and siftlog itself are measured against.

A bare protocol with one fixed reply, so that the server's own cost stays as small and
as equal as it can be; faults and ledgers belong to `siftlog simulate`. Usage:

    python floor_server.py LATENCY_MS [FOLDER]

With a folder, it encrypts with `trusted.pem` and `key.pem` in there.
It prints its base URL in one line and serves until its standard input closes.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
from pathlib import Path

REPLY = json.dumps(
    {
        "id": "chatcmpl-bench",
        "object": "chat.completion",
        "created": 0,
        "model": "bench",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": '{"variants": ["rs9923231", "CYP2C9*3"]}',
                },
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 512, "completion_tokens": 16, "total_tokens": 528},
    }
).encode()
ANSWER = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
    b"content-length: %d\r\n\r\n%s" % (len(REPLY), REPLY)
)


class Replier(asyncio.Protocol):
    """Answers each complete request with `ANSWER` after a fixed latency."""

    def __init__(self, latency_s: float) -> None:
        self.latency_s = latency_s
        self.buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.loop = asyncio.get_running_loop()

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (length := request_length(self.buffer)) is not None:
            self.buffer = self.buffer[length:]
            if self.latency_s:
                self.loop.call_later(self.latency_s, self.answer)
            else:
                self.answer()

    def answer(self) -> None:
        if not self.transport.is_closing():
            self.transport.write(ANSWER)


def request_length(buffer: bytes) -> int | None:
    """Bytes of the first request in *buffer*; None while it is incomplete."""
    end = buffer.find(b"\r\n\r\n")
    if end < 0:
        return None
    head = buffer[:end].lower()
    at = head.find(b"content-length:")
    body = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
    length = end + 4 + body
    return length if len(buffer) >= length else None


async def serve(latency_s: float, certificate: Path | None) -> None:
    """Serve until standard input closes."""
    loop = asyncio.get_running_loop()
    context = None
    if certificate is not None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate / "trusted.pem", certificate / "key.pem")
    server = await loop.create_server(
        lambda: Replier(latency_s), "127.0.0.1", 0, backlog=2048, ssl=context
    )
    async with server:
        scheme = "https" if context else "http"
        print(
            f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True
        )
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    _, latency_ms, *folder = sys.argv
    asyncio.run(serve(float(latency_ms) / 1000, Path(folder[0]) if folder else None))
