"""The sections of a review's abstract, of which only two may be shown.

What a review found gives away what it included. So nothing behind the first word of
results is looked at, only named sections are ever taken from what is left, and each
ends where studies are counted: too short a section is better than a leak.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import takewhile
from types import MappingProxyType

OBJECTIVES = "Objectives"
SELECTION = "Selection criteria"
SHOWN = (OBJECTIVES, SELECTION)
"""Sections that say what a review looks for, and nothing of what it found."""

HEADINGS = (
    "Background",
    OBJECTIVES,
    "Search methods",
    "Search strategy",
    SELECTION,
    "Data collection and analysis",
    "Data collection & analysis",
)
"""Of what a review tells before its results; written so, or in capitals throughout."""

_HEADING = re.compile(
    r"\b("
    + "|".join(re.escape(form) for each in HEADINGS for form in (each, each.upper()))
    + r")\b(?:\s*:\s*|\s)",
)
_BY_CAPITALS = {each.upper(): each for each in HEADINGS}
_ENDS = ".?!:;)]"
"""Marks after which a section may begin."""

# these words tell of results wherever they stand and however they are written
_RESULTS = re.compile(
    r"\b(?:main\s+results?|(?:author|reviewer)\W?s?\W?\s+conclusions?)\b", re.IGNORECASE
)
# others do where they head a section
_RESULTS_HEADING = re.compile(
    r"\b(?i:results?|(?:main\s|key\s)?findings|conclusions?|summary)"
    r"(?:\s*:|\s+(?=[A-Z\d]))"
)

_SENTENCES = re.compile(r"(?<=[.?!])\s+")
_NUMBER = (
    r"(?:\d[\d,]*|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|"
    r"(?:twen|thir|for|fif|six|seven|eigh|nine)ty(?:\W\w+)?|hundred)"
)
# not the phase or type of something, how long a study lasts, whom it enrols, or how
# many things there are in it
_COUNTED = re.compile(
    rf"(?<!phase )(?<!type )\b{_NUMBER}"
    r"\s+(?!(?:types?|kinds?|weeks?|months?|years?|days?|participants|patients)\b)"
    r"(?:(?!(?:in|for|with|from|between|versus|or)\b)[\w()\u2010-]+\s+){0,4}"
    r"(?:trials|studies|RCTs|papers|articles|reports|publications|records)\b",
    re.IGNORECASE,
)
_WERE_FOUND = re.compile(
    r"\b(?:includ|identif|found|met\b|fulfil|eligible|contribut|retriev|analys|pool)",
    re.IGNORECASE,
)


@lru_cache
def sections(abstract: str) -> Mapping[str, str]:
    """The sections that may be shown, by heading; empty ones are left out.

    Remembered for some abstracts: each paper of a review asks for the same.
    """
    told = _RESULTS.split(f"{abstract} ", maxsplit=1)[0]
    results = next(_beginning(_RESULTS_HEADING, told), None)
    if results is not None:
        told = told[: results.start()]
    found = list(_beginning(_HEADING, told))
    ends = [*(heading.start() for heading in found[1:]), len(told)]
    shown: dict[str, str] = {}
    for heading, end in zip(found, ends, strict=False):
        name = _BY_CAPITALS[heading[1].upper()]
        text = _before_counts(told[heading.end() : end])
        if text and name not in shown:
            shown[name] = text
    return MappingProxyType({name: shown[name] for name in SHOWN if name in shown})


def _beginning(heading: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """The headings at the start of *text*, of a line, after a sentence or a gap."""
    for found in heading.finditer(text):
        before = text[: found.start()]
        words = before.rstrip()
        gap = before[len(words) :]
        if not words or words[-1] in _ENDS or len(gap) > 1 or "\n" in gap:
            yield found


def _before_counts(text: str) -> str:
    """The sentences up to one that says how many studies there were."""
    sentences = takewhile(lambda each: not _counts(each), _SENTENCES.split(text))
    return " ".join(" ".join(sentences).split())


def _counts(sentence: str) -> bool:
    return bool(_COUNTED.search(sentence) and _WERE_FOUND.search(sentence))
