"""Serves an endpoint on loopback in one dialect, with faults by seed.

The shell around the pure parts: `planned_outcome` decides, `Provider` answers and
bills, `SimulatedLimits` refuses, `Ledger` records. aiohttp's low-level server does the
HTTP.

Tests start it in-process and compare with its bill:

    async with simulated(SimulateOptions(dialect="xai", bill_price="1,8")) as endpoint:
        ...  # send requests to endpoint.base_url
        assert endpoint.ledger.bill().cost_usd <= budget

A request that is rate-limited, gets a server error or hangs has no effect. One whose
reply is cut off or corrupted does have an effect: a batch may exist without its
creator's knowledge, and a download may end anywhere. Limits on requests and tokens
apply to single calls, as with real providers.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Final

import msgspec
from aiohttp import BodyPartReader, MultipartReader, web
from aiohttp.http import HttpProcessingError

from runner.errors import BadRequest, UsageError
from runner.registry import load_job
from runner.simulate import requests as reading
from runner.simulate.anthropic_batches import AnthropicForm
from runner.simulate.anthropic_messages import read_message
from runner.simulate.billing import BatchAct, BatchLine, Ledger, LedgerLine
from runner.simulate.dialect import (
    JSON,
    MESSAGES,
    MODELS,
    Dialect,
    RefusalKind,
    RefusedRequest,
)
from runner.simulate.model import malformed
from runner.simulate.openai_batches import OpenAIForm
from runner.simulate.options import (
    FAULT_WAIT_S,
    Chance,
    PlannedOutcome,
    RequestOutcome,
    SimulatedLimits,
    SimulateOptions,
    planned_outcome,
    retry_after,
)
from runner.simulate.provider import Provider, billed_fields
from runner.simulate.replies import deliver, model_body
from runner.simulate.requests import (
    NOT_FOUND,
    BatchForm,
    BatchHandler,
    BatchRefusal,
    BatchRequest,
    BatchResponse,
    FormUpload,
    SimulatedRequest,
)
from store.clock import Clock, SystemClock

UNHEARD: Final = {
    RequestOutcome.RATE_LIMITED,
    RequestOutcome.SERVER_ERROR,
    RequestOutcome.HANG,
}


class BatchEndpoints:
    """Handles the requests to both batch formats."""

    def __init__(
        self,
        options: SimulateOptions,
        provider: Provider,
        ledger: Ledger,
        clock: Clock,
    ) -> None:
        self._options = options
        self._ledger = ledger
        self._clock = clock
        self._dialect = provider.dialect
        openai = OpenAIForm(options, provider, ledger)
        self._forms: Mapping[str, BatchForm] = {
            "/files": openai,
            "/batches": openai,
            "/messages/batches": AnthropicForm(options, provider, ledger),
        }
        self._seen: Counter[str] = Counter()

    def form(self, path: str) -> BatchForm | None:
        """Return the batch format of *path*; None: not in this dialect."""
        for root, form in self._forms.items():
            if root in self._dialect.paths and f"{path}/".startswith(f"{root}/"):
                return form
        return None

    def advance(self) -> None:
        """Advance all batches to the current time, and bill ended items."""
        now_us = self._clock.now_us()
        for form in self._forms.values():
            form.advance(now_us)

    async def handle(
        self, request: web.BaseRequest, path: str, form: BatchForm
    ) -> web.StreamResponse:
        """Serve one request to *form*."""
        fields = await _fields(request)
        body = b"" if fields else await request.content.read()
        self.advance()
        batch_request = BatchRequest(
            now_us=self._clock.now_us(),
            base_url=f"{request.scheme}://{request.host}/v1",
            query=request.query,
            headers={name.lower(): value for name, value in request.headers.items()},
            body=body,
            fields=fields,
        )
        pattern, handler, ids = _route(form, request.method, path)
        key = _key(request.method, pattern, batch_request)
        planned = planned_outcome(
            self._options, key, self._seen[key], self._dialect.statuses
        )
        reply, answer = _batch_reply(
            form, batch_request, planned, partial(handler, batch_request, *ids)
        )
        if answer is not None and answer.created and self._is_lost(key):
            planned = replace(planned, outcome=RequestOutcome.DROPPED, shape=1.0)
        self._seen[key] += 1
        await deliver(request, reply, planned, partial(self._note, answer))
        return reply

    def _is_lost(self, key: str) -> bool:
        """Return whether the reply about a new batch is dropped."""
        chance = Chance("lost", self._options.seed, key, self._seen[key])
        return chance.unit() < self._options.batch_lost_create_rate

    def _note(self, answer: BatchResponse | None, outcome: RequestOutcome) -> None:
        """Record that a new batch was not reported to its creator."""
        if answer is None or not answer.created or outcome is RequestOutcome.ANSWERED:
            return
        self._ledger.write(
            BatchLine(
                act=BatchAct.LOST,
                id=answer.created,
                at_ms=self._clock.now_us() // 1000,
            )
        )


def _route(
    form: BatchForm, method: str, path: str
) -> tuple[str, BatchHandler, tuple[str, ...]]:
    """Return the pattern that *path* matches, its handler, and the id in it."""
    parts = path.split("/")
    for (routed, pattern), handler in form.routes.items():
        pattern_parts = pattern.split("/")
        if routed == method and len(pattern_parts) == len(parts):
            pairs = list(zip(pattern_parts, parts, strict=True))
            if all(want in {"*", part} for want, part in pairs):
                return pattern, handler, tuple(p for want, p in pairs if want == "*")
    return "", _nowhere, ()


def _nowhere(_batch_request: BatchRequest) -> BatchResponse:
    raise BatchRefusal("There is nothing of that kind here.", status=NOT_FOUND)


def _batch_reply(
    form: BatchForm,
    batch_request: BatchRequest,
    planned: PlannedOutcome,
    answered: Callable[[], BatchResponse],
) -> tuple[web.Response, BatchResponse | None]:
    """Return the reply to send, and the response if the request was handled."""
    if planned.outcome in UNHEARD:
        refusal = BatchRefusal("The simulated endpoint failed.", status=planned.status)
        headers = (
            retry_after(FAULT_WAIT_S)
            if planned.outcome is RequestOutcome.RATE_LIMITED
            else {}
        )
        return _json(form.complaint(refusal), planned.status or 200, headers), None
    try:
        _check(batch_request, form.headers)
        answer = answered()
    except BatchRefusal as refusal:
        return _json(form.complaint(refusal), refusal.status), None
    body = answer.body
    if planned.outcome is RequestOutcome.MALFORMED:
        body = (
            body[: int(len(body) * planned.shape)]
            if answer.is_download
            else malformed(body, planned.shape)
        )
    return _json(body), answer


def _check(batch_request: BatchRequest, headers: Mapping[tuple[str, ...], int]) -> None:
    for names, status in headers.items():
        if not any(name in batch_request.headers for name in names):
            raise BatchRefusal(f"{names[0]}: the header is required", status=status)


def _json(
    body: bytes, status: int = 200, headers: Mapping[str, str] | None = None
) -> web.Response:
    return web.Response(
        status=status, body=body, headers=headers, content_type="application/json"
    )


def _key(method: str, pattern: str, batch_request: BatchRequest) -> str:
    """Return the seed of a request's faults: not its ids, which never recur."""
    digest = hashlib.sha256(f"{method} {pattern}".encode())
    for content in (
        batch_request.body,
        *(upload.content for upload in batch_request.fields.values()),
    ):
        digest.update(content)
    return digest.hexdigest()


async def _fields(request: web.BaseRequest) -> dict[str, FormUpload]:
    """Parse the fields of a form; empty if the request is none."""
    fields: dict[str, FormUpload] = {}
    if not request.content_type.startswith("multipart/"):
        return fields
    # an invalid form is reported through its missing fields
    with suppress(ValueError, HttpProcessingError):
        # the request's own reader refuses files of more than 1 MiB
        async for part in MultipartReader(request.headers, request.content):
            if isinstance(part, BodyPartReader) and part.name:
                content = bytes(await part.read())
                fields[part.name] = FormUpload(
                    name=part.filename or "", content=content
                )
    return fields


READERS: Final[Mapping[str, Callable[[bytes], SimulatedRequest]]] = {
    **reading.READERS,
    MESSAGES: read_message,
}

KEY_HEADERS: Final = frozenset({"authorization", "x-api-key", "api-key"})
"""Headers with keys: OpenAI's, Anthropic's, Azure's."""

SERVER: Final = 500
"""First status of server errors."""

HOST: Final = "127.0.0.1"

STOP_S: Final = 0.1
"""Seconds that a stopping server waits for replies in progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """A running simulated endpoint."""

    base_url: str
    dialect: Dialect
    ledger: Ledger  #: kept in memory: `ledger.bill()` returns the provider's charge


@asynccontextmanager
async def simulated(
    options: SimulateOptions, clock: Clock | None = None
) -> AsyncIterator[Simulated]:
    """Serve while the context is open, with the ledger in memory too.

    Raises:
        UsageError: The port or the ledger is unavailable, or the job or dialect
            unknown.
    """
    ledger = Ledger(options.ledger, keeps=True)
    async with _serving(options, ledger, clock) as (base_url, provider):
        yield Simulated(base_url=base_url, dialect=provider.dialect, ledger=ledger)


@asynccontextmanager
async def running(
    options: SimulateOptions, clock: Clock | None = None
) -> AsyncIterator[str]:
    """Serve while the context is open; yield the base URL, keep nothing in memory.

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
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise UsageError(
            f"Port {port} cannot be served ({reason}): choose another with --port, or "
            "0 for any that is free."
        ) from None


REFUSED: Final = PlannedOutcome(
    outcome=RequestOutcome.REFUSED, status=400, latency_s=0.0, shape=0.0
)
LIMITED: Final = PlannedOutcome(
    outcome=RequestOutcome.RATE_LIMITED, status=429, latency_s=0.0, shape=0.0
)


class _Endpoint:
    """Handles requests of all connections."""

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
        self._limits = SimulatedLimits(options, clock.monotonic())
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
            return _error_response(
                self._provider.dialect,
                self._provider.dialect.refusal(RefusalKind.PATH, path=request.path),
            )
        return await self._answer(request, await request.content.read(), path)

    def _models(self, name: str) -> web.Response:
        """Handle `GET /models`: list the models, or show one."""
        row, served_models = self._provider.dialect, self._options.models
        if name and served_models and name not in served_models:
            return _error_response(row, row.refusal(RefusalKind.MODEL, model=name))
        models = [model_body(model) for model in ([name] if name else served_models)]
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
            outcome=RequestOutcome.REFUSED,
            status=400,
            received_ms=self._now_ms(),
            finished_ms=0,
            authorized=any(request.headers.get(name) for name in KEY_HEADERS),
            path=path,
        )
        planned, reply, line = self._plan_reply(body, path, line)
        await deliver(request, reply, planned, partial(self._note, line))
        return reply

    def _plan_reply(
        self, body: bytes, path: str, line: LedgerLine
    ) -> tuple[PlannedOutcome, web.Response, LedgerLine]:
        """Return the planned outcome of a request, its reply and its ledger line."""
        provider, digest, seen = self._provider, line.request, line.seen
        row = provider.row(digest, seen)
        refusal = provider.turned_away(row, path, has_key=line.authorized)
        if refusal is not None:
            return self._refused(row, refusal, line)
        try:
            incoming = READERS[path](provider.heeded(path, body))
        except BadRequest as error:
            return self._refused(row, provider.unreadable(row, body, error), line)
        line = replace(line, model=incoming.model)
        refusal = provider.refused(row, incoming, path)
        if refusal is not None:
            return self._refused(row, refusal, line)
        return self._worked(row, incoming, path, line)

    def _worked(
        self, row: Dialect, incoming: SimulatedRequest, path: str, line: LedgerLine
    ) -> tuple[PlannedOutcome, web.Response, LedgerLine]:
        """Return the same for a request that passed all checks."""
        now = self._clock.monotonic()
        tokens = self._provider.tokens_in(incoming)
        wait_s = self._limits.admit(tokens, now)
        planned = LIMITED if wait_s else self._planned_outcome(row, line)
        headers = dict(row.limits(self._limits.gauges(now), self._now_ms() / 1000))
        line = replace(line, outcome=planned.outcome, status=planned.status)
        match planned.outcome:
            case RequestOutcome.RATE_LIMITED:
                wait_s = wait_s or FAULT_WAIT_S
                refusal = row.refusal(
                    RefusalKind.RATE, model=incoming.model, wait_s=wait_s
                )
                headers |= row.waits(wait_s)
                planned = replace(planned, status=refusal.status)
                line = replace(line, status=refusal.status)
                return planned, _error_response(row, refusal, headers), line
            case RequestOutcome.SERVER_ERROR:
                reply = _error_response(row, row.failure(planned.status), headers)
                return planned, reply, replace(line, tokens=tokens)
            case RequestOutcome.HANG:
                return planned, _reply(200, b"{}"), replace(line, tokens=tokens)
            case outcome:
                draft = self._provider.draft(row, incoming, line.request)
                if isinstance(draft, RefusedRequest):
                    return self._refused(row, draft, line)
                answer = self._provider.reply(
                    row, incoming, line.request, path, draft, seen=line.seen
                )
                out = answer.served.tokens.out
                self._limits.charge(out, now)
                line = replace(line, tokens=tokens + out, **billed_fields(answer))
                body, media = answer.body, answer.media
                if outcome is RequestOutcome.MALFORMED:
                    body, media = malformed(body, planned.shape), JSON
                headers |= answer.headers
                return planned, _reply(200, body, headers, media), line

    def _planned_outcome(self, row: Dialect, line: LedgerLine) -> PlannedOutcome:
        return planned_outcome(self._options, line.request, line.seen, row.statuses)

    @staticmethod
    def _refused(
        row: Dialect, refusal: RefusedRequest, line: LedgerLine
    ) -> tuple[PlannedOutcome, web.Response, LedgerLine]:
        """Return the same for a request that gets *refusal* and is not billed."""
        is_server = refusal.status >= SERVER
        outcome = RequestOutcome.SERVER_ERROR if is_server else RequestOutcome.REFUSED
        planned = replace(REFUSED, outcome=outcome, status=refusal.status)
        line = replace(line, outcome=outcome, status=refusal.status)
        return planned, _error_response(row, refusal), line

    def _note(self, line: LedgerLine, outcome: RequestOutcome) -> None:
        self._ledger.write(replace(line, outcome=outcome, finished_ms=self._now_ms()))

    def _now_ms(self) -> int:
        return self._clock.now_us() // 1000


def _error_response(
    row: Dialect, refusal: RefusedRequest, headers: Mapping[str, str] | None = None
) -> web.Response:
    """Return the response for *refusal* in the format of *row*."""
    return _reply(refusal.status, row.body(refusal), headers, refusal.media)


def _reply(
    status: int,
    body: bytes,
    headers: Mapping[str, str] | None = None,
    media: str = JSON,
) -> web.Response:
    return web.Response(status=status, body=body, headers=headers, content_type=media)


async def serve(options: SimulateOptions, announce: Callable[[str], object]) -> None:
    """Serve with *options*, from one call of *announce* to SIGINT or SIGTERM."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(signum, stop.set)
    async with running(options) as base_url:
        announce(base_url)
        await stop.wait()
