"""A document's text, and on which page each of its characters stands."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A piece of a document's text."""

    start: int
    end: int  #: exclusive

    def __len__(self) -> int:
        return self.end - self.start

    def __contains__(self, offset: object) -> bool:
        return isinstance(offset, int) and self.start <= offset < self.end

    def overlaps(self, other: Span) -> bool:
        """Whether a character stands in both."""
        return self.start < other.end and other.start < self.end


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A text, cleaned; all offsets are into it."""

    name: str  #: of the file
    text: str
    starts: tuple[int, ...]  #: where each page begins, ascending from 0

    @property
    def key(self) -> str:
        """What tasks call it: the same whether it is read as PDF or as text."""
        return Path(self.name).stem

    def page(self, offset: int) -> int:
        """The page of a character, from 1."""
        return bisect_right(self.starts, offset)

    def piece(self, span: Span) -> str:
        """The text of a span, without outer blanks."""
        return self.text[span.start : span.end].strip()

    @property
    def whole(self) -> Span:
        """All of it."""
        return Span(start=0, end=len(self.text))
