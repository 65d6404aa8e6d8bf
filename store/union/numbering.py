"""What the tasks of a log are called in the union, and its events with those numbers.

A task is itself by stage, key, model and replicate: that is how a task of one log is
found to be one of another's. Facts stay as they are stored but for the numbers in them.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import msgspec

from store.chain import EventRow
from store.codec import event_of, facts_of, unpack
from store.errors import CorruptLog
from store.events import (
    AttemptsAbandoned,
    Event,
    TasksPlanned,
    TasksReopened,
    Unknown,
)
from store.fold import touched
from store.manifest import PlannedTask, planned_tasks
from store.projections import load_run_state
from store.union.naming import name_of
from store.union.statements import UNION


class Here(NamedTuple):
    """An event of a log, with the union's numbers."""

    event: Event | Unknown
    ver: int
    facts: bytes
    task: int | None = None  #: of one that is about one task alone
    manifest: Sequence[PlannedTask] = ()  #: of a `TasksPlanned`: what is new here


class Numbers:
    """What the tasks of a log's stretch are called in the union."""

    def __init__(
        self, conn: sqlite3.Connection, part: int, rows: Sequence[EventRow]
    ) -> None:
        self._conn = conn
        self._part = part
        self._next = load_run_state(conn).tasks + 1
        self._events = {
            row.seq: _read(row, row.facts) for row in rows if row.task is None
        }
        self._manifests = {
            row.seq: planned_tasks(unpack(row.enc, row.body or b"", row.blen))
            for row in rows
            if isinstance(self._events.get(row.seq), TasksPlanned)
        }
        named = {row.task for row in rows if row.task is not None}
        for event in self._events.values():
            if not isinstance(event, Unknown):
                named.update(touched(event))
        for tasks in self._manifests.values():
            named.update(plan.root for plan in tasks)
        self._here: dict[int, int] = dict(
            conn.execute(
                UNION["numbers_of"], (part, json.dumps(sorted(named)))
            ).fetchall()
        )
        self.known = tuple(self._here.values())
        self._planned: list[tuple[int, int, str | None]] = []
        self._fresh: dict[bytes, int] = {}

    def translated(self, row: EventRow) -> Here:
        """An event with the union's numbers, and what of its plan is new here.

        Raises:
            CorruptLog: it names a task that the log never planned.
        """
        try:
            if row.task is not None:
                task = self._here[row.task]
                facts = _renumbered(row, row.task, task)
                return Here(_read(row, facts), row.ver, facts, task)
            match event := self._events[row.seq]:
                case TasksPlanned():
                    made, fresh = self._plan(event, self._manifests[row.seq])
                    return Here(made, made.VERSION, facts_of(made), manifest=fresh)
                case TasksReopened():
                    tasks = [self._here[task] for task in event.tasks]
                    event = replace(event, tasks=tasks)
                    return Here(event, event.VERSION, facts_of(event))
                case AttemptsAbandoned():
                    attempts = [(self._here[task], n) for task, n in event.attempts]
                    event = replace(event, attempts=attempts)
                    return Here(event, event.VERSION, facts_of(event))
                case _:
                    return Here(event, row.ver, row.facts)
        except KeyError as error:
            raise CorruptLog(
                f"event {row.seq} of a log names task {error}, which it never "
                "planned: see 'siftlog verify'"
            ) from error

    def _plan(
        self, event: TasksPlanned, manifest: Sequence[PlannedTask]
    ) -> tuple[TasksPlanned, Sequence[PlannedTask]]:
        fresh: list[PlannedTask] = []
        places: list[int] = []
        first = self._next
        for i, plan in enumerate(manifest):
            own, name = (
                event.first + i,
                name_of(plan.stage, plan.key, plan.model, plan.replicate),
            )
            task = self._identified(name)
            if task is None:
                task = self._fresh[name] = self._next
                self._next += 1
                root = task if plan.root == own else self._here[plan.root]
                fresh.append(plan if root == plan.root else replace(plan, root=root))
                places += event.places[i : i + 1] if event.places else ()
            self._here[own] = task
            self._planned.append((own, task, plan.skip))
        made = replace(event, first=first, count=len(fresh), places=places or None)
        return made, fresh

    def _identified(self, name: bytes) -> int | None:
        if name in self._fresh:
            return self._fresh[name]
        row = self._conn.execute(UNION["identified"], (name,)).fetchone()
        return None if row is None else int(row[0])

    def write(self) -> None:
        """Keep the new numbers in the open transaction."""
        self._conn.executemany(
            UNION["add_number"], [(self._part, *named) for named in self._planned]
        )
        # ascending: names are chance, and pages are so visited once
        self._conn.executemany(UNION["add_identity"], sorted(self._fresh.items()))


def _read(row: EventRow, facts: bytes) -> Event | Unknown:
    try:
        return event_of(row.kind, row.ver, facts)
    except msgspec.DecodeError as error:
        raise CorruptLog(
            f"event {row.seq} of a log cannot be read ({error}): see 'siftlog verify'"
        ) from error


def _renumbered(row: EventRow, own: int, task: int) -> bytes:
    """The facts of an event about task *own*, with another number for it.

    The number is the first of the fields. All others stay as they are, those too that
    only a later siftlog knows.

    Raises:
        CorruptLog: they are of another task than their row says.
    """
    beginning = b'{"task":%d,' % own
    if not row.facts.startswith(beginning):
        raise CorruptLog(
            f"event {row.seq} of a log is not about task {own}, as its row says: "
            "see 'siftlog verify'"
        )
    return b'{"task":%d,' % task + row.facts[len(beginning) :]
