"""Reads unit cells, each distinct one once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

from jobs.property_extraction.values.dialect import BLANK, NAMES, NO_UNITS, WHOLE
from jobs.property_extraction.values.pint_names import is_pint_installed, pint_unit
from jobs.property_extraction.values.unit import StatedUnit, Unit
from jobs.property_extraction.values.unit_grammar import normal_form, parse_unit
from jobs.property_extraction.values.unit_row import UnitRow


class UnitReader:
    """Reads unit cells by the dialect, then pint, and last a given table.

    Rows of the table serve only what the others cannot read: such tables hold rounded
    factors, and wrong ones. A row whose SI unit is not understood either still tells
    that its names are one unit, told apart by the factor.
    """

    def __init__(self, table: Iterable[UnitRow] = ()) -> None:
        self._has_pint = is_pint_installed()
        self._names: dict[str, Unit | None] = {}
        self._cells: dict[str, StatedUnit] = {}
        self._table = dict(_units(tuple(table)))

    @property
    def has_pint(self) -> bool:
        """Whether pint is there; without it the names that it reads are unknown."""
        return self._has_pint

    def read(self, text: str) -> StatedUnit:
        """What a unit cell says."""
        if text not in self._cells:
            self._cells[text] = self._read(text)
        return self._cells[text]

    def _read(self, text: str) -> StatedUnit:
        spelled = normal_form(text)
        if spelled in BLANK:
            return StatedUnit(spelled, blank=True)
        unit = WHOLE.get(spelled) or parse_unit(spelled, self._named)
        return StatedUnit(spelled, unit or self._table.get(spelled))

    def _named(self, name: str) -> Unit | None:
        if name not in self._names:
            unit = NAMES.get(name)
            if unit is None and self._has_pint and name not in NO_UNITS:
                unit = pint_unit(name)
            self._names[name] = unit or self._table.get(name)
        return self._names[name]


def _units(table: Sequence[UnitRow]) -> Iterator[tuple[str, Unit]]:
    """The unit of each name, and of each SI unit that only the table knows."""
    if not table:
        return
    reader = UnitReader()
    for row in table:
        target = reader.read(row.si)
        unit = target.unit
        if unit is None:
            own = () if target.blank else ((target.text, Fraction(1)),)
            unit = Unit(Fraction(1), own)
            yield target.text, unit
        factor = unit.factor * Fraction(repr(row.factor))
        yield normal_form(row.name), Unit(factor, unit.dimensions)
