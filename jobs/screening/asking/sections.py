"""The sections of a review's abstract, of which only two may be shown.

What a review found gives away what it included. So nothing behind the first word of
results is looked at, only named sections are ever taken from what is left, and each
ends where studies are counted: too short a section is better than a leak.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import takewhile

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

# a section begins at the start, after the end of a sentence or after wide blanks
_START = r"(?:^|(?<=[\n.?!:;)\]])|(?<=\s\s))\s*"
_HEADING = re.compile(
    _START
    + "("
    + "|".join(re.escape(form) for each in HEADINGS for form in (each, each.upper()))
    + r")\b(?:\s*:\s*|\s)",
)
_BY_CAPITALS = {each.upper(): each for each in HEADINGS}
_RESULTS = re.compile(
    # these words tell of results wherever they stand, however they are written
    r"\b(?i:main\s+results?|(?:author|reviewer)\W?s?\W?\s+conclusions?)\b"
    # others do where they head a section
    rf"|{_START}(?i:results?|(?:main\s|key\s)?findings|conclusions?|summary)"
    r"(?:\s*:|\s+(?=[A-Z\d]))"
)

_SENTENCES = re.compile(r"(?<=[.?!])\s+")
_NUMBER = (
    r"(?:\d[\d,]*|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|"
    r"(?:twen|thir|for|fif|six|seven|eigh|nine)ty(?:\W\w+)?|hundred)"
)
# not the phase or type of something, how long a study lasts, or whom it enrols
_COUNTED = re.compile(
    rf"(?<!phase )(?<!type )\b{_NUMBER}"
    r"\s+(?!(?:types?|kinds?|weeks?|months?|years?|days?|participants|patients)\b)"
    r"(?:[\w()\u2010-]+\s+){0,4}"
    r"(?:trials|studies|RCTs|papers|articles|reports|publications|records)\b",
    re.IGNORECASE,
)
_WERE_FOUND = re.compile(
    r"\b(?:includ|identif|found|met\b|fulfil|eligible|contribut|retriev|analys|pool)",
    re.IGNORECASE,
)


def sections(abstract: str) -> Mapping[str, str]:
    """The sections that may be shown, by heading; empty ones are left out."""
    told = _RESULTS.split(f"{abstract} ", maxsplit=1)[0]
    found = list(_HEADING.finditer(told))
    ends = [*(heading.start() for heading in found[1:]), len(told)]
    shown: dict[str, str] = {}
    for heading, end in zip(found, ends, strict=False):
        name = _BY_CAPITALS[heading[1].upper()]
        text = _before_counts(told[heading.end() : end])
        if text and name not in shown:
            shown[name] = text
    return {name: shown[name] for name in SHOWN if name in shown}


def _before_counts(text: str) -> str:
    """The sentences up to one that says how many studies there were."""
    sentences = takewhile(lambda each: not _counts(each), _SENTENCES.split(text))
    return " ".join(" ".join(sentences).split())


def _counts(sentence: str) -> bool:
    return bool(_COUNTED.search(sentence) and _WERE_FOUND.search(sentence))
