"""The JSON schemas that replies should follow; null: the text does not say it.

The fields are answered in the order in which they are declared: a reference is quoted
before its fields are read from the quote.
"""

from __future__ import annotations

from pydantic import BaseModel

from jobs.review_benchmark.extracting.cutting.sections import Section
from runner.structured import schema_of


class FoundPlace(BaseModel):
    """Between which numbered lines a section stands."""

    section: Section
    begin: int
    end: int | None


class FoundPlaces(BaseModel):
    """Where sections stand; one that the text does not have is left out."""

    places: list[FoundPlace]


class ReadPico(BaseModel):
    """The question in parts."""

    population: str | None
    intervention: str | None
    comparison: str | None
    outcome: str | None


class ReadMeta(BaseModel):
    """What a review says of itself, in its own words."""

    cochrane_id: str | None
    title: str | None
    research_question: str | None
    pico: ReadPico | None
    inclusion_criteria: list[str]
    exclusion_criteria: list[str]
    authors_conclusion: str | None
    date_range: list[int] | None


class ReadReference(BaseModel):
    """One reference, in the words of the list."""

    cochrane_ref_id: str | None
    quote: str
    authors: list[str]
    title: str | None
    year: int | None
    journal: str | None
    doi: str | None
    pmid: str | None


class ReadReferences(BaseModel):
    """All references of the list, in its order."""

    references: list[ReadReference]


class ExcludedReference(ReadReference):
    """One reference to an excluded study, with the reason that the review gives."""

    reason: str | None


class ExcludedReferences(BaseModel):
    """All references of the list, in its order."""

    references: list[ExcludedReference]


PLACES = schema_of(FoundPlaces, "places")
META = schema_of(ReadMeta, "review")
REFERENCES = schema_of(ReadReferences, "references")
EXCLUDED = schema_of(ExcludedReferences, "excluded_references")
