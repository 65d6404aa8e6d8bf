"""Parses requests to the endpoint: bodies by path, and batch requests."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, Protocol, TypeVar

import msgspec

from runner.errors import BadRequest
from runner.messages import (
    ChatRequest,
    EmbedRequest,
    ImagePart,
    Message,
    Part,
    Request,
    RerankRequest,
    Schema,
    TextPart,
)
from runner.money.tokens import image_tokens, images_read

_T = TypeVar("_T")

CHARACTERS_PER_TOKEN: Final = 4
"""English prose in common tokenizers; precise enough for the plain dialect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedRequest:
    """A parsed request."""

    model: str
    request: Request
    tokens: int  #: input tokens, by length
    packed: bool = False  #: vectors are requested in base64
    tool: str = ""  #: tool that takes the answer as input, in Anthropic's form
    texts: tuple[str, ...] = ()  #: all model input, the schema included
    fields: Mapping[str, Any] = field(default_factory=dict)  #: parsed body

    @property
    def is_streamed(self) -> bool:
        """Whether a stream of events is requested."""
        return self.fields.get("stream") is True

    @property
    def choices(self) -> int:
        """Number of requested answers."""
        requested = self.fields.get("n")
        return requested if isinstance(requested, int) and requested > 1 else 1

    def cap(self, names: tuple[str, ...]) -> int | None:
        """Return the output limit, from the first of *names* that is set."""
        caps = (self.fields.get(name) for name in names)
        return next((cap for cap in caps if isinstance(cap, int) and cap > 0), None)

    def cache_marks(self) -> list[str]:
        """Return the cache lifetime of each marked part of the prompt."""
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
"""Schema of a reply if JSON is requested without a schema."""


class _Url(msgspec.Struct):
    url: str


class _Content(msgspec.Struct):
    """A part of a message: a text or an image, in a chat or a response."""

    text: str | None = None
    image_url: _Url | str | None = None


class _Message(msgspec.Struct):
    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[_Content]


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
    """Remove the fields *names* from the JSON object in *body*, if it is one."""
    fields = fields_of(body) if names else {}
    if fields.keys().isdisjoint(names):
        return body
    remaining = {name: value for name, value in fields.items() if name not in names}
    return msgspec.json.encode(remaining)


def decoded(body: bytes, form: type[_T], name: str) -> _T:
    """Parse the body of *name* request; raise `BadRequest` if it is invalid."""
    try:
        return msgspec.json.decode(body, type=form)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadRequest(f"The body is not {name} request ({error}).") from None


def fields_of(body: bytes) -> dict[str, Any]:
    """Parse the JSON object in *body*; empty if it is none."""
    try:
        fields = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return fields if isinstance(fields, dict) else {}


def read_request(body: bytes) -> SimulatedRequest:
    """Parse the chat in *body*; raise `BadRequest` if it is invalid."""
    payload = decoded(body, _Body, "a chat completion")
    request = ChatRequest(
        messages=tuple(_message(message) for message in payload.messages),
        max_tokens=payload.max_tokens or payload.max_completion_tokens or 0,
        temperature=payload.temperature,
        schema=_schema(payload.response_format),
    )
    return sized_chat(payload.model, request, body)


def read_responses(body: bytes) -> SimulatedRequest:
    """Parse a request of the Responses API; raise `BadRequest` if invalid."""
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
    """Return the text of all messages of a chat."""
    return "\n".join(message.text for message in request.messages)


def read_embed(body: bytes) -> SimulatedRequest:
    """Parse the texts to embed in *body*; raise `BadRequest` if it is invalid."""
    payload = decoded(body, _EmbedBody, "an embeddings")
    texts = (payload.input,) if isinstance(payload.input, str) else tuple(payload.input)
    request = EmbedRequest(texts=texts, dimensions=payload.dimensions)
    packed = payload.encoding_format == "base64"
    return sized(payload.model, request, body, *texts, packed=packed)


def read_rerank(body: bytes) -> SimulatedRequest:
    """Parse the documents to rank in *body*; raise `BadRequest` if it is invalid."""
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
"""Parsers of requests, by path relative to the base URL."""


def sized(
    model: str, request: Request, body: bytes, *texts: str, packed: bool = False
) -> SimulatedRequest:
    """Build a parsed request, with tokens counted over *texts*."""
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
    """Build a parsed chat request."""
    incoming = sized(model, request, body, chat_text(request))
    texts = [message.text for message in request.messages]
    if request.schema is not None and request.schema != ANY_OBJECT:
        # providers include the schema in the prompt, and bill it
        texts.append(request.schema.json)
    tokens = incoming.tokens + sum(map(image_tokens, images_read(request)))
    return replace(incoming, texts=tuple(texts), tokens=tokens, tool=tool)


def _message(message: _Message) -> Message:
    content = message.content
    pieces = [_Content(text=content)] if isinstance(content, str) else content
    return Message(
        role="system" if message.role == "developer" else message.role,
        parts=tuple(map(_part, pieces)),
    )


def _part(content: _Content) -> Part:
    if content.image_url is not None:
        url = content.image_url
        return read_image(url if isinstance(url, str) else url.url)
    if content.text is None:
        raise BadRequest("messages: a part has neither text nor image_url")
    return TextPart(text=content.text)


def read_image(uri: str) -> ImagePart:
    """Parse an image; raise `BadRequest` if it is no PNG in base64."""
    try:
        return ImagePart.from_uri(uri)
    except ValueError as error:
        raise BadRequest(f"messages: invalid image_url, {error}") from error


def _schema(form: _ResponseFormat | None) -> Schema | None:
    if form is None or form.json_schema is None:
        is_object = form is not None and form.type == "json_object"
        return ANY_OBJECT if is_object else None
    schema = form.json_schema
    return Schema(name=schema.name, json=bytes(schema.schema).decode())


NOT_FOUND: Final = 404
"""Status for missing resources."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormUpload:
    """A field of a form."""

    name: str  #: name of the file, empty for a plain field
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRequest:
    """A request to a batch endpoint."""

    now_us: int
    base_url: str  #: base of result URLs
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)  #: names in lower case
    body: bytes = b""
    fields: Mapping[str, FormUpload] = field(default_factory=dict)  #: fields of a form


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchResponse:
    """A response with status 200."""

    body: bytes
    is_download: bool = False  #: lines that may be cut off anywhere
    created: str = ""  #: id of a new batch, first reported by this response


class BatchRefusal(Exception):
    """A refused request, with a status and a message for its sender."""

    def __init__(
        self, message: str, *, status: int = 400, param: str | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.param = param


BatchHandler = Callable[..., BatchResponse]
"""Takes a `BatchRequest`, and the id in its path, if the route has one."""


class BatchForm(Protocol):
    """One provider's batch endpoints."""

    routes: Mapping[tuple[str, str], BatchHandler]
    """Handlers by method and path, in which `*` matches an id."""

    headers: Mapping[tuple[str, ...], int]
    """Alternative required headers, and the status if all are missing."""

    def advance(self, now_us: int) -> None:
        """Advance all batches."""
        ...

    def complaint(self, refusal: BatchRefusal) -> bytes:
        """Return the body of a *refusal*."""
        ...


def encoded(value: object) -> bytes:
    """Encode *value* as JSON."""
    return msgspec.json.encode(value)


def joined(lines: Sequence[object]) -> bytes:
    """Encode *lines* as JSON Lines."""
    return b"".join(encoded(line) + b"\n" for line in lines)


def read(body: bytes, form: type[_T]) -> _T:
    """Parse the JSON in *body*; raise `BatchRefusal` if it is invalid."""
    try:
        return msgspec.json.decode(body, type=form)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BatchRefusal(f"The body is not as it should be ({error}).") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPage:
    """A page of a list, in the format of both providers."""

    ids: Sequence[str]
    has_more: bool

    def body(self, data: Sequence[object], **more: object) -> bytes:
        """Encode the page with *data*, one value for each of its ids."""
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
    """Return the page of *ids* that *batch_request* selects.

    Args:
        ids: All ids in order.
        batch_request: Its query has the length, and an id before or after the page.
        after: Name of the parameter with the id before the page.
        most: Maximum length of a page.
        usual: Default length.
        before: Name of the parameter with the id after the page, if there is one.

    Raises:
        BatchRefusal: The parameters are invalid.
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
