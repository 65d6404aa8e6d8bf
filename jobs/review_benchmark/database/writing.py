"""Adds the records of files to the database, a file in one transaction."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice

from jobs.review_benchmark.database.merging import Merged, Sought, merged, sought
from jobs.review_benchmark.database.paper import BadEntry, Deleted, Entry, Found
from jobs.review_benchmark.database.shelf import Shelf
from jobs.review_benchmark.database.signature import content_hash
from jobs.review_benchmark.database.statements import SQL
from runner.errors import DatasetError

BATCH = 500
"""Records that are looked up and written at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """What a file brought."""

    source: str  #: name of the file
    records: int  #: that could be read
    papers: int  #: that were new
    merged: Mapping[str, int]  #: records by how they were found to be known
    conflicts: int  #: records whose DOI belonged to another paper
    titles: int  #: further titles of papers that had one
    no_pmid: int = 0  #: records whose PMID holds no PubMed number; they go without
    deleted: int = 0  #: papers that the file says to have been deleted; they stay
    bad: tuple[BadEntry, ...] = ()  #: records that were left out


class Writing:
    """Adds to a database."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def add(self, source: str, found: Iterable[Found], *, skip_bad: bool) -> Added:
        """Add a file's records, all of them or none.

        Args:
            source: name of the file.
            found: its records.
            skip_bad: leave out what cannot be read, and say so.

        Raises:
            DatasetError: a record cannot be read and must not be left out.
        """
        tally = _Tally(source=source)
        with self._transaction():
            self._connection.execute(SQL["forget"], ("content_hash",))
            shelf = Shelf(self._connection, source)
            for records in _batches(_good(found, tally, skip_bad=skip_bad)):
                shelf.fetch(records)
                for record in records:
                    place = merged(record, shelf)
                    shelf.put(record, place)
                    tally.count(place)
                shelf.flush()
        return tally.added(shelf.further_titles)

    def sign(self) -> str:
        """Hash all papers, keep the hash, and return it.

        Until then the database has none: it was lost with the first record added.
        """
        found = content_hash(self._connection)
        with self._transaction():
            self._connection.execute(SQL["set_meta"], ("content_hash", found))
        return found

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute(SQL["begin"])
        try:
            yield
            self._connection.execute(SQL["commit"])
        except BaseException:
            # a full disk has rolled back already
            if self._connection.in_transaction:
                self._connection.execute(SQL["rollback"])
            raise


class _Tally:
    """Counts what a file brings."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.bad: list[BadEntry] = []
        self.deleted = self.no_pmid = 0
        self._records = self._papers = self._conflicts = 0
        self._by: Counter[str] = Counter()

    def count(self, place: Merged) -> None:
        """Count a record by where it went."""
        self._records += 1
        self._conflicts += place.is_conflict
        if place.by is None:
            self._papers += 1
        else:
            self._by[place.by] += 1

    def added(self, titles: int) -> Added:
        """The counts, with that of further titles."""
        return Added(
            source=self.source,
            records=self._records,
            papers=self._papers,
            merged=dict(sorted(self._by.items())),
            conflicts=self._conflicts,
            titles=titles,
            no_pmid=self.no_pmid,
            deleted=self.deleted,
            bad=tuple(self.bad),
        )


def _good(found: Iterable[Found], tally: _Tally, *, skip_bad: bool) -> Iterator[Sought]:
    """The records that can be read, in normal form."""
    for each in found:
        match each:
            case Entry():
                record = sought(each)
                tally.no_pmid += bool(each.pmid and not record.paper.pmid)
                yield record
            case Deleted():
                tally.deleted += each.n
            case BadEntry() if skip_bad:
                tally.bad.append(each)
            case BadEntry():
                raise DatasetError(
                    f"{tally.source} record {each.number}: {each.reason}; correct it, "
                    "or leave such records out with --skip-bad."
                )


def _batches(records: Iterator[Sought]) -> Iterator[Sequence[Sought]]:
    while batch := tuple(islice(records, BATCH)):
        yield batch
