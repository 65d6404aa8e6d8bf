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

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

import msgspec
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SkipValidation,
    TypeAdapter,
    ValidationError,
)

from jobs.kit.inputs import cells
from jobs.kit.inputs.cells import InputCell, kind_of, quote
from runner.errors import DatasetError
from runner.scorecard import Finding

T = TypeVar("T")

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
    def at(cls, source: RowSource, line: int, cells: Mapping[str, InputCell]) -> Self:
        """Validates the cells of a row; an optional one that is null counts as absent.

        Raises:
            DatasetError: one of them does not fit; names file, row, column and value.
        """
        needed = columns_of(cls).needed
        row = {
            name: cell
            for name, cell in cells.items()
            if cell is not None or name in needed
        }
        return cls.validated(source, line, row)

    @classmethod
    def validated(cls, source: RowSource, line: int, row: dict[str, InputCell]) -> Self:
        """The same for readers of long files; the dictionary is taken over."""
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
    "dataclass_type": "an object is expected",
    "list_type": "a list is expected",
    "tuple_type": "a list is expected",
}
"""Expectations of pydantic's own types, by error type."""


def validated_value(adapter: TypeAdapter[T], value: object, location: str) -> T:
    """Validates a JSON value that is no row, such as the one object of a file.

    Args:
        adapter: of the type that the value is to be read as.
        value: the JSON value.
        location: its file and place, as an error names them.

    Raises:
        DatasetError: it does not fit; names the location, the field and its value.
    """
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        raise DatasetError(f"{location}: {sentence_of(error, ': ')}.") from error


def sentence_of(error: ValidationError, between: str = ".") -> str:
    """The first complaint of a validation, without its full stop.

    It names the column, and says what the cell holds and what to do; *between* stands
    before the name of a field inside another one.
    """
    complaint = error.errors(include_url=False)[0]
    name = ""
    for part in complaint["loc"]:
        name += (
            f"[{part}]"
            if isinstance(part, int)
            else f"{between}{part}"
            if name
            else part
        )
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

    def extend(self, others: InputFindings) -> None:
        """Adds the findings of files that were read on the side."""
        for finding in others.findings():
            self.add(
                finding.code,
                finding.severity,
                finding.where,
                finding.message,
                example=finding.example,
                n=finding.n,
            )

    def findings(self) -> tuple[Finding, ...]:
        """Returns all findings."""
        return tuple(self._findings.values())
