"""Implements OpenAI's batches: uploads a file of requests, downloads files of results.

The batch's key is in its metadata, which the list of batches shows.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import aclosing, suppress
from typing import Any, Final, TypeVar

import httpx
import msgspec

from runner.batch.batch import (
    BatchBounds,
    BatchQuery,
    BatchSearch,
    BatchStatus,
    ItemOutcome,
    OrphanItem,
)
from runner.clients.client import ClientOptions, Received
from runner.clients.fallbacks import Fallbacks
from runner.clients.http_client import (
    CHATS,
    OPENAI_URL,
    PATHS,
    HttpSender,
    StreamRefused,
    endpoint_url,
)
from runner.clients.refusals import refusal
from runner.clients.unpacking import COMPRESSIONS
from runner.clients.wire import decode_reply
from runner.clients.wire_openai import OPENAI_CHAT, OPENAI_RESPONSES
from runner.clients.wire_shared import UNREADABLE, Shape
from runner.errors import (
    AttemptError,
    BadRequest,
    Expired,
    MalformedReply,
    NotServed,
    RateLimited,
)
from runner.messages import ChatRequest
from store.events import BatchOutcome
from store.served_by import REQUEST_IDS

_T = TypeVar("_T")


class BatchConnection:
    """The batch endpoints under one address."""

    def __init__(
        self, base_url: str, headers: Mapping[str, str], options: ClientOptions
    ) -> None:
        """Connect to *base_url*, without a key, with *headers*, which may have one."""
        url = httpx.URL(base_url)
        self._base_url = base_url
        self._options = options
        self._headers = {
            "host": url.netloc.decode(),
            "accept": "application/json",
            "accept-encoding": COMPRESSIONS,
            "user-agent": "siftlog",
            **headers,
            **options.headers,
        }
        self._sender = HttpSender(base_url, options, options.keys)

    async def get(
        self, path: str, into: type[_T], query: Mapping[str, str] | None = None
    ) -> _T:
        """Return the decoded response of a GET request.

        Raises:
            AttemptError: it failed.
        """
        return await self._exchange(self._request("GET", path, params=query), into)

    async def post(self, path: str, into: type[_T], content: object = None) -> _T:
        """Post *content* as JSON, or nothing; return the decoded response.

        Raises:
            AttemptError: it was refused, or its effect is unknown.
        """
        body = b"" if content is None else msgspec.json.encode(content)
        request = self._request(
            "POST", path, content=body, headers={"content-type": "application/json"}
        )
        return await self._exchange(request, into)

    async def upload(
        self, path: str, into: type[_T], *, name: str, content: bytes
    ) -> _T:
        """Upload a file of requests; return the decoded response.

        Raises:
            AttemptError: as for `post`.
        """
        request = self._request(
            "POST",
            path,
            data={"purpose": "batch"},
            files={"file": (name, content, "application/jsonl")},
        )
        return await self._exchange(request, into)

    async def lines(self, path: str) -> AsyncGenerator[bytes]:
        """Yield the non-empty lines at *path*.

        Raises:
            AttemptError: the download failed, perhaps after some lines.
        """
        try:
            async with aclosing(self._sender.lines(self._request("GET", path))) as read:
                async for line in read:
                    if line.strip():
                        yield line
        except StreamRefused as error:
            raise self.refusal(error.status, error.body, error.headers) from None

    def _request(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] | None = None,
        **content: Any,
    ) -> httpx.Request:
        request = httpx.Request(
            method,
            self._base_url + path,
            headers={**self._headers, **(headers or {})},
            **content,
        )
        request.read()
        return request

    async def _exchange(self, request: httpx.Request, into: type[_T]) -> _T:
        status, headers, body = await self._sender.send(request)
        if not httpx.codes.is_success(status):
            raise self.refusal(status, body, headers)
        try:
            return msgspec.json.decode(body, type=into)
        except UNREADABLE as error:
            raise MalformedReply(
                f"{self._base_url}: the description of a batch cannot be "
                f"read ({error}).",
                body=body,
            ) from error

    def refusal(
        self, status: int, body: bytes, headers: Mapping[str, str] | None = None
    ) -> AttemptError:
        """Return the error for a status other than 200, of an item or a request."""
        return refusal(
            self._base_url,
            status,
            headers or {},
            body,
            now_us=self._options.clock.now_us(),
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._sender.close()


PAGE: Final = "100"
"""Maximum number of batches on a page of the list."""
SKEW_S: Final = 3600.0
"""Maximum lag of a provider's clock behind ours."""
METADATA: Final = "siftlog_batch"
"""Metadata field with the batch's key."""
WINDOW: Final = "24h"

OUTCOMES: Final[Mapping[str, BatchOutcome]] = {
    "completed": "completed",
    "expired": "expired",
    "cancelled": "cancelled",
    "failed": "failed",
}
"""Outcomes of final statuses; batches with other statuses are open."""

TOO_MUCH: Final = ("token_limit_exceeded", "request_limit_exceeded")
"""Error codes of batches that failed because the provider's queue is full: worth a
retry."""


class _Id(msgspec.Struct):
    id: str


class _Counts(msgspec.Struct):
    completed: int = 0
    failed: int = 0


class _Fault(msgspec.Struct):
    code: str | None = None
    message: str | None = None
    line: int | None = None


class _Faults(msgspec.Struct):
    data: list[_Fault] | None = None


class _Batch(msgspec.Struct):
    id: str
    status: str = ""
    created_at: float = 0.0
    metadata: dict[str, Any] | None = None
    request_counts: _Counts | None = None
    input_file_id: str | None = None
    output_file_id: str | None = None
    error_file_id: str | None = None
    errors: _Faults | None = None

    @property
    def key(self) -> str:
        """The key in its metadata, if it is one of siftlog's batches."""
        return str((self.metadata or {}).get(METADATA, ""))

    def is_of(self, tag: str) -> bool:
        """Return whether the run with that tag created it."""
        return self.key.startswith(f"{tag}-")


class _Page(msgspec.Struct):
    data: list[_Batch]
    has_more: bool = False


class _Response(msgspec.Struct):
    status_code: int
    body: msgspec.Raw = msgspec.Raw(b"null")
    request_id: Any = None  #: header of the equivalent single call


class _Line(msgspec.Struct):
    custom_id: str
    response: _Response | None = None
    error: _Fault | None = None


class _Kind(msgspec.Struct):
    object: str = ""


_kind: Final = msgspec.json.Decoder(_Kind)
_output_line: Final = msgspec.json.Decoder(_Line)


class OpenAIBatches:
    """The batches of one model at an endpoint with OpenAI's API."""

    form = "openai"
    bounds = BatchBounds(requests=50_000, bytes=200_000_000)

    def __init__(self, model: str, options: ClientOptions) -> None:
        self._model = model.removeprefix("openai/")
        base_url = OPENAI_URL if options.base_url is None else options.base_url
        endpoint = endpoint_url(base_url)
        self.ladder = options.ladder or Fallbacks(
            endpoint, model, structured=options.structured
        )
        self._form: Final = (
            OPENAI_RESPONSES if options.api == "responses" else OPENAI_CHAT
        )
        if endpoint == OPENAI_URL:
            self.ladder.begin_with("max_completion_tokens")
        key = options.api_key
        headers = {} if key is None else {"authorization": f"Bearer {key.reveal()}"}
        self._link = BatchConnection(endpoint, headers, options)

    def encode(self, request: ChatRequest, shape: Shape) -> bytes:
        """Encode a request's body."""
        return CHATS[self._form](request, self._model, shape)

    async def upload(self, key: str, items: Sequence[tuple[str, bytes]]) -> str | None:
        """Upload the requests as a file named after the key."""
        content = b"".join(
            msgspec.json.encode(
                {
                    "custom_id": item_id,
                    "method": "POST",
                    "url": f"/v1{PATHS[self._form]}",
                    "body": msgspec.Raw(body),
                }
            )
            + b"\n"
            for item_id, body in items
        )
        uploaded = await self._link.upload(
            "/files", _Id, name=f"{key}.jsonl", content=content
        )
        return uploaded.id

    async def create(
        self, key: str, items: Sequence[tuple[str, bytes]], file: str | None
    ) -> str:
        """Create the batch of an uploaded file."""
        del items
        created = await self._link.post(
            "/batches",
            _Id,
            {
                "input_file_id": file,
                "endpoint": f"/v1{PATHS[self._form]}",
                "completion_window": WINDOW,
                "metadata": {METADATA: key},
            },
        )
        return created.id

    async def find(self, query: BatchQuery) -> BatchSearch:
        """Search the list for the key, from the newest batch back."""
        async with aclosing(
            self._list_batches(query.prepared_us / 1e6 - SKEW_S)
        ) as batches:
            async for batch in batches:
                if batch.key == query.key:
                    return BatchSearch(id=batch.id)
        return BatchSearch()

    async def _list_batches(self, since_s: float) -> AsyncGenerator[_Batch]:
        """Yield the batches on the pages of the list back to *since_s*."""
        after: dict[str, str] = {}
        while True:
            page = await self._link.get("/batches", _Page, {"limit": PAGE, **after})
            for batch in page.data:
                yield batch
            if not page.has_more or not page.data or page.data[-1].created_at < since_s:
                return
            after = {"after": page.data[-1].id}

    async def orphans(
        self, tag: str, *, known: AbstractSet[str], before_us: int
    ) -> list[OrphanItem]:
        """Return items of batches with the tag, read from their files."""
        del before_us  # the list shows the key of every batch
        orphans: list[OrphanItem] = []
        async with aclosing(self._list_batches(0.0)) as batches:
            async for batch in batches:
                if not known & {batch.id, batch.key} and batch.is_of(tag):
                    orphans += [
                        OrphanItem(batch=batch.id, item=item)
                        async for item in self._items(batch)
                    ]
        return orphans

    async def _items(self, batch: _Batch) -> AsyncGenerator[str]:
        """Yield the ids of items that a batch has answered, or may still answer."""
        is_over = batch.status in OUTCOMES
        file = batch.output_file_id if is_over else batch.input_file_id
        if not file:
            return
        async with aclosing(self._link.lines(f"/files/{file}/content")) as lines:
            async for line in lines:
                yield self._decoded(line).custom_id

    async def poll(self, batch_id: str) -> BatchStatus:
        """Return the status of a batch."""
        batch = await self._link.get(f"/batches/{batch_id}", _Batch)
        counts = batch.request_counts or _Counts()
        outcome = OUTCOMES.get(batch.status)
        faults = (batch.errors and batch.errors.data) or []
        faults_by_item = {
            fault.line - 1: self._fault(fault)
            for fault in faults
            if fault.line is not None
        }
        whole = [self._fault(fault) for fault in faults if fault.line is None]
        rest = whole[0] if whole else None
        if outcome == "failed" and not faults:
            rest = BadRequest("The batch failed, and the provider does not say why.")
        return BatchStatus(
            status=batch.status,
            done=counts.completed,
            failed=counts.failed,
            outcome=outcome,
            reason="; ".join(map(str, [*whole, *list(faults_by_item.values())[:1]]))
            or None,
            # answers first: they prove that the endpoint works
            files=tuple(filter(None, (batch.output_file_id, batch.error_file_id))),
            faults=faults_by_item,
            rest=rest,
        )

    @staticmethod
    def _fault(fault: _Fault) -> AttemptError:
        kind: type[AttemptError] = BadRequest
        if fault.code in TOO_MUCH:
            kind = RateLimited
        elif fault.code == "model_not_found":
            kind = NotServed
        reason = ": ".join(filter(None, (fault.code, fault.message)))
        return kind(f"The batch failed: {reason or 'no reason was given'}")

    async def results(
        self, batch_id: str, status: BatchStatus
    ) -> AsyncGenerator[tuple[str, ItemOutcome]]:
        """Yield the lines of the output and error files."""
        del batch_id
        for file in status.files:
            async with aclosing(self._link.lines(f"/files/{file}/content")) as lines:
                async for line in lines:
                    yield self._read(line)

    @staticmethod
    def _decoded(line: bytes) -> _Line:
        try:
            return _output_line.decode(line)
        except UNREADABLE as error:
            raise MalformedReply(
                f"A line of a batch's results cannot be read ({error}).", body=line
            ) from error

    def _read(self, line: bytes) -> tuple[str, ItemOutcome]:
        item = self._decoded(line)
        if item.response is None:
            fault = item.error or _Fault()
            reason = ": ".join(filter(None, (fault.code, fault.message)))
            return item.custom_id, Expired(
                f"Not answered: {reason or 'no reason given'}"
            )
        body = bytes(item.response.body)
        if item.response.status_code != httpx.codes.OK:
            return item.custom_id, self._link.refusal(item.response.status_code, body)
        request = item.response.request_id
        headers = {REQUEST_IDS[0]: request} if isinstance(request, str) else None
        return item.custom_id, received(form_of(body), body, headers)

    async def cancel(self, batch_id: str) -> None:
        """Cancel a batch."""
        await self._link.post(f"/batches/{batch_id}/cancel", _Id)

    async def close(self) -> None:
        """Close all connections."""
        await self._link.close()


def form_of(body: bytes) -> str:
    """Return the form of an item's answer.

    The body determines it: an earlier process may have used the other form.
    """
    with suppress(*UNREADABLE):
        if _kind.decode(body).object == "response":
            return OPENAI_RESPONSES
    return OPENAI_CHAT


def received(
    form: str, body: bytes, headers: dict[str, str] | None = None
) -> ItemOutcome:
    """Decode an item's answer; return an error if it is invalid."""
    try:
        reply = decode_reply(form, body)
    except AttemptError as error:
        error.status = httpx.codes.OK.value
        return error
    return Received(body=body, form=form, reply=reply, headers=headers)
