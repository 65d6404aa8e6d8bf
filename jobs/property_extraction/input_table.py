"""Reads tables of CSV or JSON objects whose columns have many spellings.

A model of a row defines the columns of a table: the aliases of a field are the
spellings of its column, of which the first one in the table counts.

>>> class Vote(TableRow):
...     paper: Refno
...     weight: Annotated[int, unless_blank(int, 1)] = 1
>>> columns_in(Vote, "v.csv", ("paper", "weight"))
{'paper': 'paper', 'weight': 'weight'}
>>> source = RowSource(file="v.csv", unit="row")
>>> Vote.validated(source, 2, {"paper": "P1", "weight": ""}).cells
{'paper': 'P1', 'weight': 1}
>>> Vote.validated(source, 3, {"paper": "", "weight": "2"})
Traceback (most recent call last):
...
runner.errors.DatasetError: v.csv row 3: paper is blank (fill it in, or remove the row).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from sys import intern
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from pydantic import AfterValidator, AliasChoices, PlainValidator
from pydantic.fields import FieldInfo

from jobs.kit.inputs.column_map import ColumnMap, ambiguous_column, missing_column
from jobs.kit.inputs.files import (
    delimiter_of,
    header_of,
    holds_objects,
    objects_in,
    records,
)
from jobs.kit.inputs.rows import RowModel, RowSource
from jobs.kit.text_format import plural
from runner.errors import DatasetError
from runner.table_files import as_meant

# columns that truth and predictions both have, by any of these names
REFNO = AliasChoices("refno", "paper", "paper_id")
UNIT = AliasChoices("property_unit", "unit", "units")
MATERIAL = AliasChoices("material", "material_or_system")

NA: Mapping[Literal["empty", "pandas"], frozenset[str]] = {
    "empty": frozenset(),
    "pandas": frozenset(
        {
            *("#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan"),
            *("1.#IND", "1.#QNAN", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a"),
            *("nan", "null"),
        }
    ),
}
"""Texts that are missing values, besides the empty one: those of pandas' reader."""


def _filled(text: str) -> str:
    if not text:
        raise ValueError("is blank (fill it in, or remove the row)")
    return intern(text)


def unless_blank(read: Callable[[str], Any], blank: Any = None) -> PlainValidator:  # noqa: ANN401 - of any type
    """Return a validator that reads a cell; a blank one becomes *blank*."""
    return PlainValidator(lambda text: read(text) if text else blank)


Refno = Annotated[str, PlainValidator(_filled)]
Name = Annotated[str, PlainValidator(lambda text: intern(as_meant(_filled(text))))]
Meant = Annotated[str, AfterValidator(as_meant)]
"""A text that may be marked as one for a spreadsheet."""
Repeated = Annotated[str, AfterValidator(intern)]
"""A text that many rows share."""
RepeatedMeant = Annotated[str, AfterValidator(lambda text: intern(as_meant(text)))]


class TableRow(RowModel):
    """One row of a table; its cells are texts without outer blanks."""

    @property
    def cells(self) -> dict[str, Any]:
        """Values of the row, by field."""
        return {name: getattr(self, name) for name in _fields(type(self))}


Row = TypeVar("Row", bound=TableRow)


def _fields(model: type[TableRow]) -> Mapping[str, FieldInfo]:
    return {
        name: field
        for name, field in model.model_fields.items()
        if name not in RowModel.model_fields
    }


def _spellings(name: str, field: FieldInfo) -> Sequence[str]:
    alias = field.validation_alias or name
    return (
        [*map(str, alias.choices)] if isinstance(alias, AliasChoices) else [str(alias)]
    )


def column_names(model: type[TableRow]) -> tuple[str, ...]:
    """Return the names to which a column may be mapped: each field's first spelling."""
    return tuple(_spellings(*field)[0] for field in _fields(model).items())


@dataclass(frozen=True, slots=True)
class ColumnRule:
    """Marks a field whose column is found by another rule than its spellings.

    The rule takes the name of the file, its columns and the spellings.
    """

    rule: Callable[[str, Sequence[str], Sequence[str]], str | None]


def columns_in(
    model: type[TableRow], file: str, names: Sequence[str]
) -> Mapping[str, str]:
    """Return the column of each field that has one.

    Raises:
        DatasetError: a required column is missing, or several could be meant.
    """
    columns: dict[str, str] = {}
    for name, field in _fields(model).items():
        spellings = _spellings(name, field)
        rules = [mark.rule for mark in field.metadata if isinstance(mark, ColumnRule)]
        rule = rules[0] if rules else first_spelling
        column = rule(file, names, spellings)
        if column is not None:
            columns[name] = column
        elif field.is_required():
            raise missing_column(
                file, spellings[0], names, spellings=spellings, takes_map=True
            )
    return columns


def first_spelling(
    _file: str, names: Sequence[str], spellings: Sequence[str]
) -> str | None:
    """Return the first spelling among the columns."""
    return next((name for name in spellings if name in names), None)


ASIDE = re.compile(r"num|(?<![a-z])(err|unc|std|sd|type|unit|min|max)")
"""Parts of the names of columns about a value, such as its error, not the value."""


def value_column(
    file: str, names: Sequence[str], spellings: Sequence[str]
) -> str | None:
    """Return the column of values: the first spelling, or the only possible one.

    That is another spelling, or a column with "value" in its name that is not about a
    value, such as its number, error or unit.

    Raises:
        DatasetError: several could be meant.
    """
    if spellings[0] in names:
        return spellings[0]
    candidates = [
        name
        for name in names
        if name in spellings
        or ("value" in name.lower() and not ASIDE.search(name.lower()))
    ]
    if len(candidates) > 1:
        raise ambiguous_column(file, candidates, spellings[0])
    return candidates[0] if candidates else None


def predicted_unit_column(
    file: str, names: Sequence[str], spellings: Sequence[str]
) -> str | None:
    """Return the column of the units of predictions.

    Raises:
        DatasetError: the first spelling is missing, and both another one and a column
            of predicted units exist.
    """
    column = first_spelling(file, names, spellings)
    rivals = [n for n in names if "pred" in n.lower() and "unit" in n.lower()]
    if column not in {None, spellings[0]} and rivals:
        raise ambiguous_column(file, [str(column), *rivals], spellings[0])
    return column


def read_rows(
    path: Path,
    model: type[Row],
    missing: Collection[str] = (),
    renamed: ColumnMap | None = None,
) -> Iterator[Row]:
    """Yield the rows of a table, in file order; only one is in memory.

    Args:
        path: of a file as `open_table` reads it.
        model: of a row.
        missing: texts that count as an empty cell.
        renamed: columns that `--map` renames.

    Raises:
        DatasetError: the file is unreadable, a column is missing or ambiguous, or a row
            is invalid.
    """
    table = open_table(path, renamed)
    source = RowSource(file=path.name, unit="row")
    names = list(table.names)
    for name, column in columns_in(model, path.name, names).items():
        spellings = _spellings(name, model.model_fields[name])
        if column not in spellings:
            names[names.index(column)] = spellings[0]
    for number, texts in table.rows:
        cells = [text.strip() for text in texts]
        if missing:
            cells = ["" if cell in missing else cell for cell in cells]
        yield model.validated(source, number, dict(zip(names, cells, strict=True)))


class OpenTable(NamedTuple):
    """The columns of a table, and its rows, which can be read once."""

    names: Sequence[str]
    rows: Iterator[tuple[int, Sequence[str]]]
    """With their numbers in the file, in which the header is row 1."""


def open_table(path: Path, renamed: ColumnMap | None = None) -> OpenTable:
    """Return the header and the rows of a table; every cell is a text.

    Args:
        path: a CSV file, or one of JSON objects, whose nested keys become columns
            `outer.inner`.
        renamed: columns that `--map` renames.

    Raises:
        DatasetError: the file is unreadable, its header names a column twice, or (when
            its row is read) a row has another number of fields.
    """
    is_json = holds_objects(path)
    table = _objects(path, renamed or {}) if is_json else _csv(path, renamed or {})
    for name in table.names:
        if name and table.names.count(name) > 1:
            raise DatasetError(
                f"{path.name}: column {name!r} occurs twice (remove or rename one)."
            )
    return table


def _csv(path: Path, renamed: ColumnMap) -> OpenTable:
    table_records = records(path, delimiter_of(path))
    names = header_of(path, table_records, renamed)

    def rows() -> Iterator[tuple[int, Sequence[str]]]:
        for _, number, texts in table_records:
            if len(texts) != len(names):
                raise DatasetError(
                    f"{path.name} row {number}: {plural(len(texts), 'field')} where "
                    f"the header has {len(names)} (quote a field that holds a comma)."
                )
            yield number, texts

    return OpenTable(names, rows())


def _objects(path: Path, renamed: ColumnMap) -> OpenTable:
    """Return objects as a table; they are read twice, since their keys may differ."""
    keys: dict[str, None] = {}
    for _, fields in objects_in(path):
        keys.update(dict.fromkeys(flattened(fields)))

    def rows() -> Iterator[tuple[int, Sequence[str]]]:
        # the header of CSV is row 1
        for number, (_, fields) in enumerate(objects_in(path), start=2):
            cells = flattened(fields)
            yield number, [cells.get(key, "") for key in keys]

    return OpenTable([renamed.get(key, key) for key in keys], rows())


def flattened(fields: Mapping[str, Any], before: str = "") -> dict[str, str]:
    """Return an object as cells: nested keys joined by points, lists by "|"."""
    cells: dict[str, str] = {}
    for name, value in fields.items():
        key = before + name
        match value:
            case dict():
                cells |= flattened(value, key + ".")
            case None:
                cells[key] = ""
            case bool():
                cells[key] = str(value).lower()
            case list():
                cells[key] = "|".join(map(str, value))
            case _:
                cells[key] = str(value)
    return cells
