"""Reads a library of records to screen: RIS, PubMed, BibTeX, CSV or TSV.

Several files are one library. Each record keeps its fields as RIS tags, so that it can
be written back with a decision. This is lossless for RIS files, which is why they are
read here and not by `jobs.kit.inputs.references`. A record is identified by its id
(`ID`, or the PMID), else its accession number, else its DOI. Without any of them, its
id is built from its title.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from jobs.kit.inputs.cells import Trimmed
from jobs.kit.inputs.files import csv_columns, lines, read_table
from jobs.kit.inputs.pubmed import read_pubmed
from jobs.kit.inputs.references import BadReference, RecordCells, read_bibtex
from jobs.kit.inputs.rows import InputFindings, RowModel
from jobs.screening.data import ArticleText
from jobs.screening.input_tables import SEPARATOR, id_of
from runner.errors import DatasetError

Tags: TypeAlias = tuple[tuple[str, str], ...]
"""RIS tags with their values, in order; without the last one, `ER`."""

_PlacedTags: TypeAlias = tuple[str, Tags]
"""Position of a record in its file, such as "line 12", and its tags."""


class LibraryRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record of a library."""

    id: str
    tags: Tags
    location: str  #: file and line or record number

    @property
    def text(self) -> ArticleText:
        """Title, abstract and year."""
        year = _YEAR.search(self._first(*YEARS))
        return ArticleText(
            title=self._first(*TITLES),
            abstract=self._first(*ABSTRACTS),
            year=int(year[0]) if year else None,
        )

    def _first(self, *names: str) -> str:
        return first_tag(self.tags, *names)


TITLES: Final = ("TI", "T1", "CT")
ABSTRACTS: Final = ("AB", "N2")
YEARS: Final = ("PY", "Y1", "DA")
IDS: Final = ("ID", "AN", "DO")
"""Tags that identify a record, the preferred one first."""

_YEAR = re.compile(r"\b[12][0-9]{3}\b")


def first_tag(tags: Tags, *names: str) -> str:
    """Return the value of the first of *names* that has one; "" without any."""
    for name in names:
        for tag, value in tags:
            if tag == name and (text := value.strip()):
                return text
    return ""


def read_library(
    paths: Sequence[Path], findings: InputFindings, renamed: Mapping[str, str]
) -> tuple[LibraryRecord, ...]:
    """Read the records of all files, in file order.

    Args:
        paths: the files.
        findings: receives records that occur twice, or have no text.
        renamed: columns of CSV files by the names used here.

    Raises:
        DatasetError: a file cannot be read, has no record, or two records have one id
            and different titles; names file and position.
    """
    records: dict[str, LibraryRecord] = {}
    for path in paths:
        is_empty = True
        for place, tags in _reader(path)(path, findings, renamed):
            is_empty = False
            record = _record(path, place, tags)
            before = records.setdefault(record.id, record)
            if before is not record:
                records[record.id] = _repeated(before, record, findings)
            if not first_tag(tags, *TITLES, *ABSTRACTS):
                findings.add(
                    "no_text",
                    "warn",
                    path.name,
                    "Records have neither a title nor an abstract.",
                    example=place,
                )
        if is_empty:
            raise DatasetError(f"{path.name}: no record in it (name another file).")
    return tuple(records.values())


def _record(path: Path, place: str, tags: Tags) -> LibraryRecord:
    location = f"{path.name} {place}"
    name = first_tag(tags, *IDS)
    if not name:
        title = _plain(first_tag(tags, *TITLES))
        if not title:
            raise DatasetError(
                f"{location}: neither id, DOI nor title (give the record one of them)."
            )
        name = f"title-{hashlib.sha256(title.encode()).hexdigest()[:10]}"
    try:
        return LibraryRecord(id=record_id(name), tags=tags, location=location)
    except ValueError as error:
        raise DatasetError(f"{location}: the id {error}.") from error


def record_id(name: str) -> str:
    """Return the id of a record that has the id *name* in a library.

    A colon, the separator in task keys, becomes `_`.

    Raises:
        ValueError: it has an invisible character.
    """
    return id_of(name.replace(SEPARATOR, "_"))


def _repeated(
    before: LibraryRecord, record: LibraryRecord, findings: InputFindings
) -> LibraryRecord:
    """Choose one of two records with the same id: the first with an abstract."""
    if _plain(before.text.title) != _plain(record.text.title):
        raise DatasetError(
            f"{record.location}: the id {record.id} is that of {before.location} too, "
            "which has another title (give one of them another id)."
        )
    findings.add(
        "repeated_records",
        "info",
        record.location.partition(" ")[0],
        "Records occur twice, with the same id and title; they are screened once.",
        example=record.id,
    )
    has_more = record.text.has_abstract and not before.text.has_abstract
    return record if has_more else before


def _plain(title: str) -> str:
    return "".join(sign for sign in title.casefold() if sign.isalnum())


# A tag, two blanks, a hyphen and a blank; programs differ in the number of blanks.
_RIS = re.compile(r"([A-Z][A-Z0-9]) {1,2}-(?: (.*)|\s*)")


def _ris(
    path: Path, findings: InputFindings, renamed: Mapping[str, str]
) -> Iterator[_PlacedTags]:
    """Yield the records of a RIS file, each from `TY` to `ER`."""
    del findings, renamed
    tags: list[tuple[str, str]] | None = None
    start = 0
    for number, line in _stripped(path):
        match = _RIS.fullmatch(line)
        tag = match[1] if match else ""
        if tag == "TY":
            if tags is not None:
                raise _unended(path, start)
            tags, start = [("TY", (match[2] or "") if match else "")], number
        elif tags is None:
            if line:
                raise DatasetError(
                    f"{path.name} line {number}: no RIS record begins here (a record "
                    "begins with 'TY  - '; check the format of the file)."
                )
        elif tag == "ER":
            yield f"line {start}", tuple(tags)
            tags = None
        elif match:
            tags.append((tag, match[2] or ""))
        elif line:
            tags[-1] = (tags[-1][0], f"{tags[-1][1]} {line.strip()}")
    if tags is not None:
        raise _unended(path, start)


def _unended(path: Path, start: int) -> DatasetError:
    return DatasetError(
        f"{path.name} line {start}: the record has no end (close it with a line "
        "'ER  - ')."
    )


_NBIB = re.compile(r"([A-Z][A-Z0-9]{0,3}) *- (.*)")

_NBIB_TAGS: Final[Mapping[str, str]] = {
    "PMID": "ID",
    "TI": "TI",
    "BTI": "TI",
    "AB": "AB",
    "DP": "PY",
    "FAU": "AU",
    "JT": "T2",
    "VI": "VL",
    "IP": "IS",
    "PG": "SP",
    "LA": "LA",
    "OT": "KW",
    "MH": "KW",
}
"""RIS tags by PubMed tags, for those with the same meaning."""

_DOI = re.compile(r"(.+) \[doi\]")


def _nbib(
    path: Path, findings: InputFindings, renamed: Mapping[str, str]
) -> Iterator[_PlacedTags]:
    """Yield the records of a PubMed text file; each begins with PMID."""
    del findings, renamed
    fields: list[tuple[str, str]] = []
    start = 0
    for number, line in _stripped(path):
        match = _NBIB.fullmatch(line)
        if match and match[1] == "PMID":
            if fields:
                yield f"line {start}", _of_nbib(fields)
            fields, start = [("PMID", match[2])], number
        elif not fields:
            if line:
                raise DatasetError(
                    f"{path.name} line {number}: no PubMed record begins here (a "
                    "record begins with 'PMID- '; check the format of the file)."
                )
        elif match:
            fields.append((match[1], match[2]))
        elif line:
            fields[-1] = (fields[-1][0], f"{fields[-1][1]} {line.strip()}")
    if fields:
        yield f"line {start}", _of_nbib(fields)


def _of_nbib(fields: Sequence[tuple[str, str]]) -> Tags:
    tags = [("TY", "JOUR")]
    for name, value in fields:
        doi = _DOI.fullmatch(value) if name in {"LID", "AID"} else None
        if doi and ("DO", doi[1]) not in tags:
            tags.append(("DO", doi[1]))
        elif name in _NBIB_TAGS:
            tags.append((_NBIB_TAGS[name], value))
    return tuple(tags)


def _stripped(path: Path) -> Iterator[tuple[int, str]]:
    """Yield lines without trailing blanks."""
    for number, line in lines(path):
        yield number, line.rstrip()


def _pubmed_xml(
    path: Path, findings: InputFindings, renamed: Mapping[str, str]
) -> Iterator[_PlacedTags]:
    """Yield the records of a PubMed XML file, without deleted ones."""
    del findings, renamed
    cells = (record for record in read_pubmed(path) if not isinstance(record, int))
    for number, record in enumerate(cells, start=1):
        yield f"record {number}", _of_cells(record)


def _bibtex(
    path: Path, findings: InputFindings, renamed: Mapping[str, str]
) -> Iterator[_PlacedTags]:
    """Yield the entries of a BibTeX file."""
    del findings, renamed
    for number, entry in enumerate(read_bibtex(path), start=1):
        if isinstance(entry, BadReference):
            raise DatasetError(f"{path.name} record {entry.number}: {entry.reason}.")
        yield f"record {number}", _of_cells(entry)


_CELLS: Final[Mapping[str, str]] = {
    "TI": "title",
    "AU": "authors",
    "PY": "year",
    "T2": "journal",
    "DO": "doi",
    "AB": "abstract",
}
"""RIS tags, and names of a reference's cells."""


def _of_cells(cells: RecordCells) -> Tags:
    tags = [("TY", "JOUR"), ("ID", cells.get("document_id") or "")]
    for tag, name in _CELLS.items():
        value = cells.get(name) or ""
        values = value if isinstance(value, list) else [str(value)]
        tags += ((tag, one) for one in values)
    return tuple((tag, value) for tag, value in tags if value)


class _TableRow(RowModel):
    """A record of a table."""

    id: Trimmed = ""
    title: Trimmed = ""
    abstract: Trimmed = ""
    year: Trimmed = ""
    authors: Trimmed = ""
    journal: Trimmed = ""
    volume: Trimmed = ""
    issue: Trimmed = ""
    pages: Trimmed = ""
    doi: Trimmed = ""
    url: Trimmed = ""
    keywords: Trimmed = ""

    @property
    def tags(self) -> Tags:
        """The record as RIS tags."""
        authors = re.split(r"\s*(?:;|\band\b)\s*", self.authors)
        keywords = re.split(r"\s*[;|]\s*", self.keywords)
        tags = (
            ("TY", "JOUR"),
            ("ID", self.id),
            ("TI", self.title),
            *(("AU", author) for author in authors),
            # tables with gaps write whole numbers as 1999.0
            ("PY", self.year.removesuffix(".0")),
            ("T2", self.journal),
            ("VL", self.volume),
            ("IS", self.issue),
            ("SP", self.pages),
            ("DO", self.doi),
            ("UR", self.url),
            ("AB", self.abstract),
            *(("KW", keyword) for keyword in keywords),
        )
        return tuple((tag, value) for tag, value in tags if value)


IDS_OF_TABLES: Final = (
    "id",
    "paper_pmid",
    "pmid",
    "pubmedid",
    "record_id",
    "key",
    "covidence #",
)
"""Columns that identify a record, in lower case; also in files of labels."""

COLUMNS: Final[Mapping[str, Sequence[str]]] = {
    "id": IDS_OF_TABLES,
    "title": ("title", "article title", "primary_title", "document title"),
    "abstract": ("abstract", "abstract note", "notes_abstract"),
    "year": ("year", "publication year", "published year", "publication_year"),
    "authors": ("authors", "author", "author full names"),
    "journal": ("journal", "journal/book", "publication title", "source title"),
    "volume": ("volume",),
    "issue": ("issue",),
    "pages": ("pages",),
    "doi": ("doi",),
    "url": ("url", "link"),
    "keywords": ("keywords", "author keywords"),
}
"""Column names of reference managers and databases by field, in lower case. The first
that a file has counts; `--map` names another one."""


def _table(
    path: Path, findings: InputFindings, renamed: Mapping[str, str]
) -> Iterator[_PlacedTags]:
    """Yield the rows of a CSV, TSV or JSONL file."""
    rows = read_table(
        path,
        _TableRow,
        findings=findings,
        needed=("title",),
        renamed={**_known_columns(path, set(renamed.values())), **renamed},
        unit="row",
    )
    for row in rows:
        yield row.place, row.tags


def _known_columns(path: Path, mapped: Collection[str]) -> dict[str, str]:
    """Return the recognised columns of a file, with their field names.

    Args:
        path: the file.
        mapped: names that `--map` assigns to other columns.
    """
    columns = csv_columns(path)
    by_lower = {column.lower(): column for column in reversed(columns)}
    known: dict[str, str] = {}
    for name, spellings in COLUMNS.items():
        column = next((by_lower[s] for s in spellings if s in by_lower), None)
        if column is not None and name not in mapped:
            known[column] = name
    return known


_READERS: Final[
    Mapping[
        str,
        Callable[[Path, InputFindings, Mapping[str, str]], Iterator[_PlacedTags]],
    ]
] = {
    ".ris": _ris,
    ".nbib": _nbib,
    ".xml": _pubmed_xml,
    ".bib": _bibtex,
    ".csv": _table,
    ".tsv": _table,
    ".jsonl": _table,
}


def suffix_of(path: Path) -> str:
    """Return the suffix that states a file's format."""
    return Path(path.name.removesuffix(".gz")).suffix.lower()


def _reader(
    path: Path,
) -> Callable[[Path, InputFindings, Mapping[str, str]], Iterator[_PlacedTags]]:
    """Return the reader of a file, by its suffix, or by the first line of a `.txt`."""
    suffix = suffix_of(path)
    if suffix == ".txt":
        # PubMed saves its text format, and some databases save RIS, as .txt
        first = next((line for _, line in _stripped(path) if line), "")
        suffix = ".nbib" if first.startswith("PMID") else ".ris"
    if suffix not in _READERS:
        raise DatasetError(
            f"{path.name}: {suffix or 'a name without an end'} is not read as a "
            f"library (export it as {', '.join(_READERS)})."
        )
    return _READERS[suffix]


def tables_of(paths: Sequence[Path]) -> list[Path]:
    """Return the files of a library that have columns, for `--map`."""
    return [path for path in paths if suffix_of(path) in {".csv", ".tsv", ".jsonl"}]
