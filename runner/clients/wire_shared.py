"""Shared encoding and decoding of all wire forms; pure.

A `Shape` describes the variant of a request for an endpoint; a `Skeleton` is the stored
request: parameters, and its texts by their hashes.

The defaults suit most endpoints. `runner.clients.fallbacks` defines the alternatives
and their order.
"""

from __future__ import annotations

import enum
import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any, Final, Literal, NamedTuple, TypeVar, assert_never

import msgspec

from runner.errors import MalformedReply
from runner.messages import (
    NOTHING_SET,
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
from store.events import Blob
from store.printable import one_line


class Structure(enum.Enum):
    """Ways to request a reply's format, the strictest first."""

    SCHEMA = "json_schema"  #: with `strict`
    LOOSE = "json_schema, not strict"
    OBJECT = "json_object"
    TEXT = "text"  #: only in the prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Form of requests to one model at one endpoint."""

    structure: Structure = Structure.SCHEMA
    plain_schema: bool = False  #: without keywords that strict modes may not support
    limit: Literal["max_tokens", "max_completion_tokens"] | None = "max_tokens"
    """The field that carries the output limit; None: the model's own limit applies."""
    room: bool = True  #: the limit includes the request's room for reasoning
    system: Literal["system", "developer", "user"] = "system"
    """Role of instructions; "user": they are prepended to the first user message."""
    packed: bool = True  #: request vectors in base64
    omitted: frozenset[str] = frozenset()  #: other fields that are not sent


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
"""Keywords that only constrain values: the parser checks them anyway."""


def chat_fields(request: ChatRequest, shape: Shape) -> dict[str, Any]:
    """Return the fields of a chat request, under OpenAI's names.

    Model, messages and response format are excluded: each form writes them differently.
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
    """Return the messages with their roles on the wire."""
    messages = list(request.messages)
    if shape.system == "user":
        messages = _merged(messages)
    return [
        (shape.system if message.role == "system" else message.role, message)
        for message in messages
    ]


def _merged(messages: list[Message]) -> list[Message]:
    """Prepend all instructions to the first user message."""
    system = [message for message in messages if message.role == "system"]
    others = [message for message in messages if message.role != "system"]
    parts: list[Part] = []
    for message in system:
        parts += [*message.parts, TextPart(text="\n\n")]
    first = next(
        (i for i, message in enumerate(others) if message.role == "user"), None
    )
    if not parts:
        return messages
    if first is None:
        return [Message(role="user", parts=tuple(parts[:-1])), *others]
    question = others[first]
    others[first] = Message(role="user", parts=(*parts, *question.parts))
    return others


def schema_json(schema: Schema, shape: Shape) -> str:
    """Return the schema in the variant that the endpoint accepts."""
    return plain_schema(schema.json) if shape.plain_schema else schema.json


@lru_cache(maxsize=64)
def plain_schema(schema: str) -> str:
    """Remove keywords that only constrain values.

    >>> plain_schema('{"items":{"type":"string"},"minItems":1,"type":"array"}')
    '{"items":{"type":"string"},"type":"array"}'
    """
    return msgspec.json.encode(_plain(msgspec.json.decode(schema))).decode()


def _plain(node: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(node, list):
        return [_plain(item) for item in node]
    if not isinstance(node, dict):
        return node
    plain = {
        # names of properties are not keywords
        name: {field: _plain(form) for field, form in value.items()}
        if name in {"properties", "$defs"} and isinstance(value, dict)
        else _plain(value)
        for name, value in node.items()
        if name not in CHECKS
    }
    return _nullable(plain)


def _nullable(node: dict[str, Any]) -> dict[str, Any]:
    """Rewrite a nullable value as a list of two types, which more modes support."""
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


CACHED_PARTS: Final = 128
"""Number of encoded message parts kept. Papers come first in a prompt and are used by
consecutive calls, so this covers far more papers than calls in flight; at 60 KB each it
stays below 25 MB."""


@lru_cache(maxsize=CACHED_PARTS)
def escaped_part(text: str) -> bytes:
    """Return a message part escaped for JSON, without the quotes."""
    return escaped(text)


@lru_cache(maxsize=CACHED_PARTS)
def part_blob(text: str) -> Blob:
    """Return a message part as it is stored."""
    return blob(text)


def blob(text: str) -> Blob:
    """Return *text* as a blob of the log, keyed by its hash."""
    data = text.encode(errors="replace")
    return Blob(sha256=hashlib.sha256(data).digest(), data=data)


def escaped(text: str) -> bytes:
    """Escape *text* for JSON, without the quotes."""
    try:
        return msgspec.json.encode(text)[1:-1]
    except UnicodeEncodeError:
        # A lone surrogate, as some JSON writers produce, has no UTF-8 encoding.
        return msgspec.json.encode(text.encode(errors="replace").decode())[1:-1]


def content_runs(message: Message) -> Iterator[msgspec.Raw | ImagePart]:
    """Yield the images of a message, and each text between them as a JSON string."""
    for is_image, parts in groupby(
        message.parts, key=lambda part: isinstance(part, ImagePart)
    ):
        if is_image:
            yield from (part for part in parts if isinstance(part, ImagePart))
        elif text := b"".join([escaped_part(part.text) for part in parts]):
            yield msgspec.Raw(b'"%s"' % text)


def quoted(text: str) -> msgspec.Raw:
    """Encode *text* as a JSON string."""
    return msgspec.Raw(b'"%s"' % escaped(text))


class Skeleton(NamedTuple):
    """A request as it is stored: small, with its texts by reference."""

    body: bytes  #: JSON: model, parameters, and the hashes of texts
    blobs: tuple[Blob, ...]  #: the texts, and the schema, behind the hashes
    sha256: str  #: hex, of the body; equal for equal requests


def skeleton(request: Request, model: str) -> Skeleton:
    """Return the request stored with `AttemptStarted`, its texts by hash.

    The hash depends on the model, the parameters, the texts and the schema, but not on
    the endpoint or on how the schema is sent, which may differ between two attempts.
    """
    blobs: dict[bytes, Blob] = {}

    def reference(part_blob: Blob) -> str:
        blobs.setdefault(part_blob.sha256, part_blob)
        return part_blob.sha256.hex()

    facts = {"model": model, **_facts(request, reference)}
    if request.parameters is not NOTHING_SET and (
        parameters := request.parameters.facts()
    ):
        # only if any are set, so that older logs stay valid
        facts["parameters"] = parameters
    body = msgspec.json.encode(facts)
    return Skeleton(body, tuple(blobs.values()), hashlib.sha256(body).hexdigest())


def _facts(request: Request, reference: Callable[[Blob], str]) -> dict[str, Any]:
    """Return all fields of *request*, each text replaced by its *reference*.

    Chats have no kind: they came first, and logs contain their hashes.
    """
    match request:
        case ChatRequest():
            return _chat_facts(request, reference)
        case EmbedRequest():
            return {
                "kind": "embed",
                "dimensions": request.dimensions,
                "purpose": request.purpose,
                "texts": [reference(blob(text)) for text in request.texts],
            }
        case RerankRequest():
            return {
                "kind": "rerank",
                "top_n": request.top_n,
                "query": reference(blob(request.query)),
                "documents": [reference(blob(text)) for text in request.documents],
            }
        case _:
            assert_never(request)


def _chat_facts(
    request: ChatRequest, reference: Callable[[Blob], str]
) -> dict[str, Any]:
    schema = request.schema
    return {
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "schema": schema
        and {"name": schema.name, "sha256": reference(part_blob(schema.json))},
        "messages": [
            {
                "role": message.role,
                "parts": [
                    # images are too large for the cache of encoded parts
                    reference(
                        blob(part.uri)
                        if isinstance(part, ImagePart)
                        else part_blob(part.text)
                    )
                    for part in message.parts
                ],
            }
            for message in request.messages
        ],
    }


_T = TypeVar("_T")

UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Errors of decoding invalid JSON; the last one: nested too deeply."""


_HTML: Final = re.compile(r"\s*<(!doctype html|html|head)\b", re.IGNORECASE)
_TITLE: Final = re.compile(r"<title[^>]*>([^<]{1,200})", re.IGNORECASE)
PAGE_BYTES: Final = 1200
"""Of a web page; its title is near its beginning."""


def web_page(body: bytes) -> str:
    """Name the web page that a body is, as proxies send them; empty if it is none."""
    text = body[:PAGE_BYTES].decode(errors="replace")
    if not _HTML.match(text):
        return ""
    title = _TITLE.search(text)
    return one_line(f"a web page, {title[1]!r}" if title else "a web page")


def not_a_reply(kind: str, error: Exception, body: bytes) -> MalformedReply:
    """Return the error for a body that is not of the *kind* that it should be."""
    page = web_page(body)
    if page:
        message = f"The endpoint answered with {page} (check the base URL)."
    else:
        message = f"The reply is not {kind} ({error})."
    return MalformedReply(message, body=body)


def read_body(decoder: msgspec.json.Decoder[_T], body: bytes) -> _T:
    """Decode *body* with *decoder*; raises one of `UNREADABLE`.

    Small errors do not lose a paid reply: a lone surrogate, from an emoji cut in two,
    becomes a question mark, and NaN, the logarithm of a probability of 0, becomes null.
    """
    try:
        return decoder.decode(body)
    except msgspec.DecodeError:
        try:
            parsed = json.loads(body, parse_constant=_as_null, parse_float=_finite)
        except ValueError:
            parsed = None
        if parsed is None:
            raise
    content = json.dumps(parsed, ensure_ascii=False)
    return decoder.decode(content.encode(errors="replace"))


def _as_null(constant: str) -> None:
    del constant


def _finite(written: str) -> float | None:
    number = float(written)
    return number if math.isfinite(number) else None
