"""Reads a log in a thread with a connection of its own.

The loop that draws never waits for a database: it awaits an answer from here. Whoever
stops waiting, because the question changed, thereby stops the query too.

A file that was deleted can be read on by whoever has it open, and one that stands in
its place is another run: neither may look as if nothing had happened.
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
    """A run's log, by what tells a file from another in its place."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._seen: tuple[int, int] | None = None

    def check(self) -> None:
        """See that it is there, and the same as before.

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

#: Steps of SQLite's machine between two looks at whether anybody still waits: well
#: below a millisecond. `Connection.interrupt` would be lost between two statements.
_STEPS = 10_000


class LogConnection:
    """Answers questions to one log, one after another.

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
        """What *view* says of the log; cancelling this stops it.

        Raises:
            StoreError: the log is gone or another file, cannot be opened, or read.
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
        """Stop what is running, and let go of the log."""
        for stop in self._stops:
            stop.set()
        self._thread.submit(self._let_go)
        self._thread.shutdown()

    def _opened(self, stop: threading.Event) -> LogReader:
        """A connection to the file that is there now."""
        try:
            self._file.check()
        except StoreError:
            self._let_go()  # what was deleted would keep its room on the disk
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
