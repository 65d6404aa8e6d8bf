"""Defines reviews, search queries, records of agents, and what replies parse to.

Values are kept as the file has them, since they are written back; matching normalises
on its own. A query becomes FTS5 syntax here, and text of a model never does: it is cut
into words, and each is quoted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, TypeVar

GROUPS = 8
TERMS = 12
WORDS = 8
"""At most so many groups a query, synonyms a group and words a term."""

_WORD = re.compile(r"[^\W_]")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """What is searched: every group by one of its synonyms, and none of the others."""

    label: str
    all_of: tuple[tuple[str, ...], ...]  #: groups of synonyms; at least one
    none_of: tuple[str, ...] = ()


def expression(query: SearchQuery) -> str:
    """A query in the syntax of FTS5; empty where no term can be searched.

    Synonyms by OR, groups by AND, exclusions by NOT.
    """
    groups = [
        "(" + " OR ".join(terms) + ")"
        for group in query.all_of[:GROUPS]
        if (terms := _terms(group))
    ]
    if not groups:
        return ""
    required = "(" + " AND ".join(groups) + ")"
    unwanted = _terms(query.none_of)
    return f"({required} NOT ({' OR '.join(unwanted)}))" if unwanted else required


def _terms(terms: Iterable[str]) -> list[str]:
    """Terms that hold a letter or a digit, quoted, each once."""
    quoted_terms = dict.fromkeys(quoted for term in terms if (quoted := _quoted(term)))
    return list(quoted_terms)[:TERMS]


def _quoted(term: str) -> str:
    """A term as a phrase; a star at its end asks for words that begin so."""
    words = term.split()[:WORDS]
    is_prefix = bool(words) and words[-1].endswith("*")
    phrase = " ".join(words).rstrip("*").replace('"', '""').replace("\0", " ").strip()
    if not _WORD.search(phrase):
        return ""
    return f'"{phrase}"*' if is_prefix else f'"{phrase}"'


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

    queries: tuple[SearchQuery, ...]  #: at least one
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
class JudgedSimilarity:
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


_NO_WORD = re.compile(r"\W+")

PICO = ("population", "intervention", "comparison", "outcome")
"""The parts of a question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TruthPaper:
    """One entry of a review's list of included studies."""

    pmid: str = ""  #: as written; empty: not given
    doi: str = ""
    title: str = ""
    authors: tuple[str, ...] = ()
    year: int | None = None
    ref_id: str = ""  #: what the review calls it, such as "Ahn 2008"
    notes: str = ""
    further: Mapping[str, Any] = field(default_factory=dict)
    """Fields that siftlog does not know; written back as they came."""

    @property
    def name(self) -> str:
        """What it is called in a sentence: the first that is given."""
        return self.ref_id or self.title or self.pmid or self.doi


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionParts:
    """A review's question in parts; empty: not said."""

    population: str = ""
    intervention: str = ""
    comparison: str = ""
    outcome: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """A review with its ground truth."""

    id: str  #: such as CD012345; any text
    title: str
    question: str
    studies: tuple[TruthPaper, ...]  #: at least one, in the file's order
    pico: QuestionParts | None = None
    inclusion: tuple[str, ...] = ()
    exclusion: tuple[str, ...] = ()
    conclusion: str = ""  #: what its authors concluded; empty: not given
    direction: Direction | None = None  #: of the effect they conclude; None: not given
    certainty: Certainty | None = None  #: the same
    source_url: str = ""
    notes: str = ""
    date_range: tuple[int, int] | None = None  #: years, both inclusive
    further: Mapping[str, Any] = field(default_factory=dict)
    """Fields that siftlog does not know; written back as they came."""

    @property
    def is_title_alone(self) -> bool:
        """Whether nothing beside the title says what the review asks for.

        Published lists of studies often repeat the title in place of the question.
        """
        parts = () if self.pico is None else (getattr(self.pico, name) for name in PICO)
        if any((*self.inclusion, *self.exclusion, *parts)):
            return False
        question, title = (
            _NO_WORD.sub(" ", text.casefold()).strip()
            for text in (self.question, self.title)
        )
        return question == title


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRecord:
    """One row, as its file has it; matching normalises on its own."""

    document: str  #: `document_id` as text; unique among the papers of a library
    pmid: str = ""  #: empty: not given
    doi: str = ""
    title: str = ""
    year: int | None = None
    score: float | None = None  #: relevance, on the agent's own scale
    rationale: str = ""
    other_titles: tuple[str, ...] = ()  #: by which it is found as well
    included: bool = False  #: it stands in the list of included papers
    further: Mapping[str, Any] = field(default_factory=dict)
    """Fields that siftlog does not know."""
