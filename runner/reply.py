"""What a model returned, as a job sees it: a text, vectors, or scores of documents.

The raw bytes stay in the log; a job gets the reply of the kind that it asked for.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar, Final, TypeAlias

from store.served import ServedBy

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
    is_beside: bool = False
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
class Ranked:
    """A document's score."""

    index: int  #: its place among the documents of the request, from 0
    score: float  #: higher is more relevant; what it means is the model's affair


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The scores of documents, in the order in which they came.

    Whether each document has one, once, is for the job's parser to say.
    """

    finish_reason: ClassVar = "stop"

    results: tuple[Ranked, ...]
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
