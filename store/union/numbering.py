"""Identifies tasks across the logs of a run, and finds their answers.

A task is itself by stage, key, model and replicate: that is how a task of one log is
found to be one of another's. Facts stay as they are stored but for the numbers in them.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple, TypeAlias

import msgspec
from msgspec.structs import replace

from store.database import UNION
from store.encoding import Packer, event_of, facts_of, unpack
from store.errors import CorruptLog
from store.events import (
    AttemptAnswered,
    AttemptsAbandoned,
    AttemptStarted,
    Event,
    TaskCompleted,
    TaskFailed,
    TaskSkipped,
    TasksPlanned,
    TasksReopened,
    UnknownEvent,
)
from store.fold import touched
from store.log.integrity import EventRow
from store.tables import event_in, reply_of, task_events
from store.task import PlannedTask, manifest_bytes, planned_tasks

_ENCODER = msgspec.json.Encoder()


def task_digest(stage: str, key: str, model: str, replicate: int) -> bytes:
    """The 16 bytes under which the union finds a task."""
    identity = _ENCODER.encode((stage, key, model, replicate))
    return blake2b(identity, digest_size=16).digest()


class RenumberedEvent(NamedTuple):
    """An event about several tasks or none, with the union's numbers."""

    event: Event | UnknownEvent
    ver: int
    enc: int
    blen: int
    facts: bytes
    body: bytes | None


class TaskNumbers:
    """Numbers in the union of the tasks in a range of a log."""

    def __init__(
        self,
        conn: sqlite3.Connection,
        part: int,
        rows: Sequence[EventRow],
        tasks: int,
    ) -> None:
        """Look up the numbers that the rows need.

        Args:
            conn: the union.
            part: the log of the rows.
            rows: consecutive events of the log.
            tasks: number of tasks in the union.

        Raises:
            CorruptLog: one of them cannot be read.
        """
        self._conn = conn
        self._part = part
        self._packer = Packer()
        self.tasks = tasks  #: that the union has, those included that are met here
        self._events = {row.seq: _read(row) for row in rows if row.task is None}
        self._manifests = {
            row.seq: planned_tasks(unpack(row.enc, row.body or b"", row.blen))
            for row in rows
            if isinstance(self._events.get(row.seq), TasksPlanned)
        }
        referenced_tasks = {row.task for row in rows if row.task is not None}
        for event in self._events.values():
            if not isinstance(event, UnknownEvent):
                referenced_tasks.update(touched(event))
        for plans in self._manifests.values():
            referenced_tasks.update(plan.root for plan in plans)
        self._here: dict[int, int] = dict(
            conn.execute(
                UNION["numbers_of"], (part, json.dumps(sorted(referenced_tasks)))
            ).fetchall()
        )
        self.known_tasks = tuple(self._here.values())
        self._planned: list[tuple[int, int, str | None]] = []
        self._fresh: dict[bytes, int] = {}

    @property
    def meets(self) -> bool:
        """Whether a planned task was already planned by another log."""
        return len(self._planned) > len(self._fresh)

    def of_one(self, row: EventRow, log_task: int) -> tuple[int, bytes]:
        """Return the union's number of a row's task *log_task*, and its facts.

        The number is the first of the fields. All others are unchanged, even those that
        only a later siftlog knows.

        Raises:
            CorruptLog: the log never planned it, or the facts are of another task than
                their row says.
        """
        task = self._here.get(log_task)
        if task is None:
            raise _unplanned(row, log_task)
        beginning = b'{"task":%d,' % log_task
        if not row.facts.startswith(beginning):
            raise CorruptLog(
                f"event {row.seq} of a log is not about task {log_task}, as its "
                "row says: see 'siftlog verify'"
            )
        return task, b'{"task":%d,' % task + row.facts[len(beginning) :]

    def of_many(self, row: EventRow) -> RenumberedEvent:
        """Return an event about several tasks or none, and its newly planned tasks.

        Raises:
            CorruptLog: it names a task that the log never planned.
        """
        event = self._events[row.seq]
        try:
            match event:
                case TasksPlanned():
                    return self._plan(event, self._manifests[row.seq])
                case TasksReopened():
                    event = replace(event, tasks=[self._here[n] for n in event.tasks])
                case AttemptsAbandoned():
                    attempts = [(self._here[task], n) for task, n in event.attempts]
                    event = replace(event, attempts=attempts)
                case _:
                    return RenumberedEvent(
                        event, row.ver, row.enc, row.blen, row.facts, row.body
                    )
        except KeyError as error:
            raise _unplanned(row, error.args[0]) from error
        facts = facts_of(event)
        return RenumberedEvent(event, event.VERSION, row.enc, row.blen, facts, row.body)

    def _plan(
        self, event: TasksPlanned, manifest: Sequence[PlannedTask]
    ) -> RenumberedEvent:
        fresh: list[PlannedTask] = []
        places: list[int] = []
        first = self.tasks + 1
        names = [
            task_digest(plan.stage, plan.key, plan.model, plan.replicate)
            for plan in manifest
        ]
        tasks_by_name = self._identified(names)
        for i, (plan, name) in enumerate(zip(manifest, names, strict=True)):
            log_task = event.first + i
            task = tasks_by_name.get(name)
            if task is None:
                self.tasks += 1
                task = tasks_by_name[name] = self._fresh[name] = self.tasks
                root = task if plan.root == log_task else self._here[plan.root]
                fresh.append(plan if root == plan.root else plan.under(root))
                places += event.places[i : i + 1] if event.places else ()
            self._here[log_task] = task
            self._planned.append((log_task, task, plan.skip))
        renumbered = replace(
            event, first=first, count=len(fresh), places=places or None
        )
        payload = manifest_bytes(fresh)
        encoding, body = self._packer.pack(payload)
        return RenumberedEvent(
            renumbered,
            renumbered.VERSION,
            encoding,
            len(payload),
            facts_of(renumbered),
            body,
        )

    def _identified(self, names: Sequence[bytes]) -> dict[bytes, int]:
        """The tasks that the union has under some of these names."""
        fresh = {name: self._fresh[name] for name in names if name in self._fresh}
        stored = self._conn.execute(UNION["identified"], {"names": b"".join(names)})
        return fresh | dict(stored.fetchall())

    def write(self) -> None:
        """Keep the new numbers in the open transaction."""
        self._conn.executemany(
            UNION["add_number"], [(self._part, *row) for row in self._planned]
        )
        # ascending: names are chance, and pages are so visited once
        self._conn.executemany(UNION["add_identity"], sorted(self._fresh.items()))


def _unplanned(row: EventRow, log_task: int) -> CorruptLog:
    return CorruptLog(
        f"event {row.seq} of a log names task {log_task}, which it never planned: see "
        "'siftlog verify'"
    )


def _read(row: EventRow) -> Event | UnknownEvent:
    try:
        return event_of(row.kind, row.ver, row.facts)
    except msgspec.DecodeError as error:
        raise CorruptLog(
            f"event {row.seq} of a log cannot be read ({error}): see 'siftlog verify'"
        ) from error


TaskIdentity: TypeAlias = tuple[str, str, str, int]
"""Stage, key, model and replicate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAnswer:
    """A stored answer."""

    body: bytes  #: as received
    answered: AttemptAnswered  #: as its log recorded it
    request_sha256: str  #: of the request before any reply was refused
    origin: str  #: "<writer>:<seq>" of the answer in the log that paid for it


def find_answers(
    reader: sqlite3.Connection, identities: Iterable[TaskIdentity]
) -> list[StoredAnswer | None]:
    """The answers to tasks of these identities; None: there is none, or no longer.

    Args:
        reader: of a union.
        identities: who the tasks are.

    Raises:
        CorruptLog: an answer cannot be read.
    """
    return [_stored_answer(reader, task_digest(*identity)) for identity in identities]


def _stored_answer(reader: sqlite3.Connection, name: bytes) -> StoredAnswer | None:
    row = reader.execute(UNION["found"], (name,)).fetchone()
    if row is None:
        return None
    reply = reply_of(*row[:6])
    seq, version, facts, writer, log_seq, task = row[6:]
    started = event_in(seq, "attempt_started", version, facts)
    if reply.answered.attempt > 1:
        started = _first_request(reader, task, reply.seq) or started
    if not isinstance(started, AttemptStarted):
        return None  # of a later siftlog
    return StoredAnswer(
        body=reply.body,
        answered=reply.answered,
        request_sha256=started.request_sha256,
        # a copy names the original, so that copies of copies do too
        origin=reply.answered.adopted or f"{writer.hex()}:{log_seq}",
    )


def _first_request(
    union: sqlite3.Connection, task: int, answer: int
) -> AttemptStarted | None:
    """Return the first request of the dialogue that ended with the event *answer*.

    A refused reply is requested again together with its error, so the last request is
    not the one that a shard starts with. None: no reply was refused.
    """
    parts = dict(union.execute(UNION["openings"]).fetchall())
    history = [r for r in task_events(union, task) if r.seq <= answer]
    begun: dict[int, AttemptStarted] = {}
    first: AttemptStarted | None = None
    for recorded in history:
        if parts.get(recorded.epoch) != parts.get(history[-1].epoch):
            continue
        match recorded.event:
            case AttemptStarted() as started:
                begun[started.attempt] = started
            case AttemptAnswered(attempt=attempt, reask=str()):
                first = first or begun.get(attempt)
            case TaskCompleted() | TaskFailed() | TaskSkipped():
                first = None
            case _:
                pass
    return first
