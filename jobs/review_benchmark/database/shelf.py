"""The papers that some records may belong to, fetched and written many at a time.

One look-up and one statement a record would take most of an import's time.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace

import msgspec

from jobs.review_benchmark.database.merging import Merged, Sought
from jobs.review_benchmark.database.paper import Paper, paper_of
from jobs.review_benchmark.database.statements import SQL


class Shelf:
    """What the database has of a batch of records, as merging needs it.

    Fetch a batch, put each of its records where it belongs, and flush. Nobody else
    writes in the meantime: all is one transaction.
    """

    def __init__(self, connection: sqlite3.Connection, source: str) -> None:
        self.further_titles = 0  #: of papers that had one
        self._connection = connection
        self._source = source  #: name of the file
        (self._last_id,) = connection.execute(SQL["last_id"]).fetchone()
        self._papers: dict[int, Paper] = {}
        self._pmids: dict[str, int] = {}
        self._dois: dict[str, int] = {}
        self._new: dict[int, None] = {}
        self._stored: dict[int, Paper] = {}  #: of changed ones, as they are stored
        self._sources: list[tuple[int, str, str]] = []
        self._first: list[tuple[int, str, int]] = []
        self._further: list[tuple[int, str, int]] = []

    def fetch(self, records: Sequence[Sought]) -> None:
        """Hold the papers with the PMIDs and DOIs of records, and no others."""
        for held in (self._papers, self._pmids, self._dois):
            held.clear()
        papers = [record.paper for record in records]
        pmids = msgspec.json.encode([each.pmid for each in papers if each.pmid])
        dois = msgspec.json.encode([each.doi for each in papers if each.doi])
        wanted = (pmids.decode(), dois.decode())
        for row in self._connection.execute(SQL["kept_by_ids"], wanted):
            self._hold(paper_of(row))

    def by_pmid(self, pmid: str) -> Paper | None:
        """The paper with a PMID, one of the batch's."""
        found = self._pmids.get(pmid)
        return None if found is None else self._papers[found]

    def by_doi(self, doi: str) -> Paper | None:
        """The paper with a DOI, one of the batch's."""
        found = self._dois.get(doi)
        return None if found is None else self._papers[found]

    def by_title(self, record: Sought) -> Paper | None:
        """The paper that the record was made part of, or the first with its title.

        Only the database knows all titles, so what waits is written first; records
        without PMID and DOI are few.
        """
        self.flush()
        wanted = (record.title, record.paper.year, self._source, record.source_id)
        row = self._connection.execute(SQL["kept_by_title"], wanted).fetchone()
        return None if row is None else self._hold(paper_of(row))

    def put(self, record: Sought, found: Merged) -> None:
        """Take a record in where it was found to belong."""
        before, after = found.before, found.after
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
        """Write all that waits."""
        write = self._connection.executemany
        new = [self._papers[paper] for paper in self._new]
        changed = [
            (before, self._papers[paper]) for paper, before in self._stored.items()
        ]
        # the others need not be indexed again, which costs more than all else
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
        for listed in (self._sources, self._first, self._further):
            listed.clear()

    def _hold(self, paper: Paper) -> Paper:
        self._papers[paper.id] = paper
        if paper.pmid:
            self._pmids[paper.pmid] = paper.id
        if paper.doi:
            self._dois[paper.doi] = paper.id
        return paper


def _texts(paper: Paper) -> tuple[int, str, str]:
    """What is searched of a paper."""
    return paper.id, paper.title, paper.abstract
