"""The numbers of the tasks that a list shows, in an order that holds still.

A list keeps numbers and not rows: they are read once, page after page by key, and what
happens to a task afterwards changes its line and never its place. Unfiltered and by
number nothing is read at all, since numbers are dense from 1.
"""

from __future__ import annotations

import enum
import sqlite3
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from store.query import Query
from store.reading import last_seq, planning
from store.statements import SQL

#: How many tasks the orders without an index show.
TOP = 1_000
#: Numbers of one step: some milliseconds where the filter has an index.
STEP = 10_000
#: Changed tasks are looked for up to so many; a view says "1,000 or more" then.
NEW = 1_000
#: Above every number and seq of a log.
_LAST = (1 << 62, 1 << 62)
_FIRST = (0, 0)


class Order(enum.Enum):
    """How a list of tasks is sorted; the value is what a person reads."""

    NUMBER = "by number"
    NEWEST = "newest first"
    SLOWEST = f"top {TOP:,} by latency"
    DEAREST = f"top {TOP:,} by cost"
    MOST_TRIED = f"top {TOP:,} by attempts"

    @property
    def is_top(self) -> bool:
        """Whether it has no index, so that only its first tasks are shown."""
        return self in _TOPS


_TOPS = {
    Order.SLOWEST: "numbers_slowest",
    Order.DEAREST: "numbers_dearest",
    Order.MOST_TRIED: "numbers_most_tried",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Some numbers of a list, and where the next step goes on."""

    numbers: Sequence[int]
    #: seq and number that the next step goes on after; None: the list is whole
    after: tuple[int, int] | None
    seq: int  #: the log's last event when this was read


def list_tasks(
    conn: sqlite3.Connection,
    query: Query,
    order: Order = Order.NUMBER,
    *,
    after: tuple[int, int] | None = None,
    limit: int = STEP,
) -> Step:
    """The next numbers of a list, at most *limit* unless they cost nothing.

    Args:
        conn: from `open_reader`; another thread may `interrupt` it.
        query: which tasks.
        order: how they are sorted.
        after: of the step before; None for the first.
        limit: how many to look up at once.
    """
    seq = last_seq(conn)
    if order is Order.NUMBER and not query.terms:
        return Step(numbers=range(1, planning(conn).tasks + 1), after=None, seq=seq)
    if order.is_top:
        statement = SQL[_TOPS[order]].format(query.condition())
        rows = conn.execute(statement, (*query.parameters(), TOP)).fetchall()
        return Step(numbers=_numbers(rows), after=None, seq=seq)
    key: tuple[int, ...]
    if order is Order.NEWEST:
        statement, key = SQL["numbers_newest"], after or _LAST
    else:
        statement, key = SQL["numbers"], (after or _FIRST)[1:]
    rows = conn.execute(
        statement.format(query.condition()), (*key, *query.parameters(), limit)
    ).fetchall()
    return Step(
        numbers=_numbers(rows),
        after=(rows[-1][1], rows[-1][0]) if len(rows) == limit else None,
        seq=seq,
    )


def changed_tasks(
    conn: sqlite3.Connection, query: Query, since: int, limit: int = NEW
) -> list[int]:
    """Tasks that changed after event *since* and that a filter lets through."""
    statement = SQL["numbers_changed"].format(query.condition())
    parameters = (since, *query.parameters(), limit)
    return [number for (number,) in conn.execute(statement, parameters).fetchall()]


def _numbers(rows: Sequence[tuple[int, int]]) -> array[int]:
    """Eight bytes a number: a list of a million stays small."""
    return array("q", [number for number, _ in rows])
