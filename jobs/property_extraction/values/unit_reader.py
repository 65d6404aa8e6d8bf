"""Reads unit cells by the dialect of papers, pint, and a given table of units.

Only names are passed to pint, never an expression: its parser reads `cm-2` as a
subtraction, and evaluates `9**9**9`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

from jobs.property_extraction.values.units import (
    BLANK,
    DIALECT_UNITS,
    NO_UNITS,
    WHOLE_CELLS,
    PhysicalUnit,
    StatedUnit,
    dimensions,
    normal_form,
    parse_unit,
)

if TYPE_CHECKING:
    from pint import UnitRegistry


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitTableRow:
    """A row of a unit table: one `name` is `factor` of the unit `si`."""

    name: str
    si: str
    factor: float  #: finite, not 0
    source_row: int = 0  #: in its file; the header is row 1


def is_pint_installed() -> bool:
    """Return whether pint is installed, to look up names; it is in `materials`."""
    return find_spec("pint") is not None


def pint_unit(name: str) -> PhysicalUnit | None:
    """Return the unit of a name, with its prefix; None if pint does not know it.

    Logarithmic units return None too: no factor converts them.

    Args:
        name: Letters, possibly after a degree sign.
    """
    registry = _registry()
    parsed_names = registry.parse_unit_name(name)
    if not parsed_names:
        return None
    prefix, stem, _suffix = parsed_names[0]
    units = registry.UnitsContainer({prefix + stem: 1})
    try:
        zero, one = (
            registry.Quantity(Fraction(n), units).to_base_units() for n in range(2)
        )
    except TypeError:  # a fraction has no logarithm
        return None
    offset = Fraction(str(zero.magnitude))
    powers = {str(k): Fraction(str(v)) for k, v in one.dimensionality.items()}
    return PhysicalUnit(
        Fraction(str(one.magnitude)) - offset, dimensions(powers), offset
    )


@cache
def _registry() -> UnitRegistry[Fraction]:
    """Return pint's default definitions, in exact fractions."""
    import pint  # noqa: PLC0415 - an extra, and slow to load

    return pint.UnitRegistry(non_int_type=Fraction)


class UnitReader:
    """Reads unit cells by the dialect, then pint, and last a given table.

    Rows of the table apply only to units that the others cannot read: such tables have
    rounded factors, and wrong ones. If the SI unit of a row is unknown too, the row
    still relates its names to one unit by their factors.
    """

    def __init__(self, table: Iterable[UnitTableRow] = ()) -> None:
        self._has_pint = is_pint_installed()
        self._names: dict[str, PhysicalUnit | None] = {}
        self._cells: dict[str, StatedUnit] = {}
        self._table = dict(_table_units(tuple(table)))

    @property
    def has_pint(self) -> bool:
        """Whether pint is installed; without it the names that it reads are unknown."""
        return self._has_pint

    def read(self, text: str) -> StatedUnit:
        """Return the unit in a unit cell."""
        if text not in self._cells:
            self._cells[text] = self._read(text)
        return self._cells[text]

    def _read(self, text: str) -> StatedUnit:
        spelled = normal_form(text)
        if spelled in BLANK:
            return StatedUnit(spelled, blank=True)
        unit = WHOLE_CELLS.get(spelled) or parse_unit(spelled, self._named_unit)
        return StatedUnit(spelled, unit or self._table.get(spelled))

    def _named_unit(self, name: str) -> PhysicalUnit | None:
        if name not in self._names:
            unit = DIALECT_UNITS.get(name)
            if unit is None and self._has_pint and name not in NO_UNITS:
                unit = pint_unit(name)
            self._names[name] = unit or self._table.get(name)
        return self._names[name]


def _table_units(table: Sequence[UnitTableRow]) -> Iterator[tuple[str, PhysicalUnit]]:
    """Yield the unit of each name, and of each SI unit that only the table knows."""
    if not table:
        return
    reader = UnitReader()
    for row in table:
        target = reader.read(row.si)
        unit = target.unit
        if unit is None:
            base_dimensions = () if target.blank else ((target.text, Fraction(1)),)
            unit = PhysicalUnit(Fraction(1), base_dimensions)
            yield target.text, unit
        factor = unit.factor * Fraction(repr(row.factor))
        yield normal_form(row.name), PhysicalUnit(factor, unit.dimensions)


_TOLERANCE = Fraction(1, 1000)
"""Tolerance of the values that the factors convert."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitDisagreement:
    """A row whose factor is off by more than the tolerance of the values."""

    row: UnitTableRow
    factor: float | None  #: correct factor; None: the dimensions differ


def unit_disagreements(table: Iterable[UnitTableRow]) -> Iterator[UnitDisagreement]:
    """Yield the rows that dialect and pint contradict, in their order."""
    reader = UnitReader()
    for row in table:
        source, target = reader.read(row.name).unit, reader.read(row.si).unit
        if source is None or target is None:
            continue
        if source.dimensions != target.dimensions:
            yield UnitDisagreement(row=row, factor=None)
            continue
        factor = source.factor / target.factor
        if abs(Fraction(repr(row.factor)) - factor) > _TOLERANCE * abs(factor):
            yield UnitDisagreement(row=row, factor=float(factor))
