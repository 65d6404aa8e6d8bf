"""Calls of a log that was lost, while another did its work again.

The lost log knows of no outcome, and nobody goes on with it: they may be billed, like
those that a process left behind on one machine.
"""

from __future__ import annotations

import sqlite3

from store.events import AttemptStarted
from store.reading import event_in
from store.union.statements import UNION, has_places


def lost_starts(conn: sqlite3.Connection) -> list[AttemptStarted]:
    """The starts of such calls, ascending; none where a run is not split."""
    if not has_places(conn):
        return []
    starts = (
        event_in(seq, "attempt_started", version, facts)
        for seq, version, facts in conn.execute(UNION["lost_starts"]).fetchall()
    )
    return [start for start in starts if isinstance(start, AttemptStarted)]
