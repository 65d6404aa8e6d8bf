"""Simulates Anthropic's Message Batches: requests in the batch, results as lines."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from runner.simulate.anthropic_messages import read_message
from runner.simulate.batches import (
    BatchOffice,
    BatchOrder,
    BatchPhase,
    ItemEnding,
    SimulatedItem,
    StoredBatch,
)
from runner.simulate.billing import Ledger
from runner.simulate.dialect import MESSAGES
from runner.simulate.options import SimulateOptions
from runner.simulate.provider import Provider
from runner.simulate.requests import (
    BatchHandler,
    BatchRefusal,
    BatchRequest,
    BatchResponse,
    encoded,
    joined,
    page,
    read,
)

MOST_REQUESTS: Final = 100_000
"""Maximum requests per batch (API reference, "Create a Message Batch")."""

MOST_BYTES: Final = 256_000_000
"""Maximum bytes per batch (API reference, "Create a Message Batch")."""

WINDOW_US: Final = 24 * 60 * 60 * 1_000_000

_CUSTOM_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")

_STATUSES: Final[Mapping[BatchPhase, str]] = {
    BatchPhase.VALIDATING: "in_progress",
    BatchPhase.IN_PROGRESS: "in_progress",
    BatchPhase.FINALIZING: "in_progress",
    BatchPhase.CANCELLING: "canceling",
}
"""Anthropic's names of the phases; all others have ended."""

_KINDS: Final[Mapping[int, str]] = {
    401: "authentication_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
"""Anthropic's names of errors, by status; others are request or server errors."""

_SERVER = 500


class _Request(msgspec.Struct):
    custom_id: str
    params: msgspec.Raw


class _CreateParams(msgspec.Struct):
    requests: list[_Request]


class AnthropicForm:
    """Batches in Anthropic's format."""

    def __init__(
        self, options: SimulateOptions, provider: Provider, ledger: Ledger
    ) -> None:
        self._office = BatchOffice("msgbatch_", options, provider, ledger)
        self.routes: Mapping[tuple[str, str], BatchHandler] = {
            ("POST", "/messages/batches"): self._create,
            ("GET", "/messages/batches"): self._list,
            ("GET", "/messages/batches/*"): self._batch,
            ("POST", "/messages/batches/*/cancel"): self._cancel,
            ("GET", "/messages/batches/*/results"): self._results,
        }
        self.headers: Mapping[tuple[str, ...], int] = {
            # newer clients send the key as a bearer token too
            ("x-api-key", "authorization"): 401,
            ("anthropic-version",): 400,
        }

    def advance(self, now_us: int) -> None:
        """Advance all batches."""
        self._office.advance(now_us)

    def complaint(self, refusal: BatchRefusal) -> bytes:
        """Return the body of a *refusal*."""
        return encoded(_error_body(refusal.status, str(refusal)))

    def _create(self, batch_request: BatchRequest) -> BatchResponse:
        """Check the ids at once; errors in params show only in the results."""
        if len(batch_request.body) > MOST_BYTES:
            raise BatchRefusal(f"A batch has at most {MOST_BYTES} bytes.", status=413)
        requests = read(batch_request.body, _CreateParams).requests
        if not 1 <= len(requests) <= MOST_REQUESTS:
            raise BatchRefusal(f"requests: a batch has 1 to {MOST_REQUESTS} of them")
        custom_ids: set[str] = set()
        for index, request in enumerate(requests):
            if _CUSTOM_ID.fullmatch(request.custom_id) is None:
                raise BatchRefusal(
                    f"requests.{index}.custom_id: 1 to 64 letters, digits, - and _"
                )
            if request.custom_id in custom_ids:
                raise BatchRefusal(
                    f"requests.{index}.custom_id: {request.custom_id} comes twice"
                )
            custom_ids.add(request.custom_id)
        if not self._office.has_room(len(requests)):
            raise BatchRefusal("Too many requests wait in batches.", status=429)
        stored_batch = self._office.create(
            [
                BatchOrder.of(request.custom_id, bytes(request.params))
                for request in requests
            ],
            batch_request.now_us,
            read_message,
            MESSAGES,
        )
        return BatchResponse(
            body=encoded(_described(stored_batch, batch_request)),
            created=stored_batch.id,
        )

    def _list(self, batch_request: BatchRequest) -> BatchResponse:
        part = page(
            self._office.newest(batch_request.now_us),
            batch_request,
            after="after_id",
            before="before_id",
            most=1000,
        )
        batches = [
            _described(self._office.find(batch_id, batch_request.now_us), batch_request)
            for batch_id in part.ids
        ]
        return BatchResponse(body=part.body(batches))

    def _batch(self, batch_request: BatchRequest, batch_id: str) -> BatchResponse:
        return BatchResponse(
            body=encoded(
                _described(
                    self._office.find(batch_id, batch_request.now_us), batch_request
                )
            )
        )

    def _cancel(self, batch_request: BatchRequest, batch_id: str) -> BatchResponse:
        stored_batch = self._office.cancel(batch_id, batch_request.now_us)
        return BatchResponse(body=encoded(_described(stored_batch, batch_request)))

    def _results(self, batch_request: BatchRequest, batch_id: str) -> BatchResponse:
        stored_batch = self._office.find(batch_id, batch_request.now_us)
        if not stored_batch.batch.phase.is_terminal:
            raise BatchRefusal("The batch has not ended yet, so it has no results.")
        return BatchResponse(
            body=joined(
                [_result(stored_batch, item) for item in stored_batch.batch.ended]
            ),
            is_download=True,
        )


def _described(
    stored_batch: StoredBatch, batch_request: BatchRequest
) -> dict[str, Any]:
    """Describe a batch as Anthropic does: counts are zero until all have ended."""
    batch = stored_batch.batch
    entered = batch.entered
    created_us = entered[BatchPhase.VALIDATING]
    ended_us = entered[batch.phase] if batch.phase.is_terminal else None
    counts = {
        ending: batch.count(ending) if ended_us is not None else 0
        for ending in ItemEnding
    }
    return {
        "id": stored_batch.id,
        "type": "message_batch",
        "processing_status": _STATUSES.get(batch.phase, "ended"),
        "request_counts": {
            "processing": batch.total if ended_us is None else 0,
            **counts,
        },
        "created_at": _rfc3339(created_us),
        "expires_at": _rfc3339(created_us + WINDOW_US),
        "ended_at": _rfc3339(ended_us),
        "cancel_initiated_at": _rfc3339(entered.get(BatchPhase.CANCELLING)),
        "archived_at": None,
        "results_url": None
        if ended_us is None
        else f"{batch_request.base_url}/messages/batches/{stored_batch.id}/results",
    }


def _result(stored_batch: StoredBatch, item: SimulatedItem) -> Mapping[str, Any]:
    result: dict[str, Any] = {"type": item.ending}
    if item.ending is ItemEnding.SUCCEEDED:
        result["message"] = msgspec.Raw(stored_batch.replies[item.custom_id])
    if item.ending is ItemEnding.ERRORED:
        result["error"] = _error_body(item.status, item.problem)
    return {"custom_id": item.custom_id, "result": result}


def _error_body(status: int, message: str) -> dict[str, Any]:
    usual = "api_error" if status >= _SERVER else "invalid_request_error"
    return {
        "type": "error",
        "error": {"type": _KINDS.get(status, usual), "message": message},
        "request_id": None,
    }


def _rfc3339(at_us: int | None) -> str | None:
    """Format a time according to RFC 3339."""
    if at_us is None:
        return None
    at = datetime.fromtimestamp(at_us / 1_000_000, UTC)
    return at.isoformat(timespec="microseconds").replace("+00:00", "Z")
