"""Projections made again from the events alone.

Needed when the fold has changed (`CODE_VERSION`), and as the proof of `verify` that
what is stored is what the events say. A repair, never a part of resuming. A stretch of
the events is folded in the same way by whoever looks back (`store.prefix`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

from store import projections
from store.codec import unpack
from store.events import TasksPlanned, Unknown
from store.manifest import PlannedTask, planned_tasks
from store.reading import damaged, event_in, last_seq
from store.statements import SQL, script
from store.union import folding
from store.union.folding import Item
from store.union.statements import is_union

#: Events folded at a time: enough to coalesce, little to hold.
BATCH = 5000


class _Row(NamedTuple):
    seq: int
    ts_us: int
    kind: str
    ver: int
    facts: bytes
    enc: int
    blen: int
    body: bytes | None  #: of a manifest only
    epoch: int


def rebuild(conn: sqlite3.Connection) -> None:
    """Make the projections of a log anew, in one transaction."""
    conn.execute(SQL["begin"])
    try:
        refold(conn, conn, _unwatched)
        conn.execute(SQL["commit"])
    except BaseException:
        conn.execute(SQL["rollback"])
        raise


def _unwatched(seq: int) -> None:
    del seq


def refold(
    source: sqlite3.Connection,
    target: sqlite3.Connection,
    folded: Callable[[int], None],
) -> None:
    """Fold all events of *source* into fresh projection tables of *target*.

    *folded* is told the last event of each batch.

    Raises:
        CorruptLog: an event is damaged.
        IllegalMove: an event does not fit those before it.
    """
    fresh_tables(source, target)
    for after in fold_between(source, target, 0, last_seq(source)):
        folded(after)
    for statement in script("indexes"):
        target.execute(statement)


def fresh_tables(source: sqlite3.Connection, target: sqlite3.Connection) -> None:
    """Make the projection tables that the log *source* has, empty, in *target*."""
    for statement in script("projections"):
        target.execute(statement)
    if is_union(source):
        folding.create(target)


def fold_between(
    source: sqlite3.Connection, target: sqlite3.Connection, after: int, upto: int
) -> Iterator[int]:
    """Fold a stretch of *source*'s events into the projections of *target*.

    Events of unknown kinds and versions are passed over: what they mean is not known.

    Args:
        source: a log.
        target: holds the projections of its events up to *after*.
        after: the last event that is folded already; 0: none is.
        upto: the last event to be folded.

    Yields:
        The event that the projections have come to, after every `BATCH` of them.

    Raises:
        CorruptLog: an event is damaged.
        IllegalMove: an event does not fit those before it.
    """
    parts = folding.parts_of(source) if is_union(source) else None
    while rows := source.execute(
        SQL["events_for_fold"], (after, upto, BATCH)
    ).fetchall():
        found = [_Row._make(row) for row in rows]
        after = found[-1].seq
        if parts is None:
            items = _items(found)
            fold = projections.load(target, (item.event for item in items))
            for item in items:
                fold.apply(*item)
            projections.write(target, fold, after)
        else:
            for part, of_part in groupby(found, lambda row: parts.get(row.epoch, 0)):
                stretch = list(of_part)
                last = stretch[-1].seq
                folding.fold(source, target, part, _items(stretch), last)
        yield after


def _items(rows: Iterable[_Row]) -> list[Item]:
    """The events that are understood, ready to be folded."""
    items: list[Item] = []
    for row in rows:
        event = event_in(row.seq, row.kind, row.ver, row.facts)
        if isinstance(event, TasksPlanned):
            items.append(Item(row.seq, row.ts_us, event, _manifest(row)))
        elif not isinstance(event, Unknown):
            items.append(Item(row.seq, row.ts_us, event))
    return items


def _manifest(row: _Row) -> list[PlannedTask]:
    try:
        return planned_tasks(unpack(row.enc, row.body or b"", row.blen))
    except ValueError as error:
        raise damaged(f"event {row.seq}", error) from error
