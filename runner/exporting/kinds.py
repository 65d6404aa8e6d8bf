"""What the cells of a column are, and the narrowest kind that takes a few of them."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping
from typing import Final

from runner.scorecard import Cell

_INT64: Final = range(-(2**63), 2**63)
"""Whole numbers that a file of columns can hold."""


class Kind(enum.Enum):
    """A column's kind, the same in every form of file."""

    NOTHING = "nothing"  #: no cell of it has a value
    BOOLEAN = "boolean"
    INTEGER = "integer"
    NUMBER = "number"
    TEXT = "text"

    @classmethod
    def of(cls, cell: Cell) -> Kind:
        """The narrowest kind that a cell fits; a number that is none is no value."""
        match cell:
            case bool():
                return cls.BOOLEAN
            case int():
                return cls.INTEGER if cell in _INT64 else cls.TEXT
            case float():
                return cls.NOTHING if math.isnan(cell) else cls.NUMBER
            case str():
                return cls.TEXT
            case None:
                return cls.NOTHING

    def with_(self, other: Kind) -> Kind:
        """The narrowest kind that takes the cells of both.

        >>> Kind.INTEGER.with_(Kind.NUMBER)
        <Kind.NUMBER: 'number'>
        >>> Kind.BOOLEAN.with_(Kind.INTEGER)
        <Kind.TEXT: 'text'>
        """
        both = {self, other} - {Kind.NOTHING}
        if len(both) < 2:  # noqa: PLR2004 - of one kind, or empty
            return both.pop() if both else Kind.NOTHING
        return Kind.NUMBER if both == {Kind.INTEGER, Kind.NUMBER} else Kind.TEXT

    def cell(self, cell: Cell) -> Cell:
        """A cell as its column holds it; None where it has no value."""
        if cell is None or (isinstance(cell, float) and math.isnan(cell)):
            return None
        return _CELLS[self](cell)


def _text(cell: Cell) -> str:
    """A cell among texts, written as CSV has it."""
    if isinstance(cell, str):
        return cell
    return str(cell).lower() if isinstance(cell, bool) else repr(cell)


_CELLS: Final[Mapping[Kind, Callable[[Cell], Cell]]] = {
    Kind.NOTHING: lambda _: None,
    Kind.BOOLEAN: lambda cell: cell,
    Kind.INTEGER: lambda cell: cell,
    Kind.NUMBER: lambda cell: float(cell or 0),
    Kind.TEXT: _text,
}
