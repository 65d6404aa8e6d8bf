"""Reads a log in a thread with a separate connection.

The drawing loop never waits for a database: it awaits an answer from here. Cancelling
the wait also stops the query.

A deleted file stays readable while it is open, and a file that replaced it is another
run: both must be detected.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Concatenate, ParamSpec, TypeVar

from store.database import LogReader, unreadable
from store.errors import StoreError
from store.runs import RunFolder


class SameFile:
    """Identity of a run's log file."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._seen: tuple[int, int] | None = None

    def check(self) -> None:
        """Check that the file exists and is the same as before.

        Raises:
            StoreError: it is not.
        """
        run_id = self._folder.run_id
        try:
            file_stat = os.stat(self._folder.log)  # noqa: PTH116 - its numbers, not the path
        except PermissionError as error:
            raise StoreError(
                f"the folder of {run_id} is not accessible: ask its owner "
                "for read permission"
            ) from error
        except OSError as error:
            raise StoreError(
                f"the log of {run_id} was deleted or moved: list runs with "
                "'siftlog runs'"
            ) from error
        identity = file_stat.st_dev, file_stat.st_ino
        if self._seen not in {None, identity}:
            raise StoreError(
                f"the log of {run_id} is another file by now: leave, and watch the run "
                "again to see that one"
            )
        self._seen = identity


_P = ParamSpec("_P")
_T = TypeVar("_T")

#: Steps of SQLite's virtual machine between checks for cancellation: well below a
#: millisecond. `Connection.interrupt` would be lost between two statements.
_STEPS = 10_000


class LogConnection:
    """Runs queries on one log, one after another.

    Example::

        rows = await reading.ask(views.tasks, query, limit=100)
    """

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._file = SameFile(folder)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="reading")
        self._reader: LogReader | None = None
        self._stops: set[threading.Event] = set()

    async def ask(
        self,
        view: Callable[Concatenate[sqlite3.Connection, _P], _T],
        *args: _P.args,
        **kwargs: _P.kwargs,
    ) -> _T:
        """Run *view* on the log; cancelling this stops it.

        Raises:
            StoreError: the log is missing, replaced, or unreadable.
            sqlite3.DatabaseError: this was closed meanwhile.
        """
        stop = threading.Event()

        def work() -> _T:
            try:
                return view(self._opened(stop), *args, **kwargs)
            except sqlite3.DatabaseError as error:
                if stop.is_set():
                    raise
                raise unreadable(self._folder.log, error) from error

        self._stops.add(stop)
        try:
            return await asyncio.wrap_future(self._thread.submit(work))
        except asyncio.CancelledError:
            stop.set()
            raise
        finally:
            self._stops.discard(stop)

    def close(self) -> None:
        """Stop the running query, and close the log."""
        for stop in self._stops:
            stop.set()
        self._thread.submit(self._let_go)
        self._thread.shutdown()

    def _opened(self, stop: threading.Event) -> LogReader:
        """Return a connection to the current file."""
        try:
            self._file.check()
        except StoreError:
            self._let_go()  # an open deleted file would keep its disk space
            raise
        if self._reader is not None and self._reader.is_outdated():
            self._let_go()
        if self._reader is None:
            self._reader = self._folder.open_reader()
        self._reader.set_progress_handler(stop.is_set, _STEPS)
        return self._reader

    def _let_go(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None
