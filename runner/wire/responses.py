"""OpenAI's Responses form, which some of its models have instead of a chat form.

A request carries the system messages as `instructions` and all others as items of
`input`. A reply is a list of output items, of which only the messages are the answer;
the others are reasoning and tool calls. The form differs from that of chat completions
in the names of nearly all fields (`design/responses.md` has the table).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from runner.errors import (
    AttemptError,
    BadRequest,
    ContentFiltered,
    MalformedReply,
    RateLimited,
    ServerError,
)
from runner.reply import Reply
from runner.request import ChatRequest, Message, Schema
from runner.wire.chat import end_of
from runner.wire.reading import UNREADABLE, read_body
from runner.wire.shape import (
    PLAIN,
    Shape,
    Structure,
    chat_fields,
    messages_in,
    schema_json,
)
from runner.wire.texts import encoded_part
from runner.wire.usage import usage_in
from store.served import served_in

OPENAI_RESPONSES: Final = "openai.responses"
"""The form of OpenAI's Responses API."""

LONGEST_WORDS: Final = 300
"""Characters of an error's message that are passed on."""

FAILED: Final = ("failed", "cancelled")
"""Statuses of a response that came to nothing."""

FAILURES: Final[Mapping[str, type[AttemptError]]] = {
    "rate_limit_exceeded": RateLimited,
    "invalid_prompt": ContentFiltered,
    "bio_policy": ContentFiltered,
    "data_residency_mismatch": BadRequest,
}
"""From the code of a response with status 200 that failed; any other is a fault of the
server, as its own `server_error` is. `invalid_prompt` is what reasoning models say of a
prompt that violates the usage policy."""


def encode_responses(request: ChatRequest, model: str, shape: Shape = PLAIN) -> bytes:
    """The body of a request to `/responses`.

    Args:
        request: What is asked.
        model: The model's name as the endpoint knows it.
        shape: How the endpoint wants it written. Its role of instructions is their
            field here; where that is refused, they become items of the input.
    """
    messages = messages_in(request, shape)
    instructions = [message for role, message in messages if role == "system"]
    body: dict[str, Any] = {
        "model": model,
        "input": [
            {"role": role, "content": _quoted([message])}
            for role, message in messages
            if role != "system"
        ],
        # the provider would keep prompt and answer for 30 days, unlike a chat's
        "store": False,
    }
    if instructions:
        body["instructions"] = _quoted(instructions)
    if request.schema is not None and shape.structure is not Structure.TEXT:
        body["text"] = {"format": text_format(request.schema, shape)}
    for name, value in _fields(request, shape):
        inner = body.get(name)
        if isinstance(inner, dict) and isinstance(value, dict):
            body[name] = inner | value
        else:
            body[name] = value
    return msgspec.json.encode(body)


def _fields(request: ChatRequest, shape: Shape) -> Iterator[tuple[str, Any]]:
    """The parameters of a chat request under the names that they have in this form."""
    for name, value in chat_fields(request, shape).items():
        if name == shape.limit:
            yield "max_output_tokens", value
        elif name == "reasoning_effort":
            yield "reasoning", {"effort": value}
        else:
            yield name, value


def text_format(schema: Schema, shape: Shape) -> dict[str, object]:
    """Asks for a reply that follows *schema*, or at least for a JSON object."""
    if shape.structure is Structure.OBJECT:
        return {"type": "json_object"}
    asked: dict[str, object] = {"type": "json_schema", "name": schema.name}
    if shape.structure is Structure.SCHEMA:
        asked["strict"] = True
    asked["schema"] = msgspec.Raw(schema_json(schema, shape).encode())
    return asked


def _quoted(messages: Iterable[Message]) -> msgspec.Raw:
    """The texts of *messages* as one JSON string, a blank line between any two."""
    texts = (
        b"".join([encoded_part(part.text).json for part in message.parts])
        for message in messages
    )
    return msgspec.Raw(b'"%s"' % rb"\n\n".join(texts))


_object: Final = msgspec.json.Decoder(dict[str, Any])


def decode_responses(body: bytes) -> Reply:
    """The reply in a body.

    Raises:
        MalformedReply: It is no response of this form.
        AttemptError: It is one that failed, with neither text nor usage.
    """
    try:
        response = read_body(_object, body)
    except UNREADABLE as error:
        raise MalformedReply(
            f"The reply is not a response ({error}).", body=body
        ) from error
    output = response.get("output")
    if not isinstance(output, list) and not isinstance(response.get("error"), dict):
        raise MalformedReply("The reply is a response without output.", body=body)
    items = list(_objects(output))
    texts, refusals = _said(items)
    usage = usage_in(response.get("usage"))
    # what was counted is billed: such a response is kept, as an answer without text
    if response.get("status") in FAILED and not (texts or usage):
        raise _failure(response, body)
    is_refused = bool(refusals) and not texts
    return Reply(
        text="".join(refusals if is_refused else texts),
        finish_reason="refusal" if is_refused else _reason(response),
        reasoning=_thoughts(items),
        usage=usage,
        served=served_in(response),
    )


def _said(output: Iterable[dict[str, Any]]) -> tuple[list[str], list[str]]:
    """The texts and the refusals of the output's messages.

    A model may comment on its work before it answers. Where one message is marked as
    the final answer, the others are comments.
    """
    messages = [item for item in output if item.get("type") == "message"]
    final = [item for item in messages if item.get("phase") == "final_answer"]
    texts: list[str] = []
    refusals: list[str] = []
    for message in final or messages:
        content = message.get("content")
        if isinstance(content, str):
            texts.append(content)
        for part in _objects(content):
            if isinstance(text := part.get("text"), str):
                texts.append(text)
            elif isinstance(refusal := part.get("refusal"), str):
                refusals.append(refusal)
    return texts, refusals


def _thoughts(output: Iterable[dict[str, Any]]) -> str:
    """What the output shows of the reasoning: it in full, or a summary of it."""
    return "\n\n".join(
        text
        for item in output
        if item.get("type") == "reasoning"
        for part in (*_objects(item.get("content")), *_objects(item.get("summary")))
        if isinstance(text := part.get("text"), str)
    )


def _objects(items: object) -> Iterator[dict[str, Any]]:
    """The objects of a list; of anything else none."""
    if isinstance(items, list):
        yield from (item for item in items if isinstance(item, dict))


def _reason(response: Mapping[str, Any]) -> str:
    """Why the reply ended, in the words that all forms share."""
    status = response.get("status")
    if status is None or status == "completed":
        return "stop"
    if status in FAILED:
        return "error"
    details = response.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    return "length" if reason == "max_output_tokens" else end_of(reason)


def _failure(response: Mapping[str, Any], body: bytes) -> AttemptError:
    """What a response that failed ends its attempt with."""
    error = response.get("error")
    said = error if isinstance(error, dict) else {}
    code = said.get("code")
    words = " ".join(str(each) for each in (code, said.get("message")) if each)
    words = " ".join(words.split())[:LONGEST_WORDS] or "it does not say why"
    kind = FAILURES.get(code, ServerError) if isinstance(code, str) else ServerError
    return kind(f"The response failed: {words}", body=body)
