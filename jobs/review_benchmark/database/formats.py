"""Reads papers from CSV, TSV, JSON, BibTeX, RIS and PubMed files, one at a time.

A large file is read in a process of its own while this one writes. Reading and writing
each take about half of an import's time, so two cores import nearly twice as fast as
one. What was read is handed over in batches through a pipe: it holds less than one, so
the reader is never more than a batch ahead, and ends when nobody reads any more.
"""

from __future__ import annotations

import logging
import re
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from importlib.util import find_spec
from itertools import count, islice
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

from jobs.kit.inputs.cells import kind_of
from jobs.kit.inputs.files import header_of, lines, read_json, records
from jobs.kit.text_format import plural
from jobs.review_benchmark.database.papers import (
    FIELDS,
    ImportedRecord,
    PaperFormat,
    ReadRecord,
    RecordCells,
    UnreadableRecord,
    record_from_cells,
)
from jobs.review_benchmark.database.pubmed import read_pubmed
from jobs.review_benchmark.result_files import EXCLUDED, INCLUDED
from runner.errors import DatasetError, UsageError

COLUMN_ALIASES: Final[Mapping[str, str]] = {
    **{name: name for name in FIELDS},
    "pubmedid": "pmid",
    "pubmed id": "pmid",
    "record_id": "document_id",
}
"""Which column is what, by its name in lower case."""

_KEYS = ("pmid", "doi", "title")


def mapped_columns(mapped: Sequence[str]) -> Mapping[str, str]:
    """What `--map` says: columns of a file, each with its name here.

    Raises:
        UsageError: an item is not `name=column`, or no such name is known.
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
    """The rows of a file with a header; columns that say nothing here are passed over.

    Args:
        path: the file.
        delimiter: what parts columns.
        mapped: columns by their own names, in place of those that are known.

    Raises:
        DatasetError: the file is not to be read, or no column tells papers apart.
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
    """What each column is here; a name that is mapped is no other column's."""
    taken = set(mapped.values())
    names = []
    for column in columns:
        name = COLUMN_ALIASES.get(column.lower())
        names.append(mapped.get(column, None if name in taken else name))
    return names


_LISTS = (("papers",), INCLUDED, EXCLUDED)
"""Under which names an object holds papers, included ones first."""

_DECODER = msgspec.json.Decoder()


def read_whole(path: Path) -> Iterator[ImportedRecord | UnreadableRecord]:
    """The papers in a JSON file: a list of them, or an agent's result.

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
    """The papers in a JSONL file: one a line, or the result of an agent a line.

    Raises:
        DatasetError: the file is not to be read.
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
    """What stands in the lists of an object; None where it has none."""
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


_BEGINS = re.compile(r"\s*@\s*(\w+)\s*[{(]")
_AND = re.compile(r"\s+and\s+")
_DOLLAR = re.compile(r"(?<!\\)\$")
_PERCENT = re.compile(r"(?<!\\)%")
_YEAR = re.compile(r"[0-9]{4}")

_NO_PAPERS = frozenset({"comment", "preamble", "string"})


def read_bibtex(path: Path) -> Iterator[ImportedRecord | UnreadableRecord]:
    """The entries of a file; LaTeX in them becomes plain text.

    Raises:
        DatasetError: the file is not to be read, or no entry begins in it.
    """
    from bibtexparser.entrypoint import parse_string  # noqa: PLC0415 - of an extra; see choice.py
    from pylatexenc.latex2text import LatexNodes2Text  # noqa: PLC0415 - likewise

    # what is wrong with an entry is said by its BadEntry
    logging.getLogger("bibtexparser").addHandler(logging.NullHandler())
    plain = LatexNodes2Text(math_mode="text").latex_to_text
    macros: list[str] = []
    number = 0
    for kind, block in _blocks(path):
        if kind == "string":
            macros.append(block)
        if kind in _NO_PAPERS:
            continue
        number += 1
        library = parse_string("\n".join((*macros, block)))
        if not library.entries:
            reason = "it is not to be parsed (check its braces, quotes and commas)"
            yield UnreadableRecord(number, reason)
            continue
        entry = library.entries[-1]
        fields = {field.key.lower(): str(field.value) for field in entry.fields}
        try:
            cells = _bibtex_cells(entry.key, fields, plain)
        except RecursionError:
            reason = "its braces are nested too deep (remove some)"
            yield UnreadableRecord(number, reason)
        else:
            yield record_from_cells(number, cells)
    if not number:
        raise DatasetError(
            f"{path.name}: no entry begins with @ (say what the file is with --format)."
        )


def _blocks(path: Path) -> Iterator[tuple[str, str]]:
    """What begins with @ at a line's beginning: its kind in lower case, and its text.

    That is where bibtexparser sees blocks begin too, whatever is still open.
    """
    kind, block = "", list[str]()
    for _, line in lines(path):
        match = _BEGINS.match(line)
        if match:
            if kind:
                yield kind, "".join(block)
            kind, block = match.group(1).lower(), []
        if kind:
            block.append(line)
    if kind:
        yield kind, "".join(block)


def _bibtex_cells(
    key: str, fields: Mapping[str, str], plain: Callable[[str], str]
) -> RecordCells:
    def text(*names: str) -> str:
        value = next((fields[name] for name in names if name in fields), "")
        return " ".join(plain(_escaped(value)).split())

    year = _YEAR.search(text("year", "date"))
    return {
        "document_id": key,
        "pmid": text("pmid"),
        "doi": text("doi"),
        "title": text("title"),
        "abstract": text("abstract"),
        "authors": _AND.split(text("author")),
        "journal": text("journal", "journaltitle"),
        "year": year.group() if year else None,
    }


def _escaped(text: str) -> str:
    """LaTeX as most programs export it: a bare % is a percent sign, not a comment.

    A dollar is money where dollars do not pair as marks of mathematics.
    """
    text = _PERCENT.sub(r"\\%", text)
    return _DOLLAR.sub(r"\\$", text) if len(_DOLLAR.findall(text)) % 2 else text


_PMID = re.compile(r"(?:pmid:?\s*)?([0-9]{1,8})", re.IGNORECASE)

_FIRST, _LAST = "TY  -", "ER  -"
_UNENDED = "it has no end (close it with a line ER  -)"


def read_ris(path: Path) -> Iterator[ImportedRecord | UnreadableRecord]:
    """The records of a file, from `TY` to `ER` each.

    Raises:
        DatasetError: the file is not to be read, or no record begins in it.
    """
    from rispy import RisParser  # noqa: PLC0415 - of an extra; see choice.py

    parser = RisParser(skip_unknown_tags=True)
    record: list[str] = []
    number = 0
    for _, line in lines(path):
        begins = line.startswith(_FIRST)
        if begins:
            if record:
                yield UnreadableRecord(number, _UNENDED)
            number += 1
            record = []
        if begins or record:
            record.append(line)
        if record and line.startswith(_LAST):
            (fields,) = parser.parse_lines(iter(record))
            yield record_from_cells(number, _ris_cells(fields))
            record = []
    if record:
        yield UnreadableRecord(number, _UNENDED)
    if not number:
        raise DatasetError(
            f"{path.name}: no record begins with TY (say what the file is with "
            "--format)."
        )


def _ris_cells(fields: Mapping[str, Any]) -> RecordCells:
    """Cells by rispy's names of the tags."""
    year = _YEAR.search(fields.get("year") or fields.get("publication_year") or "")
    return {
        "document_id": fields.get("id"),
        "pmid": fields.get("pmid") or _pmid(fields),
        "doi": fields.get("doi"),
        "title": fields.get("title") or fields.get("primary_title"),
        "abstract": fields.get("abstract") or fields.get("notes_abstract"),
        "authors": fields.get("authors") or fields.get("first_authors"),
        "journal": fields.get("journal_name")
        or fields.get("alternate_title3")
        or fields.get("secondary_title"),
        "year": year.group() if year else None,
    }


def _pmid(fields: Mapping[str, Any]) -> str:
    """The PMID among the numbers that a database gave.

    Every database has its own: bare digits count where it is PubMed or Medline, or
    where none is named.
    """
    source = (fields.get("name_of_database") or "").lower()
    is_pubmed = not source or "pubmed" in source or "medline" in source
    for tag in ("accession_number", "custom2"):
        text = (fields.get(tag) or "").strip()
        match = _PMID.fullmatch(text)
        if match and (is_pubmed or not text.isdigit()):
            return match.group(1)
    return ""


_EXTRAS: Final[Mapping[PaperFormat, str]] = {"ris": "rispy", "bibtex": "bibtexparser"}
"""Libraries that an extra brings."""

_READERS: Final[
    Mapping[PaperFormat, Callable[[Path, Mapping[str, str]], Iterator[ReadRecord]]]
] = {
    "json": lambda path, _: read_whole(path),
    "jsonl": lambda path, _: read_lines(path),
    "csv": lambda path, mapped: read_table(path, ",", mapped),
    "tsv": lambda path, mapped: read_table(path, "\t", mapped),
    "pubmed": lambda path, _: read_pubmed(path),
    "ris": lambda path, _: read_ris(path),
    "bibtex": lambda path, _: read_bibtex(path),
}


def read_papers(
    path: Path, form: PaperFormat, mapped: Mapping[str, str]
) -> Iterator[ReadRecord]:
    """The records of a file, one at a time.

    Args:
        path: the file.
        form: its format.
        mapped: columns of a table by their names there, each with its name here.

    Raises:
        DatasetError: the file is not to be read in that format.
    """
    library = _EXTRAS.get(form)
    if library is not None and find_spec(library) is None:
        raise DatasetError(
            f"{path.name}: reading {form} needs {library} (pip install "
            "'siftlog[refs]')."
        )
    return _READERS[form](path, mapped)


LEAST_BYTES = 1 << 22
"""Smaller files are read before another process has begun: it takes half a second."""

BATCH = 500

_Message: TypeAlias = tuple[ReadRecord, ...] | DatasetError
"""Records, none of them at the end of the file; or why there are no more."""


def read_file(
    path: Path, form: PaperFormat, mapped: Mapping[str, str]
) -> Iterator[ReadRecord]:
    """The records of a file; those of a large one are read in a process of its own.

    Raises:
        DatasetError: the file is not to be read in that format.
    """
    if not path.is_file() or path.stat().st_size < LEAST_BYTES:
        return read_papers(path, form, mapped)
    return _read_in_process(path, form, mapped)


def _read_in_process(
    path: Path, form: PaperFormat, mapped: Mapping[str, str]
) -> Iterator[ReadRecord]:
    # a copy of this process would share its connection to the database
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
    """What the other process does."""
    # an interrupt is for the process that writes; without it there is no reader here
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
