"""Opens a paper database, to read it or to add to it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from jobs.review_benchmark.database.statements import SCHEMA, SQL
from runner.errors import DatasetError

APPLICATION_ID = 0x45564C44
"""In the file's header: what tells it from any other database."""

SCHEMA_VERSION = "1"

PATIENCE_S = 5.0
"""How long to wait while another process writes."""


def reader(path: Path) -> sqlite3.Connection:
    """A read-only connection, for any thread that holds it alone.

    Raises:
        DatasetError: there is no such file, it is no paper database, or somebody is
            importing into it.
    """
    if not path.is_file():
        raise DatasetError(
            f"{path}: no such file (siftlog prepare review-benchmark import "
            "--database FILE makes one)."
        )
    return _checked(
        sqlite3.connect(
            f"{path.resolve().as_uri()}?mode=ro",
            PATIENCE_S,
            uri=True,
            check_same_thread=False,
        ),
        path,
    )


def writer(path: Path) -> sqlite3.Connection:
    """A connection that writes; the file is made where there is none.

    Raises:
        DatasetError: the file is something else, or cannot be written.
    """
    try:
        connection = sqlite3.connect(path, PATIENCE_S, isolation_level=None)
        (tables,) = connection.execute(SQL["tables"]).fetchone()
        if not tables:
            _made(connection)
    except sqlite3.Error as error:
        raise DatasetError(
            f"{path}: {error} (name a file of its own with --database)."
        ) from error
    connection = _checked(connection, path)
    connection.execute(SQL["cache"])
    return connection


def unreadable(path: Path, error: sqlite3.OperationalError) -> DatasetError:
    """What to say where a statement fails.

    Another process writes, or what the statement reads is missing, such as an index.
    """
    # the low byte is the kind, what is above it a detail
    if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_ERROR:
        return DatasetError(
            f"{path}: {error} (the paper database is not whole: siftlog prepare "
            "review-benchmark import --database FILE makes a new one)."
        )
    return DatasetError(
        f"{path}: {error} (wait until nobody imports into it, and try again)."
    )


def _made(connection: sqlite3.Connection) -> None:
    connection.execute(SQL["set_application_id"])
    connection.executescript(SCHEMA)
    connection.execute(SQL["set_meta"], ("schema_version", SCHEMA_VERSION))


def _checked(connection: sqlite3.Connection, path: Path) -> sqlite3.Connection:
    try:
        (found,) = connection.execute(SQL["application_id"]).fetchone()
        version = (
            connection.execute(SQL["meta"], ("schema_version",)).fetchone()
            if found == APPLICATION_ID
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
