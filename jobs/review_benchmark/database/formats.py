"""Reads papers from CSV, TSV, JSON, BibTeX, RIS and PubMed files, one at a time.

A large file is read in a separate process while this one writes. Reading and writing
each take about half of an import's time, so two cores import nearly twice as fast as
one. Records are passed in batches through a pipe, which holds less than one batch: the
reader is never more than a batch ahead, and ends when the receiver is closed.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import count, islice
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

from jobs.kit.inputs.cells import kind_of
from jobs.kit.inputs.files import header_of, lines, read_json, records
from jobs.kit.inputs.pubmed import read_pubmed
from jobs.kit.inputs.references import (
    FIELDS,
    BadReference,
    RecordCells,
    read_bibtex,
    read_ris,
)
from jobs.kit.text_format import plural
from jobs.review_benchmark.database.papers import (
    DeletedRecords,
    ImportedRecord,
    PaperFormat,
    ReadRecord,
    UnreadableRecord,
    record_from_cells,
)
from jobs.review_benchmark.result_files import EXCLUDED, INCLUDED
from runner.errors import DatasetError, UsageError

COLUMN_ALIASES: Final[Mapping[str, str]] = {
    **{name: name for name in FIELDS},
    "pubmedid": "pmid",
    "pubmed id": "pmid",
    "record_id": "document_id",
}
"""Field of each known column, by the column's name in lower case."""

_KEYS = ("pmid", "doi", "title")


def mapped_columns(mapped: Sequence[str]) -> Mapping[str, str]:
    """Parse `--map`: return columns of a file, each with the name of its field.

    Raises:
        UsageError: an item is not `name=column`, or the name is unknown.
    """
    name_by_column = {}
    for text in mapped:
        name, equals, column = (part.strip() for part in text.partition("="))
        if not equals or not column or name not in FIELDS:
            raise UsageError(
                f"--map {text}: write name=column, the name one of {', '.join(FIELDS)}."
            )
        name_by_column[column] = name
    return name_by_column


def read_table(
    path: Path, delimiter: str, mapped: Mapping[str, str]
) -> Iterator[ImportedRecord | UnreadableRecord]:
    """Yield the rows of a file with a header; unknown columns are ignored.

    Args:
        path: the file.
        delimiter: separator of columns.
        mapped: field names by column; they replace the known columns.

    Raises:
        DatasetError: the file is unreadable, or no column identifies papers.
    """
    rows = records(path, delimiter)
    columns = header_of(path, rows, {})
    names = _column_names(columns, mapped)
    where = f"{path.name} row 1"
    for column in mapped:
        if column not in columns:
            raise DatasetError(
                f"{where}: no column {column} among {', '.join(columns)} "
                "(correct --map)."
            )
    for name in FIELDS:
        if names.count(name) > 1:
            raise DatasetError(
                f"{where}: two columns are {name} (say which with --map {name}=column)."
            )
    if not any(name in names for name in _KEYS):
        raise DatasetError(
            f"{where}: none of pmid, doi and title among {', '.join(columns)} (name "
            "them in the header, or with --map title=column)."
        )
    for number, (_, _, cells) in enumerate(rows, start=1):
        if len(cells) != len(columns):
            yield UnreadableRecord(
                number,
                f"{plural(len(cells), 'field')} where the header has {len(columns)} "
                "(quote a field that holds a delimiter, complete what is short)",
            )
        else:
            named_cells = zip(names, cells, strict=True)
            yield record_from_cells(
                number,
                {name: cell or None for name, cell in named_cells if name is not None},
            )


def _column_names(
    columns: Sequence[str], mapped: Mapping[str, str]
) -> list[str | None]:
    """Return the field of each column; a mapped field is taken from no other column."""
    taken = set(mapped.values())
    names = []
    for column in columns:
        name = COLUMN_ALIASES.get(column.lower())
        names.append(mapped.get(column, None if name in taken else name))
    return names


_LISTS = (("papers",), INCLUDED, EXCLUDED)
"""Keys under which an object may hold papers, included ones first."""

_DECODER = msgspec.json.Decoder()


def read_whole(path: Path) -> Iterator[ImportedRecord | UnreadableRecord]:
    """Yield the papers in a JSON file: a list of them, or an agent's result.

    Raises:
        DatasetError: the file is neither.
    """
    value = read_json(path)
    entries = value if isinstance(value, list) else _inside(value)
    if entries is None:
        raise DatasetError(
            f"{path.name}: neither a list nor an object with papers or included_papers "
            "(see --format for the other formats)."
        )
    for number, entry in enumerate(entries, start=1):
        yield _entry(number, entry)


def read_lines(path: Path) -> Iterator[ImportedRecord | UnreadableRecord]:
    """Yield the papers in a JSONL file: a paper or an agent's result per line.

    Raises:
        DatasetError: the file is unreadable.
    """
    numbers = count(1)
    for _, text in lines(path):
        if not text.strip():
            continue
        try:
            value = _DECODER.decode(text)
        except (msgspec.DecodeError, RecursionError) as error:
            reason = f"not valid JSON, {error} (each line must hold one object)"
            yield UnreadableRecord(next(numbers), reason)
            continue
        inside = _inside(value)
        for entry in [value] if inside is None else inside:
            yield _entry(next(numbers), entry)


def _inside(value: object) -> list[Any] | None:
    """Return the entries of an object's lists of papers; None if it has no lists."""
    if not isinstance(value, Mapping):
        return None
    keys = [next((name for name in names if name in value), None) for names in _LISTS]
    lists = [value[name] for name in keys if name is not None]
    if not lists or not all(isinstance(entries, list) for entries in lists):
        return None
    return [entry for entries in lists for entry in entries]


def _entry(number: int, value: object) -> ImportedRecord | UnreadableRecord:
    if isinstance(value, Mapping):
        return record_from_cells(number, value)
    reason = f"{kind_of(value)} instead of an object (each paper must be one)"
    return UnreadableRecord(number, reason)


_FORMAT: Final = "say what the file is with --format"
_PUBMED: Final = f"export from PubMed as XML, or {_FORMAT}"


def read_references(
    references: Iterable[RecordCells | BadReference | int],
) -> Iterator[ReadRecord]:
    """Yield a record for each reference, numbered from 1; an int counts deletions."""
    number = 0
    for reference in references:
        if isinstance(reference, int):
            yield DeletedRecords(n=reference)
            continue
        number += 1
        if isinstance(reference, BadReference):
            yield UnreadableRecord(reference.number, reference.reason)
        else:
            yield record_from_cells(number, reference)


_READERS: Final[
    Mapping[PaperFormat, Callable[[Path, Mapping[str, str]], Iterator[ReadRecord]]]
] = {
    "json": lambda path, _: read_whole(path),
    "jsonl": lambda path, _: read_lines(path),
    "csv": lambda path, mapped: read_table(path, ",", mapped),
    "tsv": lambda path, mapped: read_table(path, "\t", mapped),
    "pubmed": lambda path, _: read_references(read_pubmed(path, _PUBMED)),
    "ris": lambda path, _: read_references(read_ris(path, _FORMAT)),
    "bibtex": lambda path, _: read_references(read_bibtex(path, _FORMAT)),
}


def read_papers(
    path: Path, form: PaperFormat, mapped: Mapping[str, str]
) -> Iterator[ReadRecord]:
    """Yield the records of a file, one at a time.

    Args:
        path: the file.
        form: its format.
        mapped: columns of a table, each with the name of its field.

    Raises:
        DatasetError: the file is unreadable in that format.
    """
    return _READERS[form](path, mapped)


LEAST_BYTES = 1 << 22
"""Size from which another process reads a file; starting it takes half a second."""

BATCH = 500

_Message: TypeAlias = tuple[ReadRecord, ...] | DatasetError
"""Records, empty at the end of the file; or the error that ended reading."""


def read_file(
    path: Path, form: PaperFormat, mapped: Mapping[str, str]
) -> Iterator[ReadRecord]:
    """Yield the records of a file; a large one is read in a separate process.

    Raises:
        DatasetError: the file is unreadable in that format.
    """
    if not path.is_file() or path.stat().st_size < LEAST_BYTES:
        return read_papers(path, form, mapped)
    return _read_in_process(path, form, mapped)


def _read_in_process(
    path: Path, form: PaperFormat, mapped: Mapping[str, str]
) -> Iterator[ReadRecord]:
    # a forked process would share this one's connection to the database
    context = get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    reader = context.Process(
        target=_send, args=(sender, path, form, dict(mapped)), daemon=True
    )
    reader.start()
    sender.close()
    try:
        with closing(receiver):
            while message := _received(receiver, path):
                yield from message
    finally:
        reader.join()


def _received(receiver: Connection, path: Path) -> tuple[ReadRecord, ...]:
    try:
        message: _Message = receiver.recv()
    except EOFError as error:
        raise DatasetError(
            f"{path.name}: the process that read it was ended (import it again)."
        ) from error
    if isinstance(message, DatasetError):
        raise message
    return message


def _send(
    sender: Connection, path: Path, form: PaperFormat, mapped: Mapping[str, str]
) -> None:
    """Read the file in the other process and send its records."""
    # the writing process handles interrupts; when it ends, the pipe breaks
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        for message in _messages(path, form, mapped):
            sender.send(message)
    except BrokenPipeError:
        return


def _messages(
    path: Path, form: PaperFormat, mapped: Mapping[str, str]
) -> Iterator[_Message]:
    try:
        papers = read_papers(path, form, mapped)
        while batch := tuple(islice(papers, BATCH)):
            yield batch
        yield ()
    except DatasetError as error:
        yield error
