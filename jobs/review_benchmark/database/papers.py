"""Defines papers and reads them from a record's cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field, PlainValidator, TypeAdapter, ValidationError

from jobs.kit.inputs.cells import InputCell, Trimmed, integer_of, quote
from jobs.kit.inputs.references import RecordCells
from jobs.kit.inputs.rows import sentence_of
from jobs.review_benchmark.data import Identifier
from jobs.review_benchmark.matching import Normaliser, pmid_of
from runner.errors import UsageError

LAST_YEAR = 9999
"""Largest year of at most four digits."""


def _year(cell: InputCell) -> int | None:
    if isinstance(cell, str):
        cell = cell.strip()
    if cell is None or cell == "":
        return None
    year = integer_of(cell)
    if not 0 < year <= LAST_YEAR:
        raise ValueError(f"is {quote(cell)} (four digits are expected)")
    return year


def _authors(cell: InputCell) -> tuple[str, ...]:
    """Return a list of names, or split names at semicolons."""
    names = cell.split(";") if isinstance(cell, str) else cell or []
    if isinstance(names, list) and all(isinstance(name, str) for name in names):
        return tuple(stripped for name in names if (stripped := name.strip()))
    raise ValueError("is something else than a list of names (correct it)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedRecord:
    """A paper as a record of an imported file states it, not normalised."""

    source_id: Annotated[Identifier, Field(validation_alias="document_id")] = ""
    """Id of the record in its file; its number if it has none."""
    pmid: Identifier = ""  #: empty: not given
    doi: Trimmed = ""
    title: Trimmed = ""
    abstract: Trimmed = ""
    authors: Annotated[tuple[str, ...], PlainValidator(_authors)] = ()
    journal: Trimmed = ""
    year: Annotated[int | None, PlainValidator(_year)] = None


_RECORD = TypeAdapter(ImportedRecord)


@dataclass(frozen=True, slots=True)
class UnreadableRecord:
    """A record that cannot be read."""

    number: int  #: of the record in its file, from 1
    reason: str  #: the problem and its solution, without a full stop


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedRecords:
    """Number of papers that PubMed has deleted; the database retains them."""

    n: int


ReadRecord: TypeAlias = ImportedRecord | UnreadableRecord | DeletedRecords
"""An entry of an imported file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabasePaper:
    """A paper of the database."""

    id: int
    pmid: str = ""  #: normal form; empty: none
    doi: str = ""
    title: str = ""
    abstract: str = ""
    authors: str = ""  #: separated by "; "
    journal: str = ""
    year: int | None = None

    @property
    def has_text(self) -> bool:
        """Whether there is a title or an abstract."""
        return bool(self.title.strip() or self.abstract.strip())

    @property
    def row(self) -> PaperRow:
        """Its row in the table."""
        return (
            self.id,
            self.pmid or None,
            self.doi or None,
            self.title,
            self.abstract,
            self.authors,
            self.journal,
            self.year,
        )


PaperRow: TypeAlias = tuple[int, str | None, str | None, str, str, str, str, int | None]


def paper_of(row: PaperRow) -> DatabasePaper:
    """Return the paper in a row of the table."""
    number, pmid, doi, title, abstract, authors, journal, year = row
    return DatabasePaper(
        id=number,
        pmid=pmid or "",
        doi=doi or "",
        title=title,
        abstract=abstract,
        authors=authors,
        journal=journal,
        year=year,
    )


PaperFormat: TypeAlias = Literal[
    "json", "jsonl", "csv", "tsv", "pubmed", "ris", "bibtex"
]

ENDS: Final[Mapping[str, PaperFormat]] = {
    ".json": "json",
    ".jsonl": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".xml": "pubmed",
    ".ris": "ris",
    ".bib": "bibtex",
}
"""Format by the suffix of a file's name, without `.gz`."""


def paper_format(path: Path) -> PaperFormat:
    """Return the format of a file by its name.

    Raises:
        UsageError: the name has no known suffix.
    """
    name = path.name.lower().removesuffix(".gz")
    form = ENDS.get(Path(name).suffix)
    if form is None:
        raise UsageError(
            f"{path}: its name ends in none of {', '.join(ENDS)} (say the format with "
            "--format)."
        )
    return form


NORMAL = Normaliser()
"""Normal form of the identifiers and titles in the database: the default one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalisedRecord:
    """A record in normal form: its keys, and the paper that it would become."""

    paper: DatabasePaper  #: its id is 0
    title: str  #: normal form
    source_id: str  #: of the record in its file

    @property
    def has_ids(self) -> bool:
        """Whether it has a PMID or a DOI; if so, its title does not identify it."""
        return bool(self.paper.pmid or self.paper.doi)


def normalise_record(entry: ImportedRecord) -> NormalisedRecord:
    """Return a record in normal form."""
    return NormalisedRecord(
        paper=DatabasePaper(
            id=0,
            pmid=pmid_of(entry.pmid),
            doi=NORMAL.doi(entry.doi),
            title=entry.title.strip(),
            abstract=entry.abstract.strip(),
            authors="; ".join(entry.authors),
            journal=entry.journal.strip(),
            year=entry.year,
        ),
        title=NORMAL.title(entry.title),
        source_id=entry.source_id,
    )


def record_from_cells(
    number: int, cells: RecordCells
) -> ImportedRecord | UnreadableRecord:
    """Return the record in some cells, or the problem with them."""
    try:
        entry = _RECORD.validate_python(cells)
    except ValidationError as error:
        return UnreadableRecord(number, sentence_of(error))
    if pmid_of(entry.pmid) or NORMAL.doi(entry.doi) or NORMAL.title(entry.title):
        return entry if entry.source_id else replace(entry, source_id=str(number))
    # without a key, a second import of the file would duplicate the paper
    return UnreadableRecord(
        number, "neither PMID nor DOI nor title is there (give one)"
    )
