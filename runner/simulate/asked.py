"""The body of a request as the endpoint reads it, by its path."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeVar

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

CHARACTERS_PER_TOKEN: Final = 4
"""English prose in the common tokenizers; the plain dialect needs no better figure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What came over the wire."""

    model: str
    request: Request
    tokens: int  #: of what was sent, by its length
    packed: bool = False  #: vectors are asked for in base64
    tool: str = ""  #: whose input the answer is to be, in Anthropic's form
    texts: tuple[str, ...] = ()  #: all that the model reads, the schema included
    fields: Mapping[str, Any] = field(default_factory=dict)  #: the body, as JSON

    @property
    def is_streamed(self) -> bool:
        """Whether the reply is to be a stream of events."""
        return self.fields.get("stream") is True

    @property
    def choices(self) -> int:
        """The number of answers asked for."""
        wanted = self.fields.get("n")
        return wanted if isinstance(wanted, int) and wanted > 1 else 1

    def cap(self, names: tuple[str, ...]) -> int | None:
        """The limit on the output, from the first of *names* that is set."""
        found = (self.fields.get(name) for name in names)
        return next((cap for cap in found if isinstance(cap, int) and cap > 0), None)

    def cache_marks(self) -> list[str]:
        """How long each marked part of the prompt is to be kept in a cache."""
        marks: list[str] = []
        waiting: list[object] = [self.fields.get("system"), self.fields.get("messages")]
        while waiting:
            node = waiting.pop()
            if isinstance(node, list):
                waiting += node
            elif isinstance(node, dict):
                mark = node.get("cache_control")
                if isinstance(mark, dict):
                    marks.append(str(mark.get("ttl", "5m")))
                waiting.append(node.get("content"))
        return marks


ANY_OBJECT: Final = Schema(name="json_object", json='{"type":"object"}')
"""What a reply follows where JSON is asked for and no schema is given."""


class _Text(msgspec.Struct):
    text: str


class _Message(msgspec.Struct):
    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[_Text]


class _JsonSchema(msgspec.Struct):
    name: str
    schema: msgspec.Raw


class _ResponseFormat(msgspec.Struct):
    type: str = ""
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


class _TextFormat(msgspec.Struct):
    type: str = "text"
    name: str = ""
    schema: msgspec.Raw = msgspec.Raw()


class _TextOptions(msgspec.Struct):
    format: _TextFormat | None = None


class _ResponsesBody(msgspec.Struct):
    model: str
    input: str | list[_Message]
    instructions: str | None = None
    max_output_tokens: int | None = None
    temperature: float | None = None
    text: _TextOptions | None = None


def without(body: bytes, names: Collection[str]) -> bytes:
    """The JSON object in *body* without the fields *names*; else the same."""
    fields = fields_of(body) if names else {}
    if fields.keys().isdisjoint(names):
        return body
    kept = {name: value for name, value in fields.items() if name not in names}
    return msgspec.json.encode(kept)


def decoded(body: bytes, form: type[_T], name: str) -> _T:
    """The *body* of *name* request; raise `BadRequest` where it has not that form."""
    try:
        return msgspec.json.decode(body, type=form)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadRequest(f"The body is not {name} request ({error}).") from None


def fields_of(body: bytes) -> dict[str, Any]:
    """The JSON object in *body*, or nothing where it holds none."""
    try:
        fields = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return fields if isinstance(fields, dict) else {}


def read_request(body: bytes) -> Asked:
    """The chat in *body*; raise `BadRequest` where there is none."""
    asked = decoded(body, _Body, "a chat completion")
    request = ChatRequest(
        messages=tuple(_message(message) for message in asked.messages),
        max_tokens=asked.max_tokens or asked.max_completion_tokens or 0,
        temperature=asked.temperature,
        schema=_schema(asked.response_format),
    )
    return sized_chat(asked.model, request, body)


def read_responses(body: bytes) -> Asked:
    """The input of OpenAI's Responses API; raise `BadRequest` where there is none."""
    asked = decoded(body, _ResponsesBody, "a responses")
    spoken = asked.input
    messages = [
        *([_Message("system", asked.instructions)] if asked.instructions else ()),
        *([_Message("user", spoken)] if isinstance(spoken, str) else spoken),
    ]
    form = asked.text.format if asked.text is not None else None
    schema = None
    if form is not None and form.schema:
        schema = Schema(name=form.name, json=bytes(form.schema).decode())
    request = ChatRequest(
        messages=tuple(_message(message) for message in messages),
        max_tokens=asked.max_output_tokens or 0,
        temperature=asked.temperature,
        schema=schema,
    )
    return sized_chat(asked.model, request, body)


def said(request: ChatRequest) -> str:
    """Everything that was said in a chat so far."""
    return "\n".join(message.text for message in request.messages)


def read_embed(body: bytes) -> Asked:
    """The texts to embed in *body*; raise `BadRequest` where there are none."""
    asked = decoded(body, _EmbedBody, "an embeddings")
    texts = (asked.input,) if isinstance(asked.input, str) else tuple(asked.input)
    request = EmbedRequest(texts=texts, dimensions=asked.dimensions)
    packed = asked.encoding_format == "base64"
    return sized(asked.model, request, body, *texts, packed=packed)


def read_rerank(body: bytes) -> Asked:
    """The documents to rank in *body*; raise `BadRequest` where there are none."""
    asked = decoded(body, _RerankBody, "a rerank")
    request = RerankRequest(
        query=asked.query, documents=tuple(asked.documents), top_n=asked.top_n
    )
    texts = (asked.query + document for document in asked.documents)
    return sized(asked.model, request, body, *texts)


READERS: Final[Mapping[str, Callable[[bytes], Asked]]] = {
    "/chat/completions": read_request,
    "/embeddings": read_embed,
    "/rerank": read_rerank,
    "/responses": read_responses,
}
"""From a path below the base URL to what reads its requests."""


def sized(
    model: str, request: Request, body: bytes, *texts: str, packed: bool = False
) -> Asked:
    """What was asked of *model* by *body*, in all of *texts*."""
    return Asked(
        model=model,
        request=request,
        tokens=1 + sum(map(len, texts)) // CHARACTERS_PER_TOKEN,
        packed=packed,
        texts=texts,
        fields=fields_of(body),
    )


def sized_chat(model: str, request: ChatRequest, body: bytes, tool: str = "") -> Asked:
    """The chat that *body* asks *model* for."""
    asked = sized(model, request, body, said(request))
    texts = [message.text for message in request.messages]
    if request.schema is not None and request.schema != ANY_OBJECT:
        # providers put a schema into the prompt, and bill it
        texts.append(request.schema.json)
    return replace(asked, texts=tuple(texts), tool=tool)


def _message(message: _Message) -> Message:
    content = message.content
    texts = [content] if isinstance(content, str) else [part.text for part in content]
    return Message(
        role="system" if message.role == "developer" else message.role,
        parts=tuple(Part(text=text) for text in texts),
    )


def _schema(form: _ResponseFormat | None) -> Schema | None:
    if form is None or form.json_schema is None:
        is_object = form is not None and form.type == "json_object"
        return ANY_OBJECT if is_object else None
    schema = form.json_schema
    return Schema(name=schema.name, json=bytes(schema.schema).decode())
