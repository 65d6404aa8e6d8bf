"""Parses replies about a review's text; never raises on the text of a model.

Numbers in JSON are passed as the texts they were written as.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, get_args

from pydantic import Field, PlainValidator, TypeAdapter

from jobs.kit.replies import first_object_with, parse_failure, reply_content
from jobs.review_benchmark.data import PICO, QuestionParts
from jobs.review_benchmark.extraction.review_text import Section
from runner.job_faults import guarded
from runner.messages import ParseFailure, Reply, wellformed

_YEARS = 2
_WHOLE = re.compile(r"[0-9]{1,9}")


def _text(value: object) -> str:
    return " ".join(wellformed(value).split()) if isinstance(value, str) else ""


def _texts(value: object) -> tuple[str, ...]:
    """Return the texts of a list; a single text becomes a list of one."""
    entries = value if isinstance(value, list) else [value]
    return tuple(text for entry in entries if (text := _text(entry)))


def _whole(value: object) -> int | None:
    text = _text(value)
    return int(text) if _WHOLE.fullmatch(text) else None


def _years(value: object) -> tuple[int, int] | None:
    """Return two years in order; None for anything else."""
    years = [_whole(year) for year in value] if isinstance(value, list) else []
    if len(years) != _YEARS or years[0] is None or years[1] is None:
        return None
    return (years[0], years[1]) if years[0] <= years[1] else None


def _pico(value: object) -> QuestionParts | None:
    if not isinstance(value, dict):
        return None
    return QuestionParts(**{name: _text(value.get(name)) for name in PICO})


_Text = Annotated[str, PlainValidator(_text)]
_Texts = Annotated[tuple[str, ...], PlainValidator(_texts)]


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionPlaces:
    """Parsed reply of stage `x.places`: the lines of sections."""

    lines: Mapping[Section, tuple[int, int | None]]
    """First line, and the line after the last; None: to the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewMeta:
    """Parsed reply of stage `x.meta`: the review's statements; empty: not stated."""

    id: Annotated[_Text, Field(validation_alias="cochrane_id")] = ""
    title: _Text = ""
    question: Annotated[_Text, Field(validation_alias="research_question")] = ""
    pico: Annotated[QuestionParts | None, PlainValidator(_pico)] = None
    inclusion: Annotated[_Texts, Field(validation_alias="inclusion_criteria")] = ()
    exclusion: Annotated[_Texts, Field(validation_alias="exclusion_criteria")] = ()
    conclusion: Annotated[_Text, Field(validation_alias="authors_conclusion")] = ""
    date_range: Annotated[tuple[int, int] | None, PlainValidator(_years)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """One reference of a chunk as a model read it, not checked yet."""

    ref_id: Annotated[_Text, Field(validation_alias="cochrane_ref_id")] = ""
    authors: _Texts = ()
    title: _Text = ""
    year: _Text = ""  #: as written
    journal: _Text = ""
    doi: _Text = ""
    pmid: _Text = ""
    quote: _Text = ""
    reason: _Text = ""  #: for the exclusion

    @property
    def name(self) -> str:
        """The first given name, to be used in a sentence."""
        return self.ref_id or self.title or self.quote or "(nothing)"


_META = TypeAdapter(ReviewMeta)
_REFERENCE = TypeAdapter(Reference)


@dataclass(frozen=True, slots=True, kw_only=True)
class References:
    """Parsed reply of stages `x.refs` and `x.excluded`: a chunk's references."""

    read: tuple[Reference, ...] = ()
    unusable: int = 0  #: entries of the list that are not objects


@guarded
def parse_places(reply: Reply) -> SectionPlaces | ParseFailure:
    """Parse the places of sections.

    Failures: `empty`, `refusal`, `truncated`, `no_places`.
    """
    fields = _object(reply, "places", "no_places")
    if isinstance(fields, ParseFailure):
        return fields
    lines: dict[Section, tuple[int, int | None]] = {}
    for place in _objects(fields["places"]):
        begin, end = _whole(place.get("begin")), _whole(place.get("end"))
        for name in get_args(Section):
            if place.get("section") == name and begin is not None:
                lines.setdefault(name, (begin, end))
    return SectionPlaces(lines=lines)


@guarded
def parse_meta(reply: Reply) -> ReviewMeta | ParseFailure:
    """Parse the review's statements about itself.

    Failures: `empty`, `refusal`, `truncated`, `no_review`.
    """
    fields = _object(reply, "title", "no_review")
    if isinstance(fields, ParseFailure):
        return fields
    return _META.validate_python(fields)


@guarded
def parse_references(reply: Reply) -> References | ParseFailure:
    """Parse the references of a chunk; the list may be empty.

    Failures: `empty`, `refusal`, `truncated`, `no_references`.
    """
    fields = _object(reply, "references", "no_references")
    if isinstance(fields, ParseFailure):
        return fields
    entries = fields["references"]
    if not isinstance(entries, list):
        return ParseFailure(reason="no_references")
    read = tuple(map(_REFERENCE.validate_python, _objects(entries)))
    return References(read=read, unusable=len(entries) - len(read))


def _object(reply: Reply, name: str, reason: str) -> dict[str, Any] | ParseFailure:
    text = reply_content(reply)
    if isinstance(text, ParseFailure):
        return text
    fields = first_object_with(name, text)
    return parse_failure(reply, reason) if fields is None else fields


def _objects(value: object) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        return []
    return [entry for entry in value if isinstance(entry, dict)]
