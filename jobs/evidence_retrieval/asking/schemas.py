"""The JSON schemas that replies should follow, one per kind of chat.

An endpoint may put its schema before the messages, so each one costs a prompt prefix of
its own. What the classes say of themselves is sent along.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from runner.structured import schema_of

Percent = Annotated[int, Field(ge=0, le=100)]


class Evidence(BaseModel):
    """A sentence by its number, and how relevant it is."""

    n: int
    relevance: Percent


class Assessed(BaseModel):
    """Whether there is evidence, and which sentences it is."""

    evidence_probability: Percent
    sentences: list[Evidence]


class AssessedCriterion(BaseModel):
    """Whether there is evidence for the criterion of that id, and which it is."""

    id: str
    evidence_probability: Percent
    sentences: list[Evidence]


class AssessedPost(BaseModel):
    """One entry a criterion."""

    criteria: list[AssessedCriterion]


class Ranked(BaseModel):
    """The numbers of all candidates, the most relevant first."""

    ranking: list[int]


ASSESS = schema_of(Assessed, "assessment")
ASSESS_POST = schema_of(AssessedPost, "assessments")
RERANK = schema_of(Ranked, "ranking")
