"""Adds the records of files to the database, each file in one transaction.

Papers are fetched and written many at a time, since one look-up and one statement per
record would take most of an import's time.

A record belongs to the paper with its PMID; else with its DOI, unless both have
different PMIDs; else, for a record with neither, with its title and year. The first
value of a field is retained, blanks are filled, and every title is stored: if a merge
dropped the second title, truth papers with that title would be lost.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Literal, TypeAlias

import msgspec

from jobs.review_benchmark.database.papers import (
    DatabasePaper,
    DeletedRecords,
    ImportedRecord,
    NormalisedRecord,
    ReadRecord,
    UnreadableRecord,
    normalise_record,
    paper_of,
)
from jobs.review_benchmark.database.reader import SQL, content_hash
from runner.errors import DatasetError

MergeKey: TypeAlias = Literal["pmid", "doi", "title"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeTarget:
    """The paper that a record becomes or is merged into."""

    before: DatabasePaper | None  #: the paper that it is merged into; None: a new one
    after: DatabasePaper  #: the paper after merging; the id of a new one is 0
    by: MergeKey | None = None  #: key by which the two were matched
    is_conflict: bool = False  #: its DOI belongs to another paper, and was left out


class BatchPapers:
    """Papers of the database that a batch of records may be merged into.

    Fetch a batch, `put` each of its records to its target, and flush. No other process
    writes meanwhile: all is one transaction.
    """

    def __init__(self, connection: sqlite3.Connection, source: str) -> None:
        self.further_titles = 0  #: of papers that had one
        self._connection = connection
        self._source = source  #: name of the file
        (self._last_id,) = connection.execute(SQL["last_id"]).fetchone()
        self._papers: dict[int, DatabasePaper] = {}
        self._pmids: dict[str, int] = {}
        self._dois: dict[str, int] = {}
        self._new: dict[int, None] = {}
        self._stored: dict[
            int, DatabasePaper
        ] = {}  #: of changed ones, before the change
        self._sources: list[tuple[int, str, str]] = []
        self._first: list[tuple[int, str, int]] = []
        self._further: list[tuple[int, str, int]] = []

    def fetch(self, records: Sequence[NormalisedRecord]) -> None:
        """Load the papers with the PMIDs and DOIs of records, and no others."""
        for cache in (self._papers, self._pmids, self._dois):
            cache.clear()
        papers = [record.paper for record in records]
        pmids = msgspec.json.encode([paper.pmid for paper in papers if paper.pmid])
        dois = msgspec.json.encode([paper.doi for paper in papers if paper.doi])
        parameters = (pmids.decode(), dois.decode())
        for row in self._connection.execute(SQL["kept_by_ids"], parameters):
            self._hold(paper_of(row))

    def by_pmid(self, pmid: str) -> DatabasePaper | None:
        """Return the paper with a PMID of the batch."""
        paper_id = self._pmids.get(pmid)
        return None if paper_id is None else self._papers[paper_id]

    def by_doi(self, doi: str) -> DatabasePaper | None:
        """Return the paper with a DOI of the batch."""
        paper_id = self._dois.get(doi)
        return None if paper_id is None else self._papers[paper_id]

    def by_title(self, record: NormalisedRecord) -> DatabasePaper | None:
        """Return the paper that the record was merged into, or the first so titled.

        A missing year equals none. The paper of this same record, from an earlier
        import, takes precedence: its year and the titles of others may have changed
        since.

        Only the database knows all titles, so pending rows are written first; records
        without PMID and DOI are few.
        """
        self.flush()
        parameters = (record.title, record.paper.year, self._source, record.source_id)
        row = self._connection.execute(SQL["kept_by_title"], parameters).fetchone()
        return None if row is None else self._hold(paper_of(row))

    def put(self, record: NormalisedRecord, target: MergeTarget) -> None:
        """Add a record to its target."""
        before, after = target.before, target.after
        if before is None:
            self._last_id += 1
            after = self._hold(replace(after, id=self._last_id))
            self._new[after.id] = None
        elif after != before:
            if after.id not in self._new:
                self._stored.setdefault(after.id, before)
            self._hold(after)
        self._sources.append((after.id, self._source, record.source_id))
        if record.title:
            is_further = before is not None and before.title
            titles = self._further if is_further else self._first
            titles.append((after.id, record.title, len(record.title)))

    def flush(self) -> None:
        """Write all pending rows."""
        write = self._connection.executemany
        new = [self._papers[paper] for paper in self._new]
        changed = [
            (before, self._papers[paper]) for paper, before in self._stored.items()
        ]
        # other papers need no new index entry, which is the most expensive part
        retold = [(old, now) for old, now in changed if _texts(old) != _texts(now)]
        write(SQL["add"], [paper.row for paper in new])
        write(SQL["fill"], [now.row for _, now in changed])
        write(SQL["unindex"], [_texts(old) for old, _ in retold])
        write(SQL["index"], [_texts(paper) for paper in new])
        write(SQL["index"], [_texts(now) for _, now in retold])
        write(SQL["add_source"], self._sources)
        write(SQL["add_title"], self._first)
        self.further_titles += max(write(SQL["add_title"], self._further).rowcount, 0)
        for waiting in (self._new, self._stored):
            waiting.clear()
        for rows in (self._sources, self._first, self._further):
            rows.clear()

    def _hold(self, paper: DatabasePaper) -> DatabasePaper:
        self._papers[paper.id] = paper
        if paper.pmid:
            self._pmids[paper.pmid] = paper.id
        if paper.doi:
            self._dois[paper.doi] = paper.id
        return paper


def _texts(paper: DatabasePaper) -> tuple[int, str, str]:
    """Return the columns that full-text search covers."""
    return paper.id, paper.title, paper.abstract


def find_target(record: NormalisedRecord, papers: BatchPapers) -> MergeTarget:
    """Return the target of a record."""
    paper = record.paper
    owner = papers.by_doi(paper.doi) if paper.doi else None
    existing, by = _matching_paper(record, owner, papers)
    is_conflict = owner is not None and owner != existing
    if is_conflict:
        paper = replace(paper, doi="")
    return MergeTarget(
        before=existing,
        after=paper if existing is None else _fill_blanks(existing, paper),
        by=by,
        is_conflict=is_conflict,
    )


def _matching_paper(
    record: NormalisedRecord, owner: DatabasePaper | None, papers: BatchPapers
) -> tuple[DatabasePaper | None, MergeKey | None]:
    pmid = record.paper.pmid
    same = papers.by_pmid(pmid) if pmid else None
    if same is not None:
        return same, "pmid"
    if owner is not None and not (pmid and owner.pmid):
        return owner, "doi"
    if record.title and not record.has_ids:
        same = papers.by_title(record)
        return same, None if same is None else "title"
    return None, None


def _fill_blanks(old: DatabasePaper, new: DatabasePaper) -> DatabasePaper:
    """Return the old paper with its blanks filled from the new one."""
    return DatabasePaper(
        id=old.id,
        pmid=old.pmid or new.pmid,
        doi=old.doi or new.doi,
        title=old.title or new.title,
        abstract=old.abstract or new.abstract,
        authors=old.authors or new.authors,
        journal=old.journal or new.journal,
        year=new.year if old.year is None else old.year,
    )


BATCH = 500
"""Records looked up and written at a time."""


@dataclass(slots=True, kw_only=True)
class FileCounts:
    """Results of importing one file."""

    source: str  #: name of the file
    records: int = 0  #: that could be read
    papers: int = 0  #: that were new
    merged: dict[str, int] = field(default_factory=dict)
    """Records merged into known papers, by key, ascending."""
    conflicts: int = 0  #: records whose DOI belonged to another paper
    titles: int = 0  #: further titles of papers that had one
    no_pmid: int = 0  #: records whose PMID holds no PubMed number; imported without it
    deleted: int = 0  #: papers that the file lists as deleted; retained
    bad: tuple[UnreadableRecord, ...] = ()  #: records that were left out

    def count(self, target: MergeTarget) -> None:
        """Count a record by its target."""
        self.records += 1
        self.conflicts += target.is_conflict
        if target.by is None:
            self.papers += 1
        else:
            self.merged[target.by] = self.merged.get(target.by, 0) + 1


class PaperWriter:
    """Adds records to a paper database."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def add(
        self, source: str, read_records: Iterable[ReadRecord], *, skip_bad: bool
    ) -> FileCounts:
        """Add a file's records, all of them or none.

        Args:
            source: name of the file.
            read_records: its records.
            skip_bad: leave out unreadable records, and report them.

        Raises:
            DatasetError: a record is unreadable and *skip_bad* is not set.
        """
        counts = FileCounts(source=source)
        with self._transaction():
            self._connection.execute(SQL["forget"], ("content_hash",))
            shelf = BatchPapers(self._connection, source)
            for records in _batches(
                _readable_records(read_records, counts, skip_bad=skip_bad)
            ):
                shelf.fetch(records)
                for record in records:
                    target = find_target(record, shelf)
                    shelf.put(record, target)
                    counts.count(target)
                shelf.flush()
        counts.titles = shelf.further_titles
        counts.merged = dict(sorted(counts.merged.items()))
        return counts

    def sign(self) -> str:
        """Hash all papers, store the hash, and return it.

        The first added record removes the stored hash, so until then the database has
        none.
        """
        digest = content_hash(self._connection)
        with self._transaction():
            self._connection.execute(SQL["set_meta"], ("content_hash", digest))
        return digest

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute(SQL["begin"])
        try:
            yield
            self._connection.execute(SQL["commit"])
        except BaseException:
            # a full disk has already caused a rollback
            if self._connection.in_transaction:
                self._connection.execute(SQL["rollback"])
            raise


def _readable_records(
    read_records: Iterable[ReadRecord], counts: FileCounts, *, skip_bad: bool
) -> Iterator[NormalisedRecord]:
    """Yield the readable records, in normal form."""
    for entry in read_records:
        match entry:
            case ImportedRecord():
                record = normalise_record(entry)
                counts.no_pmid += bool(entry.pmid and not record.paper.pmid)
                yield record
            case DeletedRecords():
                counts.deleted += entry.n
            case UnreadableRecord() if skip_bad:
                counts.bad = (*counts.bad, entry)
            case UnreadableRecord():
                raise DatasetError(
                    f"{counts.source} record {entry.number}: {entry.reason}; "
                    "correct it, or leave such records out with --skip-bad."
                )


def _batches(
    records: Iterator[NormalisedRecord],
) -> Iterator[Sequence[NormalisedRecord]]:
    while batch := tuple(islice(records, BATCH)):
        yield batch
