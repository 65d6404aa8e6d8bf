"""Adds the papers of files to the database, as `prepare review-benchmark import`."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

from jobs.kit.text_format import plural
from jobs.review_benchmark.database.formats import mapped_columns, read_file
from jobs.review_benchmark.database.papers import PaperFormat, ReadRecord, paper_format
from jobs.review_benchmark.database.reader import SQL, writer
from jobs.review_benchmark.database.writer import FileCounts, PaperWriter
from jobs.review_benchmark.settings import ReviewBenchmarkSettings
from runner.errors import DatasetError, UsageError

PROGRESS_EVERY = 1000
"""Records between two progress messages of an import."""

MOST_BAD = 10
"""Number of bad records in the text; the JSON has all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseSize:
    """Numbers of papers in a database."""

    papers: int
    with_pmid: int
    with_doi: int
    without_abstract: int
    without_year: int
    content_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedPapers:
    """Results of an import, as text and JSON."""

    database: str
    files: tuple[FileCounts, ...]
    stock: DatabaseSize

    @property
    def total(self) -> FileCounts:
        """Sum over all files, without their bad records."""
        merged: Counter[str] = Counter()
        for counts in self.files:
            merged.update(counts.merged)
        return FileCounts(
            source="all",
            records=sum(counts.records for counts in self.files),
            papers=sum(counts.papers for counts in self.files),
            merged=dict(sorted(merged.items())),
            conflicts=sum(counts.conflicts for counts in self.files),
            titles=sum(counts.titles for counts in self.files),
            no_pmid=sum(counts.no_pmid for counts in self.files),
            deleted=sum(counts.deleted for counts in self.files),
        )

    @property
    def json(self) -> dict[str, object]:
        """Every count, and every bad record."""
        total = asdict(self.total)
        del total["source"], total["bad"]
        return {
            "database": self.database,
            "files": [asdict(counts) for counts in self.files],
            "total": {**total, "bad": sum(len(counts.bad) for counts in self.files)},
            "stock": asdict(self.stock),
        }

    @property
    def text(self) -> str:
        """A line for each file, the sum, and the size of the database."""
        return "\n".join(_lines(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperImport:
    """An import that is configured and has not read its files yet."""

    database: Path
    form: PaperFormat | None
    mapped: Mapping[str, str]
    skip_bad: bool

    @classmethod
    def of(cls, settings: ReviewBenchmarkSettings) -> PaperImport:
        """Return the import that the settings describe.

        Raises:
            UsageError: they name no database, or map an unknown column.
        """
        if settings.database is None:
            raise UsageError("Say which database to import into with --database FILE.")
        return cls(
            database=settings.database,
            form=settings.format,
            mapped=mapped_columns(settings.map),
            skip_bad=settings.skip_bad,
        )

    def read(
        self, files: tuple[Path, ...], progress: Callable[[str], None]
    ) -> ImportedPapers:
        """Import the files in their order, each completely or not at all.

        If a file cannot be read, the files before it remain imported.

        Raises:
            UsageError: no file is named, or the name of one implies no format.
            DatasetError: a file is invalid, or the database cannot be written.
        """
        if not files:
            raise UsageError("Name the files to import after the word import.")
        forms = [self.form or paper_format(path) for path in files]
        try:
            with closing(writer(self.database)) as connection:
                writing = PaperWriter(connection)
                added = []
                for path, form in zip(files, forms, strict=True):
                    records = _with_progress(
                        read_file(path, form, self.mapped), path.name, progress
                    )
                    added.append(
                        writing.add(path.name, records, skip_bad=self.skip_bad)
                    )
                progress(f"{self.database.name}: hashing all papers")
                return ImportedPapers(
                    database=str(self.database),
                    files=tuple(added),
                    stock=_database_size(connection, writing.sign()),
                )
        except sqlite3.Error as error:
            raise DatasetError(
                f"{self.database}: {error} (see that it may be written and has room, "
                "and import again: files that were whole stay)."
            ) from error


def _with_progress(
    records: Iterator[ReadRecord], name: str, progress: Callable[[str], None]
) -> Iterator[ReadRecord]:
    """Yield a file's records, and report progress at every thousand."""
    for number, record in enumerate(records):
        if number % PROGRESS_EVERY == 0:
            progress(f"{name}: {plural(number, 'record')}")
        yield record


def _database_size(connection: sqlite3.Connection, content_hash: str) -> DatabaseSize:
    papers, pmids, dois, no_abstract, no_year = connection.execute(
        SQL["counts"]
    ).fetchone()
    return DatabaseSize(
        papers=papers,
        with_pmid=pmids,
        with_doi=dois,
        without_abstract=no_abstract or 0,
        without_year=no_year or 0,
        content_hash=content_hash,
    )


def _lines(imported: ImportedPapers) -> Iterator[str]:
    for counts in imported.files:
        yield _line(counts)
        for bad in counts.bad[:MOST_BAD]:
            yield f"  left out record {bad.number}: {bad.reason}"
        if len(counts.bad) > MOST_BAD:
            yield f"  left out {len(counts.bad) - MOST_BAD:,} more (--json has all)"
    if len(imported.files) > 1:
        yield _line(imported.total)
    stock = imported.stock
    yield (
        f"database holds {plural(stock.papers, 'paper')}: {stock.with_pmid:,} with "
        f"PMID, {stock.with_doi:,} with DOI, {stock.without_abstract:,} without "
        f"abstract, {stock.without_year:,} without year"
    )
    yield f"content hash {stock.content_hash}"


def _line(counts: FileCounts) -> str:
    by = ", ".join(f"{n:,} by {key}" for key, n in counts.merged.items())
    parts = [
        f"{counts.source}: {plural(counts.records, 'record')}",
        plural(counts.papers, "new paper"),
        f"{sum(counts.merged.values()):,} merged" + (f" ({by})" if by else ""),
        plural(counts.titles, "further title"),
    ]
    if counts.conflicts:
        parts.append(f"{plural(counts.conflicts, 'DOI')} of another paper left out")
    if counts.no_pmid:
        parts.append(
            f"{plural(counts.no_pmid, 'PMID')} without a PubMed number left out"
        )
    if counts.deleted:
        parts.append(f"{plural(counts.deleted, 'paper')} deleted by PubMed, kept here")
    if counts.bad:
        parts.append(f"{plural(len(counts.bad), 'bad record')} left out")
    return ", ".join(parts)
