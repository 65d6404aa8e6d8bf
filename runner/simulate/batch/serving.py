"""The batch endpoints over HTTP, with the faults that single calls have.

A request that is told to slow down, that meets a server error or that hangs was not
heard: nothing comes of it. One whose reply is cut off or spoiled was: a batch may be
there that its creator never heard of, and a download may end anywhere. Limits on
requests and tokens are those of single calls; providers keep them apart too.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final

from aiohttp import BodyPartReader, MultipartReader, web
from aiohttp.http import HttpProcessingError

from runner.simulate.batch.anthropic_form import AnthropicForm
from runner.simulate.batch.exchange import (
    NOT_FOUND,
    Answer,
    Asking,
    Form,
    Handler,
    Refusal,
    Upload,
)
from runner.simulate.batch.openai_form import OpenAIForm
from runner.simulate.chance import Chance
from runner.simulate.delivery import deliver
from runner.simulate.fate import FAULT_WAIT_S, Fate, Outcome, fate
from runner.simulate.ledger import BatchAct, BatchLine, Ledger
from runner.simulate.limits import retry_after
from runner.simulate.model import malformed
from runner.simulate.options import SimulateOptions
from runner.simulate.provider import Provider
from store.clock import Clock

UNHEARD: Final = {Outcome.RATE_LIMITED, Outcome.SERVER_ERROR, Outcome.HANG}


class BatchEndpoints:
    """Handles the requests to both forms."""

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
        self._forms: Mapping[str, Form] = {
            "/files": openai,
            "/batches": openai,
            "/messages/batches": AnthropicForm(options, provider, ledger),
        }
        self._seen: Counter[str] = Counter()

    def form(self, path: str) -> Form | None:
        """Whose *path* below the base URL it is; None: nobody's in this dialect."""
        for root, form in self._forms.items():
            if root in self._dialect.paths and f"{path}/".startswith(f"{root}/"):
                return form
        return None

    def advance(self) -> None:
        """Get on with all batches to the present time, and bill what is done."""
        now_us = self._clock.now_us()
        for form in self._forms.values():
            form.advance(now_us)

    async def handle(
        self, request: web.BaseRequest, path: str, form: Form
    ) -> web.StreamResponse:
        """Serve one request to *form*."""
        fields = await _fields(request)
        body = b"" if fields else await request.content.read()
        self.advance()
        asking = Asking(
            now_us=self._clock.now_us(),
            base_url=f"{request.scheme}://{request.host}/v1",
            query=request.query,
            headers={name.lower(): value for name, value in request.headers.items()},
            body=body,
            fields=fields,
        )
        pattern, handler, ids = _route(form, request.method, path)
        key = _key(request.method, pattern, asking)
        destined = fate(self._options, key, self._seen[key], self._dialect.statuses)
        reply, answer = _reply(form, asking, destined, partial(handler, asking, *ids))
        if answer is not None and answer.created and self._is_lost(key):
            destined = replace(destined, outcome=Outcome.DROPPED, shape=1.0)
        self._seen[key] += 1
        await deliver(request, reply, destined, partial(self._note, answer))
        return reply

    def _is_lost(self, key: str) -> bool:
        """Whether the reply that tells of a new batch is not to be sent at all."""
        chance = Chance("lost", self._options.seed, key, self._seen[key])
        return chance.unit() < self._options.batch_lost_create_rate

    def _note(self, answer: Answer | None, outcome: Outcome) -> None:
        """Write down that nobody heard of a new batch."""
        if answer is None or not answer.created or outcome is Outcome.ANSWERED:
            return
        self._ledger.write(
            BatchLine(
                act=BatchAct.LOST,
                id=answer.created,
                at_ms=self._clock.now_us() // 1000,
            )
        )


def _route(form: Form, method: str, path: str) -> tuple[str, Handler, tuple[str, ...]]:
    """The pattern that *path* follows, what answers it, and the id in it."""
    parts = path.split("/")
    for (routed, pattern), handler in form.routes.items():
        wanted = pattern.split("/")
        if routed == method and len(wanted) == len(parts):
            pairs = list(zip(wanted, parts, strict=True))
            if all(want in {"*", part} for want, part in pairs):
                return pattern, handler, tuple(p for want, p in pairs if want == "*")
    return "", _nowhere, ()


def _nowhere(_asking: Asking) -> Answer:
    raise Refusal("There is nothing of that kind here.", status=NOT_FOUND)


def _reply(
    form: Form, asking: Asking, destined: Fate, answered: Callable[[], Answer]
) -> tuple[web.Response, Answer | None]:
    """The reply as it is sent, and the answer if the request was heard."""
    if destined.outcome in UNHEARD:
        refusal = Refusal("The simulated endpoint failed.", status=destined.status)
        headers = (
            retry_after(FAULT_WAIT_S)
            if destined.outcome is Outcome.RATE_LIMITED
            else {}
        )
        return _json(form.complaint(refusal), destined.status or 200, headers), None
    try:
        _check(asking, form.headers)
        answer = answered()
    except Refusal as refusal:
        return _json(form.complaint(refusal), refusal.status), None
    body = answer.body
    if destined.outcome is Outcome.MALFORMED:
        body = (
            body[: int(len(body) * destined.shape)]
            if answer.is_download
            else malformed(body, destined.shape)
        )
    return _json(body), answer


def _check(asking: Asking, headers: Mapping[tuple[str, ...], int]) -> None:
    for names, status in headers.items():
        if not any(name in asking.headers for name in names):
            raise Refusal(f"{names[0]}: the header is required", status=status)


def _json(
    body: bytes, status: int = 200, headers: Mapping[str, str] | None = None
) -> web.Response:
    return web.Response(
        status=status, body=body, headers=headers, content_type="application/json"
    )


def _key(method: str, pattern: str, asking: Asking) -> str:
    """What the faults of a request depend on: not on ids, which never come again."""
    digest = hashlib.sha256(f"{method} {pattern}".encode())
    for content in (asking.body, *(each.content for each in asking.fields.values())):
        digest.update(content)
    return digest.hexdigest()


async def _fields(request: web.BaseRequest) -> dict[str, Upload]:
    """The fields of a form, as far as the request is one."""
    fields: dict[str, Upload] = {}
    if not request.content_type.startswith("multipart/"):
        return fields
    # what is no form is told by the fields that are missing
    with suppress(ValueError, HttpProcessingError):
        # the request's own reader refuses files of more than 1 MiB
        async for part in MultipartReader(request.headers, request.content):
            if isinstance(part, BodyPartReader) and part.name:
                content = bytes(await part.read())
                fields[part.name] = Upload(name=part.filename or "", content=content)
    return fields
