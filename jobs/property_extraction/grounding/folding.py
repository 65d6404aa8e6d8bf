"""One form for texts that differ only in how they were set, and the way back.

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
from functools import lru_cache
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
_PLAIN: Final = str.maketrans(
    dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u2e3a\u2e3b", "-")
    | dict.fromkeys("\ufe31\ufe32\ufe58\ufe63\uff0d\u2043", "-")
    | dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u2035\u02b9\u02bc`\u00b4", "'")
    | dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u2036\u02ba\u00ab\u00bb", '"')
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
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


def fold(raw: str) -> Folded:
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
    return Folded(text="".join(pieces), _starts=starts, _raws=raws, _changed=changed)


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
    return unicodedata.normalize("NFKC", cluster.translate(_PLAIN))
