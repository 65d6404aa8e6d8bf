"""Finds quotes in the text of a paper, and how well they match.

Pure: it depends on text and quote alone. Most quotes are found as they are; only the
others cost the folding of the paper, once, and the search for something like them.

Papers are typeset and models type: ligatures, soft hyphens, words parted at the end of
a line, dashes, quote marks and blanks differ where the words are the same. Case is
kept: Tc and TC may be two things.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from bisect import bisect_right
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, lru_cache
from typing import Final

_HYPHEN: Final = "-\u2010\u2011"
_HIDDEN: Final = "\u00ad\u200b-\u200d\u2060\ufeff"
"""The soft hyphen, and what has no width at all."""

# what NFKC composes with the letter before it: accents, and the later parts of Hangul
_MARKS: Final = (
    "\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\u3099\u309a\ufe20-\ufe2f"
    "\u1160-\u11ff"
)

_ODD: Final = re.compile(
    # what every match begins with: seeing it first takes a quarter of the time
    r"(?=[^ -~]|[ -] |[ -~][^ -~])(?:"
    # a word that the end of its line parts, or a hyphen that happens to stand there
    rf"(?P<parted>(?<=[^\W\d_])[{_HYPHEN}]\s*?\n\s*(?=[^\W\d_])|\u00ad\s*?\n\s*)"
    rf"|(?P<hyphen>[{_HYPHEN}]\s*?\n\s*)"
    rf"|(?P<blank>[^\S ]|[{_HIDDEN}]|[\s{_HIDDEN}]{{2}})[\s{_HIDDEN}]*"
    rf"|(?:[!-~][{_MARKS}]+|[^\x00-\x7f][{_MARKS}]*))"
)
"""All that folding changes; what stands between two matches is as it was."""

# before NFKC, which would make blanks and accents of some
_PLAIN_TEXT: Final = str.maketrans(
    dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u2e3a\u2e3b", "-")
    | dict.fromkeys("\ufe31\ufe32\ufe58\ufe63\uff0d\u2043", "-")
    | dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u2035\u02b9\u02bc`\u00b4", "'")
    | dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u2036\u02ba\u00ab\u00bb", '"')
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldedText:
    """A folded text, and where in the raw one each piece of it comes from.

    Pieces that were changed and pieces that were not take turns. Each begins at one
    offset of the folded and one of the raw text, and ends where the next one begins.
    """

    text: str
    _starts: array[int]  #: of pieces, in the folded text
    _raws: array[int]  #: of the same pieces, in the raw text; one more: its length
    _changed: array[int]  #: whether the piece was; 0 or 1

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The raw offsets of a part of the folded text that is not empty."""
        first, last = self._piece(start), self._piece(end - 1)
        begin = self._raws[first]
        if not self._changed[first]:
            begin += start - self._starts[first]
        if self._changed[last]:
            return begin, self._raws[last + 1]
        return begin, self._raws[last] + end - self._starts[last]

    def _piece(self, offset: int) -> int:
        # pieces that folding removed begin where the next one does: the last counts
        return bisect_right(self._starts, offset) - 1


def fold(raw: str) -> FoldedText:
    """NFKC, plain dashes and quote marks, joined words, single blanks; case is kept."""
    pieces: list[str] = []
    starts, raws, changed = array("q"), array("q"), array("b")
    at = length = 0
    for match in _ODD.finditer(raw):
        for begin, text, is_changed in (
            (at, raw[at : match.start()], 0),
            (match.start(), _plain(match), 1),
        ):
            pieces.append(text)
            starts.append(length)
            raws.append(begin)
            changed.append(is_changed)
            length += len(text)
        at = match.end()
    pieces.append(raw[at:])
    starts.append(length)
    raws.extend((at, len(raw)))
    changed.append(0)
    return FoldedText(
        text="".join(pieces), _starts=starts, _raws=raws, _changed=changed
    )


def _plain(match: re.Match[str]) -> str:
    match match.lastgroup:
        case "parted":
            return ""
        case "hyphen":
            return "-"
        case "blank":
            return " " if any(map(str.isspace, match[0])) else ""
        case _:
            return _normal(match[0])


@lru_cache(maxsize=4096)
def _normal(cluster: str) -> str:
    """A character with its accents; a paper has few different ones."""
    return unicodedata.normalize("NFKC", cluster.translate(_PLAIN_TEXT))


NEAR: Final = 90.0
"""Least partial ratio, in percent, of a quote that is nearly there."""

PART_CHARS: Final = 3
"""Shorter parts of an elided quote say nothing and are not looked for."""

ELIDED_CHARS: Final = 2_000
"""Most characters from the first to the last part of an elided quote."""

_ELLIPSIS: Final = re.compile(r"\s*[\[(]?\.(?:\s?\.){2,}[\])]?\s*")


class GroundingLevel(StrEnum):
    """Quality of the match of a quote in its paper, the best first."""

    EXACT = "exact"  #: a piece of the text
    NORMALISED = "normalised"  #: a piece of it once both are folded
    ELIDED = "elided"  #: its parts are, in order, between its ellipses
    NEAR = "near"  #: something much like it is
    ABSENT = "absent"
    NO_QUOTE = "no_quote"
    NO_TEXT = "no_text"  #: there is a quote, but no paper to look it up in


GROUNDED: Final = frozenset(
    {GroundingLevel.EXACT, GroundingLevel.NORMALISED, GroundingLevel.ELIDED}
)
"""Levels at which the words of a quote are the paper's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuoteMatch:
    """Position of a quote; offsets are into the raw text."""

    level: GroundingLevel
    start: int | None = None  #: None where it is not in the text
    end: int | None = None  #: exclusive


class PaperText:
    """A paper's text in the forms that quotes are looked up in, each made once.

    Args:
        text: of the paper as it was read; blank: there is none.
    """

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def folded(self) -> FoldedText:
        """The text without what typesetting did to it."""
        return fold(self.text)

    @cached_property
    def lowered(self) -> str:
        """The folded text in lower case, each character in its place."""
        return _lowered(self.folded.text)


def ground(paper: PaperText, quote: str) -> QuoteMatch:
    """Return the position of *quote*, at the best level it reaches."""
    stripped = quote.strip()
    folded = fold(stripped).text.strip()
    if not folded:
        return QuoteMatch(level=GroundingLevel.NO_QUOTE)
    if not paper.text.strip():
        return QuoteMatch(level=GroundingLevel.NO_TEXT)
    start = paper.text.find(stripped)
    if start >= 0:
        return QuoteMatch(
            level=GroundingLevel.EXACT, start=start, end=start + len(stripped)
        )
    start = paper.folded.text.find(folded)
    if start >= 0:
        return _quote_match(
            paper, GroundingLevel.NORMALISED, start, start + len(folded)
        )
    return _elided(paper, folded) or _near(paper, folded)


def _elided(paper: PaperText, quote: str) -> QuoteMatch | None:
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
            part_start = text.find(part, end, limit)
            if part_start < 0:
                break
            end = part_start + len(part)
        else:
            return _quote_match(paper, GroundingLevel.ELIDED, start, end)
        start = text.find(parts[0], start + 1)
    return None


def _near(paper: PaperText, quote: str) -> QuoteMatch:
    # loaded here: a run's first call must not wait for it
    from rapidfuzz import fuzz  # noqa: PLC0415 - see above

    lowered, text = _lowered(quote), paper.lowered
    if len(lowered) > len(text):
        # the partial ratio would look for the text in the quote
        if fuzz.ratio(lowered, text, score_cutoff=NEAR):
            return _quote_match(paper, GroundingLevel.NEAR, 0, len(text))
        return QuoteMatch(level=GroundingLevel.ABSENT)
    alignment = fuzz.partial_ratio_alignment(lowered, text, score_cutoff=NEAR)
    if alignment is None or alignment.dest_start == alignment.dest_end:
        return QuoteMatch(level=GroundingLevel.ABSENT)
    return _quote_match(
        paper, GroundingLevel.NEAR, alignment.dest_start, alignment.dest_end
    )


def _quote_match(
    paper: PaperText, level: GroundingLevel, start: int, end: int
) -> QuoteMatch:
    begin, stop = paper.folded.span(start, end)
    return QuoteMatch(level=level, start=begin, end=stop)


def _lowered(text: str) -> str:
    """Lower case of the same length: a capital I with a dot would become two."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(low if len(low := c.lower()) == 1 else c for c in text)
