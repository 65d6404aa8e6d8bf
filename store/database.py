"""Opens connections to a log, and locks it for its writer.

The writer takes its connection from a `Connector`, so that a test can run the same
writer on another SQLite with a file system that forgets unsynced writes.

The kernel gives the writer's lock back when its holder dies, however it dies, so a lock
is never stale. Across machines and mounts the epoch in the log is the fence.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Final, Literal, TypeAlias

from store.errors import (
    CorruptLog,
    LogBusy,
    NewerLog,
    NoSuchRun,
    NotALog,
    StoreError,
    Unwritable,
)
from store.filesystem import network_problem
from store.forked import BaseReader, ForkedBodies, serve_bodies, store_bodies
from store.statements import queries, script
from store.verdicts import outcome_tasks

SQL: Final[Mapping[str, str]] = queries("queries")
"""Every statement of the log's writer and readers."""


#: "EVLG", in the file's header: distinguishes a log from other SQLite files.
APPLICATION_ID = 0x45564C47
#: Version of the tables in `schema.sql`.
SCHEMA_VERSION = 1

#: A log in a read-only folder is copied for reading up to this size.
COPY_BYTES = 1 << 30

#: SQLite's message when it could not create its index of the WAL.
_NO_INDEX = {
    sqlite3.SQLITE_IOERR_SHMOPEN,
    sqlite3.SQLITE_IOERR_SHMSIZE,
    sqlite3.SQLITE_IOERR_SHMMAP,
}

Connector: TypeAlias = Callable[[Path], sqlite3.Connection]
"""Opens a file for writing, creating it where it is absent."""


def connect(path: Path) -> sqlite3.Connection:
    """The writer's connection, in autocommit: transactions are started explicitly."""
    return sqlite3.connect(path, isolation_level=None)


def _check_identity(conn: sqlite3.Connection, path: Path) -> None:
    """Refuse a file that is not a log of a version that this code can read.

    Raises:
        NotALog: it is no SQLite file, or another program's.
        NewerLog: its tables are of a later version.
        CorruptLog: its header cannot be read.
    """
    try:
        (application_id,) = conn.execute(SQL["application_id"]).fetchone()
        if application_id != APPLICATION_ID:
            raise NotALog(
                f"{path} is not a siftlog log: name a run's folder, or list the runs "
                "with 'siftlog runs'"
            )
        (version,) = conn.execute(SQL["schema_version"]).fetchone()
        is_newer = version > SCHEMA_VERSION
    except (sqlite3.DatabaseError, UnicodeDecodeError, TypeError) as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_NOTADB:
            raise NotALog(
                f"{path} is not a database: name a run's folder, or list the runs "
                "with 'siftlog runs'"
            ) from error
        raise unreadable(path, error) from error
    if is_newer:
        raise NewerLog(
            f"{path} was written by a later siftlog (tables of version {version}, "
            f"known up to {SCHEMA_VERSION}): upgrade siftlog"
        )


def unreadable(path: Path, error: Exception) -> StoreError:
    """Return the error message for a log that SQLite could not read."""
    extended = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
    code = extended & 0xFF
    reason = " ".join(str(error).split())  # it may quote a statement of several lines
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return StoreError(f"{path} is busy ({reason}): try again in a moment")
    if code == sqlite3.SQLITE_CANTOPEN:
        return StoreError(
            f"{path} cannot be opened ({reason}): check its permissions "
            "and the number of open files"
        )
    if code == sqlite3.SQLITE_FULL or extended in _NO_INDEX:
        return StoreError(
            f"{path} cannot be read ({reason}): free space on its disk, "
            "where SQLite keeps a small index"
        )
    return CorruptLog(
        f"{path} cannot be read ({reason}): see 'siftlog verify', then restore a copy "
        "of the run's folder"
    )


class LogReader(BaseReader):
    """A connection that is closed by the end of its `with` block."""

    path: Path  #: the log
    #: where the files were copied to, if they could not be read where they are
    copied_to: TemporaryDirectory[str] | None = None
    copied_as: tuple[tuple[int, int], ...] = ()  #: identity of these files
    forked: ForkedBodies | None = None  #: of a fork: the bodies that its parent has

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> Literal[False]:
        """Close it, where `sqlite3` would only commit.

        Raises:
            CorruptLog: the block met a damaged page or text.
            StoreError: it met a lock that was not lifted in time, or a failing disk.
        """
        self.close()
        if isinstance(error, sqlite3.DatabaseError):
            raise self.failure(error) from error
        return False

    def failure(self, error: sqlite3.DatabaseError) -> StoreError:
        """Return the error to raise; of a fork, the one of its parent's log if any."""
        if self.forked is not None and self.forked.failure is not None:
            return self.forked.failure
        return unreadable(self.path, error)

    def close(self) -> None:
        """Close it, and remove the copy that it reads, if it does."""
        super().close()
        if self.forked is not None:
            self.forked.close()
        if self.copied_to is not None:
            self.copied_to.cleanup()

    def is_outdated(self) -> bool:
        """Return whether it reads a copy of files that have changed since."""
        return self.copied_to is not None and self.copied_as != _stamps(
            _files(self.path)
        )


def open_reader(path: Path) -> LogReader:
    """Open a read-only connection; any number of readers can coexist with the writer.

    Use it in autocommit and fetch every answer whole: a cursor left open holds a
    snapshot, and the writer's WAL grows for as long.

        with open_reader(folder.log) as reader:
            print(status(reader).tasks.open)

    Raises:
        NoSuchRun: there is no such file (yet).
        NotALog: it belongs to another program.
        CorruptLog: it cannot be read.
        StoreError: it cannot be opened.
    """
    if not path.exists():
        raise NoSuchRun(f"there is no log at {path}: list the runs with 'siftlog runs'")
    conn = read_only(path)
    try:
        if _needs_copy(conn):
            conn.close()
            conn = _open_copy(path)
        _check_identity(conn, path)
        _add_missing_views(conn, path)
        conn.forked = serve_bodies(conn, path, open_reader)
        for pragma in ("query_only", "reader_timeout", "reader_cache"):
            conn.execute(SQL[pragma])
        # the verdicts that a filter names are in another file
        conn.create_function(
            "outcome_tasks", 1, partial(outcome_tasks, path), deterministic=True
        )
    except BaseException:
        conn.close()
        raise
    return conn


def _add_missing_views(conn: LogReader, path: Path) -> None:
    """Create the tables that an older log lacks as temporary views of the reader."""
    try:
        (has_queue_rows,) = conn.execute(SQL["has_lanes"]).fetchone()
        if not has_queue_rows:
            for statement in script("older"):
                conn.execute(statement)
        (has_reply_tally,) = conn.execute(SQL["has_reply_tally"]).fetchone()
        if not has_reply_tally:
            conn.execute(SQL["empty_reply_tally"])
    except sqlite3.DatabaseError as error:
        raise unreadable(path, error) from error


def add_public_views(conn: LogReader) -> None:
    """Make the public views that an older log lacks, in this connection alone."""
    conn.execute(SQL["query_any"])
    for statement in script("public"):
        name = _VIEW_NAME.search(statement)
        if name and not conn.execute(SQL["has_view"], (name[1],)).fetchone()[0]:
            conn.execute(_VIEW_NAME.sub(r"TEMP VIEW \1", statement, count=1))
    conn.execute(SQL["query_only"])


_VIEW_NAME: Final = re.compile(r"\bVIEW (\w+)")


def read_only(path: Path) -> LogReader:
    """Open a read-only connection to *path*, without checking its content.

    Raises:
        StoreError: it cannot be opened.
    """
    try:
        reader = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=ro",
            uri=True,
            isolation_level=None,
            factory=LogReader,
        )
    except sqlite3.OperationalError as error:
        raise unreadable(path, error) from error
    reader.path = path
    return reader


def _needs_copy(conn: LogReader) -> bool:
    """Return whether SQLite would need to write next to the log and cannot.

    SQLite keeps an index of the WAL in a separate file. In a read-only folder where no
    writer has left that file, it cannot create it.
    """
    try:
        conn.execute(SQL["application_id"]).fetchone()
    except sqlite3.OperationalError as error:
        primary = error.sqlite_errorcode & 0xFF
        return primary in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}
    except sqlite3.DatabaseError:
        pass  # `_check_identity` reports what is wrong with it
    return False


def _open_copy(path: Path) -> LogReader:
    files = _files(path)
    stamps = _stamps(files)
    if sum(file.stat().st_size for file in files) > COPY_BYTES:
        raise StoreError(
            f"{path} is in a read-only folder and too large for a "
            "temporary copy: copy the run's folder to a writable one"
        )
    folder = TemporaryDirectory(prefix="siftlog-")
    try:
        for file in files:
            shutil.copyfile(file, Path(folder.name, file.name))
    except OSError as error:
        folder.cleanup()
        raise StoreError(
            f"{path} is in a read-only folder and cannot be copied ("
            f"{error.strerror}): free space for temporary files"
        ) from error
    conn = read_only(Path(folder.name, path.name))
    conn.path, conn.copied_to, conn.copied_as = path, folder, stamps
    return conn


def _files(path: Path) -> list[Path]:
    """Those that a log consists of: without a writer, there is no WAL."""
    wal = path.with_name(f"{path.name}-wal")
    return [file for file in (path, wal) if file.exists()]


def _stamps(files: list[Path]) -> tuple[tuple[int, int], ...]:
    stats = [file.stat() for file in files]
    return tuple((stat.st_mtime_ns, stat.st_size) for stat in stats)


def wal_problem(folder: Path) -> str | None:
    """Return a sentence on why *folder* cannot hold a log; None if it can."""
    refused = network_problem(folder)
    if refused is not None:
        return refused
    try:
        with (
            TemporaryDirectory(dir=folder, prefix=".siftlog-") as probe,
            closing(connect(Path(probe, "probe.db"))) as conn,
        ):
            (mode,) = conn.execute(SQL["journal_mode"]).fetchone()
    except (OSError, sqlite3.Error) as error:
        return f"{folder} cannot keep a log ({error}): choose another folder"
    return None if mode == "wal" else no_wal(folder, mode)


def no_wal(path: Path, mode: str) -> str:
    """Return the error message for a file system that does not support a WAL."""
    return (
        f"{path} is on a file system without shared memory for SQLite "
        f"(journal mode {mode!r}): put the runs folder on a local disk"
    )


UNION: Final[Mapping[str, str]] = queries("union")
"""Every statement about the tables that only a union has."""

FACTS = ("merged", "opening", "origin", "numbered", "identity")
"""Tables that record where events came from."""
DERIVED = ("claim", "reopened", "part", "place")
"""Tables that are folded from the events."""


def is_union(conn: sqlite3.Connection) -> bool:
    """Return whether the log is the union of others."""
    return bool(conn.execute(UNION["is_union"]).fetchone()[0])


def has_plan_positions(conn: sqlite3.Connection) -> bool:
    """Return whether plan positions are stored apart from task numbers."""
    return bool(conn.execute(UNION["has_places"]).fetchone()[0])


#: SQLite's messages when it cannot write the copy, as opposed to the log.
_NO_ROOM = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN}

#: SQLite VM steps between two progress calls: some 10 ms.
STEPS = 100_000


def copy_log(source: Path, target: Path, progress: Callable[[str], None]) -> None:
    """Write the current content of a log to *target*, a new file.

    The copy holds all committed data, no free pages and no WAL: the same events give
    the same bytes with the same SQLite. The source's writer is not blocked; its WAL may
    grow until the copy is complete.

    Args:
        source: the log.
        target: the new file.
        progress: called with a line on the progress.

    Raises:
        NoSuchRun: the log does not exist.
        NotALog: *source* is something else.
        CorruptLog: it cannot be read.
        Unwritable: the copy cannot be written.
    """
    watch = _Watch(target, progress)
    with open_reader(source) as reader:
        # that forbids writing any file; the log itself is open for reading only
        reader.execute(SQL["query_any"])
        reader.set_progress_handler(watch.report, STEPS)
        try:
            reader.execute(SQL["copy_into"], (str(target.absolute()),))
        except sqlite3.OperationalError as error:
            if watch.stopped is not None:
                raise watch.stopped from None
            if error.sqlite_errorcode & 0xFF not in _NO_ROOM:
                raise
            raise Unwritable(
                f"{source} cannot be copied to {target.parent} ({error}): make room "
                "there, or choose another folder"
            ) from error
        if reader.forked is not None:
            # the copy may be read where the parent run is not
            with closing(connect(target)) as copy:
                store_bodies(reader, copy)


class _Watch:
    """Watches a copy while SQLite makes it; also the only points for a Ctrl-C."""

    def __init__(self, target: Path, progress: Callable[[str], None]) -> None:
        self._target = target
        self._progress = progress
        self.stopped: BaseException | None = None

    def report(self) -> int:
        """Report progress; any value but 0 aborts the statement.

        SQLite would turn an exception into a mere "interrupted", so it is kept and
        raised later.
        """
        try:
            size = self._target.stat().st_size if self._target.exists() else 0
            self._progress(f"{size / 1e6:,.0f} MB of the log copied")
        except BaseException as stop:  # noqa: BLE001 - raised again by `copy_log`
            self.stopped = stop
            return 1
        return 0


@contextmanager
def read_transaction(conn: sqlite3.Connection) -> Iterator[None]:
    """Everything read inside belongs to the same event; keep it short.

    The writer's WAL cannot be reset for as long.
    """
    conn.execute(SQL["begin_reading"])
    try:
        yield
    finally:
        conn.execute(SQL["commit"])


#: A reader's `is_held` takes a shared lock for an instant, so one refusal does not
#: prove that there is a writer: the exclusive lock is tried this often, with this
#: interval.
ATTEMPTS = 10
PAUSE_S = 0.01


class WriterLock:
    """The exclusive right to write one log, from `acquire` to `release`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock.

        Raises:
            LogBusy: another process has it.
        """
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        for attempt in range(ATTEMPTS):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if attempt + 1 < ATTEMPTS:
                    time.sleep(PAUSE_S)
            else:
                self._descriptor = descriptor
                return
        os.close(descriptor)
        raise LogBusy(
            f"{self._path.with_suffix('.db')} is being written by "
            "another process: watch it with 'siftlog watch', or wait "
            "until it ends"
        )

    def release(self) -> None:
        """Release the lock; harmless when it is not held."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def is_held(path: Path) -> bool:
    """Return whether a live process holds the lock at *path*; writes nothing."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
