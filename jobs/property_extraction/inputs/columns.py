"""Which column of a table holds what, whatever its header calls it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from jobs.counted import counted
from jobs.rows.files import header_of, records
from runner.errors import DatasetError

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """A table's columns, found by their names."""

    file: str
    names: tuple[str, ...]

    def first(self, spellings: Sequence[str]) -> int | None:
        """The place of the first spelling that is there."""
        found = (self.names.index(name) for name in spellings if name in self.names)
        return next(found, None)

    def need(self, spellings: Sequence[str]) -> int:
        """The place of the first spelling that is there.

        Raises:
            DatasetError: none is.
        """
        found = self.first(spellings)
        if found is None:
            raise DatasetError(
                f"{self.file}: column {spellings[0]!r} is missing (found: "
                f"{', '.join(self.names)}); name it in the header, or one of "
                f"{', '.join(spellings)}."
            )
        return found

    def value(self, spellings: Sequence[str]) -> int:
        """The place of the values: a spelling, or the first "value" but for "num".

        Raises:
            DatasetError: there is none.
        """
        found = self.first(spellings)
        if found is not None:
            return found
        for place, name in enumerate(self.names):
            if "value" in name.lower() and "num" not in name.lower():
                return place
        return self.need(spellings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """One row of a table."""

    file: str
    number: int  #: in the file; the header is row 1
    texts: Sequence[str]

    def at(self, place: int | None) -> str:
        """A cell without blanks around it; empty where there is no such column."""
        return "" if place is None else self.texts[place]

    def error(self, sentence: str) -> DatasetError:
        """The error that says *sentence* about this row."""
        return DatasetError(f"{self.file} row {self.number}: {sentence}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A table: its header, and its rows to be read once."""

    header: Header
    rows: Iterator[Cells]


def open_table(path: Path, missing: Collection[str] = ()) -> Opened:
    """The header and the rows of a CSV file; every cell is a text.

    Args:
        path: the file.
        missing: texts that count as an empty cell.

    Raises:
        DatasetError: the file is not to be read, its header names a column twice, or
            (when its row is read) a row has another number of fields.
    """
    found = records(path)
    names = header_of(path, found, {})
    for name in names:
        if name and names.count(name) > 1:
            raise DatasetError(
                f"{path.name}: column {name!r} occurs twice (remove or rename one)."
            )
    header = Header(file=path.name, names=names)

    def rows() -> Iterator[Cells]:
        for _, number, cells in found:
            if len(cells) != len(names):
                raise DatasetError(
                    f"{path.name} row {number}: {counted(len(cells), 'field')} where "
                    f"the header has {len(names)} (quote a field that holds a comma)."
                )
            texts = [cell.strip() for cell in cells]
            if missing:
                texts = ["" if text in missing else text for text in texts]
            yield Cells(file=path.name, number=number, texts=texts)

    return Opened(header=header, rows=rows())
