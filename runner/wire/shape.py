"""How a request is put to an endpoint, as far as endpoints differ; pure.

The defaults are what most endpoints take. Which other forms there are of each, and in
which order they are tried, is the business of `runner.clients.ladder`.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal

import msgspec

from runner.request import ChatRequest, Message, Part, Schema


class Structure(enum.Enum):
    """How the form of the reply is put to the endpoint, from the strictest down."""

    SCHEMA = "json_schema"  #: with `strict`
    LOOSE = "json_schema, not strict"
    OBJECT = "json_object"
    TEXT = "text"  #: not at all: the prompt alone says it


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How requests to one model at one endpoint are written."""

    structure: Structure = Structure.SCHEMA
    plain_schema: bool = False  #: without keywords that strict modes may not know
    limit: Literal["max_tokens", "max_completion_tokens"] | None = "max_tokens"
    """The field that carries the output limit; None: the model's own is relied on."""
    room: bool = True  #: the limit includes the request's room for reasoning
    system: Literal["system", "developer", "user"] = "system"
    """Role of instructions; "user": they begin the first message of that role."""
    packed: bool = True  #: vectors are asked for in base64
    omitted: frozenset[str] = frozenset()  #: further fields that are not sent


PLAIN: Final = Shape()

CHECKS: Final = frozenset(
    {
        "exclusiveMaximum",
        "exclusiveMinimum",
        "format",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "multipleOf",
        "pattern",
        "uniqueItems",
    }
)
"""Keywords that only narrow values: the parser checks them in any case."""


def chat_fields(request: ChatRequest, shape: Shape) -> dict[str, Any]:
    """The fields of a chat request but its model and messages, in OpenAI's words.

    The response format is not among them: each form writes it differently.
    """
    fields: dict[str, Any] = {}
    if shape.limit is not None and not _has_no_limit(request):
        fields[shape.limit] = request.limit if shape.room else request.max_tokens
    if request.temperature is not None:
        fields["temperature"] = request.temperature
    fields |= request.parameters.fields()
    return {name: fields[name] for name in fields if name not in shape.omitted}


def _has_no_limit(request: ChatRequest) -> bool:
    return "max_output_tokens" in request.parameters.absent


def messages_in(request: ChatRequest, shape: Shape) -> list[tuple[str, Message]]:
    """The messages with their roles on the wire."""
    messages = list(request.messages)
    if shape.system == "user":
        messages = _merged(messages)
    return [
        (shape.system if message.role == "system" else message.role, message)
        for message in messages
    ]


def _merged(messages: list[Message]) -> list[Message]:
    """The messages with all instructions at the beginning of the first question."""
    system = [message for message in messages if message.role == "system"]
    others = [message for message in messages if message.role != "system"]
    parts: list[Part] = []
    for message in system:
        parts += [*message.parts, Part(text="\n\n")]
    first = next((i for i, each in enumerate(others) if each.role == "user"), None)
    if not parts:
        return messages
    if first is None:
        return [Message(role="user", parts=tuple(parts[:-1])), *others]
    asked = others[first]
    others[first] = Message(role="user", parts=(*parts, *asked.parts))
    return others


def schema_json(schema: Schema, shape: Shape) -> str:
    """The schema as the endpoint takes it."""
    return plain_schema(schema.json) if shape.plain_schema else schema.json


@lru_cache(maxsize=64)
def plain_schema(schema: str) -> str:
    """A schema without keywords that only narrow values.

    >>> plain_schema('{"items":{"type":"string"},"minItems":1,"type":"array"}')
    '{"items":{"type":"string"},"type":"array"}'
    """
    return msgspec.json.encode(_plain(msgspec.json.decode(schema))).decode()


def _plain(node: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(node, list):
        return [_plain(each) for each in node]
    if not isinstance(node, dict):
        return node
    kept = {
        # names of properties are no keywords
        name: {field: _plain(form) for field, form in value.items()}
        if name in {"properties", "$defs"} and isinstance(value, dict)
        else _plain(value)
        for name, value in node.items()
        if name not in CHECKS
    }
    return _nullable(kept)


def _nullable(node: dict[str, Any]) -> dict[str, Any]:
    """A value that may be null as one type of two, which more modes know."""
    forms = node.get("anyOf")
    if not isinstance(forms, list):
        return node
    others = [form for form in forms if form != {"type": "null"}]
    if len(others) != 1 or len(forms) == 1 or "enum" in others[0]:
        return node
    kind = others[0].get("type")
    if not isinstance(kind, str):
        return node
    rest = {name: value for name, value in node.items() if name != "anyOf"}
    return {**rest, **others[0], "type": [kind, "null"]}
