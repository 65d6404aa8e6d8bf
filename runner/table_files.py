"""Writes tables as files: JSON lines, Parquet, Excel, CSV without executable cells."""

from __future__ import annotations

import csv
import enum
import io
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from tempfile import SpooledTemporaryFile, TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, TextIO

import msgspec

from runner.errors import UsageError
from runner.scorecard import Cell

if TYPE_CHECKING:
    import pyarrow as pa


_INT64: Final = range(-(2**63), 2**63)
"""Integers that columnar files can store."""


class Kind(enum.Enum):
    """A column's type, the same in every file format."""

    NOTHING = "nothing"  #: no cell has a value
    BOOLEAN = "boolean"
    INTEGER = "integer"
    NUMBER = "number"
    TEXT = "text"

    @classmethod
    def of(cls, cell: Cell) -> Kind:
        """Return the narrowest type of a cell; NaN is no value."""
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
        """Return the narrowest type for the cells of both.

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
        """Convert a cell to its column's type; None if it has no value."""
        if cell is None or (isinstance(cell, float) and math.isnan(cell)):
            return None
        return _CELLS[self](cell)


def _text(cell: Cell) -> str:
    """Format a cell of a text column as CSV does."""
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


CHUNK_ROWS = 2000
"""Rows held at a time; also a Parquet row group."""

CHUNK_BYTES = 16 << 20
"""Maximum characters held at a time: two thousand embeddings would be gigabytes."""

Record = tuple[Cell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportColumn:
    """A column's name and type."""

    name: str
    kind: Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportTable:
    """A table with a name such as `tasks` or `scores/1/metrics`."""

    name: str
    columns: tuple[ExportColumn, ...]
    rows: Iterable[Record]  #: may be an iterator, which is read once

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names."""
        return tuple(column.name for column in self.columns)

    def chunks(self) -> Iterator[list[Record]]:
        """Yield the rows in chunks of bounded size, converted to column types."""
        kinds = [column.kind for column in self.columns]
        chunk: list[Record] = []
        chunk_chars = 0
        for row in self.rows:
            cells = tuple(k.cell(cell) for k, cell in zip(kinds, row, strict=True))
            chunk.append(cells)
            chunk_chars += sum(len(cell) for cell in cells if isinstance(cell, str))
            if len(chunk) >= CHUNK_ROWS or chunk_chars >= CHUNK_BYTES:
                yield chunk
                chunk, chunk_chars = [], 0
        if chunk:
            yield chunk


def columns(**kinds: Kind) -> tuple[ExportColumn, ...]:
    """Return columns by name, in the given order."""
    return tuple(ExportColumn(name=name, kind=kind) for name, kind in kinds.items())


IN_MEMORY: Final = 1 << 20
"""Bytes of a table held before they move to an unnamed file."""

_LENGTH_BYTES: Final = 4
_DECODER: Final = msgspec.msgpack.Decoder(tuple[Cell, ...])


class RowBuffer:
    """The rows of one table: added one by one, returned in order."""

    def __init__(self, names: Sequence[str], leaving: ExitStack) -> None:
        """Create an empty table.

        Args:
            names: names of its columns.
            leaving: deletes the rows on exit.
        """
        self._names = names
        self._kinds = [Kind.NOTHING] * len(names)
        self._encoder = msgspec.msgpack.Encoder()
        self._file = leaving.enter_context(
            SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - by *leaving*
        )

    def add(self, cells: Record) -> None:
        """Store the next row."""
        values = [_storable(cell) for cell in cells]
        self._kinds = [
            kind.with_(Kind.of(cell))
            for kind, cell in zip(self._kinds, values, strict=True)
        ]
        packed = self._encoder.encode(values)
        self._file.write(len(packed).to_bytes(_LENGTH_BYTES) + packed)

    @property
    def columns(self) -> tuple[ExportColumn, ...]:
        """Return the columns, each with the narrowest type of all its cells."""
        return tuple(
            ExportColumn(name=name, kind=kind)
            for name, kind in zip(self._names, self._kinds, strict=True)
        )

    def __iter__(self) -> Iterator[Record]:
        """Yield all rows from the first."""
        self._file.seek(0)
        while head := self._file.read(_LENGTH_BYTES):
            yield _DECODER.decode(self._file.read(int.from_bytes(head)))


def _storable(cell: Cell) -> Cell:
    """Return a cell that can be packed: integers beyond 64 bits become text."""
    is_huge = Kind.of(cell) is Kind.TEXT and not isinstance(cell, str)
    return repr(cell) if is_huge else cell


def has_parquet() -> bool:
    """Return whether the extra `parquet` is installed."""
    return find_spec("pyarrow") is not None


def require_parquet(what: str) -> None:
    """Check that Parquet can be written and read, which takes the extra `parquet`.

    Args:
        what: begins the error's sentence, such as `--format parquet`.

    Raises:
        UsageError: pyarrow is not installed.
    """
    if not has_parquet():
        raise UsageError(
            f"{what} needs pyarrow: install it with pip install 'siftlog[parquet]'."
        )


def schema(table: ExportTable) -> pa.Schema:
    """Return the columns with their types, which do not depend on the rows."""
    import pyarrow as pa  # noqa: PLC0415 - 0.2 s that most commands do without

    types = {
        Kind.NOTHING: pa.null(),
        Kind.BOOLEAN: pa.bool_(),
        Kind.INTEGER: pa.int64(),
        Kind.NUMBER: pa.float64(),
        Kind.TEXT: pa.string(),
    }
    return pa.schema([(column.name, types[column.kind]) for column in table.columns])


def arrow_chunks(table: ExportTable) -> Iterator[pa.RecordBatch]:
    """Yield the rows in chunks of bounded size."""
    import pyarrow as pa  # noqa: PLC0415 - likewise

    fields = schema(table)
    for chunk in table.chunks():
        columns = zip(*chunk, strict=True)
        yield pa.RecordBatch.from_arrays(
            [pa.array(c, f.type) for c, f in zip(columns, fields, strict=True)],
            schema=fields,
        )


def write_jsonl(path: Path, table: ExportTable) -> int:
    """Write one JSON object per line; return the number of rows.

    JSON has no infinite numbers: they become null here, but not in the other formats.
    """
    rows = 0
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for chunk in table.chunks():
            for row in chunk:
                values = dict(zip(table.names, map(_finite, row), strict=True))
                file.write(json.dumps(values, ensure_ascii=False, allow_nan=False))
                file.write("\n")
            rows += len(chunk)
    return rows


def _finite(cell: Cell) -> Cell:
    return None if isinstance(cell, float) and math.isinf(cell) else cell


def write_csv(path: Path, table: ExportTable) -> int:
    """Write CSV with a header, formulas quoted; return the number of rows."""
    rows = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(csv_lines([table.names]))
        for chunk in table.chunks():
            file.write(csv_lines(chunk))
            rows += len(chunk)
    return rows


def write_parquet(path: Path, table: ExportTable) -> int:
    """Write Parquet with zstd; return the number of rows."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - 0.2 s that only this form needs

    rows = 0
    with pq.ParquetWriter(path, schema(table), compression="zstd") as writer:
        for batch in arrow_chunks(table):
            writer.write_batch(batch)
            rows += batch.num_rows
    return rows


SHEET_ROWS: Final = 1_048_576
"""Rows of an Excel sheet, its header included; further rows go on further sheets."""

SHEET_CHARS: Final = 32_767
"""Characters of an Excel cell; longer texts end with an ellipsis."""

_COLUMN_WIDTHS: Final[Mapping[Kind, int]] = {Kind.TEXT: 28, Kind.NOTHING: 10}
"""Widths of columns, in characters."""


def write_xlsx(path: Path, table: ExportTable) -> int:
    """Write an Excel workbook, row by row; return the number of rows.

    Texts are text cells, which Excel never executes. The same rows give the same bytes.
    """
    import xlsxwriter  # noqa: PLC0415 - only this form needs it

    options = {"constant_memory": True, "strings_to_urls": False}
    book = xlsxwriter.Workbook(str(path), options)
    book.set_properties({"created": datetime(2000, 1, 1, tzinfo=UTC)})
    bold = book.add_format({"bold": True})

    def new_sheet() -> Any:  # noqa: ANN401 - of a library without types
        sheet = book.add_worksheet()
        sheet.freeze_panes(1, 1)
        for at, column in enumerate(table.columns):
            sheet.set_column(at, at, _COLUMN_WIDTHS.get(column.kind, 12))
            sheet.write_string(0, at, column.name, bold)
        return sheet

    sheet, rows = new_sheet(), 0
    for chunk in table.chunks():
        for row in chunk:
            place = rows % (SHEET_ROWS - 1) + 1
            if rows and place == 1:
                sheet = new_sheet()
            for at, cell in enumerate(row):
                _write_cell(sheet, place, at, cell)
            rows += 1
    book.close()
    return rows


def _write_cell(sheet: Any, row: int, column: int, cell: Cell) -> None:  # noqa: ANN401 - see above
    match cell:
        case None:
            return
        case bool():
            sheet.write_boolean(row, column, cell)
        case str():
            is_long = len(cell) > SHEET_CHARS
            text = f"{cell[: SHEET_CHARS - 1]}…" if is_long else cell
            sheet.write_string(row, column, text)
        case _ if math.isfinite(cell):
            sheet.write_number(row, column, cell)
        case _:
            sheet.write_string(row, column, repr(cell))


WRITERS: Final[Mapping[str, Callable[[Path, ExportTable], int]]] = {
    "jsonl": write_jsonl,
    "csv": write_csv,
    "parquet": write_parquet,
    "xlsx": write_xlsx,
}
"""Writers by file extension."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedFile:
    """A written or planned file."""

    path: Path
    rows: int
    size: int | None  #: bytes; None: not written


def planned_files(
    folder: Path, form: str, tables: Iterable[ExportTable]
) -> list[ExportedFile]:
    """Return the files that `write` would create, with their row counts."""
    counts = [(table, sum(map(len, table.chunks()))) for table in tables]
    return [
        ExportedFile(path=_file_path(folder, table, form), rows=rows, size=None)
        for table, rows in counts
        if _has_file(form, rows)
    ]


def write(folder: Path, form: str, tables: Iterable[ExportTable]) -> list[ExportedFile]:
    """Write each table to a file in *folder*; existing files are replaced.

    No file is replaced before all are written, so the files stay consistent.
    """
    folder.mkdir(parents=True, exist_ok=True)
    drafted_files: list[tuple[Path, ExportedFile]] = []
    empty: list[Path] = []
    with TemporaryDirectory(prefix=".", dir=folder) as drafts:
        for number, table in enumerate(tables):
            draft = Path(drafts) / str(number)
            rows = WRITERS[form](draft, table)
            path, size = _file_path(folder, table, form), draft.stat().st_size
            if not _has_file(form, rows):
                empty.append(path)
                continue
            drafted_files.append((draft, ExportedFile(path=path, rows=rows, size=size)))
        for draft, exported in drafted_files:
            exported.path.parent.mkdir(parents=True, exist_ok=True)
            draft.replace(exported.path)
        for path in empty:
            path.unlink(missing_ok=True)
    return [exported for _, exported in drafted_files]


def _has_file(form: str, rows: int) -> bool:
    return form != "jsonl" or rows > 0


def _file_path(folder: Path, table: ExportTable, form: str) -> Path:
    return folder / f"{table.name}.{form}"


FORMULA = (*"=+-@", *"＝＋－＠", "\t", "\r", "\n")
"""First characters of cells that spreadsheets execute (OWASP, "CSV Injection")."""

_SUSPECT = frozenset((*FORMULA, "'"))
"""First characters of texts that `harmless` may change."""

_AS_CSV = frozenset((int, float, type(None)))
"""Types that the csv module writes as `_cell` does."""


def csv_lines(rows: Iterable[tuple[Cell, ...]]) -> str:
    """Format rows as CSV; an undefined cell is blank."""
    out = io.StringIO()
    write = csv_writer(out)
    for row in rows:
        write(row)
    return out.getvalue()


def csv_writer(file: TextIO) -> Callable[[tuple[Cell, ...]], object]:
    """Return a function that writes a row to *file* in the form of `csv_lines`."""
    plain = csv.writer(file, lineterminator="\n").writerow
    quoted = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL).writerow

    def write(row: tuple[Cell, ...]) -> None:
        cells = [
            cell
            if cell.__class__ in _AS_CSV
            or (cell.__class__ is str and cell[:1] not in _SUSPECT)
            else _cell(cell)
            for cell in row
        ]
        texts = "".join([cell for cell in cells if cell.__class__ is str])
        # Python before 3.13 does not quote it, and readers end the row there
        returns = "\r" in texts
        (quoted if returns else plain)(cells)

    return write


def harmless(text: str) -> str:
    """Return text as a cell that no spreadsheet executes: a quote precedes formulas.

    Quoted formulas get another quote, so that `as_meant` can undo it.
    """
    return f"'{text}" if text.lstrip("'").startswith(FORMULA) else text


def as_meant(cell: str) -> str:
    """Return the original text of a cell from `harmless`."""
    is_guarded = cell.startswith("'") and cell.lstrip("'").startswith(FORMULA)
    return cell[1:] if is_guarded else cell


def _cell(cell: Cell) -> str:
    if isinstance(cell, str):
        return harmless(cell)
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return repr(cell)
