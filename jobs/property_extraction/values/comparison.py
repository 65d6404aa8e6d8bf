"""What a comparison takes, and what it says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from jobs.property_extraction.values.number import NumberStatus
from jobs.property_extraction.values.unit import UnitStatus

Reason: TypeAlias = Literal[
    "equal",  # by the rule of the property
    "different",  # likewise
    "no_number",  # the prediction states none
    "truth_no_number",
    "incompatible",  # units of different dimensions
    "left_out",  # the property is in no count
]


class Stated(Protocol):
    """A value with its unit, as texts: any row of truth or predictions."""

    @property
    def value(self) -> str:
        """The value as it was written."""

    @property
    def unit(self) -> str:
        """Its unit as it was written; empty where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Whether a predicted value is the true one, and why."""

    reason: Reason
    number_status: NumberStatus | Literal[""] = ""  #: of the prediction; SI alone
    unit_status: UnitStatus | Literal[""] = ""  #: SI with units converted alone
    error: float | None = None  #: of two numbers, relative to the truth; None for 0

    @property
    def match(self) -> bool:
        """Whether the prediction has the value of the truth."""
        return self.reason == "equal"


@dataclass(frozen=True, slots=True)
class Edge:
    """A prediction and a truth row with one value, by their places."""

    prediction: int
    truth: int
    error: float = 0.0  #: relative to the truth; 0 where values are no numbers


class Rule(Protocol):
    """How the values of one kind of property are compared."""

    def compare(self, name: str, prediction: Stated, truth: Stated) -> Compared:
        """Compare one pair of a property."""

    def edges(
        self, name: str, predictions: Sequence[Stated], truths: Sequence[Stated]
    ) -> Iterator[Edge]:
        """All pairs that match, by prediction and then truth."""
