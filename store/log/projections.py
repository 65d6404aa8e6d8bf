"""Keeps the projections of a log: in memory while it is written, else from its events.

Folding an event takes microseconds, writing what it changes five times as long, and the
same rows change again and again. So the writer folds every event at once, holds the
changes in memory, and writes them a few times a second, in a transaction of their own
that waits for no disk. `applied_seq` is written with them: the event up to which they
hold. Readers of a live run see the projections of that event; the events themselves are
in the log as soon as they are acknowledged.

Nothing is lost with the memory. The next process that opens the log folds the events
after `applied_seq` once more, by the same code, and the rows are equal.

A rebuild folds all events. It is needed when the fold has changed (`CODE_VERSION`), and
`verify` uses it to prove that stored projections equal the fold of the events. It is a
repair, never a part of resuming. `store.time_travel` folds a range of events in the
same way.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

import msgspec

from store import tables
from store.database import SQL, is_union
from store.encoding import unpack
from store.errors import IllegalMove
from store.events import Event, TasksPlanned, UnknownEvent
from store.fold import MARKED, Fold, touched
from store.statements import script
from store.tables import damaged, event_in, last_seq
from store.task import PlannedTask, TaskState, planned_tasks
from store.union import folding
from store.union.folding import FoldItem

#: Longest time between a commit and its projections. A monitor looks up to four times
#: a second.
WRITE_EVERY_S = 0.2
#: Events and planned tasks held in memory at most.
MOST_EVENTS = 4096
MOST_TASKS = 4096

#: Kinds whose projections are written in the same transaction: few, and what a person
#: or another process acts on. Planning is none of them, for follow-ups are planned all
#: the time.
AT_ONCE = MARKED - {"tasks_planned"}


class PendingProjections:
    """The projections that a writer has folded and not written yet.

    Belongs to the writer's thread. Events are folded before they are committed; where
    that fails, the whole is discarded, and the next `write` folds the committed events
    once more.
    """

    def __init__(self, conn: sqlite3.Connection, seq: int) -> None:
        """Start with a log whose projections are written up to event *seq*, its end."""
        self._conn = conn
        self._applied_seq = self._seq = seq
        self._planned = 0  #: tasks that are not in their table yet
        self._fold: Fold | None = tables.load_fold(conn, ())

    @property
    def has_any(self) -> bool:
        """Whether the tables lack an event."""
        return self._fold is None or self._seq > self._applied_seq

    @property
    def is_discarded(self) -> bool:
        """Whether nothing can be folded before the next `write`."""
        return self._fold is None

    @property
    def is_full(self) -> bool:
        """Whether so much is held that it should be written now."""
        return (
            self._seq - self._applied_seq >= MOST_EVENTS or self._planned >= MOST_TASKS
        )

    def has_task(self, task: int) -> bool:
        """Return whether the row of *task* is behind its events."""
        fold = self._fold
        return fold is None or task in fold.moved or task > self._stored_tasks(fold)

    def load(self, events: Iterable[Event]) -> Fold:
        """Return the fold, ready to apply *events*."""
        fold = self._fold
        if fold is None:
            raise RuntimeError("a discarded fold was used before it was written again")
        stored = self._stored_tasks(fold)
        numbers = {task for event in events for task in touched(event)}
        missing = [n for n in numbers if n <= stored and n not in fold.tasks]
        fold.tasks.update(tables.drafts(self._conn, missing))
        return fold

    def _stored_tasks(self, fold: Fold) -> int:
        """The highest number of a task that has a row."""
        return fold.run.tasks - self._planned

    def take(self, seq: int, planned: int) -> None:
        """Note that the fold holds the events up to *seq*, with *planned* new tasks."""
        self._seq = seq
        self._planned += planned

    def discard(self) -> None:
        """Forget what was folded since the last `write`, because a fold failed."""
        self._fold = None

    def write(self, through_seq: int) -> None:
        """Write everything up to *through_seq*, the log's end, in the open transaction.

        Call `written` after its commit.
        """
        if self._fold is None:
            for _ in fold_between(
                self._conn, self._conn, self._applied_seq, through_seq
            ):
                pass
            self._seq = through_seq
        else:
            tables.write_fold(self._conn, self._fold, through_seq)

    def written(self) -> None:
        """Continue after the commit of what `write` wrote."""
        before, self._applied_seq, self._planned = self._fold, self._seq, 0
        if before is None:
            self._fold = tables.load_fold(self._conn, ())
            return
        # a task under way is the next to change: its row need not be read again
        under_way = {
            number: draft
            for number, draft in before.tasks.items()
            if draft.state is TaskState.RUNNING
        }
        self._fold = Fold(run=before.run, tasks=under_way)


#: Events folded at a time: enough to combine changes, few enough for memory.
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
    """Rebuild the projections of a log in one transaction."""
    conn.execute(SQL["begin"])
    try:
        refold(conn, conn, _no_progress)
        conn.execute(SQL["commit"])
    except BaseException:
        conn.execute(SQL["rollback"])
        raise


def _no_progress(seq: int) -> None:
    del seq


def refold(
    source: sqlite3.Connection,
    target: sqlite3.Connection,
    folded: Callable[[int], None],
    through_seq: int | None = None,
) -> None:
    """Fold the events of *source* into fresh projection tables of *target*.

    Args:
        source: a log.
        target: gets the tables.
        folded: called with the last event of each batch.
        through_seq: the last event to fold; None: all.

    Raises:
        CorruptLog: an event is damaged.
        IllegalMove: an event does not fit earlier events.
    """
    fresh_tables(source, target)
    end_seq = last_seq(source) if through_seq is None else through_seq
    for after in fold_between(source, target, 0, end_seq):
        folded(after)
    for statement in script("indexes"):
        target.execute(statement)


def fresh_tables(source: sqlite3.Connection, target: sqlite3.Connection) -> None:
    """Create the projection tables of the log *source*, empty, in *target*."""
    for statement in script("projections"):
        target.execute(statement)
    if is_union(source):
        folding.create_tables(target)


def fold_between(
    source: sqlite3.Connection, target: sqlite3.Connection, after: int, through_seq: int
) -> Iterator[int]:
    """Fold a range of *source*'s events into the projections of *target*.

    Events of unknown kinds and versions are skipped.

    Args:
        source: a log.
        target: holds the projections of its events up to *after*.
        after: the last event already folded; 0: none.
        through_seq: the last event to fold.

    Yields:
        The last folded event, after every `BATCH` events.

    Raises:
        CorruptLog: an event is damaged.
        IllegalMove: an event does not fit earlier events.
    """
    parts = folding.parts_by_epoch(source) if is_union(source) else None
    while rows := source.execute(
        SQL["events_for_fold"], (after, through_seq, BATCH)
    ).fetchall():
        event_rows = [_Row._make(row) for row in rows]
        after = event_rows[-1].seq
        if parts is None:
            items = _items(event_rows)
            fold = tables.load_fold(target, (item.event for item in items))
            for item in items:
                fold.apply(*item)
            tables.write_fold(target, fold, after)
        else:
            for part, of_part in groupby(
                event_rows, lambda row: parts.get(row.epoch, 0)
            ):
                part_rows = list(of_part)
                last = part_rows[-1].seq
                folding.fold_part(source, target, part, _items(part_rows), last)
        yield after


def _items(rows: Iterable[_Row]) -> list[FoldItem]:
    """Return the events of known kinds, ready to fold."""
    items: list[FoldItem] = []
    for row in rows:
        event = event_in(row.seq, row.kind, row.ver, row.facts)
        if isinstance(event, TasksPlanned):
            items.append(FoldItem(row.seq, row.ts_us, event, _manifest(row)))
        elif not isinstance(event, UnknownEvent):
            items.append(FoldItem(row.seq, row.ts_us, event))
    return items


def _manifest(row: _Row) -> list[PlannedTask]:
    try:
        return planned_tasks(unpack(row.enc, row.body or b"", row.blen))
    except ValueError as error:
        raise damaged(f"event {row.seq}", error) from error


def manifest_of(payload: bytes | None) -> list[PlannedTask]:
    """Return the tasks that the payload of a `TasksPlanned` holds.

    Raises:
        IllegalMove: it holds something else.
    """
    try:
        return planned_tasks(payload or b"")
    except msgspec.DecodeError as error:
        raise IllegalMove(
            f"tasks cannot be planned by this payload: {error}"
        ) from error
