"""Reads tables of CSV or JSON objects, and finds columns by their many spellings."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from jobs.kit.inputs.column_map import ColumnMap, missing_column, name_list
from jobs.kit.inputs.files import (
    delimiter_of,
    header_of,
    holds_objects,
    objects_in,
    records,
)
from jobs.kit.text_format import plural
from runner.errors import DatasetError

# columns that truth and predictions both have, by any of these names
REFNO = ("refno", "paper", "paper_id")
UNIT = ("property_unit", "unit", "units")
MATERIAL = ("material", "material_or_system")

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
"""Texts that are missing values, beside the empty one: those of pandas' reader."""


ASIDE = re.compile(r"num|(?<![a-z])(err|unc|std|sd|type|unit|min|max)")
"""What is in the name of a column that holds something about a value, not the value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableHeader:
    """A table's columns, found by their names."""

    file: str
    names: tuple[str, ...]

    def first(self, spellings: Sequence[str]) -> int | None:
        """The place of the first spelling that is there."""
        columns = (self.names.index(name) for name in spellings if name in self.names)
        return next(columns, None)

    def need(self, spellings: Sequence[str]) -> int:
        """The place of the first spelling that is there.

        Raises:
            DatasetError: none is.
        """
        column = self.first(spellings)
        if column is None:
            raise missing_column(
                self.file,
                spellings[0],
                self.names,
                spellings=spellings,
                takes_map=True,
            )
        return column

    def value(self, spelling: str, others: Sequence[str] = ()) -> int:
        """The place of the values: *spelling*, or the only column that could be them.

        That is one of *others*, or one with "value" in its name that is not about a
        value, such as its number, error or unit.

        Raises:
            DatasetError: there is none, or several could be meant.
        """
        if spelling in self.names:
            return self.names.index(spelling)
        candidates = [
            name
            for name in self.names
            if name in others
            or ("value" in name.lower() and not ASIDE.search(name.lower()))
        ]
        self._require_one(candidates, spelling)
        return (
            self.names.index(candidates[0])
            if candidates
            else self.need((spelling, *others))
        )

    def predicted_unit(self, spelling: str, others: Sequence[str]) -> int | None:
        """The place of the units of predictions.

        Raises:
            DatasetError: one of *others* is there, and a column of predicted units.
        """
        column = self.first((spelling, *others))
        if column is not None and self.names[column] != spelling:
            rivals = [
                name
                for name in self.names
                if "pred" in name.lower() and "unit" in name.lower()
            ]
            self._require_one([self.names[column], *rivals], spelling)
        return column

    def _require_one(self, names: Sequence[str], spelling: str) -> None:
        if len(names) > 1:
            raise DatasetError(
                f"{self.file}: {name_list(names)} could each be {spelling} (say which "
                f"with --map {names[-1]}={spelling})."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """One row of a table."""

    file: str
    number: int  #: in the file; the header is row 1
    texts: Sequence[str]

    def at(self, column: int | None) -> str:
        """A cell without blanks around it; empty where there is no such column."""
        return "" if column is None else self.texts[column]

    def error(self, sentence: str) -> DatasetError:
        """The error that says *sentence* about this row."""
        return DatasetError(f"{self.file} row {self.number}: {sentence}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTable:
    """A table: its header, and its rows to be read once."""

    header: TableHeader
    rows: Iterator[TableRow]


def open_table(
    path: Path, missing: Collection[str] = (), renamed: ColumnMap | None = None
) -> OpenTable:
    """The header and the rows of a table; every cell is a text.

    Args:
        path: a CSV file, or one of JSON objects. Of those, a nested key is a column
            `outer.inner`.
        missing: texts that count as an empty cell.
        renamed: columns that `--map` renames.

    Raises:
        DatasetError: the file is not to be read, its header names a column twice, or
            (when its row is read) a row has another number of fields.
    """
    if holds_objects(path):
        return _open_objects(path, missing, renamed or {})
    table_records = records(path, delimiter_of(path))
    names = header_of(path, table_records, renamed or {})
    _require_distinct(path, names)
    header = TableHeader(file=path.name, names=names)

    def rows() -> Iterator[TableRow]:
        for _, number, cells in table_records:
            if len(cells) != len(names):
                raise DatasetError(
                    f"{path.name} row {number}: {plural(len(cells), 'field')} where "
                    f"the header has {len(names)} (quote a field that holds a comma)."
                )
            texts = [cell.strip() for cell in cells]
            if missing:
                texts = ["" if text in missing else text for text in texts]
            yield TableRow(file=path.name, number=number, texts=texts)

    return OpenTable(header=header, rows=rows())


def _require_distinct(path: Path, names: Sequence[str]) -> None:
    for name in names:
        if name and names.count(name) > 1:
            raise DatasetError(
                f"{path.name}: column {name!r} occurs twice (remove or rename one)."
            )


def _open_objects(
    path: Path, missing: Collection[str], renamed: ColumnMap
) -> OpenTable:
    """Objects as a table, which is read twice: keys may come and go."""
    names: dict[str, None] = {}
    for _, fields in objects_in(path):
        names.update(dict.fromkeys(flattened(fields)))
    columns = tuple(renamed.get(name, name) for name in names)
    _require_distinct(path, columns)

    def rows() -> Iterator[TableRow]:
        objects = enumerate(objects_in(path), start=2)  # the header of CSV is row 1
        for number, (_, fields) in objects:
            cells = flattened(fields)
            texts = [cells.get(name, "").strip() for name in names]
            if missing:
                texts = ["" if text in missing else text for text in texts]
            yield TableRow(file=path.name, number=number, texts=texts)

    return OpenTable(header=TableHeader(file=path.name, names=columns), rows=rows())


def flattened(fields: Mapping[str, Any], before: str = "") -> dict[str, str]:
    """An object as cells: nested keys joined by points, lists by "|"."""
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
