"""An OpenAI-compatible endpoint on loopback, with faults by seed.

The shell around the pure parts: `fate` decides, `SimulatedModel` speaks, `Limits`
refuses, `Ledger` remembers. aiohttp's low-level server does the HTTP.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count
from typing import Final

import msgspec
from aiohttp import web

from runner.errors import BadRequest, UsageError
from runner.registry import load_job
from runner.simulate.asked import READERS, Asked
from runner.simulate.fate import Fate, Outcome, fate
from runner.simulate.ledger import Ledger, LedgerLine
from runner.simulate.limits import Limits, retry_after
from runner.simulate.model import (
    SimulatedModel,
    malformed,
    reply_body,
    tokens_of,
)
from runner.simulate.options import SimulateOptions
from store.clock import Clock, SystemClock

HOST: Final = "127.0.0.1"

FAULT_WAIT_S: Final = 0.1
"""What a 429 by chance asks to wait: long enough to be seen, short enough for tests."""

STOP_S: Final = 0.1
"""How long a stopping server waits for replies under way."""


@asynccontextmanager
async def running(
    options: SimulateOptions, clock: Clock | None = None
) -> AsyncIterator[str]:
    """Serve while the context is open; yields the base URL.

    Raises:
        UsageError: The port or the ledger cannot be had, or no such job is installed.
    """
    job = load_job(options.job) if options.job is not None else None
    ledger = Ledger(options.ledger)
    endpoint = _Endpoint(
        options, SimulatedModel(options.seed, job), ledger, clock or SystemClock()
    )
    runner = web.ServerRunner(
        web.Server(endpoint.handle, handler_cancellation=True), shutdown_timeout=STOP_S
    )
    await runner.setup()
    try:
        await _listen(runner, options.port)
        yield f"http://{HOST}:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()
        ledger.close()


async def _listen(runner: web.ServerRunner, port: int) -> None:
    try:
        await web.TCPSite(runner, HOST, port, backlog=2048).start()
    except OSError as error:
        raise UsageError(
            f"Port {port} cannot be served ({error.strerror}); choose another --port."
        ) from None


REFUSED: Final = Fate(outcome=Outcome.REFUSED, status=400, latency_s=0.0, shape=0.0)
LIMITED: Final = Fate(
    outcome=Outcome.RATE_LIMITED, status=429, latency_s=0.0, shape=0.0
)


class _Endpoint:
    """Handles one request after another, of any number of connections."""

    def __init__(
        self,
        options: SimulateOptions,
        model: SimulatedModel,
        ledger: Ledger,
        clock: Clock,
    ) -> None:
        self._options = options
        self._model = model
        self._ledger = ledger
        self._clock = clock
        self._limits = Limits(options, clock.monotonic())
        self._numbers = count(1)
        self._seen: Counter[str] = Counter()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Serve one request of any kind."""
        path = request.path.removeprefix("/v1")
        if request.method == "GET" and path == "/models":
            return _reply(200, b'{"object":"list","data":[]}')
        read = READERS.get(path) if request.method == "POST" else None
        if read is None:
            return _reply(404, _complaint(f"There is nothing at {request.path}."))
        return await self._answer(request, await request.content.read(), read)

    async def _answer(
        self, request: web.BaseRequest, body: bytes, read: Callable[[bytes], Asked]
    ) -> web.StreamResponse:
        digest = hashlib.sha256(body).hexdigest()
        seen = self._seen[digest]
        self._seen[digest] += 1
        number, received_ms = next(self._numbers), self._now_ms()
        try:
            asked = read(body)
        except BadRequest as error:
            model, destined, tokens = "", REFUSED, 0
            reply = _reply(destined.status, _complaint(str(error)))
        else:
            model = asked.model
            destined, reply, tokens = self._destined(asked, digest, seen)
        line = LedgerLine(
            n=number,
            request=digest,
            model=model,
            seen=seen,
            outcome=destined.outcome,
            status=destined.status,
            received_ms=received_ms,
            finished_ms=received_ms,
            authorized="authorization" in request.headers,
            tokens=tokens,
        )
        await self._deliver(request, reply, destined, line)
        return reply

    def _destined(
        self, asked: Asked, digest: str, seen: int
    ) -> tuple[Fate, web.Response, int]:
        """What will become of a request, the reply it gets at best, and its tokens."""
        now = self._clock.monotonic()
        wait_s = self._limits.admit(asked.tokens, now)
        destined = LIMITED if wait_s else fate(self._options, digest, seen)
        told = self._limits.headers(now)
        tokens = 0 if wait_s else asked.tokens
        match destined.outcome:
            case Outcome.RATE_LIMITED:
                body = _complaint("Too many requests.", code="rate_limit_exceeded")
                told |= retry_after(wait_s or FAULT_WAIT_S)
            case Outcome.SERVER_ERROR:
                body = _complaint("The simulated model failed.")
            case outcome:
                answer = self._model.answer(asked, digest)
                body = reply_body(asked, digest, answer)
                self._limits.charge(tokens_of(answer), now)
                tokens += tokens_of(answer)
                if outcome is Outcome.MALFORMED:
                    body = malformed(body, destined.shape)
        return destined, _reply(destined.status or 200, body, told), tokens

    async def _deliver(
        self,
        request: web.BaseRequest,
        reply: web.Response,
        destined: Fate,
        line: LedgerLine,
    ) -> None:
        """Send *reply* as far as it is destined to get, and keep the ledger true."""
        noted = line.outcome
        try:
            await asyncio.sleep(destined.latency_s)
            transport = request.transport
            if transport is None or transport.is_closing():
                raise ConnectionResetError
            self._note(line, noted)
            if noted is Outcome.HANG:
                await asyncio.Event().wait()
            if noted is Outcome.DROPPED:
                await _cut(request, reply, destined.shape)
                return
            # Draining then waits for the last byte: "answered" means all of it.
            transport.set_write_buffer_limits(high=0)
            await reply.prepare(request)
            await reply.write_eof()
            if transport.is_closing():
                raise ConnectionResetError
        except (asyncio.CancelledError, ConnectionError) as error:
            if noted is not Outcome.HANG:
                self._note(line, Outcome.GONE)
            if isinstance(error, asyncio.CancelledError):
                raise

    def _note(self, line: LedgerLine, outcome: Outcome) -> None:
        self._ledger.write(replace(line, outcome=outcome, finished_ms=self._now_ms()))

    def _now_ms(self) -> int:
        return self._clock.now_us() // 1000


async def _cut(request: web.BaseRequest, reply: web.Response, shape: float) -> None:
    """Break the connection: before the reply, or in its middle."""
    body = reply.body
    if shape < 0.5 and isinstance(body, bytes):  # noqa: PLR2004 - half of the cut ones
        half = web.StreamResponse(headers={"content-length": str(len(body))})
        await half.prepare(request)
        await half.write(body[: len(body) // 2])
    if request.transport is not None:
        request.transport.abort()


def _reply(
    status: int, body: bytes, headers: Mapping[str, str] | None = None
) -> web.Response:
    return web.Response(
        status=status, body=body, headers=headers, content_type="application/json"
    )


def _complaint(message: str, *, code: str | None = None) -> bytes:
    return msgspec.json.encode({"error": {"message": message, "code": code}})
