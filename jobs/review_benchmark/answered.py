"""What replies say: the values that the stages parse to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, TypeVar

from jobs.review_benchmark.search.query import Query

Direction: TypeAlias = Literal["improves", "worsens", "no_difference", "unclear"]
Certainty: TypeAlias = Literal["high", "moderate", "low", "very_low", "unclear"]
Agreement: TypeAlias = Literal["same", "opposite", "different", "unclear"]

_Word = TypeVar("_Word", bound=str)
_SYNONYMS: Final = {"uncertain": "unclear"}

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
    direction: Direction | None = None  #: None: the reply does not state one
    certainty: Certainty | None = None  #: the same


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """Stage `judge`: how alike two conclusions are."""

    similarity: float  #: 0 to 1
    direction: Agreement = "unclear"
    rationale: str = ""


Vector: TypeAlias = tuple[float, ...]
"""Stage `embed`: where a conclusion lies; of a length above zero."""


def word_of(value: object, allowed: tuple[_Word, ...]) -> _Word | None:
    """The allowed word that *value* spells, in any case and with any separator."""
    if not isinstance(value, str):
        return None
    plain = value.strip().lower().replace(" ", "_").replace("-", "_")
    plain = _SYNONYMS.get(plain, plain)
    return next((word for word in allowed if word == plain), None)
