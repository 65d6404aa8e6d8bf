"""Implements Anthropic's batches: requests are part of the batch, results are one page.

A batch stores nothing of siftlog except the ids of its requests, which only the results
show. So a candidate is a batch with the same number of requests and no known key; it
can be confirmed only after it has ended.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import aclosing
from datetime import datetime
from typing import Final

import msgspec

from runner.batch.batch import (
    BatchBounds,
    BatchQuery,
    BatchSearch,
    BatchStatus,
    ItemOutcome,
    OrphanItem,
    key_of,
)
from runner.batch.openai import PAGE, SKEW_S, BatchConnection, received
from runner.clients.client import ClientOptions, Received
from runner.clients.fallbacks import Fallbacks
from runner.clients.http_client import endpoint_url
from runner.clients.wire import ANTHROPIC_MESSAGES, encode_messages
from runner.clients.wire_shared import UNREADABLE, Shape
from runner.errors import Expired, MalformedReply
from runner.messages import ChatRequest
from store.events import BatchOutcome

ANTHROPIC_URL: Final = "https://api.anthropic.com/v1"
VERSION: Final = "2023-06-01"
"""API version, sent with every request."""
BATCHES: Final = "/messages/batches"

STATUSES: Final[Mapping[str, int]] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""Status of the equivalent single call, by error type."""


class _Id(msgspec.Struct):
    id: str


class _Counts(msgspec.Struct):
    processing: int = 0
    succeeded: int = 0
    errored: int = 0
    canceled: int = 0
    expired: int = 0

    @property
    def total(self) -> int:
        return sum(getattr(self, name) for name in self.__struct_fields__)


class _Batch(msgspec.Struct):
    id: str
    processing_status: str
    request_counts: _Counts
    created_at: datetime
    cancel_initiated_at: datetime | None = None

    @property
    def has_ended(self) -> bool:
        return self.processing_status == "ended"


class _Page(msgspec.Struct):
    data: list[_Batch]
    has_more: bool = False


class _Type(msgspec.Struct):
    type: str = ""


class _Error(msgspec.Struct):
    error: _Type


class _Result(msgspec.Struct):
    type: str
    message: msgspec.Raw = msgspec.Raw(b"null")
    error: msgspec.Raw = msgspec.Raw(b"null")


class _Line(msgspec.Struct):
    custom_id: str
    result: _Result


_result_line: Final = msgspec.json.Decoder(_Line)
_error: Final = msgspec.json.Decoder(_Error)


class AnthropicBatches:
    """The batches of one model at an endpoint with Anthropic's API."""

    form = "anthropic"
    bounds = BatchBounds(requests=100_000, bytes=256_000_000)

    def __init__(self, model: str, options: ClientOptions) -> None:
        self._model = model.removeprefix("anthropic/")
        base_url = ANTHROPIC_URL if options.base_url is None else options.base_url
        key = options.api_key
        headers = {"anthropic-version": VERSION}
        if key is not None:
            headers["x-api-key"] = key.reveal()
        endpoint = endpoint_url(base_url)
        self.ladder = options.ladder or Fallbacks(
            endpoint, model, structured=options.structured
        )
        self._link = BatchConnection(endpoint, headers, options)

    def encode(self, request: ChatRequest, shape: Shape) -> bytes:
        """Encode a request's body."""
        return encode_messages(request, self._model, shape)

    async def upload(self, key: str, items: Sequence[tuple[str, bytes]]) -> None:
        """Do nothing: the requests are part of the batch."""
        del key, items

    async def create(
        self, key: str, items: Sequence[tuple[str, bytes]], file: str | None
    ) -> str:
        """Create the batch."""
        del key, file
        requests = [
            {"custom_id": item_id, "params": msgspec.Raw(body)}
            for item_id, body in items
        ]
        created = await self._link.post(BATCHES, _Id, {"requests": requests})
        return created.id

    async def find(self, query: BatchQuery) -> BatchSearch:
        """Check all candidates, from the newest batch back."""
        is_settled = True
        async with aclosing(
            self._list_batches(query.prepared_us / 1e6 - SKEW_S)
        ) as batches:
            async for batch in batches:
                is_other = batch.id in query.others
                if is_other or batch.request_counts.total != query.requests:
                    continue
                if not batch.has_ended:
                    is_settled = False
                elif await self._is_of(batch.id, query.key):
                    return BatchSearch(id=batch.id)
        return BatchSearch(is_settled=is_settled)

    async def _list_batches(self, since_s: float) -> AsyncGenerator[_Batch]:
        """Yield batches created since *since_s*, newest first."""
        after: dict[str, str] = {}
        while True:
            page = await self._link.get(BATCHES, _Page, {"limit": PAGE, **after})
            for batch in page.data:
                if batch.created_at.timestamp() < since_s:
                    return
                yield batch
            if not page.has_more or not page.data:
                return
            after = {"after_id": page.data[-1].id}

    async def _is_of(self, batch_id: str, key: str) -> bool:
        """Return whether the first result of a batch has that key or tag."""
        async with aclosing(self.results(batch_id, BatchStatus(status=""))) as results:
            async for item_id, _ in results:
                return item_id.startswith(f"{key}-")
        return False

    async def orphans(
        self, tag: str, *, known: AbstractSet[str], before_us: int
    ) -> list[OrphanItem] | None:
        """Return items whose results have the tag; open batches show none yet."""
        async with aclosing(self._list_batches(0.0)) as batches:
            others = [batch async for batch in batches if batch.id not in known]
        begun_s = before_us / 1e6
        if any(
            not batch.has_ended and batch.created_at.timestamp() <= begun_s
            for batch in others
        ):
            return None
        return [
            OrphanItem(batch=batch.id, item=item)
            for batch in others
            if batch.has_ended and await self._is_of(batch.id, tag)
            async for item, outcome in self.results(batch.id, BatchStatus(status=""))
            if isinstance(outcome, Received) and key_of(item) not in known
        ]

    async def poll(self, batch_id: str) -> BatchStatus:
        """Return the status of a batch."""
        batch = await self._link.get(f"{BATCHES}/{batch_id}", _Batch)
        counts = batch.request_counts
        return BatchStatus(
            status=batch.processing_status,
            done=counts.succeeded,
            failed=counts.errored,
            outcome=_outcome(batch) if batch.has_ended else None,
        )

    async def results(
        self, batch_id: str, status: BatchStatus
    ) -> AsyncGenerator[tuple[str, ItemOutcome]]:
        """Yield the lines of the page of results."""
        del status
        async with aclosing(self._link.lines(f"{BATCHES}/{batch_id}/results")) as lines:
            async for line in lines:
                yield self._read(line)

    def _read(self, line: bytes) -> tuple[str, ItemOutcome]:
        try:
            item = _result_line.decode(line)
            result = item.result
            if result.type == "errored":
                error_type = _error.decode(bytes(result.error)).error.type
                status = STATUSES.get(error_type, 500)
                refused = self._link.refusal(status, bytes(result.error))
                return item.custom_id, refused
        except UNREADABLE as error:
            raise MalformedReply(
                f"A line of a batch's results cannot be read ({error}).", body=line
            ) from error
        if result.type != "succeeded":
            return item.custom_id, Expired(f"Not answered: {result.type}")
        return item.custom_id, received(ANTHROPIC_MESSAGES, bytes(result.message))

    async def cancel(self, batch_id: str) -> None:
        """Cancel a batch."""
        await self._link.post(f"{BATCHES}/{batch_id}/cancel", _Id)

    async def close(self) -> None:
        """Close all connections."""
        await self._link.close()


def _outcome(batch: _Batch) -> BatchOutcome:
    """Return the outcome of an ended batch; single requests may have succeeded."""
    counts = batch.request_counts
    if counts.expired:
        return "expired"
    return "cancelled" if batch.cancel_initiated_at or counts.canceled else "completed"
