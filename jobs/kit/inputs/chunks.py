"""Splits long texts into overlapping chunks at the ends of lines and sentences.

Token counts are estimates by `runner.money.tokens.text_tokens`: no tokenizer is needed,
and the chunks of a text are the same for every model.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Self

from pydantic import Field, model_validator

from jobs.kit.inputs.documents import TextSpan
from jobs.kit.inputs.toml_tables import TomlTable
from runner.money.tokens import text_tokens

_PIECE: Final = re.compile(r"[^\n.!?]*(?:[.!?]+(?=\s)|[.!?](?!\s)|\n|$)\s*")

PIECE_CHARS: Final = 400
"""Most characters of a piece; most sentences are shorter."""


class Chunking(TomlTable):
    """Splitting of a long text: each chunk is asked, and the answers are merged."""

    tokens: int = Field(ge=50)  #: longest chunk
    overlap: int = Field(0, ge=0)  #: tokens that a chunk repeats of the one before

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.overlap * 2 > self.tokens:
            raise ValueError("'overlap' is more than half of 'tokens'")
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A part of an item's text."""

    number: int  #: from 1
    span: TextSpan


def split(text: str, chunking: Chunking | None) -> tuple[Chunk, ...]:
    """Split a text; a text that is short enough is one chunk.

    Each chunk has at most `tokens` tokens and begins with about `overlap` tokens of the
    one before. Together they cover the whole text.
    """
    whole = Chunk(number=1, span=TextSpan(start=0, end=len(text)))
    if chunking is None or text_tokens(text) <= chunking.tokens:
        return (whole,)
    # a token has a character or more, so that no piece is longer than a chunk
    pieces = _pieces(text, min(PIECE_CHARS, chunking.tokens))
    sizes = [text_tokens(text[start:end]) for start, end in pieces]
    chunks: list[Chunk] = []
    first = 0
    while True:
        last, size = first, 0
        while last < len(pieces) and (
            size + sizes[last] <= chunking.tokens or last == first
        ):
            size += sizes[last]
            last += 1
        span = TextSpan(start=pieces[first][0], end=pieces[last - 1][1])
        chunks.append(Chunk(number=len(chunks) + 1, span=span))
        if last == len(pieces):
            return tuple(chunks)
        back, repeated = last, 0
        while back > first + 1 and repeated + sizes[back - 1] <= chunking.overlap:
            back -= 1
            repeated += sizes[back]
        first = back


def _pieces(text: str, most_chars: int) -> list[tuple[int, int]]:
    """Return spans of sentences, lines, or parts of longer ones."""
    pieces: list[tuple[int, int]] = []
    for match in _PIECE.finditer(text):
        start = match.start()
        while match.end() - start > most_chars:
            blank = text.rfind(" ", start + 1, start + most_chars)
            end = blank + 1 if blank > start else start + most_chars
            pieces.append((start, end))
            start = end
        if match.end() > start:
            pieces.append((start, match.end()))
    return pieces
