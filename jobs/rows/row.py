"""One record of an input file, and what it may be asked.

Every complaint is a `DatasetError` of one sentence that names file, line and column and
says what to do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from jobs.json_lines import kind_of
from jobs.rows.cells import (
    Cell,
    integer_of,
    number_of,
    shown,
    text_of,
)
from runner.errors import DatasetError

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One record of a file, and where it stands."""

    file: str
    line: int  #: from 1; of a record over several lines the first
    fields: Mapping[str, Cell]  #: None or absent: missing
    unit: str = "line"  #: what is counted
    decimal: str = "."  #: a comma in tables whose columns a semicolon parts

    def error(self, sentence: str) -> DatasetError:
        """The error that says *sentence* about this row."""
        return DatasetError(f"{self.file} {self.unit} {self.line}: {sentence}.")

    def has(self, name: str) -> bool:
        """Whether the cell holds anything."""
        return self.fields.get(name) is not None

    def text(self, name: str) -> str:
        """A cell that must hold a text or an id, as it stands."""
        text = self._read(name, text_of)
        if not text:
            raise self._missing(name)
        return text

    def optional_text(self, name: str) -> str:
        """A text as it stands, "" where it is missing."""
        return self._read(name, text_of) if self.has(name) else ""

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts, or in CSV texts joined by "|"; () where it is missing."""
        cell = self.fields.get(name)
        if cell is None:
            return ()
        if isinstance(cell, str):
            return tuple(cell.split("|"))
        if not isinstance(cell, list):
            raise self.error(f"{name} is {kind_of(cell)} (a list of texts is expected)")
        if set(map(type, cell)) == {str}:  # nearly always; much faster than one by one
            return tuple(cell)
        return tuple(_item(self, name, item) for item in cell)

    def numbers(self, name: str) -> tuple[float, ...]:
        """A list of numbers; () where it is missing."""
        cell = self.fields.get(name)
        if cell is None:
            return ()
        if not isinstance(cell, list):
            raise self.error(f"{name} is {kind_of(cell)} (a list is expected)")
        try:
            return tuple(number_of(item) for item in cell)
        except ValueError as error:
            raise self.error(f"{name} holds a value that {error}") from error

    def integer(self, name: str) -> int:
        """A cell that must hold a whole number."""
        return self._read(name, integer_of)

    def count(self, name: str) -> int:
        """A cell that must hold a whole number from 0."""
        value = self.integer(name)
        if value < 0:
            raise self.error(f"{name} is {value} (a whole number from 0 is expected)")
        return value

    def label(self, name: str) -> int:
        """A cell that must hold 0 or 1."""
        cell = self.fields.get(name)
        if cell is None:
            raise self._missing(name)
        try:
            value = integer_of(cell)
        except ValueError:
            value = -1
        if value not in {0, 1}:
            raise self.error(f"{name} is {shown(cell)} (0 or 1 is expected)")
        return value

    def number(self, name: str) -> float:
        """A cell that must hold a number, which `inf` is; `decimal` is its point."""
        return self._read(name, self._number)

    def probability(self, name: str) -> float:
        """A cell that must hold a number from 0 to 1."""
        value = self.number(name)
        if not 0.0 <= value <= 1.0:
            raise self.error(
                f"{name} is {shown(self.fields[name])} (a probability from 0 to 1 is "
                "expected; divide percents by 100)"
            )
        return value

    def one_of(self, name: str, allowed: Sequence[str]) -> str:
        """A cell that must hold one of some words."""
        text = self.text(name)
        if text not in allowed:
            raise self.error(
                f"{name} is {shown(text)} (one of {', '.join(allowed)} is expected)"
            )
        return text

    def _number(self, cell: Cell) -> float:
        if self.decimal == "," and isinstance(cell, str) and cell.count(",") == 1:
            return number_of(cell.replace(",", "."))
        return number_of(cell)

    def _read(self, name: str, read: Callable[[Cell], Value]) -> Value:
        cell = self.fields.get(name)
        if cell is None:
            raise self._missing(name)
        try:
            return read(cell)
        except ValueError as error:
            raise self.error(f"{name} {error}") from error

    def _missing(self, name: str) -> DatasetError:
        return self.error(f"{name} is missing (fill it in or remove the row)")


def _item(row: Row, name: str, item: object) -> str:
    try:
        return text_of(item)
    except ValueError as error:
        raise row.error(f"{name} holds an entry that {error}") from error
