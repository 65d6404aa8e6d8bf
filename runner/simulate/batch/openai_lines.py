"""The lines of OpenAI's batch files: those that come in, and those of the results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from runner.simulate.batch.drawing import Order
from runner.simulate.batch.office import Kept
from runner.simulate.batch.state import Ending, Item

LONGEST_ID: Final = 64
"""Characters of a custom id, of either provider."""

MOST_REQUESTS: Final = 50_000
"""Of a file (API reference, "Create batch")."""

MOST_BYTES: Final = 200_000_000
"""Of a file (API reference, "Create batch")."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What is wrong with an input file, in the form of a batch's `errors`."""

    code: str
    message: str
    line: int | None = None  #: from 1
    param: str | None = None


TOO_MANY_WAITING: Final = Problem(
    code="token_limit_exceeded",
    message="Too much waits in other batches; try again when some have ended.",
)
"""OpenAI counts the tokens that wait, the simulation items."""


class _Model(msgspec.Struct):
    model: str


class _Line(msgspec.Struct):
    custom_id: str
    method: str
    url: str
    body: msgspec.Raw


def read_orders(content: bytes, endpoint: str) -> tuple[list[Order], list[Problem]]:
    """The requests of an input file, and what is wrong with it."""
    if len(content) > MOST_BYTES:
        return [], [
            Problem(
                code="file_too_large",
                message=f"The file is larger than {MOST_BYTES} bytes.",
            )
        ]
    lines = [
        (number, line)
        for number, line in enumerate(content.split(b"\n"), start=1)
        if line.strip()
    ]
    if not lines:
        return [], [Problem(code="empty_file", message="The file has no lines.")]
    if len(lines) > MOST_REQUESTS:
        return [], [
            Problem(
                code="too_many_tasks",
                message=f"The file has more than {MOST_REQUESTS} requests.",
            )
        ]
    orders: dict[str, Order] = {}
    problems: list[Problem] = []
    model = ""
    for number, raw in lines:
        try:
            line = msgspec.json.decode(raw, type=_Line)
            asked = msgspec.json.decode(line.body, type=_Model).model
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            problems.append(
                Problem(code="invalid_json_line", message=f"{error}.", line=number)
            )
            continue
        model = model or asked
        is_known = line.custom_id in orders
        problems += (
            Problem(code=code, message=message, line=number, param=param)
            for is_broken, code, param, message in _rules(
                line, asked, endpoint=endpoint, model=model, is_known=is_known
            )
            if is_broken
        )
        orders[line.custom_id] = Order.of(line.custom_id, bytes(line.body))
    return list(orders.values()), problems


def _rules(
    line: _Line, asked: str, *, endpoint: str, model: str, is_known: bool
) -> tuple[tuple[bool, str, str, str], ...]:
    """Rules for a line: whether it breaks them, code, field, and what to say then."""
    return (
        (
            not 1 <= len(line.custom_id) <= LONGEST_ID,
            "invalid_custom_id",
            "custom_id",
            f"A custom_id has 1 to {LONGEST_ID} characters.",
        ),
        (
            is_known,
            "duplicate_custom_id",
            "custom_id",
            f"The custom_id {line.custom_id} stands in another line too.",
        ),
        (line.method != "POST", "invalid_method", "method", "The method is not POST."),
        (
            line.url != endpoint,
            "url_mismatch",
            "url",
            f"The batch is for {endpoint}, not for {line.url}.",
        ),
        (
            asked != model,
            "model_mismatch",
            "body.model",
            f"The batch asks {model}, and nothing of {asked}.",
        ),
    )


def output_lines(kept: Kept) -> list[Mapping[str, Any]]:
    """The answers, in the order in which they were ready."""
    return [
        _line(kept, item, response=_response(item, msgspec.Raw(reply)))
        for item in kept.batch.ended
        if item.ending is Ending.SUCCEEDED
        for reply in (kept.replies[item.custom_id],)
    ]


def error_lines(kept: Kept) -> list[Mapping[str, Any]]:
    """What was not answered, and why."""
    return [
        _line(kept, item, response=_failed(item))
        if item.ending is Ending.ERRORED
        else _line(kept, item, error=_UNDONE[item.ending])
        for item in kept.batch.ended
        if item.ending is not Ending.SUCCEEDED
    ]


def _line(
    kept: Kept,
    item: Item,
    *,
    response: Mapping[str, Any] | None = None,
    error: Mapping[str, str] | None = None,
) -> Mapping[str, Any]:
    return {
        "id": f"batch_req_{kept.id[-8:]}{item.digest[:16]}",
        "custom_id": item.custom_id,
        "response": response,
        "error": error,
    }


def _response(item: Item, body: object) -> Mapping[str, Any]:
    return {
        "status_code": item.status,
        "request_id": f"req_{item.digest[:24]}",
        "body": body,
    }


def _failed(item: Item) -> Mapping[str, Any]:
    return _response(item, error_body(item.status, item.problem))


def error_body(
    status: int, message: str, param: str | None = None
) -> Mapping[str, Any]:
    """The body of an error with *status*."""
    return {
        "error": {
            "message": message,
            "type": "server_error" if status >= _SERVER else "invalid_request_error",
            "param": param,
            "code": "rate_limit_exceeded" if status == _TOO_MANY else None,
        }
    }


_TOO_MANY, _SERVER = 429, 500

_UNDONE: Final[Mapping[Ending, Mapping[str, str]]] = {
    Ending.EXPIRED: {
        "code": "batch_expired",
        "message": "The completion window closed before this request was done.",
    },
    Ending.CANCELED: {
        "code": "batch_cancelled",
        "message": "The batch was cancelled before this request was done.",
    },
}
