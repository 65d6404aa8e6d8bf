"""Defines reviews, search queries, records of agents, and parsed replies.

Reviews, studies and records are read from JSON by the annotations of their fields: the
type of a cell, and its name in files if it differs. Values are stored as they are in
the file, since they are written back; matching normalises them separately.

Only this module builds FTS5 syntax, and it never passes a model's text on as syntax:
the text is split into words, and each one is quoted.
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
"""Most groups of a query, synonyms of a group and words of a term."""

_WORD = re.compile(r"[^\W_]")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """A search query: a record matches every group by a synonym, and no exclusion."""

    label: str
    all_of: tuple[tuple[str, ...], ...]  #: groups of synonyms; at least one
    none_of: tuple[str, ...] = ()


def expression(query: SearchQuery) -> str:
    """Return a query in the syntax of FTS5; empty if no term can be searched.

    Synonyms are joined by OR, groups by AND, exclusions by NOT.
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
    """Return the terms that have a letter or a digit, quoted and without duplicates."""
    quoted_terms = dict.fromkeys(quoted for term in terms if (quoted := _quoted(term)))
    return list(quoted_terms)[:TERMS]


def _quoted(term: str) -> str:
    """Quote a term as a phrase; a star at its end searches for a prefix."""
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
"""Most characters of a score's rationale, requested and stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPlan:
    """Parsed reply of stage `plan`: the queries to search."""

    queries: tuple[SearchQuery, ...]  #: at least one
    rationale: str = ""
    dropped: int = 0  #: entries without usable terms, or beyond the requested number


@dataclass(frozen=True, slots=True, kw_only=True)
class Relevance:
    """Parsed reply of stage `score`: the relevance of a paper."""

    score: float  #: on the scale of the settings
    rationale: str = ""  #: at most `RATIONALE` characters
    rule: str = "json"  #: the parsing rule that matched


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """Parsed reply of stage `conclude`: the conclusion from the included papers."""

    text: str
    direction: Direction | None = None  #: None: the reply does not state one
    certainty: Certainty | None = None  #: the same


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedSimilarity:
    """Parsed reply of stage `judge`: the similarity of two conclusions."""

    similarity: float  #: 0 to 1
    direction: Agreement = "unclear"
    rationale: str = ""


Vector: TypeAlias = tuple[float, ...]
"""Parsed reply of stage `embed`: the vector of a conclusion; its length is not zero."""


def word_of(value: object, allowed: tuple[_Word, ...]) -> _Word | None:
    """Return the allowed word that *value* spells, in any case, with any separator."""
    if not isinstance(value, str):
        return None
    plain = value.strip().lower().replace(" ", "_").replace("-", "_")
    plain = _SYNONYMS.get(plain, plain)
    return next((word for word in allowed if word == plain), None)


_NO_WORD = re.compile(r"\W+")

PICO = ("population", "intervention", "comparison", "outcome")
"""Parts of a question."""


def identifier_of(cell: InputCell) -> str:
    """Return a stripped text, or any number: ids in tables with gaps are floats."""
    return str(cell) if isinstance(cell, float) else trimmed(cell)


def _year(cell: InputCell) -> int | None:
    """Return a whole number, also from `1999.0` or "1999"; None if it is not given."""
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
    """Return a validator that collects a JSON object's unknown fields as `further`."""
    names = set()
    for name, hint in get_type_hints(kind, include_extras=True).items():
        marks = getattr(hint, "__metadata__", ())
        aliases = (it.validation_alias for it in marks if isinstance(it, FieldInfo))
        names.add(next(aliases, name))
    names -= {"@included", "@further"}  # never in a file

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
"""Fields that siftlog does not know; written back unchanged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TruthPaper:
    """One entry of a review's list of included studies."""

    pmid: Identifier = ""  #: as written; empty: not given
    doi: Trimmed = ""
    title: Trimmed = ""
    authors: Texts = ()
    year: Year = None
    ref_id: Annotated[Trimmed, Field(validation_alias="cochrane_ref_id")] = ""
    """Name of the study in the review, such as "Ahn 2008"."""
    notes: Trimmed = ""
    further: Further = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The first given name, to be used in a sentence."""
        return self.ref_id or self.title or self.pmid or self.doi


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionParts:
    """A review's question in parts; empty: not stated."""

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
    """The authors' conclusion; empty: not given."""
    direction: Annotated[
        StatedDirection, Field(validation_alias="conclusion_direction")
    ] = None  #: of the effect in the conclusion; None: not given
    certainty: Annotated[
        StatedCertainty, Field(validation_alias="conclusion_certainty")
    ] = None  #: the same
    source_url: Trimmed = ""
    notes: Trimmed = ""
    date_range: Years = None  #: both inclusive
    further: Further = field(default_factory=dict)

    @property
    def is_title_alone(self) -> bool:
        """Whether only the title says what the review asks.

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
    """A row of an agent's file, not normalised."""

    document: Annotated[Identifier, Field(validation_alias="document_id")] = ""
    """Unique among the papers of a library."""
    pmid: Identifier = ""  #: empty: not given
    doi: Trimmed = ""
    title: Trimmed = ""
    year: Year = None
    score: Annotated[Number | None, Field(validation_alias="relevance_score")] = None
    """Relevance, on the agent's scale."""
    rationale: Trimmed = ""
    other_titles: Texts = ()  #: by which it is found as well
    included: Annotated[bool, Field(validation_alias="@included")] = False
    """Whether it is in the list of included papers."""
    further: Further = field(default_factory=dict)
