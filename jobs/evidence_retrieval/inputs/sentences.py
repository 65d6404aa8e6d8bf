"""Cuts a text into sentences without changing a character of it.

A sentence ends after `.`, `!` or `?` with the quotes that close there, where white
space or the text's end follows, and at every line break. No sentence ends after a
listed abbreviation or a single capital; a dot inside a number is followed by a digit
and so is none. What has no letter is no sentence: it belongs to its left neighbour, or,
at the beginning of a text, to its right one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

ABBREVIATIONS = frozenset(
    (
        *("mr", "mrs", "ms", "dr", "prof", "st", "sr", "jr", "rev", "hon", "gen"),
        *("vs", "e.g", "i.e", "cf", "ca", "approx", "incl", "resp", "al", "viz"),
        *("fig", "figs", "eq", "ref", "refs", "sec", "vol", "ed", "eds", "pp"),
        *("dept", "est", "a.m", "p.m", "jan", "feb", "apr", "aug", "sept", "oct"),
        *("nov", "dec"),
    )
)
"""What is usually followed by more of the same sentence; in lower case.

`no`, `etc`, `mar`, `jun` and `sat` are left out: as often as not they are words, or the
end of a sentence.
"""

REACH = 16
"""Characters looked at before a dot: more than any abbreviation has."""

_END = re.compile(r"[.!?]+[\"'”’»“‘]*(?=\s|\Z)|[\n\r\u2028\u2029]+")
_WORD = re.compile(r"[^\s\"'“”‘’«»()\[\]]*\Z")
_CAPITAL = re.compile(r"(?:.*\.)?[^\W\d_]\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Where a sentence stands: `text[start:end]`, without white space around it."""

    start: int
    end: int


def spans(text: str) -> tuple[Span, ...]:
    """The sentences of a text; between them lies nothing but white space.

    >>> text = "Dr. Ash slept 7.5 h. Well?"
    >>> [text[span.start : span.end] for span in spans(text)]
    ['Dr. Ash slept 7.5 h.', 'Well?']
    """
    joined: list[Span] = []
    for span in _pieces(text):
        left = joined[-1] if joined else None
        if left and not (_has_letter(text, span) and _has_letter(text, left)):
            joined[-1] = Span(start=left.start, end=span.end)
        else:
            joined.append(span)
    return tuple(joined)


def _pieces(text: str) -> Iterator[Span]:
    start = 0
    for found in _END.finditer(text):
        before = text[max(start, found.start() - REACH) : found.start()]
        if found.group() == "." and _goes_on(before):
            continue
        yield from _trimmed(text, start, found.end())
        start = found.end()
    yield from _trimmed(text, start, len(text))


def _goes_on(before: str) -> bool:
    """Whether a dot after *before* belongs to an abbreviation or an initial."""
    found = _WORD.search(before)
    word = found.group() if found else ""
    is_initial = bool(_CAPITAL.match(word)) and word[-1].isupper()
    return is_initial or word.lower() in ABBREVIATIONS


def _trimmed(text: str, start: int, end: int) -> Iterator[Span]:
    piece = text[start:end]
    if piece.strip():
        left = start + len(piece) - len(piece.lstrip())
        yield Span(start=left, end=start + len(piece.rstrip()))


def _has_letter(text: str, span: Span) -> bool:
    return any(map(str.isalpha, text[span.start : span.end]))
