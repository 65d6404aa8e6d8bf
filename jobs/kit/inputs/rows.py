"""Declares the rows of an input file as a model, and validates them one at a time.

A model is the one place that says which columns a file has. A field without a default
is a column that must be there, one with a default may be absent. The type says what a
cell holds: see `cells` for those that most jobs need.

>>> class Vote(RowModel):
...     paper: cells.Filled
...     vote: cells.Label | None  # the column is needed, its cells may be blank
...     weight: cells.Count = 1
>>> place = RowSource(file="votes.csv", unit="row")
>>> Vote.at(place, 2, {"paper": "P1", "vote": "1"}).weight
1
>>> Vote.at(place, 3, {"paper": "P2", "vote": "yes"})
Traceback (most recent call last):
...
runner.errors.DatasetError: votes.csv row 3: vote is 'yes' (0 or 1 is expected).

Columns that a file may spell in several ways are marked `Spelled`. Conditions
between fields are pydantic validators of the model that raise `ValueError`; what needs
other rows is checked by the reader of the file, with `row.error`.

Findings about the input are collected on the way: one per code and file, with a count
and the first example, so that a file with a hundred thousand odd rows needs one line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

import msgspec
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SkipValidation,
    ValidationError,
)

from jobs.kit.inputs import cells
from jobs.kit.inputs.cells import (
    InputCell,
    integer_of,
    kind_of,
    number_of,
    quote,
    text_of,
)
from runner.errors import DatasetError
from runner.scorecard import Finding

_DECODER = msgspec.json.Decoder()


def object_of(text: str, location: str) -> dict[str, Any]:
    """Decodes the object that a line holds.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSource:
    """The file that rows are from, as errors name it."""

    file: str
    unit: str = "line"  #: what rows are counted by
    decimal: str = "."  #: a comma in tables whose columns a semicolon separates

    def error(self, line: int, sentence: str) -> DatasetError:
        """Returns the error that says *sentence* about a row."""
        return DatasetError(f"{self.file} {self.unit} {line}: {sentence}.")


class RowModel(BaseModel):
    """One record of a file: the base of all row models."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True)

    source: Annotated[RowSource, SkipValidation] = Field(validation_alias="@source")
    line: Annotated[int, SkipValidation] = Field(validation_alias="@line")
    """From 1; of a record over several lines the first."""

    @classmethod
    def at(cls, source: RowSource, line: int, row: dict[str, InputCell]) -> Self:
        """Validates the cells of a row; the dictionary is taken over.

        Raises:
            DatasetError: one of them does not fit; names file, row, column and value.
        """
        row["@source"], row["@line"] = source, line
        try:
            return cls.model_validate(row, context=source.decimal)
        except ValidationError as error:
            raise source.error(line, sentence_of(error)) from error

    def error(self, sentence: str) -> DatasetError:
        """Returns the error that says *sentence* about this row."""
        return self.source.error(self.line, sentence)

    @property
    def place(self) -> str:
        """The row as an example of a finding names it."""
        return f"{self.source.unit} {self.line}"

    @property
    def location(self) -> str:
        """The file and the row."""
        return f"{self.source.file} {self.source.unit} {self.line}"


_EXPECTED: Mapping[str, str] = {
    "string_type": "a text is expected",
    "dict_type": "an object is expected",
    "list_type": "a list is expected",
    "tuple_type": "a list is expected",
}
"""What pydantic's own types expect, by the type of its complaint."""


def sentence_of(error: ValidationError) -> str:
    """The first complaint of a validation, without its full stop.

    It names the column, and says what the cell holds and what to do.
    """
    complaint = error.errors(include_url=False)[0]
    name = ""
    for part in complaint["loc"]:
        name += f"[{part}]" if isinstance(part, int) else f".{part}" if name else part
    if complaint["type"] == "missing" or complaint["input"] is None:
        words = cells.BLANK
    elif complaint["type"] == "value_error":
        words = str(complaint["ctx"]["error"])
    elif complaint["type"] in _EXPECTED:
        words = f"is {kind_of(complaint['input'])} ({_EXPECTED[complaint['type']]})"
    else:
        words = f"is {quote(complaint['input'])} ({complaint['msg']})"
    return f"{name} {words}" if name else words


class Spelled:
    """Names further spellings of a column: `Annotated[Filled, Spelled("id")]`."""

    def __init__(self, *spellings: str) -> None:
        self.spellings = spellings


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The columns that a model declares, in the order of its fields."""

    needed: tuple[str, ...]
    optional: tuple[str, ...]
    spellings: Mapping[str, str]  #: names of columns by their further spellings

    @property
    def names(self) -> tuple[str, ...]:
        """All of them, as `--map` takes them."""
        return (*self.needed, *self.optional)


@cache
def columns_of(model: type[RowModel]) -> Columns:
    """Returns the columns of a model; one with a default is optional."""
    fields = {
        name if field.validation_alias is None else str(field.validation_alias): field
        for name, field in model.model_fields.items()
        if name not in RowModel.model_fields
    }
    return Columns(
        needed=tuple(name for name, field in fields.items() if field.is_required()),
        optional=tuple(
            name for name, field in fields.items() if not field.is_required()
        ),
        spellings={
            spelling: name
            for name, field in fields.items()
            for spelled in field.metadata
            if isinstance(spelled, Spelled)
            for spelling in spelled.spellings
        },
    )


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
    """Collects findings while files are read, in the order of their first case."""

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
        """Counts one more case of *code* in *where*; keeps the first one's words."""
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
        """Returns all findings."""
        return tuple(self._findings.values())
