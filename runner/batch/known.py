"""Batches that earlier processes of a run have left, as its log tells of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from runner.batch.ids import key_of
from store.events import AttemptStarted, BatchItem
from store.read.usage import RecordedBatch, batches, items_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A batch in which attempts wait that have no outcome yet."""

    key: str
    model: str
    id: str | None  #: the provider's; None: it may have the batch or not
    prepared_us: int
    has_ended: bool  #: the log knows that
    items: tuple[BatchItem, ...]  #: all of them, in the order they were sent in
    open: frozenset[tuple[int, int]]  #: those without an outcome, as (task, attempt)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftBatches:
    """What a run's earlier processes have left to batches."""

    batches: tuple[Known, ...] = ()
    ids: frozenset[str] = frozenset()
    """Of every batch that the provider is known to have."""
    adopted: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Items that were taken over from batches of a lost log, by the id of the batch."""

    def of(self, model: str) -> tuple[Known, ...]:
        """The batches of one model."""
        return tuple(known for known in self.batches if known.model == model)


def left_batches(
    conn: sqlite3.Connection, starts: Iterable[AttemptStarted]
) -> LeftBatches:
    """The batches that the attempts *starts* wait in, as far as these were sent.

    From the newest batch back, for an attempt may have been in one that never came to
    be before it went into another.
    """
    there = batches(conn)
    still = {(start.task, start.attempt) for start in starts}
    found = []
    for batch in reversed(there):
        if not still:
            break
        if batch.id is None and not batch.is_open:
            continue  # it never came to be: nothing of it was sent
        known = _known(conn, batch, still)
        if known.open:
            found.append(known)
            still -= known.open
    ids = frozenset(batch.id for batch in there if batch.id is not None)
    return LeftBatches(batches=tuple(found), ids=ids, adopted=_adopted(conn, there))


def _adopted(
    conn: sqlite3.Connection, there: Iterable[RecordedBatch]
) -> dict[str, frozenset[str]]:
    """What was taken over: its items bear another key than the log has them under."""
    adopted: dict[str, frozenset[str]] = {}
    for batch in there:
        if batch.id is None or not batch.is_found:
            continue
        items = {item.id for item in items_of(conn, batch)}
        if any(key_of(item) != batch.key for item in items):
            adopted[batch.id] = adopted.get(batch.id, frozenset()) | items
    return adopted


def _known(
    conn: sqlite3.Connection, batch: RecordedBatch, still: set[tuple[int, int]]
) -> Known:
    items = tuple(items_of(conn, batch))
    return Known(
        key=batch.key,
        model=batch.model,
        id=batch.id,
        prepared_us=batch.prepared_us,
        has_ended=not batch.is_open,
        items=items,
        open=frozenset((item.task, item.attempt) for item in items) & still,
    )
