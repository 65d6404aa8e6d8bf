"""The JSON schemas that replies should follow, one per kind of chat.

An endpoint may put its schema before the messages, so each one costs a prompt prefix of
its own. The fields are answered in the order in which they are declared: the criterion,
the sentences, and only then the probability that rests on them. The docstrings of the
classes are sent along.
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
    """Which sentences are evidence, and how likely it is that there is any."""

    sentences: list[Evidence]
    evidence_probability: Percent


class AssessedCriterion(BaseModel):
    """The same for the criterion of that id."""

    id: str
    sentences: list[Evidence]
    evidence_probability: Percent


class AssessedPost(BaseModel):
    """One entry a criterion."""

    criteria: list[AssessedCriterion]


class Ranked(BaseModel):
    """The numbers of all candidates, the most relevant first."""

    ranking: list[int]


ASSESS = schema_of(Assessed, "assessment")
ASSESS_POST = schema_of(AssessedPost, "assessments")
RERANK = schema_of(Ranked, "ranking")
