"""Adds the records of files to the database, a file in one transaction."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from jobs.review_benchmark.database.merging import Merged, merged
from jobs.review_benchmark.database.paper import (
    BadEntry,
    Deleted,
    Found,
    Paper,
    paper_of,
)
from jobs.review_benchmark.database.signature import content_hash
from jobs.review_benchmark.database.statements import SQL
from runner.errors import DatasetError


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """What a file brought."""

    source: str  #: name of the file
    records: int  #: that could be read
    papers: int  #: that were new
    merged: Mapping[str, int]  #: records by how they were found to be known
    conflicts: int  #: records whose DOI belonged to another paper
    titles: int  #: further titles of papers that had one
    deleted: int = 0  #: papers that the file says to have been deleted; they stay
    bad: tuple[BadEntry, ...] = ()  #: records that were left out


class Writing:
    """The papers so far, and how to add to them; a `merging.Known`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def add(self, source: str, entries: Iterable[Found], *, skip_bad: bool) -> Added:
        """Add a file's records, all of them or none.

        Args:
            source: name of the file.
            entries: its records.
            skip_bad: leave out what cannot be read, and say so.

        Raises:
            DatasetError: a record cannot be read and must not be left out.
        """
        bad: list[BadEntry] = []
        counts: Counter[str] = Counter()
        by: Counter[str] = Counter()
        with self._transaction():
            self._connection.execute(SQL["forget"], ("content_hash",))
            for entry in entries:
                if isinstance(entry, BadEntry):
                    if not skip_bad:
                        raise DatasetError(
                            f"{source} record {entry.number}: {entry.reason} (correct "
                            "it, or leave such records out with --skip-bad)."
                        )
                    bad.append(entry)
                    continue
                if isinstance(entry, Deleted):
                    counts["deleted"] += entry.n
                    continue
                found = merged(entry, self)
                counts["records"] += 1
                counts["conflicts"] += found.is_conflict
                if found.by is not None:
                    by[found.by] += 1
                counts["titles"] += self._write(found, source, entry.source_id)
        return Added(
            source=source,
            records=counts["records"],
            papers=counts["records"] - by.total(),
            merged=dict(sorted(by.items())),
            conflicts=counts["conflicts"],
            titles=counts["titles"],
            deleted=counts["deleted"],
            bad=tuple(bad),
        )

    def sign(self) -> str:
        """Hash all papers, keep the hash, and return it.

        Until then the database has none: it was lost with the first record added.
        """
        found = content_hash(self._connection)
        with self._transaction():
            self._connection.execute(SQL["set_meta"], ("content_hash", found))
        return found

    def by_pmid(self, pmid: str) -> Paper | None:
        """The paper with a PMID."""
        return self._paper("id_by_pmid", pmid)

    def by_doi(self, doi: str) -> Paper | None:
        """The paper with a DOI."""
        return self._paper("id_by_doi", doi)

    def by_title(self, title: str, year: int | None) -> Paper | None:
        """The first paper with a title and a year; a missing one equals none."""
        return self._paper("id_by_title", title, year)

    def _paper(self, name: str, *values: str | int | None) -> Paper | None:
        found = self._connection.execute(SQL[name], values).fetchone()
        if found is None or found[0] is None:
            return None
        return paper_of(self._connection.execute(SQL["kept"], found).fetchone())

    def _write(self, found: Merged, source: str, source_id: str) -> int:
        """Write one record; 1 where it brought a further title."""
        before, after = found.before, found.after
        execute = self._connection.execute
        if before is None:
            made = execute(
                SQL["add"],
                (
                    after.pmid or None,
                    after.doi or None,
                    after.title,
                    after.abstract,
                    after.authors,
                    after.journal,
                    after.year,
                ),
            )
            paper = made.lastrowid
        else:
            paper = before.id
            self._fill(before, after)
        execute(SQL["add_source"], (paper, source, source_id))
        if not found.title:
            return 0
        new = execute(SQL["add_title"], (paper, found.title, len(found.title)))
        return int(new.rowcount > 0 and before is not None and bool(before.title))

    def _fill(self, before: Paper, after: Paper) -> None:
        execute = self._connection.execute
        if before.pmid != after.pmid:
            execute(SQL["fill_pmid"], (after.id, after.pmid))
        if before.doi != after.doi:
            execute(SQL["fill_doi"], (after.id, after.doi))
        if (before.title, before.abstract) != (after.title, after.abstract):
            execute(SQL["fill_texts"], (after.id, after.title, after.abstract))
        rest = (after.authors, after.journal, after.year)
        if (before.authors, before.journal, before.year) != rest:
            execute(SQL["fill_rest"], (after.id, *rest))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute(SQL["begin"])
        try:
            yield
        except BaseException:
            self._connection.execute(SQL["rollback"])
            raise
        self._connection.execute(SQL["commit"])
