"""Reads the rows of CSV and JSON files, one at a time.

UTF-8, with or without a byte order mark; `.gz` by the name's end; LF or CRLF; lines
without anything are skipped. CSV is RFC 4180 with a header, columns in any order, with
commas, semicolons or tabs between them. Where CSV is expected, objects are read too,
one a line or spread over lines, and their keys are the columns. A column that is not
used is noted, not refused. Every complaint is a `DatasetError` of one sentence that
names file, line and column and says what to do.
"""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias, TypeVar, cast

import msgspec

from jobs.kit.inputs.cells import InputCell
from jobs.kit.inputs.column_map import ColumnMap, missing_column, nearest
from jobs.kit.inputs.rows import (
    InputFindings,
    RowModel,
    RowSource,
    columns_of,
    object_of,
)
from jobs.kit.text_format import plural
from runner.errors import DatasetError
from runner.json_entries import BOM, entries_of, is_spread, lines_of

Record: TypeAlias = tuple[int, int, list[str]]
"""The line that it begins on, its row as a spreadsheet numbers it, and its fields."""

Row = TypeVar("Row", bound=RowModel)

FIELD_CHARS = 1 << 24
"""Longest CSV field; the csv module's own bound, 131,072, is less than some posts."""

CHUNK = 1 << 16
"""Bytes of a piece."""

DELIMITERS = (";", "\t")
"""Separators of columns where the header has no comma."""

_BYTE = re.compile(r"\(byte ([0-9]+)\)")
"""Position of a JSON error in msgspec's message."""


def read_table(
    path: Path,
    model: type[Row],
    *,
    findings: InputFindings,
    needed: Sequence[str] = (),
    further: Sequence[str] = (),
    allow_ragged: bool | None = None,
    renamed: ColumnMap | None = None,
    unit: Literal["line", "row"] = "line",
    cure: str = "",
) -> Iterator[Row]:
    """Reads the records of a table, in file order; only one is held at a time.

    Args:
        path: a CSV file, or one of JSON objects.
        model: of a row.
        findings: learns of columns that the model does not have, and of short rows.
        needed: optional columns of the model that must be there in this file.
        further: columns that the model takes as extra ones.
        allow_ragged: read missing trailing fields as missing cells; None: likewise
            not, where the job has no such setting to name.
        renamed: columns that `--map` renames; None: it is not taken for this file.
        unit: what complaints count: lines of the file, or rows as a spreadsheet
            numbers them, where an empty line is a row too.
        cure: what to do about a column that is missing; "": rename it.

    Raises:
        DatasetError: the file is not to be read, or its header or a row is off.
    """
    columns = columns_of(model)
    table = _Table(
        path=path,
        needed=(*columns.needed, *needed),
        names=frozenset({*columns.needed, *columns.optional, *further}),
        spellings={**columns.spellings, **(renamed or {})},
        takes_map=renamed is not None,
        cure=cure,
        findings=findings,
    )
    rows = (
        table.objects()
        if holds_objects(path)
        else table.records(unit, allow_ragged=allow_ragged)
    )
    for source, line, cells in rows:
        yield model.validated(source, line, cells)


Cells: TypeAlias = tuple[RowSource, int, dict[str, InputCell]]
"""The cells of a row by column, with its place; of optional ones those that hold any.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """A table that is read, and the columns that are wanted of it."""

    path: Path
    needed: tuple[str, ...]
    names: frozenset[str]  #: of all columns that are wanted
    spellings: Mapping[str, str]
    takes_map: bool
    cure: str
    findings: InputFindings

    def objects(self) -> Iterator[Cells]:
        """The rows of JSON objects."""
        source = RowSource(file=self.path.name)
        columns: dict[str, None] = {}
        for line, fields in objects_in(self.path, self.spellings):
            if not columns:
                # of later objects an absent key is an empty cell
                self._require(list(fields))
            columns.update(dict.fromkeys(fields))
            filled = {
                name: cell
                for name, cell in fields.items()
                if name in self.names and cell is not None and cell != ""
            }
            yield source, line, {**dict.fromkeys(self.needed), **filled}
        self._note_unknown(columns)

    def records(
        self, unit: Literal["line", "row"], *, allow_ragged: bool | None
    ) -> Iterator[Cells]:
        """The rows of CSV."""
        delimiter = delimiter_of(self.path)
        decimal = "," if delimiter == ";" else "."
        source = RowSource(file=self.path.name, unit=unit, decimal=decimal)
        table_records = records(self.path, delimiter)
        columns = header_of(self.path, table_records, self.spellings)
        self._require(columns)
        for name in self.names:
            if columns.count(name) > 1:
                raise DatasetError(
                    f"{source.file}: column {name!r} occurs twice (remove or rename "
                    "one)."
                )
        self._note_unknown(columns)
        always = [(i, name) for i, name in enumerate(columns) if name in self.needed]
        optional = [
            (i, name)
            for i, name in enumerate(columns)
            if name in self.names and name not in self.needed
        ]
        width = len(columns)
        for line, number, record in table_records:
            at = line if unit == "line" else number
            if len(record) != width:
                if len(record) > width or not allow_ragged:
                    may_choose = allow_ragged is not None
                    raise _wrong_width(source, at, len(record), width, may_choose)
                record.extend([""] * (width - len(record)))
                self.findings.add(
                    "ragged_rows",
                    "warn",
                    source.file,
                    "Some rows are shorter than the header; missing cells were "
                    "read as blank.",
                    example=f"{unit} {at}",
                )
            cells = {name: record[i] or None for i, name in always}
            for i, name in optional:
                if record[i]:
                    cells[name] = record[i]
            yield source, at, cells

    def _require(self, columns: Sequence[str]) -> None:
        for name in self.needed:
            if name not in columns:
                raise missing_column(
                    self.path.name, name, columns, self.cure, takes_map=self.takes_map
                )

    def _note_unknown(self, columns: Iterable[str]) -> None:
        unknown = [name for name in columns if name not in self.names]
        _note_unknown(self.path, unknown, self.findings)


def holds_objects(path: Path) -> bool:
    """Whether a file holds JSON objects: a line is one, or a list or object begins.

    Raises:
        DatasetError: the file is not to be read.
    """
    first = next((text.strip() for _, text in lines(path) if text.strip()), "")
    if not first.startswith(("{", "[")):
        return False
    if is_spread(first.encode()):
        return True
    try:
        return isinstance(msgspec.json.decode(first), dict)
    except (msgspec.DecodeError, RecursionError):
        return False


def delimiter_of(path: Path) -> str:
    """Return the separator of a CSV file's columns, by its header.

    A comma wherever the header has one outside quotes; else the semicolon or tab that
    makes most columns.

    Raises:
        DatasetError: the file is not to be read.
    """
    first = next((text for _, text in lines(path) if text.strip()), "")

    def columns(delimiter: str) -> int:
        try:
            return len(next(csv.reader([first.rstrip("\r\n")], delimiter=delimiter)))
        except (csv.Error, StopIteration):
            return 1

    best = max(DELIMITERS, key=columns)
    return best if columns(",") == 1 and columns(best) > 1 else ","


def csv_columns(path: Path) -> tuple[str, ...]:
    """The columns of a table, by which its format is recognised.

    Of JSON objects they are the keys of the first.

    Raises:
        DatasetError: the file is not to be read, or has no header.
    """
    if holds_objects(path):
        _, fields = next(objects_in(path), (0, {}))
        return tuple(fields)
    return header_of(path, records(path, delimiter_of(path)), {})


def read_objects(
    path: Path,
    model: type[Row],
    *,
    findings: InputFindings,
    renamed: ColumnMap | None = None,
) -> Iterator[Row]:
    """Reads the objects of a JSON file, in file order; of JSONL one is held at a time.

    Keys that the model does not have are noted; *renamed* is as in `read_table`.

    Raises:
        DatasetError: the file is not to be read, a line is no object, or a row is off.
    """
    columns = columns_of(model)
    source = RowSource(file=path.name)
    unknown: dict[str, None] = {}
    for line, fields in objects_in(path, renamed):
        for name in columns.needed:
            if name not in fields:
                near = "".join(nearest(name, fields, n=1))
                takes_map = bool(near) and renamed is not None
                hint = f", or pass --map {near}={name}" if takes_map else ""
                raise source.error(line, f"no key {name} (add it to the object{hint})")
        unknown.update((name, None) for name in fields if name not in columns.names)
        yield model.at(source, line, fields)
    _note_unknown(path, list(unknown), findings)


def objects_in(
    path: Path, renamed: ColumnMap | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a file with their lines, and their keys by the names used here.

    Raises:
        DatasetError: the file is not to be read, or a line is no object.
    """
    for entry in entries_in(path):
        fields = entry.fields
        if renamed:
            fields = {renamed.get(name, name): it for name, it in fields.items()}
        yield entry.line, fields


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonEntry:
    """An object of a JSON file, and the bytes that it is read from again."""

    line: int  #: that it begins on
    start: int  #: byte offset
    size: int  #: bytes
    fields: dict[str, Any]


def entries_in(
    path: Path,
    *,
    replaced: InputFindings | None = None,
    cure: str = "save the file as UTF-8",
) -> Iterator[JsonEntry]:
    """The objects of a file with their places, in file order.

    Args:
        path: of JSONL, or of JSON spread over lines.
        replaced: learns of lines in which bytes that are not UTF-8 were replaced;
            None: such a byte is an error.
        cure: what that error says to do.

    Raises:
        DatasetError: the file is not to be read, or a line is no object.
    """
    with opened(path) as file:
        for line, start, raw in entries_of(file, path.name):
            text = _text(raw, line, path.name, replaced, cure)
            yield JsonEntry(
                line=line,
                start=start,
                size=len(raw),
                fields=object_of(text, f"{path.name} line {line}"),
            )


def read_json(path: Path) -> Any:  # noqa: ANN401 - whatever the file holds
    """The one JSON value in a file; raise `DatasetError` where there is none."""
    text = read_text(path)
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise DatasetError(
            f"{path.name}: not valid JSON, {error}{_error_position(text, error)} "
            "(correct the file)."
        ) from error


def _error_position(text: str, error: Exception) -> str:
    """Line and column, from 1, of the byte that an error names; empty for none."""
    match = _BYTE.search(str(error))
    if match is None:
        return ""
    before = text.encode()[: int(match[1])].decode(errors="ignore").split("\n")
    return f", line {len(before)}, column {len(before[-1]) + 1}"


def read_text(path: Path) -> str:
    """The text of a file; raise `DatasetError` where it is not to be read."""
    return "".join(text for _, text in lines(path))


def header_of(
    path: Path, table_records: Iterator[Record], aliases: Mapping[str, str]
) -> tuple[str, ...]:
    """The names in the header, taken from the front of a file's records.

    Raises:
        DatasetError: there is none.
    """
    _, _, header = next(table_records, (0, 0, None))
    if header is None:
        raise DatasetError(
            f"{path.name}: the file is empty (a header of columns is expected)."
        )
    return tuple(aliases.get(name.strip(), name.strip()) for name in header)


def _wrong_width(
    source: RowSource, at: int, field_n: int, width: int, may_choose: bool
) -> DatasetError:
    if field_n > width:
        cure = "quote a field that holds a comma, or remove the surplus"
    elif may_choose:
        cure = (
            "complete the row, or use --allow-ragged to read missing "
            "cells at its end as blank"
        )
    else:
        cure = "complete the row"
    return source.error(
        at, f"{plural(field_n, 'field')} where the header has {width} ({cure})"
    )


def _note_unknown(path: Path, names: Sequence[str], findings: InputFindings) -> None:
    for name in names:
        findings.add(
            "unknown_column",
            "info",
            path.name,
            "The file has columns that are not used.",
            example=name,
        )


def records(path: Path, delimiter: str = ",") -> Iterator[Record]:
    """Records with where each begins; empty lines are rows, but no records.

    Raises:
        DatasetError: the file is not to be read, or its quotes are off.
    """
    csv.field_size_limit(FIELD_CHARS)
    parts = (text for _, text in lines(path))
    reader = csv.reader(parts, delimiter=delimiter, strict=True)
    for number in count(1):
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            is_lone = "new-line" in str(error)  # the module's own advice is on Python
            reason = "a carriage return without a line feed" if is_lone else error
            raise DatasetError(
                f"{path.name} line {line}: not CSV, {reason} "
                "(check the quotes and line ends of this row)."
            ) from error
        if cells:
            yield line, number, cells


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Lines with their numbers and ends; the file is closed when they are through.

    Raises:
        DatasetError: the file is not to be read, not UTF-8, or a line is too long.
    """
    name = path.name
    with opened(path) as file:
        for number, raw in lines_of(file, name):
            yield number, _text(raw, number, name)


def _text(
    raw: bytes,
    number: int,
    name: str,
    replaced: InputFindings | None = None,
    cure: str = "save the file as UTF-8",
) -> str:
    data = raw.removeprefix(BOM) if number == 1 else raw
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        if replaced is None:
            raise DatasetError(
                f"{name} line {number}: byte {error.start + 1} of the line is not "
                f"UTF-8 ({cure})."
            ) from error
        replaced.add(
            "replaced_bytes",
            "warn",
            name,
            "Bytes that are not UTF-8 were replaced in some lines.",
            example=f"line {number}",
        )
        return data.decode(errors="replace")


def chunks(path: Path) -> Iterator[bytes]:
    """A file's bytes by pieces, for formats that name their encoding themselves.

    Raises:
        DatasetError: the file is not to be read.
    """
    with opened(path) as file:
        while data := file.read(CHUNK):
            yield data


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """A file that is open for reading, unpacked where its name ends in `.gz`.

    Raises:
        DatasetError: the system does not let us read it.
    """
    try:
        if path.suffix == ".gz":
            with gzip.open(path, "rb") as file:
                yield cast("BinaryIO", file)
        else:
            with path.open("rb") as file:
                yield file
    except (OSError, EOFError, zlib.error) as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: Exception) -> DatasetError:
    """The error for a file that the system does not let us read."""
    reason = getattr(error, "strerror", None) or str(error)
    return DatasetError(
        f"{path}: {reason} (check the path, its permissions and that it is whole)."
    )
