"""Defines requests to a model, the parameters that people set for them, and replies."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, Final, Literal, TypeAlias

from store.served_by import ServedBy

ABSENT: Final = "none"
"""What people write for a parameter that is not to be sent at all."""

OMITTABLE: Final = ("temperature", "max_output_tokens")
"""Parameters that a job sets by itself, so that leaving them out has to be said."""

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
"""Headers that describe how this client sends and reads."""

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
"""Fields that `extra_body` may not set, and what to do instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """What people set of the requests to one model; None: nothing."""

    temperature: float | None = None
    max_output_tokens: int | None = None
    top_p: float | None = None
    seed: int | None = None
    reasoning_effort: str | None = None
    thinking: str | None = None  #: JSON
    service_tier: str | None = None
    extra_body: str | None = None  #: JSON object: further fields of the request
    extra_headers: tuple[tuple[str, str], ...] = ()
    """Names in lower case, sorted, with values in which `env:NAME` is a variable's."""
    absent: frozenset[str] = frozenset()
    """Those of `OMITTABLE` that are not to be sent, whatever the job asks."""

    @property
    def names(self) -> frozenset[str]:
        """Fields of a request that a person set."""
        set_here = (name for name in _FIELDS if getattr(self, name) is not None)
        return frozenset((*set_here, *decoded(self.extra_body)))

    def fields(self) -> dict[str, Any]:
        """Fields of a chat request beside its temperature and its token limit."""
        plain = ("top_p", "seed", "reasoning_effort", "service_tier")
        fields: dict[str, Any] = {
            name: value for name in plain if (value := getattr(self, name)) is not None
        }
        if self.thinking is not None:
            fields["thinking"] = json.loads(self.thinking)
        return {**fields, **decoded(self.extra_body)}

    def facts(self) -> dict[str, Any]:
        """What of them is hashed with a request, beside temperature and token limit.

        A header whose value is read from a variable counts by its name alone: another
        key is no other question.
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
    """A JSON object; nothing where there is none."""
    return {} if text is None else json.loads(text)


def json_object(value: object) -> str | None:
    """A table, or JSON text of one, as compact JSON in the order that was written.

    The order is kept because it can matter: a server's own field for a schema, such as
    `guided_json`, says in which order a reply is written.

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
    """`extra_body` without fields that have another place; raise `ValueError`."""
    for name in decoded(text):
        if name in RESERVED_FIELDS:
            raise ValueError(
                f"extra_body may not set {name!r}: {RESERVED_FIELDS[name]}"
            )
    return text


def check_headers(text: str | None) -> str | None:
    """`extra_headers` that can be sent and hold no secret; raise `ValueError`."""
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
    """`extra_headers` as `Parameters` holds them."""
    return tuple(sorted((name.lower(), value) for name, value in decoded(text).items()))


def variable_in(value: str) -> tuple[str, str] | None:
    """What stands before a variable in a header's value, and the variable's name.

    >>> variable_in("Bearer env:GATEWAY_KEY")
    ('Bearer ', 'GATEWAY_KEY')
    """
    match = _VARIABLE.fullmatch(value)
    return None if match is None else (match["before"] or "", match["name"])


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPart:
    """A piece of a message's text."""

    text: str
    cache: bool = False  #: a good place for a provider's cache breakpoint, after it


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message: its parts are joined without anything between them."""

    role: Literal["system", "user", "assistant"]
    parts: tuple[TextPart, ...]

    @property
    def text(self) -> str:
        """The message as the model sees it."""
        return "".join(part.text for part in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """A JSON schema that the content of the reply should follow."""

    name: str  #: letters, digits, "_" and "-"; shown to the provider
    json: str  #: compact JSON, its properties in the order of the reply


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """One chat completion to be asked for."""

    messages: tuple[Message, ...]
    max_tokens: int
    temperature: float | None = 0.0  #: None: leave it to the endpoint
    schema: Schema | None = None  #: None: free text
    room: int = 0  #: tokens for reasoning beyond `max_tokens`; not part of its hash
    parameters: Parameters = NOTHING_SET

    @property
    def limit(self) -> int:
        """Output tokens at most, reasoning included."""
        return self.max_tokens + self.room


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedRequest:
    """Vectors to be asked for, one a text, all in one call."""

    texts: tuple[str, ...]
    dimensions: int | None = None  #: length of a vector; None: the model's own
    purpose: Literal["query", "document"] | None = None
    """What the texts are for, for the providers that embed the two differently; None:
    both or neither. Models that want a prefix instead get it in the text."""
    parameters: Parameters = NOTHING_SET


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankRequest:
    """Scores of documents for one query to be asked for."""

    query: str
    documents: tuple[str, ...]
    top_n: int | None = None  #: only the best so many; None: all of them
    parameters: Parameters = NOTHING_SET


Request: TypeAlias = ChatRequest | EmbedRequest | RerankRequest
"""What a task asks; its stage's parser gets the reply of the same kind."""


FLOAT_BYTES: Final = 4
"""Of a vector's number: float32, as embedding models make them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens that are billed, from what the endpoint counted."""

    tokens_in: int
    tokens_out: int  #: everything billed as output, reasoning included
    tokens_cached: int = 0  #: part of tokens_in read from the provider's prompt cache
    tokens_cache_write: int = 0  #: part of tokens_in written to it, at a higher price
    tokens_cache_write_1h: int = 0  #: part of tokens_cache_write kept for an hour
    tokens_reasoning: int = 0  #: part of tokens_out that the text does not show
    charged_usd: float | None = None  #: what the reply says it cost, if it does
    is_doubtful: bool = False  #: its total is smaller than its parts, which count
    exceeds_completion: bool = False
    """More is billed as output than the completion: a limit of the completion does not
    bound it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A chat's reply: its text and the reason it ended.

    What a reasoning model thought before it answered is not part of the text, wherever
    the endpoint put it. A job that wants it reads `reasoning`.
    """

    text: str
    finish_reason: str = "stop"  #: "stop", "length", "content_filter", "refusal"
    usage: Usage | None = None
    reasoning: str = ""  #: as far as the endpoint shows it
    served: ServedBy | None = field(default=None, compare=False)
    """What answered, as the body says it; two replies that say the same are equal."""

    @property
    def is_truncated(self) -> bool:
        """Whether the output limit cut the reply."""
        return self.finish_reason == "length"

    @property
    def is_refused(self) -> bool:
        """Whether the model or a filter before it declined to answer."""
        return self.finish_reason in {"refusal", "content_filter"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Vectors:
    """The vectors of texts, in the order in which they were asked for.

    Each is packed as little-endian float32, an eighth of what Python's own numbers
    take: `numpy.frombuffer(packed, "<f4")` reads one without copying. How many there
    are, and whether they are of one length and finite, is for the job's parser to say.
    """

    finish_reason: ClassVar = "stop"

    packed: tuple[bytes, ...]
    usage: Usage | None = None
    served: ServedBy | None = field(default=None, compare=False)
    """What answered, as the body says it; two replies that say the same are equal."""

    @classmethod
    def of(
        cls, vectors: Iterable[Iterable[float]], usage: Usage | None = None
    ) -> Vectors:
        """Vectors from plain numbers, which are rounded to float32."""
        return cls(packed=tuple(pack(vector) for vector in vectors), usage=usage)

    def numbers(self) -> list[tuple[float, ...]]:
        """The vectors as plain numbers."""
        return [
            struct.unpack(f"<{len(vector) // FLOAT_BYTES}f", vector)
            for vector in self.packed
        ]


def pack(vector: Iterable[float]) -> bytes:
    """A vector as little-endian float32; raise `OverflowError` beyond its range."""
    numbers = tuple(vector)
    return struct.pack(f"<{len(numbers)}f", *numbers)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedDocument:
    """A document's score."""

    index: int  #: its place among the documents of the request, from 0
    score: float  #: higher is more relevant; what it means is the model's affair


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The scores of documents, in the order in which they came.

    Whether each document has one, once, is for the job's parser to say.
    """

    finish_reason: ClassVar = "stop"

    results: tuple[RankedDocument, ...]
    usage: Usage | None = None
    served: ServedBy | None = field(default=None, compare=False)
    """What answered, as the body says it; two replies that say the same are equal."""


AnyReply: TypeAlias = Reply | Vectors | Ranking
"""The reply to a request of any kind."""


Content: TypeAlias = str | Vectors | Ranking
"""What a reply says: a chat's text, or the vectors or scores themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParseFailure:
    """A value, not an error: the reply could not be read, and why."""

    reason: str  #: a short word such as "truncated", "no_list"; counted by it
    detail: str | None = None  #: what stands where, in words for a model asked again
