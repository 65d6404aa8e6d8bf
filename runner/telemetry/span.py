"""A span as a plain value, with an id that depends on what it is about alone.

Exporting a run twice therefore sends the same spans again and doubles nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

Value: TypeAlias = str | bool | int | float | tuple[str, ...]
"""What an attribute may be."""

Attributes: TypeAlias = Mapping[str, Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Where a span belongs, and which one it is."""

    trace: int  #: 128 bits
    span: int  #: 64 bits

    @classmethod
    def of(cls, trace: tuple[str, ...], span: tuple[str, ...]) -> Context:
        """The context of the span that has these names in the trace of those."""
        return cls(trace=_id(16, trace), span=_id(8, (*trace, *span)))


def _id(size: int, names: tuple[str, ...]) -> int:
    """A number of *size* bytes that is not 0, which would be no id at all."""
    # each with its length before it: ("ab", "c") is not ("a", "bc")
    told = "".join(f"{len(name)}:{name}" for name in names)
    digest = hashlib.sha256(told.encode(errors="surrogatepass")).digest()
    return int.from_bytes(digest[:size]) or 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Something that took from one moment to another."""

    name: str
    context: Context
    parent: Context | None = None
    link: Context | None = None  #: what it belongs to in another trace
    kind: Literal["internal", "client"] = "internal"
    start_us: int
    end_us: int
    attributes: Attributes
    error: str | None = None  #: class of the error that it ended with
