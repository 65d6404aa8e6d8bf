"""The JSON schemas that replies should follow.

All screening stages share one, since an endpoint may put it before the messages. The
fields are answered in the order in which they are declared: each criterion, the reason,
and only then the decision. The docstrings of the classes are sent along.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from jobs.screening.judgement import Decision, ReasonCode
from runner.structured import schema_of


class Met(BaseModel):
    """A criterion of the review, and whether the paper meets it."""

    criterion: str
    met: Literal["yes", "no", "unclear"]


class Screened(BaseModel):
    """Whether the paper meets all criteria; the reason has up to 300 characters."""

    criteria: list[Met] | None
    reason: str
    reason_code: ReasonCode
    decision: Decision
    p_include: Annotated[
        float,
        Field(ge=0, le=1, description="probability that the paper meets all criteria"),
    ]


class Pico(BaseModel):
    """Whom, what, against what and for which effect; empty where it is not said."""

    population: str
    intervention: str
    comparison: str
    outcome: str


class Asked(BaseModel):
    """What a review asks for."""

    question: str
    pico: Pico
    inclusion: list[str]
    exclusion: list[str]


SCREEN = schema_of(Screened, "screening")
CRITERIA = schema_of(Asked, "criteria")
