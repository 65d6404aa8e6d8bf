"""Opens a paper database, read-only for a run or to add papers.

The content hash covers all papers: two databases with the same hash give the same
results for every query.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from hashlib import sha256
from importlib.resources import files
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Final

import msgspec

from jobs.review_benchmark.database.papers import DatabasePaper, paper_of
from runner.errors import DatasetError
from store.statements import statements_by_name

_FOLDER = files("jobs.review_benchmark.database").joinpath("sql")

SCHEMA: Final = _FOLDER.joinpath("schema.sql").read_text(encoding="utf-8")

SQL: Final[Mapping[str, str]] = statements_by_name(
    _FOLDER.joinpath("queries.sql").read_text(encoding="utf-8")
)


APPLICATION_ID = 0x45564C44
"""Marks the file's header as a paper database."""

SCHEMA_VERSION = "1"

TIMEOUT_S = 5.0
"""Longest wait while another process writes."""


def reader(path: Path) -> sqlite3.Connection:
    """Return a read-only connection, for one thread at a time.

    Raises:
        DatasetError: the file is missing or no paper database, or an import into it is
            under way.
    """
    if not path.is_file():
        raise DatasetError(
            f"{path}: no such file (siftlog prepare review-benchmark import "
            "--database FILE makes one)."
        )
    return _check_schema(
        sqlite3.connect(
            f"{path.resolve().as_uri()}?mode=ro",
            TIMEOUT_S,
            uri=True,
            check_same_thread=False,
        ),
        path,
    )


def writer(path: Path) -> sqlite3.Connection:
    """Return a connection that writes; a missing file is created.

    Raises:
        DatasetError: the file is something else, or cannot be written.
    """
    try:
        connection = sqlite3.connect(path, TIMEOUT_S, isolation_level=None)
        (tables,) = connection.execute(SQL["tables"]).fetchone()
        if not tables:
            _create_schema(connection)
    except sqlite3.Error as error:
        raise DatasetError(
            f"{path}: {error} (name a file of its own with --database)."
        ) from error
    connection = _check_schema(connection, path)
    connection.execute(SQL["cache"])
    return connection


def unreadable(path: Path, error: sqlite3.OperationalError) -> DatasetError:
    """Return the error for a failed statement.

    Another process is writing, or something in the database is missing, such as an
    index.
    """
    # the low byte is the primary error code, the rest a detail
    if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_ERROR:
        return DatasetError(
            f"{path}: {error} (the paper database is not whole: siftlog prepare "
            "review-benchmark import --database FILE makes a new one)."
        )
    return DatasetError(
        f"{path}: {error} (wait until the import has finished, and try again)."
    )


def _create_schema(connection: sqlite3.Connection) -> None:
    connection.execute(SQL["set_application_id"])
    connection.executescript(SCHEMA)
    connection.execute(SQL["set_meta"], ("schema_version", SCHEMA_VERSION))


def _check_schema(connection: sqlite3.Connection, path: Path) -> sqlite3.Connection:
    try:
        (application_id,) = connection.execute(SQL["application_id"]).fetchone()
        version = (
            connection.execute(SQL["meta"], ("schema_version",)).fetchone()
            if application_id == APPLICATION_ID
            else None
        )
    except sqlite3.OperationalError as error:
        with closing(connection):
            raise unreadable(path, error) from error
    except sqlite3.DatabaseError:
        version = None
    if version != (SCHEMA_VERSION,):
        with closing(connection):
            raise DatasetError(
                f"{path}: not a paper database of this version (siftlog prepare "
                "review-benchmark import --database FILE makes one)."
            )
    return connection


def content_hash(connection: sqlite3.Connection) -> str:
    """Return the SHA-256 of the papers with their titles, in the order of their ids."""
    digest = sha256()
    # both are ordered by paper, so that only one paper's titles are in memory
    titles = groupby(connection.execute(SQL["titles"]), key=itemgetter(0))
    paper, group = next(titles, _NO_TITLES)
    for row in connection.execute(SQL["papers"]):
        its_titles: list[str] = []
        if row[0] == paper:
            its_titles = [title for _, title in group]
            paper, group = next(titles, _NO_TITLES)
        digest.update(msgspec.json.encode((*row, its_titles)))
    return digest.hexdigest()


_NO_TITLES: Final[tuple[None, tuple[()]]] = None, ()


class PaperDatabase:
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
        """Hash of all papers; computed if an import was interrupted."""
        row = self._connection.execute(SQL["meta"], ("content_hash",)).fetchone()
        return row[0] if row else content_hash(self._connection)

    def __len__(self) -> int:
        return int(self._connection.execute(SQL["n_papers"]).fetchone()[0])

    def paper(self, number: int) -> DatabasePaper | None:
        """Return a paper by its id."""
        row = self._execute("kept", number).fetchone()
        return None if row is None else paper_of(row)

    def by_pmid(self, pmid: str) -> int | None:
        """Return the id of the paper with a PMID, in normal form."""
        return self._id("id_by_pmid", pmid)

    def by_doi(self, doi: str) -> int | None:
        """Return the id of the paper with a DOI, in normal form."""
        return self._id("id_by_doi", doi)

    def titles_within(
        self, shortest: int, longest: int, at_once: int
    ) -> Iterator[list[tuple[int, str]]]:
        """Yield papers and titles of such a length, *at_once* at a time, by length."""
        cursor = self._connection.execute(SQL["titles_within"], (shortest, longest))
        while block := cursor.fetchmany(at_once):
            yield block

    def titles_of(self, number: int) -> list[str]:
        """Return every title of a paper, in normal form."""
        cursor = self._connection.execute(SQL["titles_of"], (number,))
        return [title for (title,) in cursor]

    def papers(self) -> Iterator[DatabasePaper]:
        """Yield all papers by id."""
        return map(paper_of, self._connection.execute(SQL["papers"]))

    def titled(self, title: str) -> list[int]:
        """Return the ids of the papers with a title, in normal form."""
        cursor = self._connection.execute(SQL["ids_by_title"], (title,))
        return [number for (number,) in cursor]

    def search(
        self,
        expression: str,
        years: tuple[int, int],
        at_most: int,
        *,
        with_reviews: bool = True,
    ) -> list[int]:
        """Return ids of matching papers, best first by BM25 (title twice), then by id.

        Args:
            expression: in FTS5 syntax, as `expression` builds it from a query.
            years: from and to; papers without a year match any.
            at_most: largest number of ids.
            with_reviews: whether Cochrane reviews are included.

        Raises:
            DatasetError: papers were imported since the database was opened; all
                reviews of a run must search the same papers.
        """
        if self._version() != self._opened:
            raise DatasetError(
                f"{self.path}: it was changed by an import in the meantime "
                "(siftlog resume goes on with a run if the papers are the "
                "same)."
            )
        cursor = self._execute("search", expression, *years, at_most, with_reviews)
        return [number for (number,) in cursor]

    def n_hits(self, expression: str) -> int:
        """Count the matching papers of all years."""
        return int(self._connection.execute(SQL["n_hits"], (expression,)).fetchone()[0])

    def fits(self, number: int, expression: str) -> bool:
        """Return whether an FTS5 expression matches a paper."""
        cursor = self._execute("fits", expression, number)
        return cursor.fetchone() is not None

    def _version(self) -> int:
        """Return a number that every change by another process changes."""
        return int(self._execute("data_version").fetchone()[0])

    def _execute(self, name: str, *values: str | int) -> sqlite3.Cursor:
        """Execute a statement of a run; another process may be writing."""
        try:
            return self._connection.execute(SQL[name], values)
        except sqlite3.OperationalError as error:
            raise unreadable(self.path, error) from error

    def _id(self, name: str, value: str) -> int | None:
        row = self._connection.execute(SQL[name], (value,)).fetchone()
        return None if row is None else row[0]
