"""Parses requests for the endpoint: bodies by path, and those about batches."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, Protocol, TypeVar

import msgspec

from runner.errors import BadRequest
from runner.messages import (
    ChatRequest,
    EmbedRequest,
    Message,
    Request,
    RerankRequest,
    Schema,
    TextPart,
)

_T = TypeVar("_T")

CHARACTERS_PER_TOKEN: Final = 4
"""English prose in the common tokenizers; the plain dialect needs no better figure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedRequest:
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
        requested = self.fields.get("n")
        return requested if isinstance(requested, int) and requested > 1 else 1

    def cap(self, names: tuple[str, ...]) -> int | None:
        """The limit on the output, from the first of *names* that is set."""
        caps = (self.fields.get(name) for name in names)
        return next((cap for cap in caps if isinstance(cap, int) and cap > 0), None)

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
    remaining = {name: value for name, value in fields.items() if name not in names}
    return msgspec.json.encode(remaining)


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


def read_request(body: bytes) -> SimulatedRequest:
    """The chat in *body*; raise `BadRequest` where there is none."""
    payload = decoded(body, _Body, "a chat completion")
    request = ChatRequest(
        messages=tuple(_message(message) for message in payload.messages),
        max_tokens=payload.max_tokens or payload.max_completion_tokens or 0,
        temperature=payload.temperature,
        schema=_schema(payload.response_format),
    )
    return sized_chat(payload.model, request, body)


def read_responses(body: bytes) -> SimulatedRequest:
    """The input of OpenAI's Responses API; raise `BadRequest` where there is none."""
    payload = decoded(body, _ResponsesBody, "a responses")
    content = payload.input
    messages = [
        *([_Message("system", payload.instructions)] if payload.instructions else ()),
        *([_Message("user", content)] if isinstance(content, str) else content),
    ]
    form = payload.text.format if payload.text is not None else None
    schema = None
    if form is not None and form.schema:
        schema = Schema(name=form.name, json=bytes(form.schema).decode())
    request = ChatRequest(
        messages=tuple(_message(message) for message in messages),
        max_tokens=payload.max_output_tokens or 0,
        temperature=payload.temperature,
        schema=schema,
    )
    return sized_chat(payload.model, request, body)


def chat_text(request: ChatRequest) -> str:
    """Everything that was said in a chat so far."""
    return "\n".join(message.text for message in request.messages)


def read_embed(body: bytes) -> SimulatedRequest:
    """The texts to embed in *body*; raise `BadRequest` where there are none."""
    payload = decoded(body, _EmbedBody, "an embeddings")
    texts = (payload.input,) if isinstance(payload.input, str) else tuple(payload.input)
    request = EmbedRequest(texts=texts, dimensions=payload.dimensions)
    packed = payload.encoding_format == "base64"
    return sized(payload.model, request, body, *texts, packed=packed)


def read_rerank(body: bytes) -> SimulatedRequest:
    """The documents to rank in *body*; raise `BadRequest` where there are none."""
    payload = decoded(body, _RerankBody, "a rerank")
    request = RerankRequest(
        query=payload.query, documents=tuple(payload.documents), top_n=payload.top_n
    )
    texts = (payload.query + document for document in payload.documents)
    return sized(payload.model, request, body, *texts)


READERS: Final[Mapping[str, Callable[[bytes], SimulatedRequest]]] = {
    "/chat/completions": read_request,
    "/embeddings": read_embed,
    "/rerank": read_rerank,
    "/responses": read_responses,
}
"""From a path below the base URL to what reads its requests."""


def sized(
    model: str, request: Request, body: bytes, *texts: str, packed: bool = False
) -> SimulatedRequest:
    """What was asked of *model* by *body*, in all of *texts*."""
    return SimulatedRequest(
        model=model,
        request=request,
        tokens=1 + sum(map(len, texts)) // CHARACTERS_PER_TOKEN,
        packed=packed,
        texts=texts,
        fields=fields_of(body),
    )


def sized_chat(
    model: str, request: ChatRequest, body: bytes, tool: str = ""
) -> SimulatedRequest:
    """The chat that *body* asks *model* for."""
    incoming = sized(model, request, body, chat_text(request))
    texts = [message.text for message in request.messages]
    if request.schema is not None and request.schema != ANY_OBJECT:
        # providers put a schema into the prompt, and bill it
        texts.append(request.schema.json)
    return replace(incoming, texts=tuple(texts), tool=tool)


def _message(message: _Message) -> Message:
    content = message.content
    texts = [content] if isinstance(content, str) else [part.text for part in content]
    return Message(
        role="system" if message.role == "developer" else message.role,
        parts=tuple(TextPart(text=text) for text in texts),
    )


def _schema(form: _ResponseFormat | None) -> Schema | None:
    if form is None or form.json_schema is None:
        is_object = form is not None and form.type == "json_object"
        return ANY_OBJECT if is_object else None
    schema = form.json_schema
    return Schema(name=schema.name, json=bytes(schema.schema).decode())


NOT_FOUND: Final = 404
"""The status that tells of what there is not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormUpload:
    """A part of a form that was filled in."""

    name: str  #: of the file, empty for a plain field
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRequest:
    """What came over the wire."""

    now_us: int
    base_url: str  #: what the addresses of results begin with
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)  #: names in small letters
    body: bytes = b""
    fields: Mapping[str, FormUpload] = field(default_factory=dict)  #: of a form


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchResponse:
    """What goes back, with status 200."""

    body: bytes
    is_download: bool = False  #: of lines that may be cut off anywhere
    created: str = ""  #: the batch that this tells of for the first time


class BatchRefusal(Exception):
    """The request is turned away, with a status and a message for its sender."""

    def __init__(
        self, message: str, *, status: int = 400, param: str | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.param = param


BatchHandler = Callable[..., BatchResponse]
"""Takes an `Asking`, and the id in its path, where the route has one."""


class BatchForm(Protocol):
    """One provider's batch endpoints."""

    routes: Mapping[tuple[str, str], BatchHandler]
    """From a method and a path, in which `*` stands for an id, to what answers."""

    headers: Mapping[tuple[str, ...], int]
    """Headers of which every request has one, and the status where it has none."""

    def advance(self, now_us: int) -> None:
        """Get on with all batches."""
        ...

    def complaint(self, refusal: BatchRefusal) -> bytes:
        """The body that tells of *refusal*."""
        ...


def encoded(value: object) -> bytes:
    """*value* as JSON."""
    return msgspec.json.encode(value)


def joined(lines: Sequence[object]) -> bytes:
    """*lines* as JSON Lines."""
    return b"".join(encoded(line) + b"\n" for line in lines)


def read(body: bytes, form: type[_T]) -> _T:
    """The JSON in *body*; a `BatchRefusal` where it has not that form."""
    try:
        return msgspec.json.decode(body, type=form)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BatchRefusal(f"The body is not as it should be ({error}).") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPage:
    """A part of a list, as both providers deal it out."""

    ids: Sequence[str]
    has_more: bool

    def body(self, data: Sequence[object], **more: object) -> bytes:
        """The page that holds *data*, one value for each of its ids."""
        return encoded(
            {
                **more,
                "data": data,
                "first_id": self.ids[0] if self.ids else None,
                "last_id": self.ids[-1] if self.ids else None,
                "has_more": self.has_more,
            }
        )


def page(
    ids: Sequence[str],
    batch_request: BatchRequest,
    *,
    after: str,
    most: int,
    usual: int = 20,
    before: str = "",
) -> ListPage:
    """The page of *ids* that *batch_request* names.

    Args:
        ids: All there are, the first one first.
        batch_request: Its query says how many, and behind or before which id.
        after: The name of the parameter for the id behind which the page begins.
        most: The longest page there is.
        usual: How long it is where nobody says.
        before: The parameter for the id before which it ends, if there is one.

    Raises:
        Refusal: The parameters are none.
    """
    query = batch_request.query
    try:
        limit = int(query.get("limit", usual))
    except ValueError:
        limit = 0
    if not 1 <= limit <= most:
        raise BatchRefusal(f"limit: a whole number from 1 to {most}", param="limit")
    try:
        if before in query:
            rest = ids[: ids.index(query[before])]
            return ListPage(ids=rest[-limit:], has_more=len(rest) > limit)
        rest = ids[ids.index(query[after]) + 1 :] if after in query else ids
    except ValueError:
        raise BatchRefusal("There is no object with the id of the cursor.") from None
    return ListPage(ids=rest[:limit], has_more=len(rest) > limit)
