"""A log as one file of its own, taken at one moment, also while it is being written."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

from store.connect import open_reader
from store.errors import StoreError
from store.statements import SQL

#: What SQLite says where the copy, and not the log, is what it cannot write.
_NO_ROOM = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN}

#: Of SQLite's machine, between two looks at how far it is: some 10 ms.
STEPS = 100_000


def copy_log(source: Path, target: Path, progress: Callable[[str], None]) -> None:
    """Write what a log holds now to *target*, where no file is yet.

    The copy holds all that was committed and nothing of what was freed, without a
    WAL: the same events give the same bytes, by the same SQLite. The source's writer
    is not held up; its WAL may grow until the copy is whole.

    Args:
        source: the log.
        target: the new file.
        progress: is told in a line how far this is.

    Raises:
        NoSuchRun: there is no log.
        NotALog: *source* is something else.
        CorruptLog: it cannot be read.
        StoreError: the copy cannot be written.
    """
    watch = _Watch(target, progress)
    with open_reader(source) as reader:
        # that forbids writing any file; the log itself is open for reading only
        reader.execute(SQL["query_any"])
        reader.set_progress_handler(watch.look, STEPS)
        try:
            reader.execute(SQL["copy_into"], (str(target.absolute()),))
        except sqlite3.OperationalError as error:
            if watch.stopped is not None:
                raise watch.stopped from None
            if error.sqlite_errorcode & 0xFF not in _NO_ROOM:
                raise
            raise StoreError(
                f"{source} cannot be copied to {target.parent} ({error}): make room "
                "there, or choose another folder"
            ) from error


class _Watch:
    """Looks at a copy while SQLite makes it; the only moments for a Ctrl-C, too."""

    def __init__(self, target: Path, progress: Callable[[str], None]) -> None:
        self._target = target
        self._progress = progress
        self.stopped: BaseException | None = None

    def look(self) -> int:
        """Tell how far it is; anything but 0 ends the statement.

        SQLite would make a mere "interrupted" of an exception, so it is kept for later.
        """
        try:
            size = self._target.stat().st_size if self._target.exists() else 0
            self._progress(f"{size / 1e6:,.0f} MB of the log copied")
        except BaseException as stop:  # noqa: BLE001 - raised again by `copy_log`
            self.stopped = stop
            return 1
        return 0
