"""How a run went over time: its minutes joined into buckets, and its limits.

The minutes of a week are joined in SQL: what comes out is as many rows as a chart has
columns, whatever the length of the run.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

from store.events import LimitObserved
from store.reading import recorded_rows
from store.statements import SQL
from store.traffic import Traffic, traffic


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketRow(Traffic):
    """What happened in some minutes on end, of one model or of all together."""

    number: int  #: it begins at so many widths after 1970 UTC

    @property
    def net(self) -> int:
        """By how many calls more were under way at its end than at its beginning.

        Every attempt that is started completes or fails its task, leads to another
        attempt, or is abandoned, which no bucket counts.
        """
        return self.started - self.succeeded - self.failed - self.retried


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitSeen:
    """How many calls at a time a model was allowed, from a moment on."""

    at_us: int
    model: str
    concurrency: int


def minute_buckets(
    conn: sqlite3.Connection, since: int, until: int, *, width: int, model: str | None
) -> list[BucketRow]:
    """The minutes from *since* to before *until*, ascending; empty buckets left out.

    Args:
        conn: the log.
        since: minutes since 1970 UTC.
        until: likewise.
        width: minutes a bucket.
        model: None: all models.
    """
    named = {"since": since, "until": until, "width": width, "model": model}
    return [
        BucketRow(number=number, **traffic(columns))
        for number, *columns in conn.execute(SQL["minute_buckets"], named).fetchall()
    ]


def sent_before(conn: sqlite3.Connection, minute: int, model: str | None) -> int:
    """Attempts started before *minute* without an outcome in any minute before it.

    Abandoned ones are among them. Reads all minutes before that one.
    """
    named = {"until": minute, "model": model}
    (sent,) = conn.execute(SQL["sent_before"], named).fetchone()
    return int(sent)


def running_now(conn: sqlite3.Connection, model: str | None) -> int:
    """Calls under way."""
    (running,) = conn.execute(SQL["running_now"], {"model": model}).fetchone()
    return int(running)


def heartbeat_us(conn: sqlite3.Connection) -> int | None:
    """When the run's process last said that it is alive; None: it never did."""
    row = conn.execute(SQL["heartbeat"]).fetchone()
    return None if row is None else int(row[0])


def limits_observed(
    conn: sqlite3.Connection, after: int, upto: int
) -> Iterable[LimitSeen]:
    """The limits recorded by events above *after* up to *upto*, ascending.

    Reads every event in between: go through a long log in steps.
    """
    for row in recorded_rows(conn, SQL["limits_observed"], (after, upto)):
        if isinstance(row.event, LimitObserved):
            yield LimitSeen(
                at_us=row.ts_us,
                model=row.event.model,
                concurrency=row.event.concurrency,
            )
