"""The sentences of a text, and pieces of them that are short enough for a quote."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from jobs.property_extraction.asking.prompts import QUOTE_CHARS

_BETWEEN: Final = re.compile(
    r"(?<=[.!?])(?<!\bet al\.)(?<!\bFig\.)(?<!\bRef\.)\s+(?=[A-Z(\[\"])|\n\s*\n\s*"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """A sentence as it stands, and where."""

    text: str
    start: int  #: in the whole text


def sentences(text: str) -> Iterator[Sentence]:
    """The sentences of a text, in order; a heading is one too."""
    start = 0
    for between in _BETWEEN.finditer(text):
        yield from _sentence(text, start, between.start())
        start = between.end()
    yield from _sentence(text, start, len(text))


def _sentence(text: str, start: int, end: int) -> Iterator[Sentence]:
    raw = text[start:end]
    own = raw.strip()
    if own:
        yield Sentence(text=own, start=start + len(raw) - len(raw.lstrip()))


def quoted(sentence: str, place: int) -> str:
    """At most 300 characters of a sentence around a place in it, between words."""
    if len(sentence) <= QUOTE_CHARS:
        return sentence
    start = max(0, min(place - QUOTE_CHARS // 2, len(sentence) - QUOTE_CHARS))
    end = start + QUOTE_CHARS
    first = sentence.find(" ", start, place) + 1 if start else 0
    last = sentence.rfind(" ", place, end) if end < len(sentence) else -1
    return sentence[max(first, start) : last if last > place else end].strip()
