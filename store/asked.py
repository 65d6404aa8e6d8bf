"""What was asked of a run and what became of it: its requests joined with its log.

A request waits in `control.jsonl` until the run's process answers it by events. A copy
of a log may lie without its requests: those that were answered are found all the same.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from store.commands import Command, Payload, withdrawals
from store.events import CommandAccepted, CommandApplied, CommandRejected, Recorded
from store.reading import recorded

KINDS = ("command_accepted", "command_rejected", "command_applied")
"""Events that answer a request."""
_END_US = 253_402_300_800_000_000
"""The year 10000: no calendar shows what lies beyond, and anybody may write a line."""
ALL = 1_000_000
"""Requests in one log, at most; people make them."""


class Answer(Enum):
    """What became of a request."""

    WAITING = "waiting"  #: not answered
    WITHDRAWN = "withdrawn"  #: not answered, and not to be carried out any more
    ACCEPTED = "accepted"  #: being carried out, or at the end of the process
    APPLIED = "applied"
    REJECTED = "rejected"


OPEN = frozenset({Answer.WAITING, Answer.ACCEPTED})
"""Answers after which something is still to come."""
_HEARD = frozenset({Answer.ACCEPTED, Answer.APPLIED})
"""Answers of one shard that no other's refusal takes back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request with its answer."""

    id: str
    kind: str
    author: str
    payload: Payload
    host: str | None = None  #: None: it stands in the log alone
    asked_us: int | None = None  #: likewise
    expected_state: str | None = None
    answer: Answer = Answer.WAITING
    accepted_us: int | None = None
    answered_us: int | None = None  #: when it was applied or rejected
    said: str | None = None  #: its effect, or why it was rejected

    @property
    def words(self) -> str:
        """What was asked, in a few words."""
        return words_of(self.kind, self.payload)

    @property
    def began_us(self) -> int:
        """When it was asked, or else when it is first heard of."""
        times = (self.asked_us, self.accepted_us, self.answered_us)
        return next((time for time in times if time is not None), 0)


def words_of(kind: str, payload: Payload) -> str:
    """A request on one line.

    >>> words_of("limits", {"model": "m", "rpm": None})
    'limits model m rpm none'
    """
    named = (
        key if value is True else f"{key} {'none' if value is None else value}"
        for key, value in payload.items()
        if value is not False and (value is not None or key in {"rpm", "tpm"})
    )
    return " ".join((kind, *named))


def asked(conn: sqlite3.Connection, commands: Sequence[Command]) -> list[Asked]:
    """Every request to a run, in the order in which they were made.

    Args:
        conn: the run's log.
        commands: what stands in its `control.jsonl`.
    """
    withdrawn = withdrawals(commands)
    found: dict[str, Asked] = {}
    for command in commands:
        answer = Answer.WITHDRAWN if command.id in withdrawn else Answer.WAITING
        found.setdefault(
            command.id,
            Asked(
                id=command.id,
                kind=command.kind,
                author=command.author,
                payload=command.payload,
                host=command.host,
                asked_us=command.at_us if 0 <= command.at_us < _END_US else None,
                expected_state=command.expected_state,
                answer=answer,
            ),
        )
    for row in answers(conn):
        _take_in(found, row)
    return sorted(found.values(), key=lambda request: request.began_us)


def answers(conn: sqlite3.Connection, after: int = 0) -> list[Recorded]:
    """Answers that were recorded after an event, ascending."""
    return recorded(conn, after, ALL, KINDS)


def _take_in(found: dict[str, Asked], row: Recorded) -> None:
    """What an answer says of its request."""
    match row.event:
        case CommandAccepted() as event:
            before = found.get(event.command) or Asked(
                id=event.command,
                kind=event.kind,
                author=event.author,
                payload=json.loads(event.payload),
            )
            if before.answer is Answer.APPLIED:
                return  # by another shard of the run, already
            after = replace(before, answer=Answer.ACCEPTED, accepted_us=row.ts_us)
        case CommandRejected() as event:
            if event.command in found and found[event.command].answer in _HEARD:
                return  # by another shard of the run
            before = found.get(event.command) or Asked(
                id=event.command, kind=event.kind, author=event.author, payload={}
            )
            after = replace(
                before,
                answer=Answer.REJECTED,
                answered_us=row.ts_us,
                said=event.reason,
            )
        case CommandApplied() as event if event.command in found:
            after = replace(
                found[event.command],
                answer=Answer.APPLIED,
                answered_us=row.ts_us,
                said=event.effect,
            )
        case _:
            return
    found[after.id] = after
