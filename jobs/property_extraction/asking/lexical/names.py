"""Whether two names mean one property, by their words.

Abbreviations and Greek letters are written out first. Names that say the same of
different things (onset and zero resistance, a and c, 4.2 K and 300 K) are two, however
many words they share.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any, Final

LIKE: Final = 0.5
"""Least share of common words, of all words of both."""

_WRITTEN_OUT: Final = (
    (r"\bh_?c1\b", "lower critical field"),
    (r"\bh_?c2\b", "upper critical field"),
    (r"\bt_?c\b", "critical temperature"),
    (r"\bsuperconducting transition temperature\b", "critical temperature"),
    (r"\brt\b|\b300 ?k\b", "room temperature"),
    (r"\bspecific heat\b", "heat capacity"),
    (r"\blattice parameter\b", "lattice constant"),
    (r"\btemp\.", "temperature"),
    (r"\bnorm[ar]+[a-z]*ized\b", "normalized"),
    (r"\bparallel to\b|//|\u2225|\|\|", " along "),
    ("\u03b1", " alpha "),
    ("\u03b3", " gamma "),
    ("\u03b4|\u2206", " delta "),
    (r"\u03b8_?d\b|\u03b8", " theta "),
    ("\u03ba", " kappa "),
    ("\u03bb", " lambda "),
    ("\u03be", " xi "),
    ("\u03c1", " rho "),
)
"""Patterns of folded names, and what they stand for."""

_QUALIFIERS: Final = (
    (r"\bonset\b", r"\bzero\b", r"\bmid(?:point|dle)?\b"),
    (r"\bconstant a\b", r"\bconstant b\b", r"\bconstant c\b"),
    (r"\bab[- ]?plane\b|\ba-axis\b", r"\bc-axis\b"),
    (r"\bpoly ?(?:crystal\w*)?\b|\bpolycrystal\w*", r"\bsingle\b"),
    (r"\blower critical field\b", r"\bupper critical field\b"),
)
"""Words of which a name has one kind alone, if any."""

_TEMPERATURE: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?k\b")
_METHOD: Final = re.compile(r"\bmethod of\b")
_WORD: Final = re.compile(r"[^\W_]+")
_STOP: Final = frozenset({"the", "of", "a", "an", "at", "for", "in", "this", "from"})


def verified(name: str, target: str) -> dict[str, Any]:
    """The verdict on a pair of names."""
    share = _share(name, target)
    reason = "A qualifier differs." if share is None else _told(share)
    return {"reason": reason, "is_match": share is not None and share >= LIKE}


def chosen(name: str, targets: Mapping[str, str]) -> dict[str, Any]:
    """The letter of the target with most common words, or none."""
    shares = {letter: _share(name, target) or 0.0 for letter, target in targets.items()}
    best = max(shares, key=shares.__getitem__)
    is_any = shares[best] >= LIKE
    return {"reason": _told(shares[best]), "target": best if is_any else "none"}


def _told(share: float) -> str:
    return f"{round(100 * share)}% of the words are common."


def _share(name: str, target: str) -> float | None:
    """The share of common words; 1 where one has all of the other's; None: differ."""
    first, second = _folded(name), _folded(target)
    if _differ(first, second):
        return None
    words, others = _words(first), _words(second)
    if not words or not others:
        return 0.0
    if words <= others or others <= words:
        return 1.0
    return len(words & others) / len(words | others)


def _differ(first: str, second: str) -> bool:
    if bool(_METHOD.search(first)) != bool(_METHOD.search(second)):
        return True
    if _unequal(_temperatures(first), _temperatures(second)):
        return True
    return any(
        _unequal(*(_kinds(kinds, name) for name in (first, second)))
        for kinds in _QUALIFIERS
    )


def _unequal(first: frozenset[object], second: frozenset[object]) -> bool:
    """Whether both names say something, and not the same."""
    return bool(first and second and first != second)


def _kinds(kinds: tuple[str, ...], name: str) -> frozenset[object]:
    return frozenset(kind for kind in kinds if re.search(kind, name))


def _temperatures(name: str) -> frozenset[object]:
    room = {300.0} if "room temperature" in name else set()
    return frozenset({*map(float, _TEMPERATURE.findall(name)), *room})


def _folded(name: str) -> str:
    text = unicodedata.normalize("NFKC", name).lower()
    for pattern, plain in _WRITTEN_OUT:
        text = re.sub(pattern, plain, text)
    return text


def _words(name: str) -> set[str]:
    return {word for word in _WORD.findall(name) if word not in _STOP}
