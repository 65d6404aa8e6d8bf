"""The parts in which a long paper is read: how long they are, and where they end.

Parts overlap and end with paragraphs. With `chunk=auto` a new run chooses their length
once, by the model with the least room, so that all of its models read the same parts.
The length is recorded as `max_chars`: a resumed run cuts alike whatever the price table
says by then.

The rule: a row takes some 70 tokens of a reply (a recorded reply has 10,116 for 146
rows), and a text hardly ever states more than one value in 70 tokens. A reply is
therefore expected to be at most as long as the text that it is about, and a part has at
most as many tokens as a reply may have. Part, instructions and reply together must fit
the model's context window.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from jobs.property_extraction.settings import Settings
from runner.job import ModelLimits

_ENDS: Final = (
    re.compile(r"\n\s*\n"),  # a paragraph's
    re.compile(r"\n"),
    re.compile(r"(?<=[.!?])\s"),
    re.compile(r"\s"),
)
"""Where a piece may end, the best first; only without any of them inside a word."""


MOST_REPLY: Final = 16_384
"""The highest output limit that is chosen. A budget reserves the limit of every call,
and a paper that needs more is cut into parts instead."""

PROMPT_TOKENS: Final = 4_000
"""Room for instructions, listed names and schema in a context window."""

LEAST_PART: Final = 1_000
"""Tokens of a part, however small a window is."""

CHARS_PER_TOKEN: Final = 3
"""Prose in English has four or five; tables of numbers have fewer."""


def fit(settings: Settings, limits: Mapping[str, ModelLimits]) -> Settings:
    """The settings of a new run, with the length of parts and replies for its models.

    What a person set stays as it is.

    Args:
        settings: of the run.
        limits: of the models that are reached online; offline ones have none.
    """
    if settings.chunk == "off" or settings.mode == "verify" or not limits:
        return settings
    given = settings.model_fields_set
    windows = [own.context_tokens for own in limits.values() if own.context_tokens]
    reply = settings.max_output_tokens
    if "max_output_tokens" not in given:
        # a third of a window at most, so that text and instructions have the rest
        bounds = [MOST_REPLY, *(window // 3 for window in windows)]
        reply = min(*bounds, *(own.output_tokens or reply for own in limits.values()))
    rooms = (settings.max_prompt_tokens, *(window - reply for window in windows))
    part = max(min(reply, min(rooms) - PROMPT_TOKENS), LEAST_PART)
    length = max(part * CHARS_PER_TOKEN, 2 * settings.chunk_overlap)
    return settings.model_copy(
        update={
            "max_output_tokens": reply,
            "max_chars": settings.max_chars if "max_chars" in given else length,
        }
    )


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
