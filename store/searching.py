"""Events that fit a filter, from anywhere in a log of any length, step by step.

A step reads by key and ends after some events, found or not, so that it lasts some
milliseconds; it says what is left to be looked at, and whoever asked goes on or leaves
it at that. Kinds that are rare are found by their marks, and the events of one task by
its chain, however long the log is.
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass

from store.event_query import EventQuery
from store.events import Recorded
from store.fold import MARKED
from store.reading import recorded_rows, task_events
from store.statements import SQL

#: Events that one step looks at where it has no index: 5 to 30 ms (design/events.md).
SPAN = 20_000


@dataclass(frozen=True, slots=True)
class Stretch:
    """Events by seq, from the first to the last of them; the last may be the lower."""

    first: int
    last: int

    def __len__(self) -> int:
        return max(0, self.last - self.first + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What one step has found."""

    events: tuple[Recorded, ...]  #: ascending
    rest: Stretch  #: what it has not looked at; without length: nothing


def find_events(
    conn: sqlite3.Connection,
    query: EventQuery,
    stretch: Stretch,
    *,
    limit: int,
    is_backward: bool,
) -> Found:
    """The next events of a stretch that a filter lets through.

    Args:
        conn: from `open_reader`; another thread may stop it.
        query: which events.
        stretch: where to look; for the next step, the `rest` of this one.
        limit: at most so many.
        is_backward: whether to begin at its last event, instead of its first.
    """
    pointed = _pointed(conn, query, stretch, limit=limit, is_backward=is_backward)
    part = stretch
    if pointed is None:
        part = _near(stretch, SPAN, is_backward=is_backward)
        statement = SQL["events_back" if is_backward else "events_on"]
        events = recorded_rows(
            conn,
            statement.format(query.condition()),
            (part.first, part.last, *query.parameters(), limit),
        )
        seen = [event.seq for event in events]
    else:
        seen = pointed
        events = recorded_rows(
            conn,
            SQL["events_named"].format(query.condition()),
            (json.dumps(seen), *query.parameters()),
        )
    if len(seen) >= limit:
        part = _up_to(part, seen[-1], is_backward=is_backward)
    return Found(
        events=tuple(sorted(events, key=lambda event: event.seq)),
        rest=Stretch(stretch.first, part.first - 1)
        if is_backward
        else Stretch(part.last + 1, stretch.last),
    )


def _pointed(
    conn: sqlite3.Connection,
    query: EventQuery,
    stretch: Stretch,
    *,
    limit: int,
    is_backward: bool,
) -> list[int] | None:
    """Seqs that an index points to, the nearest *limit*; None: there is no index."""
    if query.task is not None:
        chain = (event.seq for event in task_events(conn, query.task))
        seqs = [seq for seq in chain if stretch.first <= seq <= stretch.last]
    elif MARKED.issuperset(query.kinds):
        statement = SQL["marks_back" if is_backward else "marks_on"]
        seqs = [
            seq
            for kind in sorted(query.kinds)
            for (seq,) in conn.execute(
                statement, (kind, stretch.first, stretch.last, limit)
            ).fetchall()
        ]
    else:
        return None
    return sorted(seqs, reverse=is_backward)[:limit]


def _near(stretch: Stretch, length: int, *, is_backward: bool) -> Stretch:
    """The part of a stretch that a step begins with."""
    if is_backward:
        return Stretch(max(stretch.first, stretch.last - length + 1), stretch.last)
    return Stretch(stretch.first, min(stretch.last, stretch.first + length - 1))


def _up_to(part: Stretch, seq: int, *, is_backward: bool) -> Stretch:
    """As much of a part as was looked at when *seq* was found last."""
    return Stretch(seq, part.last) if is_backward else Stretch(part.first, seq)
