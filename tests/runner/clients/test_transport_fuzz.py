"""Mutated replies: none hangs, crashes, or is taken for another's.

Each request has a number that its reply repeats. Replies break the rules of HTTP in
every field, and bytes follow them on connections that are kept. `SIFTLOG_FUZZ` sets
how many are sent, `SIFTLOG_PROVE` 100,000.
"""

from __future__ import annotations

import asyncio
import gzip
import os
import random
import re
import zlib

import httpx
import pytest

from runner.clients.client import ClientOptions, Keyring, Timeouts
from runner.clients.http_client import HttpSender
from runner.errors import AttemptError
from tests.runner.clients.test_transport import Converse, head, serving

PROVE = "SIFTLOG_PROVE" in os.environ
COUNT = int(os.environ.get("SIFTLOG_FUZZ", "100000" if PROVE else "2000"))
SLOTS = 32
TIMEOUTS = Timeouts(connect_s=5, silence_s=0.1, total_s=2)
MOST_BYTES = 1 << 20


def body_of(number: int) -> bytes:
    """A body that no mutation turns into that of another number."""
    text = b"%d" % number
    return b"<%s %08x>" % (text, zlib.crc32(text))


def number_in(body: bytes) -> int | None:
    """The number of a whole body; None for any other."""
    found = re.fullmatch(rb"<(\d{1,9}) [0-9a-f]{8}>", body)
    number = int(found[1]) if found else -1
    return number if body_of(number) == body else None


STATUS_LINES = (
    *(b"HTTP/1.1 200 OK", b"HTTP/1.0 200 OK", b"HTTP/2 200 OK", b"HTTP/1.1 2000 OK"),
    *(b"HTTP/1.1 099 X", b"HTTP/1.1 101 Switching", b"HTTP/1.1 204 None"),
    *(b"HTTP/1.1 304 Same", b"HTTP/1.1 103 Hints", b"HTTP/1.1 302 There"),
    *(b"HTTP/1.1 200", b"http/1.1 200 OK", b"ICY 200 OK", b"", b"\x16\x03\x01\x00"),
    b"HTTP/1.1 200 " + b"x" * 9000,
)
HEADERS = (
    *(b"content-length: -1", b"content-length: 5, 5", b"content-length: 0x10"),
    *(b"content-length: 99999999999999999999", b"content-length: 3"),
    *(b"transfer-encoding: chunked", b"transfer-encoding: gzip, chunked"),
    *(b"transfer-encoding: x", b"content-encoding: gzip", b"content-encoding: deflate"),
    *(b"content-encoding: br", b"connection: close", b"connection: upgrade"),
    *(b"location: http://127.0.0.1:1/", b"set-cookie: a=b", b": empty", b"no colon"),
    *(b" folded", b"x: \x00", b"x: \xff\xfe", b"x: " + b"y" * 9000, b"a: b\rc: d"),
    *(b"x: y\n", b"content-length : 3", b"keep-alive: timeout=0"),
)
CHUNKS = (
    *(b"-1", b"fffffffffffffffff", b"5;x=" + b"y" * 9000, b"0x5", b"", b"5 ", b"G"),
    *(b"5\n", b"0"),
)


class Mutator:
    """Makes replies out of a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def pieces(self, number: int) -> tuple[bytes, bytes]:
        """A reply in two pieces; the first is empty or ends within the body."""
        if self.random.random() < 0.8:
            return b"", self.reply(number)
        body = body_of(number)
        head = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body)
        at = self.random.randint(0, len(body) - 1)
        return head + body[:at], body[at:]

    def reply(self, number: int) -> bytes:
        """A reply to request *number*, which may be spoilt anywhere."""
        draw = self.random
        body = body_of(number)
        lines = [b"HTTP/1.1 200 OK"]
        if draw.random() < 0.15:
            lines[0] = draw.choice(STATUS_LINES)
        packed = body
        if draw.random() < 0.15:
            lines.append(b"content-encoding: gzip")
            packed = self._spoilt(gzip.compress(body), 0.4)
        if draw.random() < 0.4:
            lines.append(b"transfer-encoding: chunked")
            packed = self._chunked(packed)
        elif draw.random() < 0.95:
            lines.append(b"content-length: %d" % self._length(len(packed)))
        if draw.random() < 0.2:
            lines.insert(draw.randint(1, len(lines)), draw.choice(HEADERS))
        data = b"\r\n".join(lines) + b"\r\n\r\n" + packed
        if draw.random() < 0.1:
            interim = b"HTTP/1.1 10%d X\r\n\r\n" % draw.choice((0, 2, 3))
            data = interim * draw.randint(1, 3) + data
        return self._spoilt(data, 0.1)

    def _length(self, length: int) -> int:
        return length + (self.random.random() < 0.1) * self.random.randint(-2, 3)

    def _chunked(self, body: bytes) -> bytes:
        draw = self.random
        at = draw.randint(0, len(body))
        chunks = b"".join(
            b"%s\r\n%s\r\n"
            % (draw.choice(CHUNKS) if draw.random() < 0.1 else b"%x" % len(part), part)
            for part in (body[:at], body[at:])
            if part
        )
        trailer = b"x: y\r\n" * (draw.random() < 0.1) * draw.choice((1, 500))
        return chunks + b"0\r\n" + trailer + b"\r\n"

    def _spoilt(self, data: bytes, share: float) -> bytes:
        draw = self.random
        if not data or draw.random() >= share:
            return data
        at, end = sorted(draw.randint(0, len(data)) for _ in range(2))
        match draw.randrange(4):
            case 0:  # broken off
                return data[:at]
            case 1:  # a part is lost
                return data[:at] + data[end:]
            case 2:  # a part comes twice
                return data[:end] + data[at:]
            case _:
                return data[:at] + draw.randbytes(draw.randint(1, 4)) + data[at + 1 :]

    def stray(self, number: int) -> bytes:
        """What follows the reply to *number*, unasked."""
        if self.random.random() < 0.8:
            return b""
        body = body_of(number)
        whole = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)
        return self.random.choice((b"x", b"\r\n", b"\0", whole[:20], whole, whole * 2))


def speaking(mutator: Mutator) -> Converse:
    """Say to each request what *mutator* makes of its number."""
    draw = mutator.random

    async def converse(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while True:
            asked = await head(reader)
            number = int(asked.split(b" ", 2)[1].rpartition(b"/")[2])
            first, rest = mutator.pieces(number)
            if first:
                writer.write(first)
                await asyncio.sleep(0.001)
            # at once: later it would answer a request that may have been sent by then
            writer.write(rest + mutator.stray(number))
            await writer.drain()
            if draw.random() < 0.3:  # else silence ends what is not whole
                return

    return converse


async def exchange(count: int, seed: int) -> tuple[int, int]:
    """Send *count* requests; return how many were answered, and how many failed."""
    answered = failed = 0
    numbers = iter(range(count))

    async def work(sender: HttpSender, url: str) -> None:
        nonlocal answered, failed
        for number in numbers:
            try:
                async with asyncio.timeout(10):
                    reply = await sender.send(httpx.Request("POST", f"{url}/{number}"))
            except AttemptError:
                failed += 1
                continue
            found = number_in(reply[2])
            assert found in {None, number}, f"{number} got {reply}"
            answered += found is not None

    async with serving(speaking(Mutator(seed))) as url:
        options = ClientOptions(timeouts=TIMEOUTS, max_reply_bytes=MOST_BYTES)
        sender = HttpSender(url, options, Keyring())
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(SLOTS):
                    group.create_task(work(sender, url))
        finally:
            await sender.close()
    return answered, failed


@pytest.mark.timeout(1800)
def test_mutated_replies_are_errors_or_answers_of_their_own() -> None:
    answered, failed = asyncio.run(exchange(COUNT, seed=23))
    # half of them; fewer on a busy machine, for silence is timed
    assert answered > COUNT / 20
    assert failed > COUNT / 10
