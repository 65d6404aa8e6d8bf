"""Reads the rows of any table as texts by column, one at a time.

A table is CSV, TSV, JSON, JSON lines or Parquet. A file of references (RIS, BibTeX,
PubMed XML or text) is a table as well, whose columns are `id`, `pmid`, `doi`, `title`,
`abstract`, `authors`, `journal` and `year`. A reference without an id has its PMID, DOI
or number as id.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import msgspec

from jobs.kit.inputs.docling import is_docling
from jobs.kit.inputs.files import (
    delimiter_of,
    header_of,
    objects_in,
    opened,
    records,
)
from jobs.kit.inputs.pubmed import read_pubmed
from jobs.kit.inputs.references import (
    FIELDS,
    BadReference,
    RecordCells,
    read_bibtex,
    read_nbib,
    read_ris,
)
from jobs.kit.inputs.rows import RowSource
from jobs.kit.text_format import plural
from runner.errors import DatasetError

EXACT: Final = 2**53
"""Floats below it hold whole numbers exactly."""

BATCH_ROWS: Final = 1_000
"""Rows of Parquet that are held at once."""


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
        case str() | None:
            return value or ""
        case bool():
            return str(value).lower()
        case list() if all(isinstance(entry, str) for entry in value):
            return "; ".join(value)
        case list() | dict():
            return msgspec.json.encode(value).decode()
        case float() if value.is_integer() and abs(value) < EXACT:
            # columns of whole numbers with gaps are stored as floats
            return str(int(value))
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


def _parquet_rows(path: Path) -> Iterator[ItemRow]:
    parquet = parquet_module(path)
    source = RowSource(file=path.name, unit="row")
    number = 0
    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(BATCH_ROWS):
                for fields in batch.to_pylist():
                    number += 1
                    cells = {name: cell_text(value) for name, value in fields.items()}
                    yield ItemRow(source=source, number=number, cells=cells)
    except (ValueError, OSError) as error:
        reason = str(error).partition("\n")[0].rstrip(". ")
        raise DatasetError(
            f"{path.name}: not a Parquet file, {reason} (write it again)."
        ) from error


def parquet_module(path: Path) -> ModuleType:
    """Returns `pyarrow.parquet`.

    Raises:
        DatasetError: it is not installed; names the extra.
    """
    try:
        return import_module("pyarrow.parquet")
    except ImportError:
        raise DatasetError(
            f"{path.name}: reading Parquet needs pyarrow (pip install "
            "'siftlog[parquet]', or save the table as CSV)."
        ) from None


def _reference_rows(
    path: Path, references: Iterable[RecordCells | BadReference | int]
) -> Iterator[ItemRow]:
    """Rows of references; records that PubMed deletes are no rows."""
    source = RowSource(file=path.name, unit="record")
    number = 0
    for reference in references:
        if isinstance(reference, int):
            continue
        if isinstance(reference, BadReference):
            raise source.error(reference.number, reference.reason)
        number += 1
        cells = {name: cell_text(reference.get(name)) for name in FIELDS}
        source_id = cells.pop("document_id")
        key = source_id or cells["pmid"] or cells["doi"] or f"record-{number}"
        cells = {"id": key, **cells}
        yield ItemRow(source=source, number=number, cells=cells)


TABLES: Final[Mapping[str, Callable[[Path], Iterator[ItemRow]]]] = {
    **dict.fromkeys((".csv", ".tsv", ".tab"), _csv_rows),
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), _object_rows),
    **dict.fromkeys((".parquet", ".pq"), _parquet_rows),
    ".nbib": lambda path: _reference_rows(path, read_nbib(path)),
    ".ris": lambda path: _reference_rows(path, read_ris(path)),
    **dict.fromkeys(
        (".bib", ".bibtex"), lambda path: _reference_rows(path, read_bibtex(path))
    ),
    ".xml": lambda path: _reference_rows(path, read_pubmed(path)),
}
"""Readers of tables by suffix; `.gz` after it is unpacked."""

_PUBMED: Final = re.compile(rb"<(PubmedArticleSet|PubmedBookArticleSet)[\s>]")


def is_table(path: Path) -> bool:
    """Returns whether a file holds rows, by its suffix or its beginning.

    JSON may hold one document, and XML is one unless it is from PubMed.
    """
    match table_suffix(path):
        case ".json":
            return not is_docling(path)
        case ".xml":
            return _PUBMED.search(beginning(path)) is not None
        case suffix:
            return suffix in TABLES


def beginning(path: Path) -> bytes:
    """Returns the first bytes of a file, unpacked."""
    with opened(path) as file:
        return file.read(4096)


def table_suffix(path: Path) -> str:
    """Returns the suffix that names the format, without `.gz`."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


def table_rows(path: Path) -> Iterator[ItemRow]:
    """Reads the rows of a table; only one is held at a time where the format allows.

    Raises:
        DatasetError: the file cannot be read; names file and row.
    """
    return TABLES[table_suffix(path)](path)
