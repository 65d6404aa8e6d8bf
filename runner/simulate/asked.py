"""A chat completion's body as the endpoint reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import msgspec

from runner.errors import BadRequest
from runner.request import ChatRequest, Message, Part, Schema

BYTES_PER_TOKEN: Final = 4
"""English prose in the common tokenizers; the simulation needs no better figure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What came over the wire."""

    model: str
    request: ChatRequest
    tokens: int  #: of the prompt, by its length

    @property
    def text(self) -> str:
        """Everything that was said so far."""
        return "\n".join(message.text for message in self.request.messages)


class _Text(msgspec.Struct):
    text: str


class _Message(msgspec.Struct):
    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[_Text]


class _JsonSchema(msgspec.Struct):
    name: str
    schema: msgspec.Raw


class _ResponseFormat(msgspec.Struct):
    json_schema: _JsonSchema | None = None


class _Body(msgspec.Struct):
    model: str
    messages: list[_Message]
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    temperature: float | None = None
    response_format: _ResponseFormat | None = None


_decoder: Final = msgspec.json.Decoder(_Body)


def read_request(body: bytes) -> Asked:
    """The request in *body*; raise `BadRequest` where it is none."""
    try:
        asked = _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadRequest(
            f"The body is not a chat completion request ({error})."
        ) from None
    request = ChatRequest(
        messages=tuple(_message(message) for message in asked.messages),
        max_tokens=asked.max_tokens or asked.max_completion_tokens or 0,
        temperature=asked.temperature,
        schema=_schema(asked.response_format),
    )
    size = sum(len(part.text) for m in request.messages for part in m.parts)
    return Asked(model=asked.model, request=request, tokens=1 + size // BYTES_PER_TOKEN)


def _message(message: _Message) -> Message:
    content = message.content
    texts = [content] if isinstance(content, str) else [part.text for part in content]
    return Message(
        role="system" if message.role == "developer" else message.role,
        parts=tuple(Part(text=text) for text in texts),
    )


def _schema(form: _ResponseFormat | None) -> Schema | None:
    if form is None or form.json_schema is None:
        return None
    schema = form.json_schema
    return Schema(name=schema.name, json=bytes(schema.schema).decode())
