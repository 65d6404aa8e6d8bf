"""The projections of a log taken over as they stand, where it meets no other log.

Where all tasks of a log are its own, and it paid for all of its answers, what folding
its events would come to is what its own writer's fold came to: the same rows under the
union's numbers, and sums that are added up. So a log that is merged for the first time
need not be folded again, which is most of the work of merging.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import replace

from store import projections
from store.chain import EventRow
from store.connect import Reader
from store.events import Event, LimitObserved, RunPaused
from store.fold import Fold
from store.projections import load_run_state
from store.run_state import RunState
from store.slices import ALL
from store.statements import SQL
from store.union import parts
from store.union.phase import Part
from store.union.statements import UNION

#: How a log's rows are read, and how they are added to those of the union.
TABLES = (
    ("graft_counts", "add_counts"),
    ("graft_minutes", "add_minute"),
    ("graft_lanes", "add_lane"),
    ("graft_replies", "add_replies"),
    ("graft_latencies", "add_latency"),
    ("graft_errors", "add_error"),
    ("graft_failures", "add_failures"),
    ("graft_reasons", "add_reason"),
    ("graft_counters", "add_counter"),
    ("graft_marks", "insert_mark"),
)

#: In the facts of an event about an answer that another log paid for.
_ADOPTED = re.compile(rb'"adopted":[t"]')


def adopts(rows: Sequence[EventRow]) -> bool:
    """Whether one of the events is of an answer that another log paid for."""
    return _ADOPTED.search(b"".join(row.facts for row in rows)) is not None


class Graft:
    """What a log's events say on their way into the union, and where it stands then."""

    def __init__(self, union: sqlite3.Connection, part: int) -> None:
        """Begin with a log of which nothing is in the union.

        Args:
            union: in an open transaction.
            part: which log it is.
        """
        self._union = union
        self._part = part
        self._slices = ALL
        #: of its events, what depends on their order or on how they were written
        self._heard = Fold(run=RunState(), tasks={})

    def hear(self, seq: int, ts_us: int, event: Event) -> None:
        """Take in an event that is not about one task, with the union's numbers."""
        self._slices = parts.hear(self._union, self._part, event) or self._slices
        if isinstance(event, LimitObserved | RunPaused):
            self._heard.apply(seq, ts_us, event)

    def write(self, log: Reader, seqs: int, tasks: int, upto: int) -> None:
        """Add the log's projections to those of the union.

        Args:
            log: as it was after its last event that was taken in.
            seqs: what its events' numbers are moved by.
            tasks: what its tasks' numbers are moved by.
            upto: what the union's projections then are of.
        """
        union = self._union
        moved = {"seqs": seqs, "tasks": tasks}
        union.executemany(UNION["graft_task"], self._tasks(log, moved))
        for read, add in TABLES:
            union.executemany(SQL[add], log.execute(UNION[read], moved))
        known = parts.stored(union, union)
        run = load_run_state(log)
        known[self._part] = Part(
            log=parts.logs(union)[self._part],
            slices=self._slices,
            state=replace(run, tasks=tasks + run.tasks),
            limits=self._heard.limiters,
        )
        fold = Fold(run=run, tasks={}, pauses=self._heard.pauses)
        parts.write(union, known, self._part, fold, upto)

    def _tasks(
        self, log: Reader, moved: dict[str, int]
    ) -> Iterator[tuple[object, ...]]:
        stages, models = (self._ids(log, table) for table in ("stage", "model"))
        for task, stage, model, *rest in log.execute(UNION["graft_tasks"], moved):
            yield (task, stages[stage], models[model], *rest)

    def _ids(self, log: Reader, table: str) -> dict[int, int]:
        """The union's numbers for a log's numbers of the names in a table."""
        own = dict(log.execute(SQL[f"ids_{table}"]).fetchall())
        here = projections.ids(self._union, table, own)
        return {number: here[name] for name, number in own.items()}
