"""What a comparison of values takes and gives: rubric, rule, result."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Generic, Literal, Protocol, TypeAlias, TypeVar

from jobs.kit.grouping import grouped
from jobs.property_extraction.values.numbers import NumberStatus
from jobs.property_extraction.values.units import UnitStatus


class ComparisonKind(StrEnum):
    """The rules for two values, by the words that a rubric file uses."""

    SI = "0.1% SI"
    CATEGORICAL = "categorical"
    PYMATGEN = "pymatgen"
    SPACE_GROUP = "space group"
    EXACT = "exact"


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """What a rubric file says of one property."""

    name: str
    kind: ComparisonKind
    si: str = ""  #: unit that its values are told in; empty: none
    definition: str = ""
    source_row: int = 0  #: in its file; the header is row 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Rubric:
    """All properties of a rubric file, by name, in file order."""

    properties: Mapping[str, Property] = field(default_factory=dict)

    def kind(self, name: str) -> ComparisonKind:
        """The rule for a name; `exact` for one that is not in the rubric."""
        prop = self.properties.get(name)
        return ComparisonKind.EXACT if prop is None else prop.kind

    def __contains__(self, name: str) -> bool:
        return name in self.properties


Reason: TypeAlias = Literal[
    "equal",  # by the rule of the property
    "different",  # likewise
    "no_number",  # the prediction states none
    "truth_no_number",
    "incompatible",  # units of different dimensions
    "left_out",  # the property is in no count
]


class ValueWithUnit(Protocol):
    """A value with its unit, as texts: any row of truth or predictions."""

    @property
    def value(self) -> str:
        """The value as it was written."""

    @property
    def unit(self) -> str:
        """Its unit as it was written; empty where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueComparison:
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


class ComparisonRule(Protocol):
    """How the values of one kind of property are compared."""

    def compare(
        self, name: str, prediction: ValueWithUnit, truth: ValueWithUnit
    ) -> ValueComparison:
        """Compare one pair of a property."""

    def edges(
        self,
        name: str,
        predictions: Sequence[ValueWithUnit],
        truths: Sequence[ValueWithUnit],
    ) -> Iterator[Edge]:
        """All pairs that match, by prediction and then truth."""


T = TypeVar("T")


class _ReadingRule(Generic[T]):
    """Compares two values by what is read of their texts."""

    def __init__(
        self, read: Callable[[str, str], T], is_match: Callable[[T, T], bool]
    ) -> None:
        """Take how the value of a property is read, and when two of them are alike."""
        self._read = read
        self._is_match = is_match

    def compare(
        self, name: str, prediction: ValueWithUnit, truth: ValueWithUnit
    ) -> ValueComparison:
        """Compare one pair of a property."""
        values = (self._read(name, row.value) for row in (prediction, truth))
        return ValueComparison(
            reason="equal" if self._is_match(*values) else "different"
        )


class KeyRule(_ReadingRule[Hashable | None]):
    """Two values are the same just if they are read as one thing."""

    def __init__(self, read: Callable[[str, str], Hashable | None]) -> None:
        """Take how the value of a property is read, from its name and text.

        What is read as None is never the same.
        """
        super().__init__(read, lambda a, b: a is not None and a == b)

    def edges(
        self,
        name: str,
        predictions: Sequence[ValueWithUnit],
        truths: Sequence[ValueWithUnit],
    ) -> Iterator[Edge]:
        """All pairs that match, by prediction and then truth."""
        by_key = grouped(
            (self._read(name, row.value), truth) for truth, row in enumerate(truths)
        )
        by_key.pop(None, None)
        for prediction, row in enumerate(predictions):
            for truth in by_key.get(self._read(name, row.value), ()):
                yield Edge(prediction, truth)


class PairwiseRule(_ReadingRule[T]):
    """Any two texts may be alike; distinct ones of a group are compared once."""

    def __init__(
        self, read: Callable[[str, str], T], is_match: Callable[[T, T], bool]
    ) -> None:
        """Take the same; each text of a property is read once."""
        super().__init__(cache(read), is_match)

    def edges(
        self,
        name: str,
        predictions: Sequence[ValueWithUnit],
        truths: Sequence[ValueWithUnit],
    ) -> Iterator[Edge]:
        """All pairs that match, by prediction and then truth."""
        by_text = grouped((row.value, truth) for truth, row in enumerate(truths))
        truth_values = [(self._read(name, text), at) for text, at in by_text.items()]
        matches: dict[str, list[int]] = {}
        for prediction, row in enumerate(predictions):
            if row.value not in matches:
                predicted = self._read(name, row.value)
                matches[row.value] = sorted(
                    index
                    for true, at in truth_values
                    if self._is_match(predicted, true)
                    for index in at
                )
            for truth in matches[row.value]:
                yield Edge(prediction, truth)
