"""Decides whether a predicted value is the true one, by the kind of its property."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter, itemgetter
from typing import Final, TypeAlias

from jobs.kit.grouping import grouped
from jobs.property_extraction.settings import Numbers, PropertySettings, Units
from jobs.property_extraction.values.categories import (
    SpaceGroupReader,
    categorical_rule,
    composition_rule,
    is_pymatgen_installed,
)
from jobs.property_extraction.values.comparison import (
    ComparisonKind,
    ComparisonRule,
    Edge,
    KeyRule,
    Reason,
    ValueComparison,
    ValueWithUnit,
)
from jobs.property_extraction.values.numbers import Number, read_number
from jobs.property_extraction.values.unit_reader import UnitReader, UnitTableRow
from jobs.property_extraction.values.units import (
    Conversion,
    StatedUnit,
    UnitStatus,
    convert,
)
from runner.errors import DatasetError

_TOLERANCE = 0.001
_SLACK = 1 + 1e-9
"""The tolerance is inclusive in decimals: binary rounding puts 0.999 outside 0.1% of
1."""

_REACH = 0.0011
"""Relative reach around a prediction that includes every truth within the tolerance."""

_CHECKED: Final[frozenset[UnitStatus]] = frozenset({"same", "converted"})
_COMPARED: Final[frozenset[UnitStatus]] = _CHECKED | {"missing", "unknown"}

_Placed: TypeAlias = tuple[float, int]
"""A number and the index of its row."""

_AS_THEY_ARE = Conversion("unknown")


class QuantityRule:
    """Compares numbers with units; each distinct number and unit is read once.

    Edges come from a sorted search in each pair of units, so that thousands of rows on
    both sides make no dense matrix.
    """

    def __init__(self, units: UnitReader, *, numbers: Numbers, rule: Units) -> None:
        self._units = units
        self._reading: Numbers = numbers
        self._converts = rule == "convert"
        self._tolerance = _TOLERANCE * (1.0 if numbers == "strict" else _SLACK)
        self._numbers: dict[str, Number] = {}
        self._conversions: dict[tuple[str, str], Conversion] = {}

    def number(self, text: str) -> Number:
        """Return the number that a value states."""
        if text not in self._numbers:
            self._numbers[text] = read_number(text, self._reading)
        return self._numbers[text]

    def conversion(self, prediction: str, truth: str) -> Conversion:
        """Return the conversion of a predicted unit to the truth's, from unit cells."""
        cells = (prediction, truth)
        if cells not in self._conversions:
            self._conversions[cells] = convert(*map(self._units.read, cells))
        return self._conversions[cells]

    def compare(
        self, _name: str, prediction: ValueWithUnit, truth: ValueWithUnit
    ) -> ValueComparison:
        """Compare one pair of a property."""
        number, true = self.number(prediction.value), self.number(truth.value)
        conversion = _AS_THEY_ARE
        if self._converts:
            conversion = self.conversion(prediction.unit, truth.unit)
        reason, error = self._judged(number.value, true.value, conversion)
        return ValueComparison(
            reason=reason,
            number_status=number.status,
            unit_status=conversion.status if self._converts else "",
            error=error,
        )

    def _judged(
        self, value: float | None, goal: float | None, conversion: Conversion
    ) -> tuple[Reason, float | None]:
        if value is None:
            return "no_number", None
        if goal is None:
            return "truth_no_number", None
        if conversion.status == "incompatible":
            return "incompatible", None
        converted = conversion(value)
        reason: Reason = "equal" if self._is_within(converted, goal) else "different"
        return reason, _relative_error(converted, goal)

    def edges(
        self,
        _name: str,
        predictions: Sequence[ValueWithUnit],
        truths: Sequence[ValueWithUnit],
    ) -> Iterator[Edge]:
        """Return all pairs that match, by prediction and then truth."""
        return self._edges(predictions, truths, self._known_unit, _COMPARED)

    def checked_edges(
        self, predictions: Sequence[ValueWithUnit], truths: Sequence[ValueWithUnit]
    ) -> Iterator[Edge]:
        """Return the pairs of equal numbers whose units are equal, or were converted.

        Units are converted here under either rule: in a search by value, a bare number
        would match too many.
        """
        return self._edges(predictions, truths, str, _CHECKED)

    def _edges(
        self,
        predictions: Sequence[ValueWithUnit],
        truths: Sequence[ValueWithUnit],
        cell: Callable[[str], str],
        accepted: Collection[UnitStatus],
    ) -> Iterator[Edge]:
        targets = self._placed(truths, cell)
        conversions: dict[str, list[tuple[Conversion, list[_Placed]]]] = {}
        for index, row in enumerate(predictions):
            value = self.number(row.value).value
            if value is None:
                continue
            source = cell(row.unit)
            if source not in conversions:
                conversions[source] = [
                    (conversion, placed)
                    for target, placed in targets.items()
                    for conversion in (self.conversion(source, target),)
                    if conversion.status in accepted
                ]
            edges = [
                Edge(index, truth, _relative_error(converted, goal) or 0.0)
                for conversion, placed in conversions[source]
                for converted in (conversion(value),)
                for goal, truth in _near(converted, placed)
                if self._is_within(converted, goal)
            ]
            yield from sorted(edges, key=attrgetter("truth"))

    def _is_within(self, converted: float, goal: float) -> bool:
        return abs(converted - goal) <= self._tolerance * abs(goal)

    def _placed(
        self, rows: Sequence[ValueWithUnit], cell: Callable[[str], str]
    ) -> dict[str, list[_Placed]]:
        """Return the rows whose value is a number, by unit cell, ascending."""
        by_cell = grouped(
            (cell(row.unit), (value, index))
            for index, row in enumerate(rows)
            if (value := self.number(row.value).value) is not None
        )
        for placed in by_cell.values():
            placed.sort()
        return by_cell

    def _known_unit(self, text: str) -> str:
        """Return the cell of a known unit; all others count as blank."""
        is_known = self._converts and self._units.read(text).unit is not None
        return text if is_known else ""


def _near(converted: float, placed: Sequence[_Placed]) -> Sequence[_Placed]:
    """Return all of some ascending numbers within the tolerance, and few others."""
    if not math.isfinite(converted):
        return ()  # otherwise all of them would be near
    reach = abs(converted) * _REACH
    low = bisect_left(placed, converted - reach, key=itemgetter(0))
    return placed[low : bisect_right(placed, converted + reach, key=itemgetter(0))]


def _relative_error(converted: float, goal: float) -> float | None:
    if goal:
        return abs(converted - goal) / abs(goal)
    return None if converted else 0.0


class Comparer:
    """Compares values by the settings of a scoring; distinct texts are read once.

    Matching uses the edges of a group, an explanation single pairs; both follow the
    same rule.

    Raises:
        DatasetError: compositions must be compared, and pymatgen is not installed.
    """

    def __init__(
        self,
        settings: PropertySettings,
        *,
        clusters: Mapping[str, Mapping[str, str]] | None = None,
        space_groups: Mapping[str, int] | None = None,
        unit_table: Iterable[UnitTableRow] = (),
    ) -> None:
        self._units = UnitReader(unit_table)
        self._quantities = QuantityRule(
            self._units, numbers=settings.numbers, rule=settings.units
        )
        groups = SpaceGroupReader(space_groups)
        self._rules: dict[ComparisonKind, ComparisonRule] = {
            ComparisonKind.SI: self._quantities,
            ComparisonKind.CATEGORICAL: categorical_rule(
                clusters or {}, rule=settings.categorical, keys=settings.cluster_keys
            ),
            ComparisonKind.SPACE_GROUP: KeyRule(lambda _, text: groups.number(text)),
            ComparisonKind.EXACT: KeyRule(lambda _, text: text.strip()),
        }
        if _compares_compositions(settings):
            self._rules[ComparisonKind.PYMATGEN] = composition_rule(
                unparsed=settings.unparsed_composition
            )

    @property
    def has_pint(self) -> bool:
        """Whether pint is installed; without it most unit names are unknown."""
        return self._units.has_pint

    def left_out(self, kind: ComparisonKind) -> bool:
        """Return whether properties of a kind cannot be compared and do not count."""
        return kind not in self._rules

    def number(self, text: str) -> Number:
        """Return the number that a value states."""
        return self._quantities.number(text)

    def unit(self, text: str) -> StatedUnit:
        """Return the unit in a unit cell."""
        return self._units.read(text)

    def conversion(self, prediction: str, truth: str) -> Conversion:
        """Return the conversion of a predicted unit to the truth's, from unit cells."""
        return self._quantities.conversion(prediction, truth)

    def compare(
        self,
        kind: ComparisonKind,
        name: str,
        prediction: ValueWithUnit,
        truth: ValueWithUnit,
    ) -> ValueComparison:
        """Compare one pair of a property."""
        if self.left_out(kind):
            return ValueComparison(reason="left_out")
        return self._rules[kind].compare(name, prediction, truth)

    def edges(
        self,
        kind: ComparisonKind,
        name: str,
        predictions: Sequence[ValueWithUnit],
        truths: Sequence[ValueWithUnit],
    ) -> Iterator[Edge]:
        """Return all pairs of a group that match, by prediction and then truth."""
        if self.left_out(kind):
            return iter(())
        return self._rules[kind].edges(name, predictions, truths)

    def value_hits(
        self, predictions: Sequence[ValueWithUnit], truths: Sequence[ValueWithUnit]
    ) -> Iterator[Edge]:
        """Return all pairs of equal numbers in known units, regardless of names."""
        return self._quantities.checked_edges(predictions, truths)


def _compares_compositions(settings: PropertySettings) -> bool:
    if settings.pymatgen == "on" and not is_pymatgen_installed():
        raise DatasetError(
            "pymatgen=on: comparing compositions needs pymatgen (install "
            "siftlog[materials], or leave them out by pymatgen=leave_out)."
        )
    return settings.pymatgen != "leave_out" and is_pymatgen_installed()
