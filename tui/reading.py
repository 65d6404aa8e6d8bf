"""A thread with a connection of its own, for reads that may take a while.

The loop that draws never waits for a database: it awaits an answer from here. Whoever
stops waiting, because the question changed, thereby stops the query too.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from store.connect import Reader, open_reader

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Reading:
    """Answers questions to one log, one after another.

    Example::

        rows = await reading.ask(views.tasks, query, limit=100)
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="reading")
        # guards what is running: an interruption must not hit the next question
        self._guard = threading.Lock()
        self._running: object | None = None
        self._reader: Reader | None = None

    async def ask(
        self,
        view: Callable[Concatenate[sqlite3.Connection, _P], _T],
        *args: _P.args,
        **kwargs: _P.kwargs,
    ) -> _T:
        """What *view* says of the log; cancelling this interrupts it.

        Raises:
            StoreError: the log cannot be opened.
            sqlite3.DatabaseError: it cannot be read.
        """
        token = object()

        def work() -> _T:
            if self._reader is None:
                self._reader = open_reader(self._path)
            with self._guard:
                self._running = token
            try:
                return view(self._reader, *args, **kwargs)
            finally:
                with self._guard:
                    self._running = None

        future = self._thread.submit(work)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            self._stop(token)
            raise

    def _stop(self, token: object) -> None:
        with self._guard:
            if self._running is token and self._reader is not None:
                self._reader.interrupt()

    def close(self) -> None:
        """Let go of the log, once what is running has stopped."""
        with self._guard:
            if self._running is not None and self._reader is not None:
                self._reader.interrupt()
        self._thread.submit(self._let_go)
        self._thread.shutdown(cancel_futures=False)

    def _let_go(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None
