"""Normal forms of identifiers and titles: what is compared when papers are matched."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

Punctuation: TypeAlias = Literal["blank", "delete"]

_DIGITS = re.compile(r"[0-9]+")
_MARKS = re.compile(r"[^\w\s]")

_DX = ("https://dx.doi.org/", "http://dx.doi.org/", "dx.doi.org/")
_DOI = ("https://doi.org/", "http://doi.org/", "doi.org/", "doi:")
"""What may stand before a DOI; no prefix is the beginning of another."""


def pmid_of(text: str) -> str:
    """A PubMed id: the first run of ASCII digits, as a number without leading zeros.

    Empty where there is none: no digits, zero, or an id of PubMed Central (`PMC...`),
    which counts otherwise.
    """
    if text.strip().lower().startswith("pmc"):
        return ""
    found = _DIGITS.search(text)
    return found.group().lstrip("0") if found else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Normal:
    """How DOIs and titles are normalised."""

    punctuation: Punctuation = "blank"  #: what a mark in a title becomes
    strip_dx: bool = True  #: whether `dx.doi.org/` before a DOI is removed

    def doi(self, text: str) -> str:
        """A DOI in lower case without resolver or `doi:`; empty where there is none.

        What stands after it, such as a full stop, belongs to it.
        """
        lowered = text.strip().lower()
        for prefix in (*_DX, *_DOI) if self.strip_dx else _DOI:
            if lowered.startswith(prefix):
                return lowered.removeprefix(prefix).strip()
        return lowered

    def title(self, text: str) -> str:
        """A title in lower case, with neither marks nor runs of blanks.

        Accents stay: they are word characters. Empty where nothing is left, and such a
        title is alike to none.
        """
        mark = " " if self.punctuation == "blank" else ""
        return " ".join(_MARKS.sub(mark, text.lower()).split())
