"""A moment of a run: which of its events had been recorded, and who was at work.

Named by a person as an event's number or as a time, and found by halving, since times
ascend with numbers: some twenty looks at a log of any length.

No event keeps a heartbeat. Whether a process was there is known from what it did
later: whoever recorded another event was there in between.
"""

from __future__ import annotations

import re
import sqlite3
from bisect import bisect_right
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from store.errors import NoSuchMoment
from store.reading import last_seq
from store.statements import SQL

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
    beat_us: int  #: the last sign of life by then
    is_alive: bool  #: whether a process was at work


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A moment in words; one of these says which."""

    seq: int | None = None  #: an event's number
    at_us: int | None = None  #: microseconds since 1970 UTC
    back_us: int | None = None  #: microseconds before the end of the work


def parse_moment(name: str) -> Named:
    """What the words for a moment say, of whatever run.

    Raises:
        NoSuchMoment: they cannot be read.
    """
    if name.isascii() and name.isdecimal():
        return Named(seq=int(name))
    try:
        if back := _BACK.fullmatch(name):
            parts = {unit: float(n) for unit, n in back.groupdict("0").items()}
            return Named(back_us=timedelta(**parts) // _US)
        time = datetime.fromisoformat(name)
    except (ValueError, OverflowError) as error:
        raise NoSuchMoment(f"{name!r} is no moment: {_FORMS}") from error
    if time.tzinfo is None:
        raise NoSuchMoment(f"{name} has no offset from UTC: {_FORMS}")
    return Named(at_us=(time - _EPOCH) // _US)


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
    named = parse_moment(name)
    if named.seq is not None:
        return moment_of(conn, named.seq, is_held=is_held)
    at_us = named.at_us
    if at_us is None:
        at_us = worked_until_us(conn) - (named.back_us or 0)
    if at_us > now_us:
        raise NoSuchMoment(f"{name} lies in the future: name a moment that has been")
    return moment_at(conn, at_us, is_held=is_held)


def moment_of(conn: sqlite3.Connection, seq: int, *, is_held: bool = False) -> Moment:
    """The moment of an event.

    Raises:
        NoSuchMoment: there is no such event.
    """
    last = last_seq(conn)
    if not 1 <= seq <= last:
        raise NoSuchMoment(
            f"there is no event {seq}: those of the log go from 1 to {last}"
        )
    return _moment(conn, seq, _time(conn, seq), is_held=is_held)


def moment_at(conn: sqlite3.Connection, at_us: int, *, is_held: bool = False) -> Moment:
    """The moment at a time, in microseconds since 1970 UTC.

    Raises:
        NoSuchMoment: the run had not begun.
    """
    seq = bisect_right(range(1, last_seq(conn) + 1), at_us, key=partial(_time, conn))
    if not seq:
        began = _told(_time(conn, 1)) if last_seq(conn) else "never"
        raise NoSuchMoment(
            f"the run had not begun at {_told(at_us)}: its first event is of {began}"
        )
    return _moment(conn, seq, at_us, is_held=is_held)


def _moment(conn: sqlite3.Connection, seq: int, at_us: int, *, is_held: bool) -> Moment:
    _, recorded_us, epoch = conn.execute(SQL["moment"], (seq,)).fetchone()
    following = conn.execute(SQL["moment"], (seq + 1,)).fetchone()
    signs_us = [recorded_us]
    if is_held if following is None else following[2] == epoch:
        signs_us.append(at_us)
    beat = conn.execute(SQL["last_sign"]).fetchone()
    if beat is not None and beat[1] == epoch:
        signs_us.append(beat[0])
    # whoever had opened the log may have recorded nothing yet
    (opened,) = conn.execute(SQL["opened_since"], (epoch, at_us)).fetchone()
    return Moment(
        seq=seq,
        at_us=at_us,
        epoch=epoch,
        beat_us=min(at_us, max(signs_us)),
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
    found = []
    end = bisect_right(seqs, _epoch(conn, 1), key=partial(_epoch, conn)) if seqs else 0
    while end < len(seqs):
        found.append((_time(conn, end), _time(conn, end + 1)))
        opening = _epoch(conn, end + 1)
        end = bisect_right(seqs, opening, lo=end, key=partial(_epoch, conn))
    return tuple(found)


def worked_until_us(conn: sqlite3.Connection) -> int:
    """When the last event was recorded that is no scoring; 0 in an empty log."""
    row = conn.execute(SQL["worked_until"]).fetchone()
    return 0 if row is None else int(row[0])


def _told(at_us: int) -> str:
    return (_EPOCH + timedelta(microseconds=at_us)).isoformat(timespec="seconds")
