"""A moment of a run: which of its events had been recorded, and who was at work.

Named by a person as an event's number or as a time, and found by halving, since times
ascend with numbers: some twenty looks at a log of any length.

Heartbeats are kept by no event. What a process gave as a sign of life is known from what
it did later: whoever recorded another event was there in between.
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
    if name.isascii() and name.isdecimal():
        return moment_of(conn, int(name), is_held=is_held)
    at_us = _time_named(conn, name)
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
    if following is None and is_held or following and following[2] == epoch:
        signs_us.append(at_us)
    beat = conn.execute(SQL["last_sign"]).fetchone()
    if beat is not None and beat[1] == epoch:
        signs_us.append(beat[0])
    return Moment(
        seq=seq,
        at_us=at_us,
        epoch=epoch,
        beat_us=min(at_us, max(signs_us)),
        is_alive=max(signs_us) >= at_us,
    )


def _time(conn: sqlite3.Connection, seq: int) -> int:
    return int(conn.execute(SQL["moment"], (seq,)).fetchone()[1])


def worked_until_us(conn: sqlite3.Connection) -> int:
    """When the last event was recorded that is no scoring; 0 in an empty log."""
    row = conn.execute(SQL["worked_until"]).fetchone()
    return 0 if row is None else int(row[0])


def _time_named(conn: sqlite3.Connection, name: str) -> int:
    back = _BACK.fullmatch(name)
    if back is not None:
        parts = {unit: float(n) for unit, n in back.groupdict("0").items()}
        return worked_until_us(conn) - timedelta(**parts) // _US
    try:
        moment = datetime.fromisoformat(name)
        if moment.tzinfo is None:
            raise NoSuchMoment(f"{name} has no offset from UTC: {_FORMS}")
        return (moment - _EPOCH) // _US
    except (ValueError, OverflowError) as error:
        raise NoSuchMoment(f"{name!r} is no moment: {_FORMS}") from error


def _told(at_us: int) -> str:
    return (_EPOCH + timedelta(microseconds=at_us)).isoformat(timespec="seconds")
