"""The batches of a log: which are open, what is in them, what waits for them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, replace
from operator import attrgetter

import msgspec

from store.batches import (
    BatchCreated,
    BatchEnded,
    BatchItem,
    BatchPrepared,
    batch_items,
)
from store.events import AttemptStarted
from store.reading import damaged, event_in, payload, recorded_rows
from store.statements import SQL

KINDS = ("batch_prepared", "batch_created", "batch_ended")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedBatch:
    """A batch as its latest events tell of it."""

    key: str
    model: str
    form: str
    requests: int
    prepared_us: int
    seq: int  #: of the event that prepared it
    id: str | None = None  #: the provider's; None: it may have it or not
    is_open: bool = True  #: its end is not recorded
    is_found: bool = False  #: the provider's list told of it, not its creation


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenBatches:
    """How many batches are open, and what waits in them."""

    count: int = 0
    requests: int = 0  #: in all of them together
    oldest_us: int | None = None  #: when the oldest of them was prepared


def batches(conn: sqlite3.Connection) -> tuple[RecordedBatch, ...]:
    """Every batch of the log, in the order in which they were prepared."""
    found: dict[str, RecordedBatch] = {}
    rows = [
        row
        for kind in KINDS
        for row in recorded_rows(conn, SQL["marked"], (kind, 0, -1))
    ]
    for row in sorted(rows, key=attrgetter("seq")):
        match row.event:
            case BatchPrepared() as event:
                # one that the provider never had may be prepared again as it was
                found.pop(event.batch, None)
                found[event.batch] = RecordedBatch(
                    key=event.batch,
                    model=event.model,
                    form=event.form,
                    requests=event.requests,
                    prepared_us=row.ts_us,
                    seq=row.seq,
                )
            case BatchCreated(batch=key) as event if key in found:
                found[key] = replace(found[key], id=event.id, is_found=event.found)
            case BatchEnded(batch=key) if key in found:
                found[key] = replace(found[key], is_open=False)
            case _:
                pass  # of a version, or of a batch, that a later siftlog wrote
    return tuple(found.values())


def items_of(conn: sqlite3.Connection, batch: RecordedBatch) -> list[BatchItem]:
    """What is in a batch.

    Raises:
        CorruptLog: its list is damaged.
    """
    try:
        return batch_items(payload(conn, batch.seq) or b"")
    except msgspec.DecodeError as error:
        raise damaged(f"event {batch.seq}", error) from error


def open_batches(conn: sqlite3.Connection) -> OpenBatches:
    """The open batches at a glance; costs nothing where there never was one."""
    return _at_a_glance(batch for batch in batches(conn) if batch.is_open)


def _at_a_glance(still_open: Iterable[RecordedBatch]) -> OpenBatches:
    found = list(still_open)
    return OpenBatches(
        count=len(found),
        requests=sum(batch.requests for batch in found),
        oldest_us=min((batch.prepared_us for batch in found), default=None),
    )


def sent_starts(conn: sqlite3.Connection) -> list[AttemptStarted]:
    """The starts of the attempts whose outcome is not recorded, by task."""
    starts = (
        event_in(seq, "attempt_started", version, facts)
        for seq, version, facts in conn.execute(SQL["sent_starts"]).fetchall()
    )
    return [start for start in starts if isinstance(start, AttemptStarted)]
