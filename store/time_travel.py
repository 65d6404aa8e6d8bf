"""Shows a log as of an earlier moment.

Named by a person as an event's number or as a time, and found by halving, since times
ascend with numbers: some twenty looks at a log of any length.

No event keeps a heartbeat. Whether a process was there is known from what it did
later: whoever recorded another event was there in between.

The projections of a prefix are folded from its events into a file of their own, by the
code that folds them live. A reader of that file sees the log's own events up to there,
with their bodies, under their usual names: every function that reads a log answers of
the past as it did when that was the present. The log itself is only read.
"""

from __future__ import annotations

import re
import shutil
import socket
import sqlite3
from bisect import bisect_right
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self

from store.database import SQL, LogReader, connect, open_reader, read_only
from store.errors import NoSuchMoment, StoreError
from store.log.opening import fold_between, fresh_tables
from store.statements import script
from store.tables import last_seq

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
    epoch: int  #: the opening of the log by whoever recorded that event
    last_sign_us: int  #: the last sign of life by then
    is_alive: bool  #: whether a process was at work


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedMoment:
    """A moment in words; one of these says which."""

    seq: int | None = None  #: an event's number
    at_us: int | None = None  #: microseconds since 1970 UTC
    back_us: int | None = None  #: microseconds before the end of the work


def parse_moment(name: str) -> ParsedMoment:
    """What the words for a moment say, of whatever run.

    Raises:
        NoSuchMoment: they cannot be read.
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
    """The moment that a person means.

    Args:
        conn: a reader of the whole log.
        name: an event's number, a time, or how long before the end of the work; what
            was scored after that end does not move it.
        now_us: the present, beyond which nothing can be seen.
        is_held: whether a process is writing the log now.

    Raises:
        NoSuchMoment: it cannot be read, or lies outside of the run.
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
    """The moment of an event.

    Raises:
        NoSuchMoment: there is no such event.
    """
    last = last_seq(conn)
    if not 1 <= seq <= last:
        raise NoSuchMoment(f"there is no event {seq}: the log has events 1 to {last}")
    return _moment(conn, seq, _time(conn, seq), is_held=is_held)


def moment_at(conn: sqlite3.Connection, at_us: int, *, is_held: bool = False) -> Moment:
    """The moment at a time, in microseconds since 1970 UTC.

    Raises:
        NoSuchMoment: the run had not begun.
    """
    seq = bisect_right(range(1, last_seq(conn) + 1), at_us, key=partial(_time, conn))
    if not seq:
        began = _iso_time(_time(conn, 1)) if last_seq(conn) else "never"
        raise NoSuchMoment(
            f"the run had not started at {_iso_time(at_us)}: its first "
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
    # whoever had opened the log may have recorded nothing yet
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
    """When nobody was at work between two events, in microseconds since 1970 UTC.

    From the last event of whoever had the log open to the first of whoever came next:
    openings ascend with events, so that each is found by halving.
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
    """When the last event was recorded that is no scoring; 0 in an empty log."""
    row = conn.execute(SQL["worked_until"]).fetchone()
    return 0 if row is None else int(row[0])


def _iso_time(at_us: int) -> str:
    return (_EPOCH + timedelta(microseconds=at_us)).isoformat(timespec="seconds")


#: No disk is waited for: what is lost with the machine is folded again.
_PRAGMAS = ("page_size", "journal_mode", "no_sync", "fold_cache")


class LogPrefix:
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
            should_continue: called now and then with the event that was reached; if
                False, everything stays as it was.
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
