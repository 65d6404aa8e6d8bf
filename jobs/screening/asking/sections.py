"""The sections of a review's abstract, of which only two may be shown.

What a review found gives away what it included, so the text is cut wherever a heading
begins, by all spellings known here, and only named sections are ever taken out of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

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
    "Main results",
    "Authors' conclusions",
    "Reviewers' conclusions",
)
"""As they are written; either apostrophe will do."""

# a heading begins a section: at the start, after the end of a sentence or wide blanks
_HEADING = re.compile(
    r"(?:^|(?<=[\n.?!:;)\]])|(?<=\s\s))\s*("
    + "|".join(re.escape(each).replace("'", "['\u2019]") for each in HEADINGS)
    + r")\b(?:\s*:\s*|\s)",
)
# what tells results may stand anywhere: too short a section is better than a leak
_RESULTS = re.compile(
    r"\b(?:main results|(?:author|reviewer)s['\u2019] conclusions)\b", re.IGNORECASE
)


def sections(abstract: str) -> Mapping[str, str]:
    """The sections that may be shown, by heading; empty ones are left out."""
    found = list(_HEADING.finditer(f"{abstract} "))
    shown: dict[str, str] = {}
    for place, heading in enumerate(found):
        name = heading[1]
        if name not in SHOWN or name in shown:
            continue
        is_last = place + 1 == len(found)
        end = len(abstract) if is_last else found[place + 1].start()
        text = _RESULTS.split(abstract[heading.end() : end], maxsplit=1)[0]
        if text.strip():
            shown[name] = " ".join(text.split())
    return {name: shown[name] for name in SHOWN if name in shown}
