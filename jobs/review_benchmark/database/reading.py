"""The paper database as a run reads it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

from jobs.review_benchmark.database.connection import reader, unreadable
from jobs.review_benchmark.database.paper import Paper, paper_of
from jobs.review_benchmark.database.signature import content_hash
from jobs.review_benchmark.database.statements import SQL
from runner.errors import DatasetError


class Database:
    """Papers by id, PMID, DOI and title, and full-text search; read-only."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection = reader(path)
        self._opened = self._version()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    @property
    def content_hash(self) -> str:
        """The hash of all papers; computed where an import was cut off."""
        found = self._connection.execute(SQL["meta"], ("content_hash",)).fetchone()
        return found[0] if found else content_hash(self._connection)

    def __len__(self) -> int:
        return int(self._connection.execute(SQL["n_papers"]).fetchone()[0])

    def paper(self, number: int) -> Paper | None:
        """A paper by its id."""
        row = self._execute("kept", number).fetchone()
        return None if row is None else paper_of(row)

    def by_pmid(self, pmid: str) -> int | None:
        """Id of the paper with a PMID, in normal form."""
        return self._id("id_by_pmid", pmid)

    def by_doi(self, doi: str) -> int | None:
        """Id of the paper with a DOI, in normal form."""
        return self._id("id_by_doi", doi)

    def titles_within(
        self, shortest: int, longest: int, at_once: int
    ) -> Iterator[list[tuple[int, str]]]:
        """Papers and titles of so many characters, *at_once* at a time, by length."""
        found = self._connection.execute(SQL["titles_within"], (shortest, longest))
        while block := found.fetchmany(at_once):
            yield block

    def titles_of(self, number: int) -> list[str]:
        """Every title of a paper, in normal form."""
        found = self._connection.execute(SQL["titles_of"], (number,))
        return [title for (title,) in found]

    def papers(self) -> Iterator[Paper]:
        """All papers by id."""
        return map(paper_of, self._connection.execute(SQL["papers"]))

    def titled(self, title: str) -> list[int]:
        """Ids of the papers with a title, in normal form."""
        found = self._connection.execute(SQL["ids_by_title"], (title,))
        return [number for (number,) in found]

    def search(
        self,
        expression: str,
        years: tuple[int, int],
        at_most: int,
        *,
        with_reviews: bool = True,
    ) -> list[int]:
        """Ids of the papers that fit, best first by BM25 (title twice), then by id.

        Args:
            expression: of FTS5, as `expression` makes it of a query.
            years: from and to; papers without a year fit any.
            at_most: how many.
            with_reviews: Cochrane reviews are papers too.

        Raises:
            DatasetError: papers were imported since it was opened: all reviews of a
                run are searched in the same ones.
        """
        if self._version() != self._opened:
            raise DatasetError(
                f"{self.path}: somebody imported into it meanwhile (siftlog resume "
                "goes on with a run if the papers are the same)."
            )
        found = self._execute("search", expression, *years, at_most, with_reviews)
        return [number for (number,) in found]

    def n_hits(self, expression: str) -> int:
        """How many papers fit, of any year."""
        return int(self._connection.execute(SQL["n_hits"], (expression,)).fetchone()[0])

    def fits(self, number: int, expression: str) -> bool:
        """Whether a paper is one that an expression of FTS5 finds."""
        found = self._execute("fits", expression, number)
        return found.fetchone() is not None

    def _version(self) -> int:
        """Another number after every change that another process makes."""
        return int(self._execute("data_version").fetchone()[0])

    def _execute(self, name: str, *values: str | int) -> sqlite3.Cursor:
        """A statement of those that a run asks while others may write."""
        try:
            return self._connection.execute(SQL[name], values)
        except sqlite3.OperationalError as error:
            raise unreadable(self.path, error) from error

    def _id(self, name: str, value: str) -> int | None:
        found = self._connection.execute(SQL[name], (value,)).fetchone()
        return None if found is None else found[0]
