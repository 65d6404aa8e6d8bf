"""All that a log keeps packed: payloads of events, and parts of messages."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from store.codec import unpack
from store.reading import damaged
from store.statements import SQL

PAGE = 200


def bodies(conn: sqlite3.Connection) -> Iterator[tuple[str, bytes]]:
    """Every body, unpacked, with its place in words; in flat memory.

    Raises:
        CorruptLog: one of them is damaged.
    """
    for kind, statement in (("event", "bodies_page"), ("message part", "blob_bodies")):
        after = 0
        while page := conn.execute(SQL[statement], (after, PAGE)).fetchall():
            for number, encoding, size, data in page:
                after = number
                where = f"{kind} {number}"
                try:
                    yield where, unpack(encoding, data, size)
                except ValueError as error:
                    raise damaged(where, error) from error
