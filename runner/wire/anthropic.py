"""Anthropic's form of messages, as its batches take and bring them."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from runner.errors import MalformedReply
from runner.reply import Reply, Usage
from runner.request import ChatRequest, Message
from runner.wire.chat import FINISH_REASONS
from runner.wire.reading import UNREADABLE, read_body, usage_of
from runner.wire.texts import encoded_part

ANTHROPIC_MESSAGES: Final = "anthropic.messages"
"""The form of Anthropic's messages."""

MOST_BREAKPOINTS: Final = 4
"""A request with more of them is refused (its documentation, "Prompt caching")."""


def encode_messages(request: ChatRequest, model: str) -> bytes:
    """The body of a message request.

    The form of the reply is the prompt's affair: a schema is not put to the endpoint.
    """
    spare = sum(part.cache for each in request.messages for part in each.parts)
    system: list[dict[str, Any]] = []
    turns: list[dict[str, Any]] = []
    for message in request.messages:
        blocks, spare = _blocks(message, spare)
        if message.role == "system":
            system += blocks
        else:
            turns.append({"role": message.role, "content": blocks})
    body: dict[str, Any] = {
        "model": model,
        "max_tokens": request.max_tokens,
        "messages": turns,
    }
    if system:
        body["system"] = system
    if request.temperature is not None:
        body["temperature"] = request.temperature
    return msgspec.json.encode(body)


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
    return Reply(
        text="".join(block.text for block in message.content if block.type == "text"),
        finish_reason=FINISH_REASONS.get(said, said),
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
