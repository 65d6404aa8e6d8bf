"""Shows a log as of an earlier moment.

A user names the moment by an event's number or by a time. It is found by bisection,
since times ascend with numbers: some twenty lookups in a log of any length.

Events hold no heartbeats. A process was alive at a moment if it recorded an event
later.

The projections of a prefix are folded from its events into a separate file, by the code
that folds them live. A reader of that file sees the log's events up to that moment,
with their bodies, under their usual names, so every function that reads a log works for
earlier moments too. The log itself is only read.
"""

from __future__ import annotations

import re
import shutil
import socket
import sqlite3
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import (
    AbstractContextManager,
    ExitStack,
    closing,
    contextmanager,
    nullcontext,
)
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self

from store.clock import iso_time
from store.database import SQL, LogReader, connect, open_reader, read_only
from store.errors import NoSuchMoment, StoreError
from store.forked import serve_bodies
from store.log.projections import fold_between, fresh_tables
from store.statements import script
from store.tables import last_seq, visible_seq

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_US = timedelta(microseconds=1)
_BACK = re.compile(
    r"-(?=\d)(?:(?P<days>\d+)d)?(?:(?P<hours>\d+)h)?(?:(?P<minutes>\d+)m)?"
    r"(?:(?P<seconds>\d+(?:\.\d+)?)s)?"
)
_FORMS = (
    "name an event's number, a time with its offset, such as 2026-01-31T09:30:00+01:00 "
    "or ...Z, or a duration before the end, such as -10m or -1h30m"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A run after one of its events, at a time before the next."""

    seq: int  #: the last event that had been recorded
    at_us: int  #: microseconds since 1970 UTC
    epoch: int  #: number of the log's opening that recorded that event
    last_sign_us: int  #: the last sign of life by then
    is_alive: bool  #: whether a process was running


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedMoment:
    """A moment as text; exactly one field is set."""

    seq: int | None = None  #: an event's number
    at_us: int | None = None  #: microseconds since 1970 UTC
    back_us: int | None = None  #: microseconds before the end of the work


def parse_moment(name: str) -> ParsedMoment:
    """Parse the text of a moment, without a run.

    Raises:
        NoSuchMoment: the text cannot be parsed.
    """
    if name.isascii() and name.isdecimal():
        return ParsedMoment(seq=int(name))
    try:
        if back := _BACK.fullmatch(name):
            parts = {unit: float(n) for unit, n in back.groupdict("0").items()}
            return ParsedMoment(back_us=timedelta(**parts) // _US)
        time = datetime.fromisoformat(name)
    except (ValueError, OverflowError) as error:
        raise NoSuchMoment(f"{name!r} is no moment: {_FORMS}") from error
    if time.tzinfo is None:
        raise NoSuchMoment(f"{name} has no offset from UTC: {_FORMS}")
    return ParsedMoment(at_us=(time - _EPOCH) // _US)


def moment_named(
    conn: sqlite3.Connection, name: str, now_us: int, *, is_held: bool = False
) -> Moment:
    """Find the moment that a user named.

    Args:
        conn: a reader of the whole log.
        name: an event's number, a time, or a duration before the end of the work; later
            scorings do not move that end.
        now_us: the current time, which is the upper limit.
        is_held: whether a process is writing the log now.

    Raises:
        NoSuchMoment: it cannot be parsed, or is outside the run.
    """
    parsed = parse_moment(name)
    if parsed.seq is not None:
        return moment_of(conn, parsed.seq, is_held=is_held)
    at_us = parsed.at_us
    if at_us is None:
        at_us = worked_until_us(conn) - (parsed.back_us or 0)
    if at_us > now_us:
        raise NoSuchMoment(f"{name} is in the future: name an earlier moment")
    return moment_at(conn, at_us, is_held=is_held)


def moment_of(conn: sqlite3.Connection, seq: int, *, is_held: bool = False) -> Moment:
    """Return the moment of an event.

    Raises:
        NoSuchMoment: there is no such event.
    """
    last = last_seq(conn)
    if not 1 <= seq <= last:
        raise NoSuchMoment(f"there is no event {seq}: the log has events 1 to {last}")
    return _moment(conn, seq, _time(conn, seq), is_held=is_held)


def moment_at(conn: sqlite3.Connection, at_us: int, *, is_held: bool = False) -> Moment:
    """Return the moment at a time, in microseconds since 1970 UTC.

    Raises:
        NoSuchMoment: the run had not started.
    """
    seq = bisect_right(range(1, last_seq(conn) + 1), at_us, key=partial(_time, conn))
    if not seq:
        began = iso_time(_time(conn, 1)) if last_seq(conn) else "never"
        raise NoSuchMoment(
            f"the run had not started at {iso_time(at_us)}: its first "
            f"event is at {began}"
        )
    return _moment(conn, seq, at_us, is_held=is_held)


def _moment(conn: sqlite3.Connection, seq: int, at_us: int, *, is_held: bool) -> Moment:
    _, recorded_us, epoch = conn.execute(SQL["moment"], (seq,)).fetchone()
    following = conn.execute(SQL["moment"], (seq + 1,)).fetchone()
    signs_us = [recorded_us]
    if is_held if following is None else following[2] == epoch:
        signs_us.append(at_us)
    last_sign = conn.execute(SQL["last_sign"]).fetchone()
    if last_sign is not None and last_sign[1] == epoch:
        signs_us.append(last_sign[0])
    # the process that opened the log may have recorded nothing yet
    (opened,) = conn.execute(SQL["opened_since"], (epoch, at_us)).fetchone()
    return Moment(
        seq=seq,
        at_us=at_us,
        epoch=epoch,
        last_sign_us=min(at_us, max(signs_us)),
        is_alive=max(signs_us) >= at_us or opened > 0,
    )


def _epoch(conn: sqlite3.Connection, seq: int) -> int:
    return int(conn.execute(SQL["moment"], (seq,)).fetchone()[2])


def _time(conn: sqlite3.Connection, seq: int) -> int:
    return int(conn.execute(SQL["moment"], (seq,)).fetchone()[1])


def absences(conn: sqlite3.Connection) -> tuple[tuple[int, int], ...]:
    """Return the periods without a process, in microseconds since 1970 UTC.

    Each lasts from the last event of one opening to the first of the next: openings
    ascend with events, so each is found by bisection.
    """
    seqs = range(1, last_seq(conn) + 1)
    gaps = []
    end = bisect_right(seqs, _epoch(conn, 1), key=partial(_epoch, conn)) if seqs else 0
    while end < len(seqs):
        gaps.append((_time(conn, end), _time(conn, end + 1)))
        opening = _epoch(conn, end + 1)
        end = bisect_right(seqs, opening, lo=end, key=partial(_epoch, conn))
    return tuple(gaps)


def worked_until_us(conn: sqlite3.Connection) -> int:
    """Return the time of the last event other than scorings; 0 in an empty log."""
    row = conn.execute(SQL["worked_until"]).fetchone()
    return 0 if row is None else int(row[0])


#: No disk sync: projections lost with the machine are folded again.
_PRAGMAS = ("page_size", "journal_mode", "no_sync", "fold_cache")


class LogPrefix:
    """The projections of a log up to a moment, which can be advanced.

    All methods but `open_reader` belong to one thread.
    """

    def __init__(self, log: Path, *, saved: Path | None = None) -> None:
        """Create empty projections, or load saved ones.

        Args:
            log: the log to read.
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
                    f"there is no space for reading an earlier state ({error}): "
                    "free space for temporary files, or set TMPDIR to another "
                    "folder"
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
        should_continue: Callable[[int], bool] = lambda _: True,
        commit_in: AbstractContextManager[object] | None = None,
    ) -> bool:
        """Bring the projections to a later moment, in one commit.

        Args:
            moment: not before the one they are of.
            should_continue: called periodically with the last folded event; if it
                returns False, nothing changes.
            commit_in: entered for the commit only; readers see the earlier moment
                before it and the later one after it.

        Returns:
            Whether the projections are at that moment now.

        Raises:
            CorruptLog: an event is damaged.
            IllegalMove: an event does not fit earlier events.
        """
        conn = self._conn
        conn.execute(SQL["begin"])
        try:
            steps = fold_between(self._events, conn, self.seq, moment.seq)
            if all(map(should_continue, steps)):
                sign = (moment.last_sign_us, moment.epoch, 0, socket.gethostname())
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

    def open_reader(self) -> LogReader:
        """Open a connection to the log's state at the current moment.

        It follows the prefix when that advances; close it before the prefix.

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
        reader.forked = serve_bodies(reader, self._log, open_reader, schema="log")
        for pragma in ("query_only", "reader_timeout", "reader_cache"):
            reader.execute(SQL[pragma])
        return reader

    def close(self) -> None:
        """Let go of the log, and remove the file; harmless when repeated."""
        self._opened.close()


@contextmanager
def open_to_end(log: Path) -> Iterator[LogReader]:
    """Open a reader of a log's state after its last event.

    The projections of a log that a killed process left are of a moment before. They are
    then folded in a temporary file.
    """
    with open_reader(log) as reader:
        last = last_seq(reader)
        if visible_seq(reader) == last:
            yield reader
            return
        moment = moment_of(reader, last)
    with LogPrefix(log) as prefix:
        prefix.move_to(moment)
        with prefix.open_reader() as reader:
            yield reader


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
