"""Reads batches: files of results of OpenAI and Anthropic, and of their requests.

Results have no prompts: they are in the file of requests, which is read beside it and
matched by `custom_id`. A reply is stored byte for byte, as if it had been received
here, so all of it is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from runner.clients.refusals import refusal
from runner.clients.wire import ANTHROPIC_MESSAGES, decode_reply
from runner.clients.wire_openai import OPENAI_CHAT, OPENAI_RESPONSES
from runner.errors import AttemptError, DatasetError
from runner.imports.json_stream import ELEMENT, values_in
from runner.imports.records import (
    Content,
    ForeignPrompt,
    ForeignReply,
    RoleMessage,
    decoded,
    json_lines,
    messages_from,
    opened,
    seconds_of,
)
from runner.messages import Reply

# Requests


class BatchedBody(msgspec.Struct, kw_only=True):
    """A chat request of either provider; of OpenAI's responses `input`."""

    model: str
    messages: list[RoleMessage] = []
    system: Content = None
    instructions: str | None = None
    input: str | list[RoleMessage] | None = None


class BatchedRequest(msgspec.Struct, kw_only=True):
    """A line of a file of requests: `body` is OpenAI's, `params` Anthropic's."""

    custom_id: str
    body: BatchedBody | None = None
    params: BatchedBody | None = None


def read_requests(path: Path) -> Iterator[ForeignPrompt]:
    """Yield the prompts of a file of requests, as JSON lines.

    Raises:
        DatasetError: a line is no request.
    """
    for where, request in json_lines(path, BatchedRequest):
        yield _prompt(request, where)


_REQUESTS: Final = ("requests", ELEMENT)


def read_request_list(path: Path) -> Iterator[ForeignPrompt]:
    """Yield the prompts of the body that Anthropic is sent: an object of requests."""
    with opened(path) as file:
        for value in values_in(file, path.name, [_REQUESTS]):
            where = f"{path.name} line {value.line}"
            yield _prompt(decoded(value.raw, BatchedRequest, where), where)


def _prompt(request: BatchedRequest, where: str) -> ForeignPrompt:
    body = request.body or request.params
    if body is None:
        raise DatasetError(
            f"{where}: the request {request.custom_id!r} has neither body nor params "
            "(export the file again)."
        )
    system = body.system or body.instructions
    messages = [RoleMessage(role="system", content=system)] if system else []
    if isinstance(body.input, str):
        messages.append(RoleMessage(role="user", content=body.input))
    messages += body.input if isinstance(body.input, list) else body.messages
    dropped: dict[str, None] = {}
    return ForeignPrompt(
        item=request.custom_id,
        model=body.model,
        messages=messages_from(messages, dropped),
        dropped=tuple(dropped),
    )


# Results of OpenAI, and of providers that copy its batches

OBJECTS: Final = {"chat.completion": OPENAI_CHAT, "response": OPENAI_RESPONSES}
"""Wire forms by the field `object` of a reply."""


class OpenAIResponse(msgspec.Struct, kw_only=True):
    """Response to a request."""

    status_code: int = 200
    body: msgspec.Raw = msgspec.Raw(b"null")


class OpenAIError(msgspec.Struct, kw_only=True):
    """Reason why a request was not sent."""

    code: str | None = None
    message: str | None = None


class OpenAIResult(msgspec.Struct, kw_only=True):
    """A line of a file of results, or of errors."""

    custom_id: str
    response: OpenAIResponse | None = None
    error: OpenAIError | None = None


class ReplyHead(msgspec.Struct, kw_only=True):
    """The fields that say what a reply is."""

    object: str = ""
    model: str = ""
    created: float | None = None
    created_at: float | None = None


def read_openai(path: Path) -> Iterator[ForeignReply]:
    """Yield the replies of a file of results; failed requests have no text.

    Raises:
        DatasetError: a line is no result, or its reply is no chat's.
    """
    for where, result in json_lines(path, OpenAIResult):
        response = result.response
        if response is None and result.error is None:
            raise DatasetError(
                f"{where}: neither a response nor an error (export the file again, or "
                "remove such lines)."
            )
        if response is None or result.error is not None:
            code = result.error.code if result.error else None
            yield _failed(result.custom_id, code or "unknown")
            continue
        raw = bytes(response.body)
        if response.status_code != 200:  # noqa: PLR2004 - HTTP's OK
            error = refusal("the batch", response.status_code, {}, raw, now_us=0)
            yield _failed(result.custom_id, type(error).__name__)
            continue
        head = decoded(raw, ReplyHead, where)
        if head.object not in OBJECTS:
            raise DatasetError(
                f"{where}: a reply of the kind {head.object!r}, not a chat's (remove "
                "such lines)."
            )
        yield _answered(
            result.custom_id,
            head.model,
            OBJECTS[head.object],
            raw,
            created_s=seconds_of(head.created or head.created_at),
        )


# Results of Anthropic


class AnthropicFault(msgspec.Struct, kw_only=True):
    """The error in an error; its type is Anthropic's."""

    type: str = "unknown"
    error: Any = None


class AnthropicOutcome(msgspec.Struct, kw_only=True):
    """Outcome of a request: `succeeded`, `errored`, `canceled` or `expired`."""

    type: str
    message: msgspec.Raw = msgspec.Raw()  #: empty: there is none
    error: AnthropicFault | None = None


class AnthropicResult(msgspec.Struct, kw_only=True):
    """A line of a file of results."""

    custom_id: str
    result: AnthropicOutcome


def read_anthropic(path: Path) -> Iterator[ForeignReply]:
    """Yield the replies of a file of results; failed requests have no text.

    Raises:
        DatasetError: a line is no result.
    """
    for where, line in json_lines(path, AnthropicResult):
        outcome = line.result
        if raw := bytes(outcome.message):
            model = decoded(raw, ReplyHead, where).model
            yield _answered(line.custom_id, model, ANTHROPIC_MESSAGES, raw)
            continue
        fault = outcome.error
        inner = fault.error if fault else None
        kind = inner.get("type") if isinstance(inner, dict) else None
        yield _failed(line.custom_id, str(kind or outcome.type))


def _failed(item: str, error: str) -> ForeignReply:
    return ForeignReply(item=item, model="", error=error)


def _answered(
    item: str, model: str, form: str, raw: bytes, created_s: int | None = None
) -> ForeignReply:
    try:
        reply = decode_reply(form, raw)
    except AttemptError as error:
        return ForeignReply(item=item, model=model, error=type(error).__name__)
    assert isinstance(reply, Reply)  # noqa: S101 - both forms are of chats
    return ForeignReply(
        item=item,
        model=model,
        text=reply.text,
        finish_reason=reply.finish_reason,
        usage=reply.usage,
        served=reply.served,
        created_s=created_s,
        form=form,
        body=raw,
    )
