"""Anthropic's form of messages, as its batches take and bring them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import msgspec

from runner.errors import MalformedReply
from runner.reply import Reply
from runner.request import ChatRequest, Message, Schema
from runner.wire.chat import end_of, spoken
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

ANTHROPIC_MESSAGES: Final = "anthropic.messages"
"""The form of Anthropic's messages."""

MOST_BREAKPOINTS: Final = 4
"""A request with more of them is refused (its documentation, "Prompt caching")."""


def encode_messages(request: ChatRequest, model: str, shape: Shape = PLAIN) -> bytes:
    """The body of a message request.

    Args:
        request: What is asked.
        model: The model's name as the endpoint knows it.
        shape: How the endpoint wants it written. A schema is put as the format of the
            output, or, for older models and for schemas with keywords that the format
            may not have, as the input of a tool that has to be used (its
            documentation, "Structured outputs" and "Tool use"). The limit is always
            sent, since this form requires it.
    """
    spare = sum(part.cache for each in request.messages for part in each.parts)
    system: list[dict[str, Any]] = []
    turns: list[dict[str, Any]] = []
    for role, message in messages_in(request, shape):
        blocks, spare = _blocks(message, spare)
        if message.role == "system":
            system += blocks
        else:
            turns.append({"role": role, "content": blocks})
    body: dict[str, Any] = {"model": model, "messages": turns}
    if system:
        body["system"] = system
    body |= chat_fields(request, replace(shape, limit="max_tokens"))
    body.setdefault("max_tokens", request.limit)
    if request.schema is not None:
        body |= _form(request.schema, shape)
    return msgspec.json.encode(body)


def _form(schema: Schema, shape: Shape) -> dict[str, Any]:
    """What asks for a reply that follows *schema*; nothing where the prompt says it."""
    form = msgspec.Raw(schema_json(schema, shape).encode())
    match shape.structure:
        case Structure.SCHEMA | Structure.LOOSE:
            return {
                "output_config": {"format": {"type": "json_schema", "schema": form}}
            }
        case Structure.OBJECT:
            return {
                "tools": [{"name": schema.name, "input_schema": form}],
                "tool_choice": {"type": "tool", "name": schema.name},
            }
        case Structure.TEXT:
            return {}


def _blocks(message: Message, marks: int) -> tuple[list[dict[str, Any]], int]:
    """The message cut after its breakpoints; the last few of all *marks* are set."""
    blocks: list[dict[str, Any]] = []
    pieces: list[bytes] = []
    for part in message.parts:
        pieces.append(encoded_part(part.text).json)
        if part.cache:
            block = _block(pieces)
            if marks <= MOST_BREAKPOINTS:
                block["cache_control"] = {"type": "ephemeral"}
            marks -= 1
            blocks.append(block)
            pieces = []
    if pieces or not blocks:
        blocks.append(_block(pieces))
    return blocks, marks


def _block(pieces: list[bytes]) -> dict[str, Any]:
    return {"type": "text", "text": msgspec.Raw(b'"%s"' % b"".join(pieces))}


class _Message(msgspec.Struct):
    content: list[Any] | str
    model: Any = None
    id: Any = None
    stop_reason: Any = None
    usage: Any = None


_message: Final = msgspec.json.Decoder(_Message)


def decode_messages(body: bytes) -> Reply:
    """The reply in a body; raise `MalformedReply` where it is no message."""
    try:
        message = read_body(_message, body)
    except UNREADABLE as error:
        raise MalformedReply(
            f"The reply is not a message of Anthropic's form ({error}).", body=body
        ) from error
    said = end_of(message.stop_reason)
    content = message.content
    tools = "".join(_inputs(content))
    text, thought = spoken(content)
    return Reply(
        # beside a tool's input, a text is a remark
        text=tools or text,
        finish_reason="stop" if said == "tool_use" else said,
        reasoning=thought,
        usage=usage_in(message.usage),
        served=served_in(msgspec.structs.asdict(message)),
    )


def _inputs(content: list[Any] | str) -> Iterator[str]:
    """What was given to tools, as JSON: a schema is asked for as the input of one."""
    for block in content:
        if (
            isinstance(block, dict)
            and block.get("type") == "tool_use"
            and "input" in block
        ):
            yield msgspec.json.encode(block["input"]).decode()
