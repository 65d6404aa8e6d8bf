"""Reads the rows of any table as texts by column, one at a time.

A table is CSV, TSV, JSON, JSON lines or Parquet. A file of references (RIS, BibTeX,
PubMed XML) is a table as well, whose columns are `document_id`, `pmid`, `doi`, `title`,
`abstract`, `authors`, `journal` and `year`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from jobs.kit.inputs.files import delimiter_of, header_of, objects_in, records
from jobs.kit.inputs.rows import RowSource
from jobs.kit.text_format import plural
from runner.errors import DatasetError


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemRow:
    """A row of a table."""

    source: RowSource
    number: int  #: as `source.unit` counts
    cells: Mapping[str, str]  #: by column; "" for a blank cell

    @property
    def location(self) -> str:
        """The file and the row, as an error names them."""
        return f"{self.source.file} {self.source.unit} {self.number}"

    def error(self, sentence: str) -> DatasetError:
        """Returns the error that says *sentence* about this row."""
        return self.source.error(self.number, sentence)


def cell_text(value: Any) -> str:  # noqa: ANN401 - any JSON or Parquet value
    """Returns a cell as text; lists of texts are joined by semicolons.

    >>> cell_text(["RCT", "cohort"]), cell_text(True), cell_text(None)
    ('RCT; cohort', 'true', '')
    """
    match value:
        case None:
            return ""
        case str():
            return value
        case bool():
            return str(value).lower()
        case list() if all(isinstance(entry, str) for entry in value):
            return "; ".join(value)
        case list() | dict():
            return msgspec.json.encode(value).decode()
        case _:
            return str(value)


def _csv_rows(path: Path) -> Iterator[ItemRow]:
    delimiter = delimiter_of(path)
    source = RowSource(
        file=path.name, unit="row", decimal="," if delimiter == ";" else "."
    )
    table = records(path, delimiter)
    columns = header_of(path, table, {})
    for name in columns:
        if columns.count(name) > 1:
            raise DatasetError(
                f"{path.name}: column {name!r} occurs twice (remove or rename one)."
            )
    for _, number, cells in table:
        if len(cells) != len(columns):
            raise source.error(
                number,
                f"{plural(len(cells), 'field')} where the header has {len(columns)} "
                "(quote a field that contains a delimiter, or complete the row)",
            )
        yield ItemRow(
            source=source, number=number, cells=dict(zip(columns, cells, strict=True))
        )


def _object_rows(path: Path) -> Iterator[ItemRow]:
    source = RowSource(file=path.name)
    for line, fields in objects_in(path):
        cells = {name: cell_text(value) for name, value in fields.items()}
        yield ItemRow(source=source, number=line, cells=cells)


TABLES: Final[Mapping[str, Callable[[Path], Iterator[ItemRow]]]] = {
    ".csv": _csv_rows,
    ".tsv": _csv_rows,
    ".tab": _csv_rows,
    ".jsonl": _object_rows,
    ".ndjson": _object_rows,
    ".json": _object_rows,
}
"""Readers of tables by suffix; `.gz` after it is unpacked."""


def table_suffix(path: Path) -> str:
    """Returns the suffix that names the format, without `.gz`."""
    name = path.name.lower().removesuffix(".gz")
    return Path(name).suffix


def table_rows(path: Path) -> Iterator[ItemRow]:
    """Reads the rows of a table; only one is held at a time where the format allows.

    Raises:
        DatasetError: the file cannot be read; names file and row.
    """
    return TABLES[table_suffix(path)](path)
