"""Answers that a run has already, whichever of its logs they are in."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from store.events import (
    AttemptAnswered,
    AttemptStarted,
    TaskCompleted,
    TaskFailed,
    TaskSkipped,
)
from store.reading import event_in, reply_of, task_events
from store.union.naming import name_of
from store.union.statements import UNION

Identity: TypeAlias = tuple[str, str, str, int]
"""Stage, key, model and replicate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A stored answer."""

    body: bytes  #: as received
    answered: AttemptAnswered  #: as its log recorded it
    request_sha256: str  #: of what was sent for it, before any reply was refused
    origin: str  #: "<writer>:<seq>" of the answer in the log that paid for it


def find(reader: sqlite3.Connection, wanted: Iterable[Identity]) -> list[Found | None]:
    """The answers to tasks of these identities; None: there is none, or no longer.

    Args:
        reader: of a union.
        wanted: who the tasks are.

    Raises:
        CorruptLog: an answer cannot be read.
    """
    return [_found(reader, name_of(*identity)) for identity in wanted]


def _found(reader: sqlite3.Connection, name: bytes) -> Found | None:
    row = reader.execute(UNION["found"], (name,)).fetchone()
    if row is None:
        return None
    reply = reply_of(*row[:6])
    seq, version, facts, writer, own_seq, task = row[6:]
    started = event_in(seq, "attempt_started", version, facts)
    if reply.answered.attempt > 1:
        started = _first_asked(reader, task, reply.seq) or started
    if not isinstance(started, AttemptStarted):
        return None  # of a later siftlog
    return Found(
        body=reply.body,
        answered=reply.answered,
        request_sha256=started.request_sha256,
        # a copy names the original, so that copies of copies do too
        origin=reply.answered.adopted or f"{writer.hex()}:{own_seq}",
    )


def _first_asked(
    union: sqlite3.Connection, task: int, answer: int
) -> AttemptStarted | None:
    """The request that began the dialogue which ended with the event *answer*.

    A reply that was refused is asked for again together with what was wrong with it, so
    what was sent last is no request that a shard begins with. None: none was refused.
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
