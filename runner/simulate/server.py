"""An OpenAI-compatible endpoint on loopback, with faults by seed.

The shell around the pure parts: `fate` decides, `SimulatedModel` speaks, `Limits`
refuses, `Ledger` remembers. aiohttp's low-level server does the HTTP.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Final

import msgspec
from aiohttp import web

from runner.errors import BadRequest, UsageError
from runner.registry import load_job
from runner.simulate.asked import READERS, Asked
from runner.simulate.batch.serving import BatchEndpoints
from runner.simulate.delivery import deliver
from runner.simulate.fate import FAULT_WAIT_S, Fate, Outcome, fate
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
        endpoint.batches.advance()
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
        self.batches = BatchEndpoints(options, model, ledger, clock)
        self._limits = Limits(options, clock.monotonic())
        self._numbers = count(1)
        self._seen: Counter[str] = Counter()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Serve one request of any kind."""
        path = request.path.removeprefix("/v1")
        form = self.batches.form(path)
        if form is not None:
            return await self.batches.handle(request, path, form)
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
        await deliver(request, reply, destined, partial(self._note, line))
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

    def _note(self, line: LedgerLine, outcome: Outcome) -> None:
        self._ledger.write(replace(line, outcome=outcome, finished_ms=self._now_ms()))

    def _now_ms(self) -> int:
        return self._clock.now_us() // 1000


def _reply(
    status: int, body: bytes, headers: Mapping[str, str] | None = None
) -> web.Response:
    return web.Response(
        status=status, body=body, headers=headers, content_type="application/json"
    )


def _complaint(message: str, *, code: str | None = None) -> bytes:
    return msgspec.json.encode({"error": {"message": message, "code": code}})
