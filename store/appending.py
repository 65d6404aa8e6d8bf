"""Event rows going into their tables, whoever made them."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from store.chain import EventRow
from store.statements import SQL


class Kinds:
    """The ids of kinds in one log; a kind enters its table with its first event."""

    def __init__(self, conn: sqlite3.Connection) -> None:
        self._conn = conn
        self._ids: dict[tuple[str, int], int] = {}

    def id_of(self, name: str, version: int) -> int:
        """The id of a kind in that version."""
        number = self._ids.get((name, version))
        if number is None:
            row = self._conn.execute(SQL["register_kind"], (name, version)).fetchone()
            number = self._ids[name, version] = row[0]
        return number


def insert_events(
    conn: sqlite3.Connection, rows: Sequence[EventRow], kinds: Kinds
) -> None:
    """Write *rows* and their bodies in the open transaction."""
    conn.executemany(
        SQL["insert_event"],
        # by position, as the statement's columns stand: a look at each name costs more
        [(*row[:3], kinds.id_of(row.kind, row.ver), *row[4:11]) for row in rows],
    )
    bodies = [(row.seq, row.body) for row in rows if row.body is not None]
    if bodies:
        conn.executemany(SQL["insert_body"], bodies)
