"""A paper as pieces that a prompt can hold: they overlap, and end with paragraphs."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_ENDS: Final = (
    re.compile(r"\n\s*\n"),  # a paragraph's
    re.compile(r"\n"),
    re.compile(r"(?<=[.!?])\s"),
    re.compile(r"\s"),
)
"""Where a piece may end, the best first; only without any of them inside a word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of a text, by offsets into it."""

    start: int
    end: int  #: exclusive


def pieces(text: str, most: int, overlap: int) -> tuple[Piece, ...]:
    """Pieces that cover every character of a text, in order.

    Args:
        text: of a paper.
        most: characters of a piece; 0: the whole text is one.
        overlap: characters that a piece shares with the one before it, fewer where a
            word would be cut; less than *most*.
    """
    if not most or len(text) <= most:
        return (Piece(start=0, end=len(text)),)
    return tuple(_cut(text, most, overlap))


def _cut(text: str, most: int, overlap: int) -> Iterator[Piece]:
    start = 0
    while len(text) - start > most:
        # a piece must reach beyond what it shares with the one before it
        end = _end(text, start + overlap + 1, start + most)
        yield Piece(start=start, end=end)
        start = _start(text, end - overlap, end)
    yield Piece(start=start, end=len(text))


def _end(text: str, least: int, most: int) -> int:
    for kind in _ENDS:
        found = deque(kind.finditer(text, least, most), maxlen=1)
        if found:
            return found[0].end()
    return most


def _start(text: str, least: int, most: int) -> int:
    """The first word that begins at *least* or after it, before *most*."""
    if least == 0 or text[least - 1].isspace():
        return least
    found = _ENDS[-1].search(text, least, most)
    return least if found is None else found.end()
