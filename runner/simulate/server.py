"""An endpoint on loopback that speaks one dialect, with faults by seed.

The shell around the pure parts: `fate` decides, `Provider` answers and bills, `Limits`
refuses, `Ledger` remembers. aiohttp's low-level server does the HTTP.

Tests start it in their own process and compare with its bill:

    async with simulated(SimulateOptions(dialect="xai", bill_price="1,8")) as endpoint:
        ...  # send requests to endpoint.base_url
        assert endpoint.ledger.bill().cost_usd <= budget
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Final

import msgspec
from aiohttp import web

from runner.errors import BadRequest, UsageError
from runner.registry import load_job
from runner.simulate import asked as reading
from runner.simulate.asked import Asked
from runner.simulate.batch.serving import BatchEndpoints
from runner.simulate.delivery import deliver
from runner.simulate.dialect import JSON, MESSAGES, MODELS, Dialect, Kind, Trouble
from runner.simulate.fate import FAULT_WAIT_S, Fate, Outcome, fate
from runner.simulate.ledger import Ledger, LedgerLine
from runner.simulate.limits import Limits
from runner.simulate.messages import read_message
from runner.simulate.model import malformed
from runner.simulate.options import SimulateOptions
from runner.simulate.provider import Provider, billed_fields
from runner.simulate.replies import model_body
from store.clock import Clock, SystemClock

READERS: Final[Mapping[str, Callable[[bytes], Asked]]] = {
    **reading.READERS,
    MESSAGES: read_message,
}

KEY_HEADERS: Final = frozenset({"authorization", "x-api-key", "api-key"})
"""OpenAI's header for keys, Anthropic's, Azure's."""

SERVER: Final = 500
"""Statuses from here on are the server's fault."""

HOST: Final = "127.0.0.1"

STOP_S: Final = 0.1
"""How long a stopping server waits for replies under way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """A simulated endpoint that serves."""

    base_url: str
    dialect: Dialect
    ledger: Ledger  #: kept in memory: `ledger.bill()` is what the provider charges


@asynccontextmanager
async def simulated(
    options: SimulateOptions, clock: Clock | None = None
) -> AsyncIterator[Simulated]:
    """Serve while the context is open, and keep the ledger in memory too.

    Raises:
        UsageError: The port or the ledger cannot be had, or there is no such job or
            dialect.
    """
    ledger = Ledger(options.ledger, keeps=True)
    async with _serving(options, ledger, clock) as (base_url, provider):
        yield Simulated(base_url=base_url, dialect=provider.dialect, ledger=ledger)


@asynccontextmanager
async def running(
    options: SimulateOptions, clock: Clock | None = None
) -> AsyncIterator[str]:
    """Serve while the context is open; yields the base URL and keeps nothing.

    Raises:
        UsageError: As `simulated`.
    """
    async with _serving(options, Ledger(options.ledger), clock) as (base_url, _):
        yield base_url


@asynccontextmanager
async def _serving(
    options: SimulateOptions, ledger: Ledger, clock: Clock | None
) -> AsyncIterator[tuple[str, Provider]]:
    try:
        job = load_job(options.job) if options.job is not None else None
        provider = Provider(options, job)
    except UsageError:
        ledger.close()
        raise
    endpoint = _Endpoint(options, provider, ledger, clock or SystemClock())
    runner = web.ServerRunner(
        web.Server(endpoint.handle, handler_cancellation=True), shutdown_timeout=STOP_S
    )
    await runner.setup()
    try:
        await _listen(runner, options.port)
        yield f"http://{HOST}:{runner.addresses[0][1]}/v1", provider
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
        provider: Provider,
        ledger: Ledger,
        clock: Clock,
    ) -> None:
        self._options = options
        self._provider = provider
        self._ledger = ledger
        self._clock = clock
        self.batches = BatchEndpoints(options, provider, ledger, clock)
        self._limits = Limits(options, clock.monotonic())
        self._numbers = count(1)
        self._seen: Counter[str] = Counter()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Serve one request of any kind."""
        path = request.path.removeprefix("/v1")
        form = self.batches.form(path)
        if form is not None:
            return await self.batches.handle(request, path, form)
        if request.method == "GET" and f"{path}/".startswith(f"{MODELS}/"):
            return self._models(path.removeprefix(MODELS).strip("/"))
        read = READERS.get(path) if request.method == "POST" else None
        if read is None:
            return _told(
                self._provider.dialect,
                self._provider.dialect.trouble(Kind.PATH, path=request.path),
            )
        return await self._answer(request, await request.content.read(), path)

    def _models(self, name: str) -> web.Response:
        """`GET /models`: those that there are, or one of them."""
        row, known = self._provider.dialect, self._options.models
        if name and known and name not in known:
            return _told(row, row.trouble(Kind.MODEL, model=name))
        models = [model_body(each) for each in ([name] if name else known)]
        body = models[0] if name else {"object": "list", "data": models}
        return _reply(200, msgspec.json.encode(body))

    async def _answer(
        self, request: web.BaseRequest, body: bytes, path: str
    ) -> web.StreamResponse:
        digest = hashlib.sha256(body).hexdigest()
        seen = self._seen[digest]
        self._seen[digest] += 1
        line = LedgerLine(
            n=next(self._numbers),
            request=digest,
            model="",
            seen=seen,
            outcome=Outcome.REFUSED,
            status=400,
            received_ms=self._now_ms(),
            finished_ms=0,
            authorized=any(request.headers.get(name) for name in KEY_HEADERS),
            path=path,
        )
        destined, reply, line = self._destined(body, path, line)
        await deliver(request, reply, destined, partial(self._note, line))
        return reply

    def _destined(
        self, body: bytes, path: str, line: LedgerLine
    ) -> tuple[Fate, web.Response, LedgerLine]:
        """What will become of a request, the reply it gets at best, and its line."""
        provider, digest, seen = self._provider, line.request, line.seen
        row = provider.row(digest, seen)
        trouble = provider.turned_away(row, path, has_key=line.authorized)
        if trouble is not None:
            return self._refused(row, trouble, line)
        try:
            asked = READERS[path](provider.heeded(path, body))
        except BadRequest as error:
            return self._refused(row, provider.unreadable(row, body, error), line)
        line = replace(line, model=asked.model)
        trouble = provider.refused(row, asked, path)
        if trouble is not None:
            return self._refused(row, trouble, line)
        return self._worked(row, asked, path, line)

    def _worked(
        self, row: Dialect, asked: Asked, path: str, line: LedgerLine
    ) -> tuple[Fate, web.Response, LedgerLine]:
        """What becomes of a request that nothing speaks against."""
        now = self._clock.monotonic()
        tokens = self._provider.tokens_in(asked)
        wait_s = self._limits.admit(tokens, now)
        destined = LIMITED if wait_s else self._fate(row, line)
        headers = dict(row.limits(self._limits.gauges(now), self._now_ms() / 1000))
        line = replace(line, outcome=destined.outcome, status=destined.status)
        match destined.outcome:
            case Outcome.RATE_LIMITED:
                wait_s = wait_s or FAULT_WAIT_S
                trouble = row.trouble(Kind.RATE, model=asked.model, wait_s=wait_s)
                headers |= row.waits(wait_s)
                destined = replace(destined, status=trouble.status)
                line = replace(line, status=trouble.status)
                return destined, _told(row, trouble, headers), line
            case Outcome.SERVER_ERROR:
                reply = _told(row, row.failure(destined.status), headers)
                return destined, reply, replace(line, tokens=tokens)
            case Outcome.HANG:
                return destined, _reply(200, b"{}"), replace(line, tokens=tokens)
            case outcome:
                draft = self._provider.draft(row, asked, line.request)
                if isinstance(draft, Trouble):
                    return self._refused(row, draft, line)
                answer = self._provider.reply(
                    row, asked, line.request, path, draft, seen=line.seen
                )
                out = answer.served.tokens.out
                self._limits.charge(out, now)
                line = replace(line, tokens=tokens + out, **billed_fields(answer))
                body, media = answer.body, answer.media
                if outcome is Outcome.MALFORMED:
                    body, media = malformed(body, destined.shape), JSON
                headers |= answer.headers
                return destined, _reply(200, body, headers, media), line

    def _fate(self, row: Dialect, line: LedgerLine) -> Fate:
        return fate(self._options, line.request, line.seen, row.statuses)

    @staticmethod
    def _refused(
        row: Dialect, trouble: Trouble, line: LedgerLine
    ) -> tuple[Fate, web.Response, LedgerLine]:
        """A request that gets *trouble* and costs nothing."""
        is_server = trouble.status >= SERVER
        outcome = Outcome.SERVER_ERROR if is_server else Outcome.REFUSED
        destined = replace(REFUSED, outcome=outcome, status=trouble.status)
        line = replace(line, outcome=outcome, status=trouble.status)
        return destined, _told(row, trouble), line

    def _note(self, line: LedgerLine, outcome: Outcome) -> None:
        self._ledger.write(replace(line, outcome=outcome, finished_ms=self._now_ms()))

    def _now_ms(self) -> int:
        return self._clock.now_us() // 1000


def _told(
    row: Dialect, trouble: Trouble, headers: Mapping[str, str] | None = None
) -> web.Response:
    """The reply that tells of *trouble* in the form of *row*."""
    return _reply(trouble.status, row.body(trouble), headers, trouble.media)


def _reply(
    status: int,
    body: bytes,
    headers: Mapping[str, str] | None = None,
    media: str = JSON,
) -> web.Response:
    return web.Response(status=status, body=body, headers=headers, content_type=media)
