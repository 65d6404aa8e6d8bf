"""Reads the values of one record of an input file; errors name file, row and column.

Findings about the input are collected on the way: one per code and file, with a count
and the first example, so that a file with a hundred thousand odd rows needs one line.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

from runner.errors import DatasetError
from runner.scorecard import Finding

_DECODER = msgspec.json.Decoder()


def object_of(text: str, location: str) -> dict[str, Any]:
    """The object that a line holds.

    Args:
        text: of the line.
        location: file and number of the line, as an error names them.

    Raises:
        DatasetError: it holds something else.
    """
    try:
        value = _DECODER.decode(text)
    except msgspec.DecodeError as error:
        seems_csv = text[:1] not in {"{", "["} and any(map(text.count, ",;\t"))
        hint = "; this looks like CSV, write its rows as objects" if seems_csv else ""
        raise DatasetError(
            f"{location}: not valid JSON, {error} (each line must hold one "
            f"object{hint})."
        ) from error
    if not isinstance(value, dict):
        raise DatasetError(
            f"{location}: {kind_of(value)} instead of an object "
            "(each line must hold one object)."
        )
    return value


def kind_of(value: object) -> str:
    """What sort of JSON value it is, in words."""
    return _KINDS[type(value)]


_KINDS: Mapping[type, str] = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "a text",
    list: "a list",
    dict: "an object",
    type(None): "null",
}


InputCell: TypeAlias = Any
"""A text or None from CSV; whatever JSON holds from JSONL."""

_INTEGER = re.compile(r"[+-]?[0-9]+(\.0*)?")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_INFINITE = {"inf", "+inf", "infinity", "+infinity"}


def text_of(cell: InputCell) -> str:
    """A text as it stands, blanks included, or a whole number's digits.

    Raises:
        ValueError: it is something else; the message says what.
    """
    if isinstance(cell, str):
        return cell
    if isinstance(cell, int) and not isinstance(cell, bool):
        return str(cell)
    raise ValueError(f"is {kind_of(cell)} (put the text in quotes)")


def integer_of(cell: InputCell) -> int:
    """A whole number; `3.0`, as tables with gaps write it, is 3.

    Raises:
        ValueError: it is something else; the message says what.
    """
    if isinstance(cell, str) and _INTEGER.fullmatch(cell):
        return int(cell.partition(".")[0])
    if isinstance(cell, int) and not isinstance(cell, bool):
        return cell
    if isinstance(cell, float) and cell.is_integer():
        return int(cell)
    raise ValueError(f"is {quote(cell)} (a whole number is expected)")


def number_of(cell: InputCell) -> float:
    """A number, read so that writing it gives the same digits; `inf` counts.

    Raises:
        ValueError: it is something else, or not a number; the message says what.
    """
    if isinstance(cell, str):
        if _NUMBER.fullmatch(cell):
            return float(cell)
        if cell.lower() in _INFINITE:
            return math.inf
    if isinstance(cell, int | float) and not isinstance(cell, bool):
        return float(cell)
    raise ValueError(f"is {quote(cell)} (a number is expected)")


def quote(cell: InputCell) -> str:
    """A cell as an error quotes it, cut where it is long."""
    return repr(cell)[:40] if isinstance(cell, str | int | float) else kind_of(cell)


Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class InputRow:
    """One record of a file, and where it stands."""

    file: str
    line: int  #: from 1; of a record over several lines the first
    fields: Mapping[str, InputCell]  #: None or absent: missing
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
            raise self.error(f"{name} is {quote(cell)} (0 or 1 is expected)")
        return value

    def number(self, name: str) -> float:
        """A cell that must hold a number, which `inf` is; `decimal` is its point."""
        return self._read(name, self._number)

    def probability(self, name: str) -> float:
        """A cell that must hold a number from 0 to 1."""
        value = self.number(name)
        if not 0.0 <= value <= 1.0:
            raise self.error(
                f"{name} is {quote(self.fields[name])} (a probability from 0 to 1 is "
                "expected; divide percents by 100)"
            )
        return value

    def one_of(self, name: str, allowed: Sequence[str]) -> str:
        """A cell that must hold one of some words."""
        text = self.text(name)
        if text not in allowed:
            raise self.error(
                f"{name} is {quote(text)} (one of {', '.join(allowed)} is expected)"
            )
        return text

    def _number(self, cell: InputCell) -> float:
        if self.decimal == "," and isinstance(cell, str) and cell.count(",") == 1:
            return number_of(cell.replace(",", "."))
        return number_of(cell)

    def _read(self, name: str, read: Callable[[InputCell], Value]) -> Value:
        cell = self.fields.get(name)
        if cell is None:
            raise self._missing(name)
        try:
            return read(cell)
        except ValueError as error:
            raise self.error(f"{name} {error}") from error

    def _missing(self, name: str) -> DatasetError:
        return self.error(f"{name} is missing (fill it in or remove the row)")


def _item(row: InputRow, name: str, item: object) -> str:
    try:
        return text_of(item)
    except ValueError as error:
        raise row.error(f"{name} holds an entry that {error}") from error


class InputFindings:
    """Collects findings while files are read; the order is that of first sight."""

    def __init__(self) -> None:
        self._findings: dict[tuple[str, str], Finding] = {}

    def add(
        self,
        code: str,
        severity: Literal["error", "warn", "info"],
        where: str,
        message: str,
        *,
        example: str = "",
        n: int = 1,
    ) -> None:
        """Note one more case of *code* in *where*; the first one's words stand."""
        seen = self._findings.get((code, where))
        self._findings[code, where] = (
            replace(seen, n=seen.n + n)
            if seen
            else Finding(
                code=code,
                severity=severity,
                where=where,
                message=message,
                n=n,
                example=example,
            )
        )

    def findings(self) -> tuple[Finding, ...]:
        """All that was noticed."""
        return tuple(self._findings.values())
