"""The body of a request as the endpoint reads it, by its path."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

import msgspec

from runner.errors import BadRequest
from runner.request import (
    ChatRequest,
    EmbedRequest,
    Message,
    Part,
    Request,
    RerankRequest,
    Schema,
)

_T = TypeVar("_T")

BYTES_PER_TOKEN: Final = 4
"""English prose in the common tokenizers; the simulation needs no better figure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What came over the wire."""

    model: str
    request: Request
    tokens: int  #: of what was sent, by its length
    packed: bool = False  #: vectors are asked for in base64
    tool: str = ""  #: whose input the answer is to be, in Anthropic's form


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


class _EmbedBody(msgspec.Struct):
    model: str
    input: list[str] | str
    dimensions: int | None = None
    encoding_format: Literal["float", "base64"] = "float"


class _RerankBody(msgspec.Struct):
    model: str
    query: str
    documents: list[str]
    top_n: int | None = None


def decoded(body: bytes, form: type[_T], name: str) -> _T:
    """The *body* of *name* request; raise `BadRequest` where it has not that form."""
    try:
        return msgspec.json.decode(body, type=form)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadRequest(f"The body is not {name} request ({error}).") from None


def read_request(body: bytes) -> Asked:
    """The chat in *body*; raise `BadRequest` where there is none."""
    asked = decoded(body, _Body, "a chat completion")
    request = ChatRequest(
        messages=tuple(_message(message) for message in asked.messages),
        max_tokens=asked.max_tokens or asked.max_completion_tokens or 0,
        temperature=asked.temperature,
        schema=_schema(asked.response_format),
    )
    return sized(asked.model, request, said(request))


def said(request: ChatRequest) -> str:
    """Everything that was said in a chat so far."""
    return "\n".join(message.text for message in request.messages)


def read_embed(body: bytes) -> Asked:
    """The texts to embed in *body*; raise `BadRequest` where there are none."""
    asked = decoded(body, _EmbedBody, "an embeddings")
    texts = (asked.input,) if isinstance(asked.input, str) else tuple(asked.input)
    request = EmbedRequest(texts=texts, dimensions=asked.dimensions)
    packed = asked.encoding_format == "base64"
    return sized(asked.model, request, *texts, packed=packed)


def read_rerank(body: bytes) -> Asked:
    """The documents to rank in *body*; raise `BadRequest` where there are none."""
    asked = decoded(body, _RerankBody, "a rerank")
    request = RerankRequest(
        query=asked.query, documents=tuple(asked.documents), top_n=asked.top_n
    )
    return sized(asked.model, request, *(asked.query + d for d in asked.documents))


READERS: Final[Mapping[str, Callable[[bytes], Asked]]] = {
    "/chat/completions": read_request,
    "/embeddings": read_embed,
    "/rerank": read_rerank,
}
"""From a path below the base URL to what reads its requests."""


def sized(
    model: str, request: Request, *texts: str, packed: bool = False, tool: str = ""
) -> Asked:
    """What was asked of *model*, in all of *texts*."""
    tokens = 1 + sum(map(len, texts)) // BYTES_PER_TOKEN
    return Asked(model=model, request=request, tokens=tokens, packed=packed, tool=tool)


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
