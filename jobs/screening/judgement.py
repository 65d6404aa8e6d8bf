"""What one reply says of one record: the value that every screening stage parses to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

Decision: TypeAlias = Literal["include", "exclude", "unclear"]
DECISIONS: tuple[Decision, ...] = get_args(Decision)

ReasonCode: TypeAlias = Literal[
    "meets_criteria",
    "population",
    "intervention",
    "comparator",
    "outcome",
    "study_design",
    "duplicate",
    "ongoing",
    "language",
    "date",
    "insufficient_information",
    "other",
]
REASON_CODES: tuple[ReasonCode, ...] = get_args(ReasonCode)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A parsed reply."""

    decision: Decision
    p_include: float | None = None  #: 0..1; None: none that can be used
    reason_code: str = "other"
    reason: str = ""
    rule: str = "json"  #: the parsing rule that fired
    noticed: tuple[str, ...] = ()
    """`bad_confidence`, `inconsistent`, `bad_reason_code`: counted, never hidden."""
