"""Where a quote stands in its paper, and how well.

Pure: it depends on text and quote alone. Most quotes are found as they are; only the
others cost the folding of the paper, once, and the search for something like them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Final

from jobs.property_extraction.grounding.folding import Folded, fold

NEAR: Final = 90.0
"""Least partial ratio, in percent, of a quote that is nearly there."""

PART_CHARS: Final = 3
"""Shorter parts of an elided quote say nothing and are not looked for."""

ELIDED_CHARS: Final = 2_000
"""Most characters from the first to the last part of an elided quote."""

_ELLIPSIS: Final = re.compile(r"\s*[\[(]?\.(?:\s?\.){2,}[\])]?\s*")


class Level(StrEnum):
    """How well a quote stands in its paper, the best first."""

    EXACT = "exact"  #: a piece of the text
    NORMALISED = "normalised"  #: a piece of it once both are folded
    ELIDED = "elided"  #: its parts are, in order, between its ellipses
    NEAR = "near"  #: something much like it is
    ABSENT = "absent"
    NO_QUOTE = "no_quote"
    NO_TEXT = "no_text"  #: there is a quote, but no paper to look it up in


GROUNDED: Final = frozenset({Level.EXACT, Level.NORMALISED, Level.ELIDED})
"""Levels at which the words of a quote are the paper's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grounded:
    """Where a quote stands; offsets are into the raw text."""

    level: Level
    start: int | None = None  #: None where it is not in the text
    end: int | None = None  #: exclusive


class Paper:
    """A paper's text in the forms that quotes are looked up in, each made once.

    Args:
        text: of the paper as it was read; blank: there is none.
    """

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def folded(self) -> Folded:
        """The text without what typesetting did to it."""
        return fold(self.text)

    @cached_property
    def lowered(self) -> str:
        """The folded text in lower case, each character in its place."""
        return _lowered(self.folded.text)


def ground(paper: Paper, quote: str) -> Grounded:
    """Where *quote* stands, at the best level it reaches."""
    wanted = quote.strip()
    folded = fold(wanted).text.strip()
    if not folded:
        return Grounded(level=Level.NO_QUOTE)
    if not paper.text.strip():
        return Grounded(level=Level.NO_TEXT)
    start = paper.text.find(wanted)
    if start >= 0:
        return Grounded(level=Level.EXACT, start=start, end=start + len(wanted))
    start = paper.folded.text.find(folded)
    if start >= 0:
        return _found(paper, Level.NORMALISED, start, start + len(folded))
    return _elided(paper, folded) or _near(paper, folded)


def _elided(paper: Paper, quote: str) -> Grounded | None:
    """The first place that has all parts in order and close together."""
    pieces = _ELLIPSIS.split(quote)
    parts = [piece for piece in pieces if len(piece) >= PART_CHARS]
    if len(pieces) == 1 or not parts:
        return None
    text = paper.folded.text
    start = text.find(parts[0])
    while start >= 0:
        # the earliest place of each part leaves most room for those after it
        end, limit = start + len(parts[0]), start + ELIDED_CHARS
        for part in parts[1:]:
            found = text.find(part, end, limit)
            if found < 0:
                break
            end = found + len(part)
        else:
            return _found(paper, Level.ELIDED, start, end)
        start = text.find(parts[0], start + 1)
    return None


def _near(paper: Paper, quote: str) -> Grounded:
    # loaded here: a run's first call must not wait for it
    from rapidfuzz import fuzz  # noqa: PLC0415 - see above

    wanted, text = _lowered(quote), paper.lowered
    if len(wanted) > len(text):
        # the partial ratio would look for the text in the quote
        if fuzz.ratio(wanted, text, score_cutoff=NEAR):
            return _found(paper, Level.NEAR, 0, len(text))
        return Grounded(level=Level.ABSENT)
    found = fuzz.partial_ratio_alignment(wanted, text, score_cutoff=NEAR)
    if found is None or found.dest_start == found.dest_end:
        return Grounded(level=Level.ABSENT)
    return _found(paper, Level.NEAR, found.dest_start, found.dest_end)


def _found(paper: Paper, level: Level, start: int, end: int) -> Grounded:
    begin, stop = paper.folded.span(start, end)
    return Grounded(level=level, start=begin, end=stop)


def _lowered(text: str) -> str:
    """Lower case of the same length: a capital I with a dot would become two."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(low if len(low := c.lower()) == 1 else c for c in text)
