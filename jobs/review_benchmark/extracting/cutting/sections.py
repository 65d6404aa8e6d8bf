"""The sections that an extraction needs, found by the headings of Cochrane reviews.

A heading is a line whose letters are those of a known one; blanks, numbers and marks in
it do not count, since top headings are printed with spaced letters. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from jobs.inputs.documents import Document, TextSpan

Section: TypeAlias = Literal[
    "objectives", "criteria", "conclusions", "included", "excluded", "reasons"
]
Sections: TypeAlias = Mapping[Section, TextSpan]

NEEDED: Final[tuple[Section, ...]] = (
    "objectives",
    "criteria",
    "conclusions",
    "included",
)
"""Sections whose place a model is asked for where no heading tells it."""

_STARTS: Final[Mapping[Section, tuple[str, ...]]] = {
    "objectives": ("Objectives", "Objective"),
    "criteria": (
        "Criteria for considering studies for this review",
        "Criteria for considering studies",
    ),
    "conclusions": ("Authors' conclusions", "Authors' conclusion"),
    "included": ("References to studies included in this review",),
    "excluded": ("References to studies excluded from this review",),
    "reasons": ("Characteristics of excluded studies",),
}
_INNER: Final[Mapping[Section, tuple[str, ...]]] = {
    "criteria": (
        "Types of studies",
        "Types of participants",
        "Types of interventions",
        "Types of outcome measures",
        "Primary outcomes",
        "Secondary outcomes",
    ),
    "conclusions": ("Implications for practice", "Implications for research"),
}
"""Headings that a section holds itself."""

_OTHERS: Final = (
    "Abstract",
    "Background",
    "Methods",
    "Search methods",
    "Search methods for identification of studies",
    "Selection criteria",
    "Data collection and analysis",
    "Main results",
    "Plain language summary",
    "Summary of findings",
    "Results",
    "Description of studies",
    "Risk of bias in included studies",
    "Effects of interventions",
    "Discussion",
    "Acknowledgements",
    "References",
    "References to studies awaiting assessment",
    "References to ongoing studies",
    "Additional references",
    "References to other published versions of this review",
    "Characteristics of studies",
    "Characteristics of included studies",
    "Characteristics of studies awaiting assessment",
    "Characteristics of ongoing studies",
    "Data and analyses",
    "Appendices",
    "What's new",
    "History",
    "Contributions of authors",
    "Declarations of interest",
    "Sources of support",
    "Index terms",
)
"""Headings that only end a section."""

LONGEST: Final = 100
"""Characters of a heading's line, spaced letters included."""

_LETTERS: Final = re.compile(r"[^\W\d_]+")
_ORDERED: Final = re.compile(r"\[ordered by .*|\.\s?\.\s?\..*", re.IGNORECASE)
"""What may follow a heading: how a table is ordered, or the dots of a contents list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of a document."""

    text: str  #: without outer blanks
    span: TextSpan  #: with its line break


def lines(document: Document) -> Iterator[Line]:
    """The lines of a document, blank ones included."""
    at = 0
    for raw in document.text.splitlines(keepends=True):
        span = TextSpan(start=at, end=at + len(raw))
        yield Line(text=raw.strip(), span=span)
        at = span.end


def sections(document: Document) -> dict[Section, TextSpan]:
    """Where each section stands; one without a heading is left out.

    A heading may come several times: in the abstract, in the contents, and where the
    section is. The longest section counts.
    """
    headings = [
        (key, line.span)
        for line in lines(document)
        if (key := _key(line.text)) in _KNOWN
    ]
    found: dict[Section, TextSpan] = {}
    for name, titles in _STARTS.items():
        starts = set(map(_letters, titles))
        inner = set(map(_letters, _INNER.get(name, ())))
        for place, (key, own) in enumerate(headings):
            if key not in starts:
                continue
            later = (
                span.start
                for other, span in headings[place + 1 :]
                if other not in inner
            )
            end = next(later, len(document.text))
            span = TextSpan(start=own.end, end=end)
            if document.piece(span) and len(span) > len(found.get(name, ())):
                found[name] = span
    return found


def _letters(text: str) -> str:
    return "".join(_LETTERS.findall(text)).lower()


def _key(line: str) -> str:
    if len(line) > LONGEST or not line or line[0].islower():
        return ""
    return _letters(_ORDERED.sub("", line))


_KNOWN: Final = frozenset(
    _letters(title)
    for titles in (*_STARTS.values(), *_INNER.values(), _OTHERS)
    for title in titles
)
