"""Reads unit cells, each distinct one once."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from jobs.property_extraction.values.dialect import BLANK, NAMES, WHOLE
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
        self._table: dict[str, Unit] = {}
        # all of them read before the first one serves, so that their order is nothing
        rows = [(normal_form(row.name), self._of_row(row)) for row in table]
        self._names.clear()
        self._cells.clear()
        self._table.update(rows)

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
            if unit is None and self._has_pint:
                unit = pint_unit(name)
            self._names[name] = unit or self._table.get(name)
        return self._names[name]

    def _of_row(self, row: UnitRow) -> Unit:
        target = self.read(row.si)
        unit = target.unit or Unit(Fraction(1), ((target.text, Fraction(1)),))
        return Unit(unit.factor * Fraction(repr(row.factor)), unit.dimensions)
