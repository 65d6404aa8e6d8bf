"""Simulates requests and replies of Anthropic's Messages API.

Structured output is requested in one of two ways: by a JSON schema in `output_config`,
answered by a text, or by a required tool, answered by its input.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from runner.errors import BadRequest
from runner.messages import IMAGE_URI, ChatRequest, Message, Part, Schema, TextPart
from runner.simulate.dialect import Dialect, ServedAnswer, native
from runner.simulate.replies import EVENTS, ReplyDraft, WrittenReply, event, pieces
from runner.simulate.requests import SimulatedRequest, decoded, read_image, sized_chat

UNSUPPORTED: Final = (
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minLength", "maxLength", "maxItems", "uniqueItems"),
)
"""Keywords not allowed in the schema of a format (Anthropic's documentation,
"Structured outputs"; a tool's schema may)."""


class _Text(msgspec.Struct, tag_field="type", tag="text"):
    text: str


class _Source(msgspec.Struct):
    data: str
    media_type: Literal["image/png"]
    type: Literal["base64"]


class _Image(msgspec.Struct, tag_field="type", tag="image"):
    source: _Source


class _Message(msgspec.Struct):
    role: Literal["user", "assistant"]
    content: str | list[_Text | _Image]


class _Format(msgspec.Struct):
    type: Literal["json_schema"]
    schema: msgspec.Raw


class _OutputConfig(msgspec.Struct):
    format: _Format | None = None


class _Tool(msgspec.Struct):
    name: str
    input_schema: msgspec.Raw


class _ToolChoice(msgspec.Struct):
    type: str
    name: str = ""


class _Body(msgspec.Struct):
    model: str
    max_tokens: int
    messages: list[_Message]
    system: str | list[_Text] = ""
    temperature: float | None = None
    output_config: _OutputConfig | None = None
    tools: list[_Tool] = []
    tool_choice: _ToolChoice | None = None


def read_message(body: bytes) -> SimulatedRequest:
    """Parse the chat in *body*; raise `BadRequest` if it is invalid."""
    payload = decoded(body, _Body, "a messages")
    if not payload.messages:
        raise BadRequest("messages: at least one message is required")
    system = _parts(payload.system) if payload.system else ()
    schema, tool = _schema_and_tool(payload)
    request = ChatRequest(
        messages=(
            *([Message(role="system", parts=system)] if system else ()),
            *(
                Message(role=message.role, parts=_parts(message.content))
                for message in payload.messages
            ),
        ),
        max_tokens=payload.max_tokens,
        temperature=payload.temperature,
        schema=schema,
    )
    return sized_chat(payload.model, request, body, tool)


def _parts(content: str | Sequence[_Text | _Image]) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (TextPart(text=content),)
    return tuple(
        TextPart(text=part.text)
        if isinstance(part, _Text)
        else read_image(f"{IMAGE_URI}{part.source.data}")
        for part in content
    )


def _schema_and_tool(payload: _Body) -> tuple[Schema | None, str]:
    """Return the schema of the answer, and the name of its tool, if any."""
    choice = payload.tool_choice
    if choice is not None and choice.type == "tool":
        for tool in payload.tools:
            if tool.name == choice.name:
                return _schema(tool.name, tool.input_schema), tool.name
        raise BadRequest(f"tool_choice: there is no tool {choice.name!r}")
    if payload.output_config is not None and payload.output_config.format is not None:
        return _schema("output", _checked(payload.output_config.format.schema)), ""
    return None, ""


def _checked(raw: msgspec.Raw) -> msgspec.Raw:
    """Check the schema of a format; raise `BadRequest` if it is not allowed."""
    try:
        _check(msgspec.json.decode(raw))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadRequest(f"output_config.format.schema: {error}") from None
    return raw


def _check(node: object) -> None:
    """Raise for a part of a schema that is not allowed in a format."""
    if isinstance(node, list):
        for element in node:
            _check(element)
        return
    if not isinstance(node, dict):
        return
    if node.get("type") == "object" and node.get("additionalProperties") is not False:
        raise BadRequest(
            "output_config.format.schema: For 'object' type, 'additionalProperties' "
            "must be set to false"
        )
    for keyword in UNSUPPORTED:
        if keyword in node and "type" in node:
            raise BadRequest(
                f"output_config.format.schema: For '{node['type']}' type, property "
                f"'{keyword}' is not supported"
            )
    for element in node.values():
        _check(element)


def _schema(name: str, raw: msgspec.Raw) -> Schema:
    return Schema(name=name, json=bytes(raw).decode())


# -- Anthropic's messages ---------------------------------------------------------


def write_message(
    _row: Dialect,
    incoming: SimulatedRequest,
    digest: str,
    draft: ReplyDraft,
    served: ServedAnswer,
) -> WrittenReply:
    """Encode a message of Anthropic's, or its events."""
    body = _anthropic_message(incoming, digest, draft, served)
    if not incoming.is_streamed:
        return WrittenReply(body=msgspec.json.encode(body))
    return WrittenReply(body=b"".join(_message_events(body)), media=EVENTS)


_STOPS: Final[Mapping[str, str]] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "content_filter": "refusal",
}


def _anthropic_message(
    incoming: SimulatedRequest, digest: str, draft: ReplyDraft, served: ServedAnswer
) -> dict[str, Any]:
    text = draft.texts[0]
    stop = _STOPS[draft.finish]
    blocks: list[dict[str, Any]] = []
    if isinstance(incoming.fields.get("thinking"), dict) and served.tokens.reasoning:
        thoughts = draft.thoughts or "Let me read the text."
        blocks.append(
            {"type": "thinking", "thinking": thoughts, "signature": digest[:32]}
        )
    if incoming.tool and draft.finish == "stop" and _is_object(text):
        stop = "tool_use"
        blocks.append(
            {
                "type": "tool_use",
                "id": f"toolu_{digest[:24]}",
                "name": incoming.tool,
                "input": msgspec.json.decode(text.encode()),
            }
        )
    elif text:
        blocks.append({"type": "text", "text": text})
    return {
        "id": f"msg_{digest[:24]}",
        "type": "message",
        "role": "assistant",
        "model": served.model,
        "content": blocks,
        "stop_reason": stop,
        "stop_sequence": None,
        "stop_details": {"type": "refusal", "category": None, "explanation": None}
        if stop == "refusal"
        else None,
        "usage": native(served.tokens, served.tier),
    }


def _message_events(body: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield the events of a message."""

    def typed_event(kind: str, **values: Any) -> bytes:
        return event({"type": kind, **values}, kind)

    usage = body["usage"]
    yield typed_event(
        "message_start",
        message={
            **body,
            "content": [],
            "stop_reason": None,
            "usage": {**usage, "output_tokens": 1},
        },
    )
    yield typed_event("ping")
    for index, block in enumerate(body["content"]):
        start: dict[str, Any]
        deltas: list[dict[str, str]]
        match block["type"]:
            case "thinking":
                start = {"type": "thinking", "thinking": "", "signature": ""}
                deltas = [
                    {"type": "thinking_delta", "thinking": piece}
                    for piece in pieces(block["thinking"])
                ]
                deltas.append(
                    {"type": "signature_delta", "signature": block["signature"]}
                )
            case "tool_use":
                start = {**block, "input": {}}
                whole = msgspec.json.encode(block["input"]).decode()
                deltas = [
                    {"type": "input_json_delta", "partial_json": piece}
                    for piece in pieces(whole)
                ]
            case _:
                start = {"type": "text", "text": ""}
                deltas = [
                    {"type": "text_delta", "text": piece}
                    for piece in pieces(block["text"])
                ]
        yield typed_event("content_block_start", index=index, content_block=start)
        for delta in deltas:
            yield typed_event("content_block_delta", index=index, delta=delta)
        yield typed_event("content_block_stop", index=index)
    yield typed_event(
        "message_delta",
        delta={"stop_reason": body["stop_reason"], "stop_sequence": None},
        usage={"output_tokens": usage["output_tokens"]},
    )
    yield typed_event("message_stop")


def _is_object(text: str) -> bool:
    """Return whether it is valid as the input of a tool."""
    try:
        return isinstance(msgspec.json.decode(text.encode()), dict)
    except msgspec.DecodeError:
        return False
