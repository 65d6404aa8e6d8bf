"""Whether a text stands in the source, and where; what no text may be without."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Final

from rapidfuzz import fuzz

from jobs.inputs.documents import Document, TextSpan

LEAST: Final = 0.90
"""Partial ratio of rapidfuzz from which a text that is not verbatim stands there."""

SHORTEST: Final = 10
"""Characters of a text that may differ from the source at all: a short word is a part
of many."""

_WORD: Final = re.compile(r"\w+")
_LETTER: Final = re.compile(r"[^\W\d_]")
_FULL: Final = 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Where a text stands."""

    span: TextSpan  #: in the document
    ratio: float  #: 1.0: word by word


@dataclass(frozen=True, slots=True, kw_only=True)
class Grounds:
    """A document's words in normal form: lower case, with a blank around each."""

    normal: str = field(repr=False)
    starts: tuple[int, ...] = field(repr=False)  #: of each word in `normal`
    words: tuple[TextSpan, ...] = field(repr=False)  #: of each word in the document

    @classmethod
    def of(cls, document: Document) -> Grounds:
        """The words of a document."""
        starts, words, kept = [], [], []
        at = 1
        for match in _WORD.finditer(document.text):
            word = match.group().lower()
            starts.append(at)
            words.append(TextSpan(start=match.start(), end=match.end()))
            kept.append(word)
            at += len(word) + 1
        normal = f" {' '.join(kept)} "
        return cls(normal=normal, starts=tuple(starts), words=tuple(words))

    def find(self, text: str, within: TextSpan) -> Ground | None:
        """Where *text* stands in a span of the document, if it does.

        Word by word, or the part that is most alike, from 0.90 on. A text without a
        letter, such as a year, says nothing, wherever it stands.
        """
        wanted = " ".join(word.lower() for word in _WORD.findall(text))
        first = bisect_right(self.words, within.start, key=_end)
        last = bisect_right(self.words, within.end - 1, key=_start)
        if not _LETTER.search(wanted) or first >= last:
            return None
        begin = self.starts[first]
        end = self.starts[last] - 1 if last < len(self.starts) else len(self.normal) - 1
        at = self.normal.find(f" {wanted} ", begin - 1, end + 1) + 1
        if at > 0:
            return Ground(span=self._span(at, at + len(wanted)), ratio=1.0)
        # of what is longer than the text a piece would be found, and of a short word
        # any other that holds it
        if not SHORTEST <= len(wanted) <= end - begin:
            return None
        found = fuzz.partial_ratio_alignment(
            wanted, self.normal[begin:end], score_cutoff=_FULL * LEAST
        )
        if found is None:
            return None
        span = self._span(begin + found.dest_start, begin + found.dest_end)
        return Ground(span=span, ratio=found.score / _FULL)

    def _span(self, begin: int, end: int) -> TextSpan:
        """From the normal form back to the document."""
        first = bisect_right(self.starts, begin) - 1
        last = bisect_right(self.starts, max(end - 1, begin)) - 1
        return TextSpan(start=self.words[first].start, end=self.words[last].end)


def _start(span: TextSpan) -> int:
    return span.start


def _end(span: TextSpan) -> int:
    return span.end
