"""Rows of CSV and JSONL files, one at a time.

UTF-8, with or without a byte order mark; `.gz` by the name's end; LF or CRLF; lines
without anything are skipped. CSV is RFC 4180 with a header, columns in any order. A
column that nobody asked for is noted, not refused. Every complaint is a `DatasetError`
of one sentence that names file, line and column and says what to do.
"""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias, cast

import msgspec

from jobs.counted import counted
from jobs.json_lines import BOM, lines_of, object_of
from jobs.noticed import Noticed
from jobs.rows.row import Row
from runner.errors import DatasetError

Record: TypeAlias = tuple[int, int, list[str]]
"""The line that it begins on, its row as a spreadsheet numbers it, and its fields."""

FIELD_CHARS = 1 << 24
"""Longest CSV field; the csv module's own bound, 131,072, is less than some posts."""


CHUNK = 1 << 16
"""Bytes of a piece."""

_BYTE = re.compile(r"\(byte ([0-9]+)\)")
"""Where in the text msgspec says that JSON is off."""


def read_csv(
    path: Path,
    needed: Sequence[str],
    optional: Sequence[str] = (),
    *,
    noticed: Noticed,
    allow_ragged: bool | None = None,
    aliases: Mapping[str, str] | None = None,
    unit: Literal["line", "row"] = "line",
    cure: str = "name it in the header; commas part columns",
) -> Iterator[Row]:
    """The records of a CSV file, in file order; only one is held at a time.

    Args:
        path: the file.
        needed: columns that must be there.
        optional: columns that may be there.
        noticed: learns of other columns and of short rows.
        allow_ragged: read missing trailing fields as missing cells; None: likewise
            not, where the job has no such setting to name.
        aliases: other spellings of columns, each with the name used here.
        unit: what complaints count: lines of the file, or rows as a spreadsheet
            numbers them, where an empty line is a row too.
        cure: what to do about a column that is missing.

    Raises:
        DatasetError: the file is not to be read, or its header or a row is off.
    """
    found = records(path)
    columns = header_of(path, found, aliases or {})
    for name in needed:
        if name not in columns:
            raise DatasetError(
                f"{path.name}: column {name!r} is missing (found: "
                f"{', '.join(columns)}); {cure}."
            )
    wanted = {*needed, *optional}
    for name in (*needed, *optional):
        if columns.count(name) > 1:
            raise DatasetError(
                f"{path.name}: column {name!r} occurs twice (remove or rename one)."
            )
    _note_unknown(path, [name for name in columns if name not in wanted], noticed)
    kept = [(place, name) for place, name in enumerate(columns) if name in wanted]
    width = len(columns)
    for line, number, cells in found:
        at = line if unit == "line" else number
        if len(cells) > width or (len(cells) < width and not allow_ragged):
            may_choose = allow_ragged is not None
            where = f"{path.name} {unit} {at}"
            raise _wrong_width(where, len(cells), width, may_choose=may_choose)
        if len(cells) < width:
            cells.extend([""] * (width - len(cells)))
            noticed.add(
                "ragged_rows",
                "warn",
                path.name,
                "Rows end before the header does; what is missing was read as blank.",
                example=f"{unit} {at}",
            )
        fields = {name: cells[place] or None for place, name in kept}
        yield Row(file=path.name, line=at, fields=fields, unit=unit)


def csv_columns(path: Path) -> tuple[str, ...]:
    """The names in a CSV file's header, by which its format is recognised.

    Raises:
        DatasetError: the file is not to be read, or has no header.
    """
    return header_of(path, records(path), {})


def read_jsonl(
    path: Path,
    needed: Sequence[str],
    optional: Sequence[str] = (),
    *,
    noticed: Noticed,
) -> Iterator[Row]:
    """The objects of a JSONL file, in file order; only one is held at a time.

    Keys other than *needed* and *optional* are noted.

    Raises:
        DatasetError: the file is not to be read, a line is no object, or a needed key
            is absent.
    """
    wanted = {*needed, *optional}
    unknown: dict[str, None] = {}
    for line, text in lines(path):
        if not text.strip():
            continue
        fields = object_of(text, f"{path.name} line {line}")
        row = Row(file=path.name, line=line, fields=fields)
        for name in needed:
            if name not in fields:
                raise row.error(f"no key {name} (add it to the object)")
        unknown.update((name, None) for name in fields if name not in wanted)
        yield row
    _note_unknown(path, list(unknown), noticed)


def read_json(path: Path) -> Any:  # noqa: ANN401 - whatever the file holds
    """The one JSON value in a file; raise `DatasetError` where there is none."""
    text = read_text(path)
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise DatasetError(
            f"{path.name}: not valid JSON, {error}{_place(text, error)} (correct the "
            "file)."
        ) from error


def _place(text: str, error: Exception) -> str:
    """Line and column, from 1, of the byte that an error names; empty for none."""
    found = _BYTE.search(str(error))
    if found is None:
        return ""
    before = text.encode()[: int(found[1])].decode(errors="ignore").split("\n")
    return f", line {len(before)}, column {len(before[-1]) + 1}"


def read_text(path: Path) -> str:
    """The text of a file; raise `DatasetError` where it is not to be read."""
    return "".join(text for _, text in lines(path))


def header_of(
    path: Path, found: Iterator[Record], aliases: Mapping[str, str]
) -> tuple[str, ...]:
    """The names in the header, taken from the front of a file's records.

    Raises:
        DatasetError: there is none.
    """
    _, _, header = next(found, (0, 0, None))
    if header is None:
        raise DatasetError(
            f"{path.name}: the file is empty (a header of columns is expected)."
        )
    return tuple(aliases.get(name.strip(), name.strip()) for name in header)


def _wrong_width(
    where: str, given: int, width: int, *, may_choose: bool
) -> DatasetError:
    if given > width:
        cure = "quote a field that holds a comma, or remove the surplus"
    elif may_choose:
        cure = (
            "complete the row, or use --allow-ragged to read what is missing at its "
            "end as blank"
        )
    else:
        cure = "complete the row"
    return DatasetError(
        f"{where}: {counted(given, 'field')} where the header has {width} ({cure})."
    )


def _note_unknown(path: Path, names: Sequence[str], noticed: Noticed) -> None:
    for name in names:
        noticed.add(
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
            why = "a carriage return stands alone" if is_lone else error
            raise DatasetError(
                f"{path.name} line {line}: not CSV, {why} "
                "(check the quotes and line ends of this row)."
            ) from error
        if cells:
            yield line, number, cells


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Lines with their numbers and ends; the file is closed when they are through.

    Raises:
        DatasetError: the file is not to be read, not UTF-8, or a line is too long.
    """
    with _opened(path) as file:
        for number, raw in lines_of(file, path.name):
            data = raw.removeprefix(BOM) if number == 1 else raw
            try:
                yield number, data.decode()
            except UnicodeDecodeError as error:
                raise DatasetError(
                    f"{path.name} line {number}: byte {error.start + 1} of the "
                    "line is not UTF-8 (save the file as UTF-8)."
                ) from error


def chunks(path: Path) -> Iterator[bytes]:
    """A file's bytes by pieces, for formats that name their encoding themselves.

    Raises:
        DatasetError: the file is not to be read.
    """
    with _opened(path) as file:
        while data := file.read(CHUNK):
            yield data


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        if path.suffix == ".gz":
            with gzip.open(path, "rb") as file:
                yield cast("BinaryIO", file)
        else:
            with path.open("rb") as file:
                yield file
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise DatasetError(
            f"{path}: {why} (check the path, its permissions and that it is whole)."
        ) from error
