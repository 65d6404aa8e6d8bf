"""Which values a text reports: numbers with a unit, under the nearest words before.

With names to choose from, the one that shares most words with the sentence is taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from jobs.lexical import Bm25
from jobs.property_extraction.asking.lexical.sentences import quoted, sentences
from jobs.property_extraction.parsing.extraction import OTHER
from jobs.property_extraction.parsing.units import UNITS

# in prose these are words, or parts of formulas, more often than units
_WORDS: Final = frozenset({"A", "n", "k", "h", "min", "s", "g", "m", "deg", "atom"})

_NAME: Final = "|".join(
    sorted(map(re.escape, UNITS - _WORDS), key=lambda name: (-len(name), name))
)
_POWER: Final = r"(?:\^?[-\u2212\u2013]?[0-9](?![0-9])|[\u207b\u00b9\u00b2\u00b3]+)?"
_UNIT: Final = (
    rf"(?:{_NAME}){_POWER}(?:[ \u00b7./]\(?(?:{_NAME}|m|g|s|f\.u\.){_POWER}\)?)*"
)
_NUMBER: Final = (
    r"(?<![\w.\-/])[-+\u2212]?[0-9]+(?:[.,][0-9]+)*(?:\([0-9]+\))?"
    r"(?:\s?\u00b1\s?[0-9]+(?:\.[0-9]+)?)?"
    r"(?:\s?[\u00d7x]\s?10\s?\^?[-\u2212]?(?:[0-9]+|[\u207b\u2070\u00b9\u00b2\u00b3"
    r"\u2074-\u2079]+))?"
)
_VALUE: Final = re.compile(rf"(?P<value>{_NUMBER})\s?(?P<unit>{_UNIT})(?![A-Za-z0-9])")

_ABOUT: Final = r"(?:\s+(?:about|approximately|around|nearly|found to be|to be|only))*"
_SAID: Final = re.compile(
    r"(?P<phrase>[^,;:()]*?)\s*(?:=|\u2248|\u2243|~|\b(?:of|is|was|are|were|below|near"
    rf"|at|reaches|equals)\b){_ABOUT}\s*$"
)
_BORDER: Final = re.compile(
    r"\b(?:that|which|with|and|we|gives?|yields?|has|have|shows?|from|by|where|to|the"
    r"|an?|its|it|this|these|for|in|on)\b|^\s*of\b",
    re.IGNORECASE,
)
_AT: Final = re.compile(r"\bat\s+(?:about\s+)?$", re.IGNORECASE)
_FIELD: Final = re.compile(
    r"\bfor\s+[HB]\s*(?://|\u2225|\|\||\u22a5|along|parallel to)\s*[^\s,;.]+"
)
_FORMULA: Final = re.compile(r"\b(?:[A-Z][a-z]?(?:[0-9]+(?:\.[0-9]+)?)?){2,}\b")

_MOST_WORDS: Final = 8
"""Words of a name."""

_NEARBY: Final = 200
"""Characters around a value that may speak of it: some sentences are whole tables."""


def extracted(text: str, names: Sequence[str] = ()) -> dict[str, Any]:
    """The values of a text.

    Args:
        text: of a paper.
        names: that may be used; none: the words of the text are.
    """
    pool = Bm25(names) if names else None
    return {"properties": list(_values(text, names, pool))}


def _values(
    text: str, names: Sequence[str], pool: Bm25 | None
) -> Iterator[dict[str, Any]]:
    for sentence in sentences(text):
        said = sentence.text
        found = list(_VALUE.finditer(said))
        held = [each for each in found if _AT.search(_before(said, each))]
        # what holds at 4 K is a value only where nothing else is one
        stated = [each for each in found if each not in held] or held
        listed = _listed(said, names, pool) if pool and stated else ""
        for each in stated:
            label = _phrase(_before(said, each))
            name = listed or label
            if not name:
                continue
            yield {
                "property": name,
                **({"label": label or None} if name == OTHER else {}),
                "material": _material(said),
                "condition": _condition(said, each, held),
                "quote": quoted(said, each.start()),
                "value": each["value"],
                "unit": each["unit"],
            }


def _before(sentence: str, match: re.Match[str]) -> str:
    return sentence[max(match.start() - _NEARBY, 0) : match.start()]


def _phrase(before: str) -> str:
    """The nearest words before a number that may name what it is."""
    said = _SAID.search(before)
    if said is None:
        return ""
    phrase, _, _ = said["phrase"].partition(" at ")
    words = _BORDER.split(phrase)[-1].split()
    return " ".join(words[-_MOST_WORDS:])


def _listed(sentence: str, names: Sequence[str], pool: Bm25) -> str:
    scores = pool.scores(sentence)
    best = max(scores)
    return names[scores.index(best)] if best > 0 else OTHER


def _material(sentence: str) -> str | None:
    found = (match[0] for match in _FORMULA.finditer(sentence))
    return next((each for each in found if any(map(str.isdigit, each))), None)


def _condition(
    sentence: str, value: re.Match[str], held: Sequence[re.Match[str]]
) -> str | None:
    """What is said to hold near a value."""
    first = max(value.start() - _NEARBY, 0)
    last = value.end() + _NEARBY
    told = [
        f"at {each[0]}"
        for each in held
        if each is not value and first <= each.start() < last
    ]
    told += [match[0] for match in _FIELD.finditer(sentence, first, last)]
    return "; ".join(told) or None
