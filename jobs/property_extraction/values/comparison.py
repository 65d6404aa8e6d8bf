"""Types of value comparisons: rubric, rule, result."""

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
    """Rules for two values, by the words in a rubric file."""

    SI = "0.1% SI"
    CATEGORICAL = "categorical"
    PYMATGEN = "pymatgen"
    SPACE_GROUP = "space group"
    EXACT = "exact"


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """One property of a rubric file."""

    name: str
    kind: ComparisonKind
    si: str = ""  #: unit in which its values are reported; empty: none
    definition: str = ""
    source_row: int = 0  #: in its file; the header is row 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Rubric:
    """All properties of a rubric file, by name, in file order."""

    properties: Mapping[str, Property] = field(default_factory=dict)

    def kind(self, name: str) -> ComparisonKind:
        """Return the rule for a name; `exact` for one that is not in the rubric."""
        prop = self.properties.get(name)
        return ComparisonKind.EXACT if prop is None else prop.kind

    def __contains__(self, name: str) -> bool:
        return name in self.properties


Reason: TypeAlias = Literal[
    "equal",  # by the rule of the property
    "different",  # the same
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
        """Its unit as it was written; empty if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueComparison:
    """Whether a predicted value is the true one, and the reason."""

    reason: Reason
    number_status: NumberStatus | Literal[""] = ""  #: of the prediction; only for SI
    unit_status: UnitStatus | Literal[""] = ""  #: only for SI with conversion of units
    error: float | None = None  #: of two numbers, relative to the truth; None for 0

    @property
    def match(self) -> bool:
        """Whether the prediction has the value of the truth."""
        return self.reason == "equal"


@dataclass(frozen=True, slots=True)
class Edge:
    """A prediction and a truth row with equal values, by their indices."""

    prediction: int
    truth: int
    error: float = 0.0  #: relative to the truth; 0 for values that are not numbers


class ComparisonRule(Protocol):
    """A rule that compares the values of one kind of property."""

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
        """Return all pairs that match, by prediction and then truth."""


T = TypeVar("T")


class _ReadingRule(Generic[T]):
    """Compares two values by the results of reading their texts."""

    def __init__(
        self, read: Callable[[str, str], T], is_match: Callable[[T, T], bool]
    ) -> None:
        """Create a rule from functions that read a value, and compare two."""
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
    """Two values are equal only if their texts are read as the same key."""

    def __init__(self, read: Callable[[str, str], Hashable | None]) -> None:
        """Create a rule from a function that reads a property's name and text.

        A text read as None is never equal to another.
        """
        super().__init__(read, lambda a, b: a is not None and a == b)

    def edges(
        self,
        name: str,
        predictions: Sequence[ValueWithUnit],
        truths: Sequence[ValueWithUnit],
    ) -> Iterator[Edge]:
        """Yield all pairs that match, by prediction and then truth."""
        by_key = grouped(
            (self._read(name, row.value), truth) for truth, row in enumerate(truths)
        )
        by_key.pop(None, None)
        for prediction, row in enumerate(predictions):
            for truth in by_key.get(self._read(name, row.value), ()):
                yield Edge(prediction, truth)


class PairwiseRule(_ReadingRule[T]):
    """Compares any two texts; distinct texts of a group are compared once."""

    def __init__(
        self, read: Callable[[str, str], T], is_match: Callable[[T, T], bool]
    ) -> None:
        """Create a rule from the same functions; each text is read only once."""
        super().__init__(cache(read), is_match)

    def edges(
        self,
        name: str,
        predictions: Sequence[ValueWithUnit],
        truths: Sequence[ValueWithUnit],
    ) -> Iterator[Edge]:
        """Yield all pairs that match, by prediction and then truth."""
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
