"""Defines reviews, search queries, records of agents, and what replies parse to.

Reviews, studies and records are read from JSON by the annotations of their fields: the
type of a cell, and the name in files where it is another one. Values are kept as the
file has them, since they are written back; matching normalises on its own.

A query becomes FTS5 syntax here, and text of a model never does: it is cut into words,
and each is quoted.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    TypeAlias,
    TypeVar,
    get_args,
    get_type_hints,
)

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator
from pydantic.fields import FieldInfo

from jobs.kit.inputs.cells import InputCell, Number, Trimmed, quote, trimmed

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


def identifier_of(cell: InputCell) -> str:
    """A text without outer blanks, or any number, as tables with gaps write ids."""
    return str(cell) if isinstance(cell, float) else trimmed(cell)


def _year(cell: InputCell) -> int | None:
    """A whole number, also as `1999.0` or "1999"; None where it is not given."""
    if cell is None or cell == "":
        return None
    try:
        year = float(cell) if not isinstance(cell, bool) else math.nan
    except (TypeError, ValueError, OverflowError):
        year = math.nan
    if not year.is_integer():
        raise ValueError(f"is {quote(cell)} (a year such as 1999 is expected)")
    return int(year)


def _years(cell: InputCell) -> tuple[int, int] | None:
    if cell is None:
        return None
    if isinstance(cell, list) and [*map(type, cell)] == [int, int]:
        start, end = cell
        if start <= end:
            return start, end
    raise ValueError(f"is {cell!r} (two years, from and to, are expected)")


def _one_of(allowed: tuple[_Word, ...]) -> PlainValidator:
    def word(cell: InputCell) -> _Word | None:
        text = trimmed(cell)
        stated = word_of(text, allowed)
        if text and stated is None:
            raise ValueError(f"is {text!r} (use one of {', '.join(allowed)})")
        return stated

    return PlainValidator(word)


def keeping_unknown(kind: type) -> BeforeValidator:
    """Collects the fields of a JSON object that its type does not have as `further`."""
    names = set()
    for name, hint in get_type_hints(kind, include_extras=True).items():
        marks = getattr(hint, "__metadata__", ())
        aliases = (it.validation_alias for it in marks if isinstance(it, FieldInfo))
        names.add(next(aliases, name))
    names -= {"@included", "@further"}  # which no file says

    def collected(value: object) -> object:
        if not isinstance(value, dict):
            return value
        known = {name: it for name, it in value.items() if name in names}
        further = {name: it for name, it in value.items() if name not in names}
        return {**known, "@further": further}

    return BeforeValidator(collected)


Identifier = Annotated[str, PlainValidator(identifier_of)]
Year = Annotated[int | None, PlainValidator(_year)]
Years = Annotated[tuple[int, int] | None, PlainValidator(_years)]
StatedDirection = Annotated[Direction | None, _one_of(get_args(Direction))]
StatedCertainty = Annotated[Certainty | None, _one_of(get_args(Certainty))]
Texts = Annotated[
    tuple[Trimmed, ...],
    BeforeValidator(lambda cell: () if cell is None else cell),
    AfterValidator(lambda texts: tuple(filter(None, texts))),
]
"""A list of texts without the blank ones."""
Further = Annotated[Mapping[str, Any], Field(validation_alias="@further")]
"""Fields that siftlog does not know; written back as they came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TruthPaper:
    """One entry of a review's list of included studies."""

    pmid: Identifier = ""  #: as written; empty: not given
    doi: Trimmed = ""
    title: Trimmed = ""
    authors: Texts = ()
    year: Year = None
    ref_id: Annotated[Trimmed, Field(validation_alias="cochrane_ref_id")] = ""
    """What the review calls it, such as "Ahn 2008"."""
    notes: Trimmed = ""
    further: Further = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What it is called in a sentence: the first that is given."""
        return self.ref_id or self.title or self.pmid or self.doi


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionParts:
    """A review's question in parts; empty: not said."""

    population: Trimmed = ""
    intervention: Trimmed = ""
    comparison: Trimmed = ""
    outcome: Trimmed = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """A review with its ground truth."""

    id: Annotated[Trimmed, Field(validation_alias="cochrane_id")]
    """Such as CD012345; any text."""
    title: Trimmed
    question: Annotated[Trimmed, Field(validation_alias="research_question")]
    studies: Annotated[
        tuple[Annotated[TruthPaper, keeping_unknown(TruthPaper)], ...],
        Field(validation_alias="included_studies"),
    ]
    """At least one, in the file's order."""
    pico: QuestionParts | None = None
    inclusion: Annotated[Texts, Field(validation_alias="inclusion_criteria")] = ()
    exclusion: Annotated[Texts, Field(validation_alias="exclusion_criteria")] = ()
    conclusion: Annotated[Trimmed, Field(validation_alias="authors_conclusion")] = ""
    """What its authors concluded; empty: not given."""
    direction: Annotated[
        StatedDirection, Field(validation_alias="conclusion_direction")
    ] = None  #: of the effect they conclude; None: not given
    certainty: Annotated[
        StatedCertainty, Field(validation_alias="conclusion_certainty")
    ] = None  #: the same
    source_url: Trimmed = ""
    notes: Trimmed = ""
    date_range: Years = None  #: both inclusive
    further: Further = field(default_factory=dict)

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

    document: Annotated[Identifier, Field(validation_alias="document_id")] = ""
    """Unique among the papers of a library."""
    pmid: Identifier = ""  #: empty: not given
    doi: Trimmed = ""
    title: Trimmed = ""
    year: Year = None
    score: Annotated[Number | None, Field(validation_alias="relevance_score")] = None
    """Relevance, on the agent's own scale."""
    rationale: Trimmed = ""
    other_titles: Texts = ()  #: by which it is found as well
    included: Annotated[bool, Field(validation_alias="@included")] = False
    """It stands in the list of included papers."""
    further: Further = field(default_factory=dict)
