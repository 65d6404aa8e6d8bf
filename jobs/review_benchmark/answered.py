"""What replies say: the values that the stages parse to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from jobs.review_benchmark.search.query import Query

Direction: TypeAlias = Literal["improves", "worsens", "no_difference", "unclear"]
Certainty: TypeAlias = Literal["high", "moderate", "low", "very_low", "unclear"]
Agreement: TypeAlias = Literal["same", "opposite", "different", "unclear"]

RATIONALE = 400
"""Characters of a score's rationale that are asked for, and kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPlan:
    """Stage `plan`: what is searched."""

    queries: tuple[Query, ...]  #: at least one
    rationale: str = ""
    dropped: int = 0  #: entries without usable terms, or beyond the number asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class Relevance:
    """Stage `score`: how relevant a paper is."""

    score: float  #: on the scale of the settings
    rationale: str = ""  #: at most `RATIONALE` characters
    rule: str = "json"  #: the parsing rule that fired


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """Stage `conclude`: what the included papers come to."""

    text: str
    direction: Direction = "unclear"
    certainty: Certainty = "unclear"


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """Stage `judge`: how alike two conclusions are."""

    similarity: float  #: 0 to 1
    direction: Agreement = "unclear"
    rationale: str = ""


Vector: TypeAlias = tuple[float, ...]
"""Stage `embed`: where a conclusion lies; of a length above zero."""
