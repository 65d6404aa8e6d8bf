"""All that can be seen of a log at a moment, to be compared with another look."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

from store.database import SQL, read_transaction
from store.query import Query
from store.read.live import latencies, minutes, oldest_in_flight
from store.read.status import Status, status
from store.read.tasks import TaskOrder, events, list_tasks
from store.read.usage import error_counts, spending, usage_counts
from store.scoring import families
from store.tables import created_us
from store.verify import TABLES

Seen = dict[str, object]


def seen(reader: sqlite3.Connection) -> Seen:
    """All rows of the projections, and what is made of them."""
    with read_transaction(reader):
        return _rows(reader) | _views(reader)


def _rows(reader: sqlite3.Connection) -> Seen:
    return {table: reader.execute(SQL[f"rows_{table}"]).fetchall() for table in TABLES}


def _views(reader: sqlite3.Connection) -> Seen:
    stand = status(reader)
    return {
        "position": reader.execute(SQL["projection"]).fetchone(),
        "seq": stand.last_seq,
        "status": without_pulse(stand),
        "families": list(families(reader)),
        "events": [row for row in events(reader) if row.seq <= stand.last_seq],
        "errors": error_counts(reader),
        "latencies": latencies(reader),
        "minutes": minutes(reader, 0),
        "newest": list_tasks(reader, Query(), TaskOrder.NEWEST, after=None, limit=100),
        "oldest": oldest_in_flight(reader, 20),
        "spending": spending(reader),
        "usage": usage_counts(reader),
        "created": created_us(reader),
    }


def without_pulse(stand: Status) -> Status:
    """All but the heartbeat, which no event tells of."""
    return replace(stand, heartbeat=None, signs=replace(stand.signs, heartbeat_us=None))
