"""Finds the p-value that stands nearest to a variant beside the association's words."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from jobs.paper_investigation.lexical.paper import (
    Paper,
    fold,
    names,
    overlap,
    position,
    words,
)
from jobs.paper_investigation.lexical.prompt import Study

NOT_FOUND = "not found"

ENOUGH = 0.5
"""Share of the drug's and phenotype's words that makes a passage speak of them."""

SIGNIFICANT = 0.05

_NUMBER = r"(?:\d+(?:\.\d+)?|\.\d+)(?:\s*x\s*10\s*\^?\s*-?\s*\d+|e-?\d+)?"
_OPERATOR = r"[<>]=?|="
_P_VALUE = re.compile(
    r"\bp(?:[ -]?values?)?(?: \([^)]*\))?\s*"
    rf"(?:(?:\bof\b|\bwas\b|:)\s*(?P<after>{_OPERATOR})?|(?P<op>{_OPERATOR}))"
    rf"\s*(?P<number>{_NUMBER})"
)
_SIGNS = str.maketrans({"×": "x", "≤": "<=", "≥": ">=", **dict.fromkeys("⁻", "-")})
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
_POWER = re.compile(r"\s*x\s*10\s*\^?\s*(-?)\s*(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class _PValue:
    start: int
    operator: str
    number: str

    @property
    def text(self) -> str:
        return f"{self.operator} {self.number}"

    @property
    def is_significant(self) -> bool:
        value = float(_POWER.sub(r"e\1\2", self.number))
        if self.operator.startswith("<"):
            return value <= SIGNIFICANT
        return self.operator == "=" and value < SIGNIFICANT


def find_study(paper: Paper, question: Study) -> tuple[str, str]:
    """The p-value as the paper puts it, and "yes" or "no"; or not found twice."""
    variants = names(fold(question.fields.get("Variant", "")))
    found = max(
        _candidates(paper, variants, _topic_shares(paper, question)),
        key=lambda candidate: candidate[0],
        default=None,
    )
    if found is None:
        return NOT_FOUND, NOT_FOUND
    return found[1].text, "yes" if found[1].is_significant else "no"


def _topic_shares(paper: Paper, question: Study) -> dict[int, float]:
    """By passage, how much of the drug's and the phenotype's words it holds.

    Where several drugs or phenotypes are named, one of each is enough; where none is,
    every passage fits.
    """
    fields = (fold(question.fields.get(label, "")) for label in ("Drug", "Phenotype"))
    shares = dict.fromkeys(range(len(paper.passages)), 0.0)
    for pair in itertools.product(*(names(field) for field in fields)):
        wanted = frozenset().union(*(words(name) for name in pair))
        fits = overlap(paper, wanted) if wanted else dict.fromkeys(shares, 1.0)
        for number, share in fits.items():
            shares[number] = max(shares[number], share)
    return shares


def _candidates(
    paper: Paper, variants: tuple[str, ...], shares: dict[int, float]
) -> Iterator[tuple[float, _PValue]]:
    """Nearest p-value of each fitting passage, with how well the passage fits."""
    for number, passage in enumerate(paper.passages):
        if shares[number] < ENOUGH:
            continue
        at = _first_position(variants, passage.text)
        values = list(_p_values(passage.text)) if at is not None else []
        if at is not None and values:
            yield shares[number], min(values, key=lambda value: abs(value.start - at))


def _first_position(variants: tuple[str, ...], text: str) -> int | None:
    places = (position(variant, text) for variant in variants)
    return min((place for place in places if place is not None), default=None)


def _p_values(text: str) -> Iterator[_PValue]:
    for found in _P_VALUE.finditer(text.translate(_SIGNS).translate(_RAISED)):
        yield _PValue(
            start=found.start(),
            operator=found["op"] or found["after"] or "=",
            number=found["number"],
        )
