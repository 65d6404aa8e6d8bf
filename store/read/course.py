"""Reads the course of a run: when it started, when it ended, how long it worked."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from store.database import SQL, is_union
from store.fold_state import US_PER_S

_STARTS = frozenset({"run_started", "run_resumed"})
_ENDS = frozenset({"run_finished", "run_drained", "run_cancelled"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """Periods of work on a run; all times in microseconds since 1970 UTC."""

    started_us: int
    ended_us: int | None  #: the end of the last session; None: it has not ended
    worked_us: int  #: the sum of all sessions, the current one up to its last event
    sessions: int  #: processes that worked on it, one after another

    @property
    def worked_s(self) -> float:
        """The time that it was worked on, in seconds, without the time in between."""
        return self.worked_us / US_PER_S


def course(conn: sqlite3.Connection, through_seq: int | None = None) -> Course:
    """Return the course of a run that has started.

    A session that was killed ends with the last event of its process. Shards of a
    split run work at the same time, so that its course is one session from its first to
    its last event.

    Args:
        conn: a reader.
        through_seq: the last event that counts; None: all do.
    """
    turns = conn.execute(SQL["turns"], {"through": through_seq}).fetchall()
    _, started_us, _ = turns[0]
    _, last_us, last_kind = turns[-1]
    ended_us = last_us if last_kind in _ENDS else None
    if is_union(conn):
        end_us = ended_us or _last_work_us(conn, through_seq) or started_us
        return Course(
            started_us=started_us,
            ended_us=ended_us,
            worked_us=max(0, end_us - started_us),
            sessions=1,
        )
    worked_us = sessions = 0
    began: tuple[int, int] | None = None  # number and time of the session's start
    for seq, at_us, kind in turns:
        if began is not None and kind in _ENDS:
            worked_us += max(0, at_us - began[1])
            began = None
        elif kind in _STARTS:
            if began is not None:  # the session before was killed
                worked_us += _worked_us(conn, *began, seq - 1)
            began = seq, at_us
            sessions += 1
    if began is not None:
        worked_us += _worked_us(conn, *began, through_seq)
    return Course(
        started_us=started_us,
        ended_us=ended_us,
        worked_us=worked_us,
        sessions=sessions,
    )


def _worked_us(
    conn: sqlite3.Connection, start: int, began_us: int, through_seq: int | None
) -> int:
    """Return the time from the start of a session to the last event of its process.

    What later processes recorded is left out: a scoring, or, just before they resume
    the run, its calls of unknown outcome.

    Args:
        conn: a reader.
        start: the number of the event that started it.
        began_us: the time of that event.
        through_seq: the last event that counts; None: all do.
    """
    numbers = {"start": start, "through": through_seq}
    (last_us,) = conn.execute(SQL["session_last"], numbers).fetchone()
    return max(0, int(last_us) - began_us)


def _last_work_us(conn: sqlite3.Connection, through_seq: int | None) -> int | None:
    """Return the time of the last event of a task; None: there is none."""
    row = conn.execute(SQL["last_work"], {"through": through_seq}).fetchone()
    return None if row is None else int(row[0])
