"""The JSON schemas that replies should follow.

The fields are answered in the order in which they are declared, so a rationale comes
before what it is for. The docstrings of the classes are sent along.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from jobs.review_benchmark.settings import Scale
from runner.messages import Schema
from runner.structured import schema_of


class PlannedQuery(BaseModel):
    """One query: every group by one of its synonyms, and none of the others."""

    label: str
    all_of: list[list[str]]
    none_of: list[str]


class Planned(BaseModel):
    """The queries to be searched."""

    rationale: str
    queries: list[PlannedQuery]


class ScoredFrom1To5(BaseModel):
    """How relevant the paper is, from 1 to 5; the rationale has 400 characters."""

    rationale: str
    score: Annotated[float, Field(ge=1, le=5)]


class ScoredFrom0To1(BaseModel):
    """How relevant the paper is, from 0 to 1; the rationale has 400 characters."""

    rationale: str
    score: Annotated[float, Field(ge=0, le=1)]


class Concluded(BaseModel):
    """What the papers come to, in one to five sentences."""

    conclusion: str
    direction: Literal["improves", "worsens", "no_difference", "unclear"]
    certainty: Literal["high", "moderate", "low", "very_low", "unclear"]


class Judged(BaseModel):
    """How alike two conclusions are, from 0 to 100."""

    rationale: str
    direction: Literal["same", "opposite", "different", "unclear"]
    similarity: Annotated[float, Field(ge=0, le=100)]


PLAN = schema_of(Planned, "search_plan")
CONCLUDE = schema_of(Concluded, "conclusion")
JUDGE = schema_of(Judged, "likeness")

SCORE: dict[Scale, Schema] = {
    "1-5": schema_of(ScoredFrom1To5, "relevance"),
    "0-1": schema_of(ScoredFrom0To1, "relevance"),
}
