"""Anthropic's form of messages, as its batches take and bring them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import msgspec

from runner.errors import MalformedReply
from runner.reply import Reply, Usage
from runner.request import ChatRequest, Message, Schema
from runner.wire.chat import FINISH_REASONS
from runner.wire.reading import UNREADABLE, read_body, usage_of
from runner.wire.shape import (
    PLAIN,
    Shape,
    Structure,
    chat_fields,
    messages_in,
    schema_json,
)
from runner.wire.texts import encoded_part

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


class _Block(msgspec.Struct):
    type: str = ""
    text: str = ""
    input: msgspec.Raw = msgspec.Raw(b"")  #: of a tool, which is what was to be said

    @property
    def said(self) -> str:
        """What it says, if it is of a kind that says something."""
        match self.type:
            case "text":
                return self.text
            case "tool_use":
                return bytes(self.input).decode()
            case _:
                return ""


class _Usage(msgspec.Struct):
    input_tokens: int
    output_tokens: int = 0
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class _Message(msgspec.Struct):
    content: list[_Block]
    stop_reason: str | None = None
    usage: _Usage | None = None


_message: Final = msgspec.json.Decoder(_Message)


def decode_messages(body: bytes) -> Reply:
    """The reply in a body; raise `MalformedReply` where it is no message."""
    try:
        message = read_body(_message, body)
    except UNREADABLE as error:
        raise MalformedReply(
            f"The reply is not a message of Anthropic's form ({error}).", body=body
        ) from error
    said = message.stop_reason or "unknown"
    tools = [block for block in message.content if block.type == "tool_use"]
    return Reply(
        # beside a tool's input, a text is a remark
        text="".join(block.said for block in tools or message.content),
        finish_reason="stop" if said == "tool_use" else FINISH_REASONS.get(said, said),
        usage=_usage(message.usage),
    )


def _usage(counted: _Usage | None) -> Usage | None:
    """Tokens, those of the cache among the prompt's, as everywhere here."""
    if counted is None:
        return None
    read = counted.cache_read_input_tokens or 0
    written = counted.cache_creation_input_tokens or 0
    return usage_of(
        counted.input_tokens + read + written, counted.output_tokens, read, written
    )
