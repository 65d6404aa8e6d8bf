"""A log as it was after one of its events: what looking back reads.

The projections of a prefix are folded from its events into a file of their own, by the
code that folds them live. A reader of that file sees the log's own events up to there,
with their bodies, under their usual names: every function that reads a log answers of
the past as it did when that was the present. The log itself is only read.
"""

from __future__ import annotations

import shutil
import socket
import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self

from store.connect import Reader, connect, open_reader, read_only
from store.errors import StoreError
from store.moment import Moment
from store.rebuild import fold_between, fresh_tables
from store.statements import SQL, script

#: No disk is waited for: what is lost with the machine is folded again.
_PRAGMAS = ("page_size", "journal_mode", "no_sync", "fold_cache")


class Prefix:
    """The projections of a log up to a moment, which may be moved on.

    All methods but `open_reader` belong to one thread.
    """

    def __init__(self, log: Path, *, saved: Path | None = None) -> None:
        """Projections of no event yet, or those that were saved.

        Args:
            log: what is looked back on.
            saved: a file that `save` made of the same log.

        Raises:
            StoreError: the log cannot be opened, or no temporary file be made.
        """
        self._log = log
        with ExitStack() as opened:
            self._events = opened.enter_context(open_reader(log))
            try:
                room = opened.enter_context(TemporaryDirectory(prefix="siftlog-"))
                self._file = Path(room, "prefix.db")
                if saved is not None:
                    shutil.copyfile(saved, self._file)
                self._conn = opened.enter_context(closing(connect(self._file)))
                self.seq = _prepared(self._events, self._conn)  #: the last event in it
            except (OSError, sqlite3.Error) as error:
                raise StoreError(
                    f"there is no room for looking back ({error}): make some for "
                    "temporary files, or set TMPDIR to a folder that has it"
                ) from error
            self._opened = opened.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def move_to(
        self,
        moment: Moment,
        *,
        is_wanted: Callable[[int], bool] = lambda _: True,
        commit_in: AbstractContextManager[object] | None = None,
    ) -> bool:
        """Bring the projections to a later moment, in one commit.

        Args:
            moment: not before the one they are of.
            is_wanted: asked now and then with the event that was reached; once it says
                no, everything stays as it was.
            commit_in: entered for the commit alone, before which readers see the
                earlier moment and after which they see the later one.

        Returns:
            Whether they are of that moment now.

        Raises:
            CorruptLog: an event is damaged.
            IllegalMove: an event does not fit those before it.
        """
        conn = self._conn
        conn.execute(SQL["begin"])
        try:
            steps = fold_between(self._events, conn, self.seq, moment.seq)
            if all(map(is_wanted, steps)):
                sign = (moment.beat_us, moment.epoch, 0, socket.gethostname())
                conn.execute(SQL["set_heartbeat"], sign)
                with commit_in or nullcontext():
                    conn.execute(SQL["commit"])
                self.seq = moment.seq
        finally:
            if conn.in_transaction:
                conn.execute(SQL["rollback"])
        return self.seq == moment.seq

    def save(self, file: Path) -> None:
        """Keep the projections as they are in another file."""
        with closing(connect(file)) as copy:
            self._conn.backup(copy)

    def open_reader(self) -> Reader:
        """A connection that sees the log as it was at the moment moved to last.

        It follows the prefix when that moves on; close it before the prefix.

        Raises:
            StoreError: the prefix was closed.
        """
        origin = self._events.copied_to
        log = self._log if origin is None else Path(origin.name, self._log.name)
        reader = read_only(self._file)
        reader.path = self._log
        reader.execute(SQL["attach_log"], (f"{log.absolute().as_uri()}?mode=ro",))
        for statement in script("prefix"):
            reader.execute(statement)
        for pragma in ("query_only", "reader_timeout", "reader_cache"):
            reader.execute(SQL[pragma])
        return reader

    def close(self) -> None:
        """Let go of the log, and remove the file; harmless when repeated."""
        self._opened.close()


def _prepared(log: sqlite3.Connection, conn: sqlite3.Connection) -> int:
    """Set a connection up; the last event in its projections, which are made if new."""
    for pragma in _PRAGMAS:
        conn.execute(SQL[pragma]).fetchone()
    (tables,) = conn.execute(SQL["tables"]).fetchone()
    if not tables:
        conn.execute(SQL["begin"])
        for statement in script("schema"):
            conn.execute(statement)
        fresh_tables(log, conn)
        for statement in script("indexes"):
            conn.execute(statement)
        conn.execute(SQL["commit"])
    folded = conn.execute(SQL["projection"]).fetchone()
    return 0 if folded is None else int(folded[1])
