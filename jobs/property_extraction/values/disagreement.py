"""A given table of units, and where it contradicts what is known of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from jobs.property_extraction.values.unit_reader import UnitReader
from jobs.property_extraction.values.unit_row import UnitRow

_TOLERANCE = Fraction(1, 1000)
"""That of the values that the factors are meant for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """A row whose factor is off by more than the tolerance of the values."""

    row: UnitRow
    factor: float | None  #: what it should be; None: the dimensions differ


def disagreements(table: Iterable[UnitRow]) -> Iterator[Disagreement]:
    """The rows that dialect and pint contradict, in their order."""
    reader = UnitReader()
    for row in table:
        source, target = reader.read(row.name).unit, reader.read(row.si).unit
        if source is None or target is None:
            continue
        if source.dimensions != target.dimensions:
            yield Disagreement(row=row, factor=None)
            continue
        factor = source.factor / target.factor
        if abs(Fraction(repr(row.factor)) - factor) > _TOLERANCE * abs(factor):
            yield Disagreement(row=row, factor=float(factor))
