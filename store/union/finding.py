"""Answers that a run has already, whichever of its logs they are in."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from store.events import AttemptAnswered, AttemptStarted
from store.reading import event_in, reply_of
from store.union.naming import name_of
from store.union.statements import UNION

Identity: TypeAlias = tuple[str, str, str, int]
"""Stage, key, model and replicate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A stored answer."""

    body: bytes  #: as received
    answered: AttemptAnswered  #: as its log recorded it
    request_sha256: str  #: of what was sent for it
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
    seq, version, facts, writer, own_seq = row[6:]
    started = event_in(seq, "attempt_started", version, facts)
    if not isinstance(started, AttemptStarted):
        return None  # of a later siftlog
    return Found(
        body=reply.body,
        answered=reply.answered,
        request_sha256=started.request_sha256,
        # a copy names the original, so that copies of copies do too
        origin=reply.answered.adopted or f"{writer.hex()}:{own_seq}",
    )
