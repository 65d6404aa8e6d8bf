"""What is said of a log that may not be opened."""

from __future__ import annotations

import os
import resource
import sqlite3
from pathlib import Path

import pytest

from store.connect import unreadable
from store.errors import CorruptLog, StoreError
from store.views import open_reader
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
