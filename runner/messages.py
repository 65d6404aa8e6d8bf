"""Defines requests to a model, their user-set parameters, and replies."""

from __future__ import annotations

import json
import re
import struct
from base64 import b64decode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, Final, Literal, Self, TypeAlias

import msgspec

from store.served_by import ServedBy

ABSENT: Final = "none"
"""Value of a parameter that must not be sent."""

OMITTABLE: Final = ("temperature", "max_output_tokens")
"""Parameters that jobs set, which a user can disable."""

_VARIABLE: Final = re.compile(r"(?P<before>.*\s)?env:(?P<name>[A-Za-z_][A-Za-z0-9_]*)")

_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
"""A token of RFC 9110, section 5.6.2."""

_SECRET_HEADER: Final = re.compile(
    r"authorization|cookie|key|token|secret|password|credential", re.IGNORECASE
)

RESERVED_HEADERS: Final = frozenset(
    {
        "accept",
        "accept-encoding",
        "connection",
        "content-length",
        "content-type",
        "host",
        "transfer-encoding",
    }
)
"""Headers that this client sets."""

RESERVED_FIELDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("model", "messages", "input", "instructions", "query", "documents"),
        "the job writes it",
    ),
    **dict.fromkeys(("stream", "stream_options"), "replies are read whole"),
    **dict.fromkeys(("n", "best_of"), "use --replicates"),
    **dict.fromkeys(
        ("max_tokens", "max_completion_tokens", "max_output_tokens"),
        "write it as max_output_tokens of the model",
    ),
    **{
        name: f"write it as {name}"
        for name in (
            "temperature",
            "top_p",
            "reasoning_effort",
            "thinking",
            "service_tier",
        )
    },
    "seed": "write it as seed of the model, or as --model-seed",
}
"""Fields that `extra_body` may not set, with the alternative."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """The user's parameters of requests to one model; None: not set."""

    temperature: float | None = None
    max_output_tokens: int | None = None
    top_p: float | None = None
    seed: int | None = None
    reasoning_effort: str | None = None
    thinking: str | None = None  #: JSON
    service_tier: str | None = None
    extra_body: str | None = None  #: JSON object: further fields of the request
    extra_headers: tuple[tuple[str, str], ...] = ()
    """Names in lower case, sorted; `env:NAME` in a value refers to a variable."""
    absent: frozenset[str] = frozenset()
    """Parameters of `OMITTABLE` that are not sent, even if the job sets them."""

    @property
    def names(self) -> frozenset[str]:
        """Return the fields of a request that the user set."""
        set_here = (name for name in _FIELDS if getattr(self, name) is not None)
        return frozenset((*set_here, *decoded(self.extra_body)))

    def fields(self) -> dict[str, Any]:
        """Return the fields of a chat request except temperature and token limit."""
        plain = ("top_p", "seed", "reasoning_effort", "service_tier")
        fields: dict[str, Any] = {
            name: value for name in plain if (value := getattr(self, name)) is not None
        }
        if self.thinking is not None:
            fields["thinking"] = json.loads(self.thinking)
        return {**fields, **decoded(self.extra_body)}

    def facts(self) -> dict[str, Any]:
        """Return what is hashed with a request, except temperature and token limit.

        Headers with values from variables count by name only: another key does not
        change the request.
        """
        facts = self.fields()
        if self.extra_headers:
            facts["headers"] = {
                name: None if _VARIABLE.fullmatch(value) else value
                for name, value in self.extra_headers
            }
        if "max_output_tokens" in self.absent:
            facts["max_output_tokens"] = None
        return facts


_FIELDS: Final = (
    "temperature",
    "max_output_tokens",
    "top_p",
    "seed",
    "reasoning_effort",
    "thinking",
    "service_tier",
)

NOTHING_SET: Final = Parameters()


@cache
def decoded(text: str | None) -> Mapping[str, Any]:
    """Parse a JSON object; empty for None."""
    return {} if text is None else json.loads(text)


def json_object(value: object) -> str | None:
    """Return a table, or JSON text of one, as compact JSON in its original order.

    The order is kept because it can matter: a server's schema field, such as
    `guided_json`, defines the order of a reply.

    Raises:
        ValueError: it is neither.
    """
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise ValueError(f"{value!r} is not JSON ({error})") from None
    if not isinstance(value, dict):
        raise ValueError('this is not an object, such as {"name": "value"}')  # noqa: TRY004 - pydantic wants it
    return json.dumps(value, separators=(",", ":")) if value else None


def check_body(text: str | None) -> str | None:
    """Check that `extra_body` has no reserved field; raise `ValueError`."""
    for name in decoded(text):
        if name in RESERVED_FIELDS:
            raise ValueError(
                f"extra_body may not set {name!r}: {RESERVED_FIELDS[name]}"
            )
    return text


def check_headers(text: str | None) -> str | None:
    """Check that `extra_headers` are valid and contain no secret."""
    for name, value in decoded(text).items():
        if not _HEADER.fullmatch(name) or name.lower() in RESERVED_HEADERS:
            raise ValueError(f"{name!r} cannot be set as a header")
        if not isinstance(value, str) or not value.isascii() or not value.isprintable():
            raise ValueError(f"the value of header {name} is not a line of ASCII text")
        if _SECRET_HEADER.search(name) and not _VARIABLE.fullmatch(value):
            raise ValueError(
                f"header {name} holds a secret: put the secret into the environment "
                "or into .env, and write env:NAME here"
            )
    return text


def headers_of(text: str | None) -> tuple[tuple[str, str], ...]:
    """Return `extra_headers` in the form of `Parameters`."""
    return tuple(sorted((name.lower(), value) for name, value in decoded(text).items()))


def variable_in(value: str) -> tuple[str, str] | None:
    """Return the text before a variable in a header's value, and its name.

    >>> variable_in("Bearer env:GATEWAY_KEY")
    ('Bearer ', 'GATEWAY_KEY')
    """
    match = _VARIABLE.fullmatch(value)
    return None if match is None else (match["before"] or "", match["name"])


class TextPart(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of a message's text."""

    text: str
    cache: bool = False  #: a provider's cache breakpoint may follow


IMAGE_URI: Final = "data:image/png;base64,"
"""Begins the stored form of an image."""

_PNG_SIZE: Final = struct.Struct(">8x4x4sII")
"""Head of a PNG: signature, length and name of the first chunk, width, height."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImagePart:
    """An image in a message, such as a page of a PDF, for models that see.

    The log stores its URI once per content, as it stores texts.
    """

    text: ClassVar[str] = ""  #: it adds no text to its message

    uri: str = field(repr=False)  #: `IMAGE_URI` and the file in base64
    width: int  #: pixels
    height: int  #: pixels
    cache: bool = False  #: a provider's cache breakpoint may follow

    @classmethod
    def from_uri(cls, uri: str, *, cache: bool = False) -> Self:
        """Create it from a data URI; raise `ValueError` if that is no PNG."""
        head = uri.removeprefix(IMAGE_URI)[:32]
        data = b64decode(head, validate=True) if uri.startswith(IMAGE_URI) else b""
        if len(data) < _PNG_SIZE.size:
            raise ValueError("this is not the data URI of a PNG image")
        name, width, height = _PNG_SIZE.unpack_from(data)
        if name != b"IHDR":
            raise ValueError("this is not the data URI of a PNG image")
        return cls(uri=uri, width=width, height=height, cache=cache)

    @property
    def base64(self) -> str:
        """The file in base64."""
        return self.uri.removeprefix(IMAGE_URI)


Part: TypeAlias = TextPart | ImagePart
"""A piece of a message."""


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """One message; its parts are concatenated.

    `msgspec.structs.replace` makes a changed copy of it, or of a `TextPart`.
    """

    role: Literal["system", "user", "assistant"]
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """The message as the model sees it, without its images."""
        return "".join(part.text for part in self.parts)

    @property
    def images(self) -> tuple[ImagePart, ...]:
        """Its images, in order."""
        return tuple([part for part in self.parts if isinstance(part, ImagePart)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """A JSON schema for the content of the reply."""

    name: str  #: letters, digits, "_" and "-"; shown to the provider
    json: str  #: compact JSON, its properties in the order of the reply


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """A chat completion request."""

    messages: tuple[Message, ...]
    max_tokens: int
    temperature: float | None = 0.0  #: None: leave it to the endpoint
    schema: Schema | None = None  #: None: free text
    room: int = 0  #: tokens for reasoning beyond `max_tokens`; not part of its hash
    parameters: Parameters = NOTHING_SET

    @property
    def limit(self) -> int:
        """Maximum output tokens, reasoning included."""
        return self.max_tokens + self.room


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedRequest:
    """A request for vectors, one per text, in one call."""

    texts: tuple[str, ...]
    dimensions: int | None = None  #: length of a vector; None: the model's own
    purpose: Literal["query", "document"] | None = None
    """Purpose of the texts, for providers that distinguish them; None: both or neither.
    For models with prefixes, the text contains the prefix."""
    parameters: Parameters = NOTHING_SET


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankRequest:
    """A request for scores of documents for one query."""

    query: str
    documents: tuple[str, ...]
    top_n: int | None = None  #: number of best documents to return; None: all
    parameters: Parameters = NOTHING_SET


Request: TypeAlias = ChatRequest | EmbedRequest | RerankRequest
"""The request of a task; its stage's parser gets a reply of the same kind."""


FLOAT_BYTES: Final = 4
"""Size of a vector's number: float32, as embedding models return."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Billed tokens, from the endpoint's counts."""

    tokens_in: int
    tokens_out: int  #: everything billed as output, reasoning included
    tokens_cached: int = 0  #: part of tokens_in read from the provider's prompt cache
    tokens_cache_write: int = 0  #: part of tokens_in written to it, at a higher price
    tokens_cache_write_1h: int = 0  #: part of tokens_cache_write kept for an hour
    tokens_reasoning: int = 0  #: part of tokens_out that is not in the text
    charged_usd: float | None = None  #: cost reported in the reply, if any
    is_doubtful: bool = False  #: the total is smaller than its parts, which are used
    exceeds_completion: bool = False
    """Billed output exceeds the completion: the completion's limit does not bound
    it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A chat's reply: its text and the reason it ended.

    The text never contains reasoning, wherever the endpoint put it. Jobs can read
    `reasoning`.
    """

    text: str
    finish_reason: str = "stop"  #: "stop", "length", "content_filter", "refusal"
    usage: Usage | None = None
    reasoning: str = ""  #: as far as the endpoint returns it
    served: ServedBy | None = field(default=None, compare=False)
    """The server of the reply, from its body; ignored by comparisons."""

    @property
    def is_truncated(self) -> bool:
        """Whether the output limit truncated the reply."""
        return self.finish_reason == "length"

    @property
    def is_refused(self) -> bool:
        """Whether the model or a filter declined to answer."""
        return self.finish_reason in {"refusal", "content_filter"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Vectors:
    """The vectors of texts, in the order of the request.

    Each is packed as little-endian float32, an eighth of the size of Python floats:
    `numpy.frombuffer(packed, "<f4")` reads one without copying. The job's parser checks
    their number, lengths and finiteness.
    """

    finish_reason: ClassVar = "stop"

    packed: tuple[bytes, ...]
    usage: Usage | None = None
    served: ServedBy | None = field(default=None, compare=False)
    """The server of the reply, from its body; ignored by comparisons."""

    @classmethod
    def of(
        cls, vectors: Iterable[Iterable[float]], usage: Usage | None = None
    ) -> Vectors:
        """Create vectors from plain numbers, rounded to float32."""
        return cls(packed=tuple(pack(vector) for vector in vectors), usage=usage)

    def numbers(self) -> list[tuple[float, ...]]:
        """Return the vectors as plain numbers."""
        return [
            struct.unpack(f"<{len(vector) // FLOAT_BYTES}f", vector)
            for vector in self.packed
        ]


def wellformed(text: str) -> str:
    r"""Return *text* without lone surrogates, which JSON such as "\ud83d" can hold.

    They cannot be written as UTF-8, so they would break every file they reach.

    >>> wellformed("whale \ud83d")
    'whale ?'
    """
    return text.encode("utf-8", "replace").decode("utf-8")


def pack(vector: Iterable[float]) -> bytes:
    """Pack a vector as little-endian float32; raise `OverflowError` out of range."""
    numbers = tuple(vector)
    return struct.pack(f"<{len(numbers)}f", *numbers)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedDocument:
    """A document's score."""

    index: int  #: index in the documents of the request, from 0
    score: float  #: higher is more relevant; the scale depends on the model


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The scores of documents, in the order received.

    The job's parser checks that each document has exactly one.
    """

    finish_reason: ClassVar = "stop"

    results: tuple[RankedDocument, ...]
    usage: Usage | None = None
    served: ServedBy | None = field(default=None, compare=False)
    """The server of the reply, from its body; ignored by comparisons."""


AnyReply: TypeAlias = Reply | Vectors | Ranking
"""The reply to a request of any kind."""


Content: TypeAlias = str | Vectors | Ranking
"""Content of a reply: a chat's text, or vectors or scores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParseFailure:
    """A value, not an error: why a reply could not be parsed."""

    reason: str  #: a short name such as "truncated", "no_list"; used for counts
    detail: str | None = None  #: the error and its location, for a re-ask
