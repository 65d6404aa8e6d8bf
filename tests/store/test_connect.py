"""What is said of a log that may not be opened."""

from __future__ import annotations

import os
import resource
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from store.database import open_reader, unreadable
from store.errors import CorruptLog, StoreError
from store.time_travel import LogPrefix, moment_of
from tests.store.logs import written
from tests.store.samples import RUN_STARTED


def test_with_too_many_files_open_no_log_is_called_damaged(tmp_path: Path) -> None:
    path = written(tmp_path / "log.db", [RUN_STARTED])
    free = os.dup(0)
    os.close(free)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, limits[1]))
    try:
        with pytest.raises(StoreError, match="not too many files are open") as caught:
            open_reader(path)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert not isinstance(caught.value, CorruptLog)


def test_what_sqlite_quotes_of_a_statement_stays_on_one_line() -> None:
    quoted = sqlite3.DatabaseError('unrecognized token: ""KEY(a, b)\n) STRICT"')
    said = str(unreadable(Path("log.db"), quoted))
    assert said.startswith('log.db cannot be read (unrecognized token: ""KEY(a, b) )')
    assert len(said.splitlines()) == 1


def test_no_reader_can_write_anywhere(tmp_path: Path) -> None:
    path = written(tmp_path / "log.db", [RUN_STARTED])
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as conn:
        conn.execute("CREATE TABLE theirs(x)")
    before = other.read_bytes()
    with LogPrefix(path) as prefix, open_reader(path) as whole:
        prefix.move_to(moment_of(whole, 1))
        for reader in (open_reader(path), prefix.open_reader()):
            with closing(reader):
                assert reader.execute("PRAGMA query_only").fetchone() == (1,)
                # what is attached is not protected by the way the log was opened
                reader.execute("ATTACH ? AS other", (str(other),))
                for statement in (
                    "INSERT INTO other.theirs VALUES (1)",
                    "CREATE TEMP TABLE mine(x)",
                    "DELETE FROM event",
                ):
                    with pytest.raises(
                        sqlite3.OperationalError, match=r"readonly|view"
                    ):
                        reader.execute(statement)
    assert other.read_bytes() == before
