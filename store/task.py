"""Defines a task: its states, transitions, and planned and projected rows.

The state machine is the table `TRANSITIONS`; any other pair raises an error and changes
nothing. "Open" is queued, running or waiting; the rest is final.

A million tasks are planned in blocks of a thousand, so planning costs a thousand events
instead of a million. Repeated names are left to the compression of payloads: a block of
a thousand takes 4.6 KB, and 3.7 KB if stages, models and fields were numbered by hand,
which costs twice the time to encode and half as much again to read.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec


class PlannedTask(msgspec.Struct, frozen=True, kw_only=True):
    """One row of a manifest: identity of a task, without its progress."""

    stage: str
    key: str  #: the item, such as "PMC123/mcq_drug:30033"
    model: str
    replicate: int  #: counts from 1
    root: int  #: number of the first-stage task it descends from; its own for those
    skip: str | None = None  #: reason, for a task that is planned as skipped
    context: str | None = None  #: JSON that a follow-up needs and cannot derive
    group: str | None = None  #: key under which a gathering stage collects it

    def under(self, root: int) -> PlannedTask:
        """The same task where its first-stage task has another number.

        Once a task of every log that is merged, and twice as quick as `replace`.
        """
        return PlannedTask(
            stage=self.stage,
            key=self.key,
            model=self.model,
            replicate=self.replicate,
            root=root,
            skip=self.skip,
            context=self.context,
            group=self.group,
        )

    def is_like(self, other: PlannedTask) -> bool:
        """Return whether the tasks are equal where roots are not compared."""
        return (
            self.key == other.key
            and self.stage == other.stage
            and self.model == other.model
            and self.replicate == other.replicate
            and self.skip == other.skip
            and self.context == other.context
            and self.group == other.group
        )


_DECODER = msgspec.json.Decoder(list[PlannedTask])
_ENCODER = msgspec.json.Encoder()


def manifest_bytes(tasks: Sequence[PlannedTask]) -> bytes:
    """The payload of the `TasksPlanned` that plans *tasks*, in their order."""
    return _ENCODER.encode(tasks)


def planned_tasks(payload: bytes) -> list[PlannedTask]:
    """The tasks of a manifest; the inverse of `manifest_bytes`.

    Raises:
        msgspec.DecodeError: the bytes are not a manifest.
    """
    return _DECODER.decode(payload)


#: Money is summed as whole pico-dollars: exact, in any order. Prices are given per
#: million tokens to at most six decimals, so nothing is rounded away.
PICO_PER_USD = 1_000_000_000_000


def pico(usd: float) -> int:
    """Dollars in whole pico-dollars."""
    return round(usd * PICO_PER_USD)


def usd(pico: int) -> float:
    """Pico-dollars in dollars; `pico` of it is the same number again."""
    return pico / PICO_PER_USD


class TaskState(enum.IntEnum):
    """State of a task; the numbers are stored."""

    QUEUED = 0  #: planned, no attempt in flight
    RUNNING = 1  #: an attempt is in flight, or its reply is not parsed yet
    WAITING = 2  #: the last attempt failed; the next is due at `not_before_us`
    COMPLETED = 3  #: a reply is stored, parsed or not
    FAILED = 4  #: no reply after all attempts
    SKIPPED = 5  #: never sent

    @property
    def is_open(self) -> bool:
        """Whether the task can still get a reply without manual action."""
        return self < TaskState.COMPLETED


class Transition(enum.Enum):
    """Events in the life of a task."""

    START = "attempt_started"
    ANSWER = "attempt_answered"
    REFUSE = "attempt_answered, to be asked again"
    RETRY = "attempt_failed, another is due"
    GIVE_UP = "attempt_failed, no further attempt"
    ABANDON = "attempts_abandoned"
    HOLD = "attempts_abandoned, held"
    COMPLETE = "task_completed"
    FAIL = "task_failed"
    SKIP = "task_skipped"
    REOPEN = "tasks_reopened"


_S = TaskState
TRANSITIONS: dict[tuple[TaskState, Transition], TaskState] = {
    (_S.QUEUED, Transition.START): _S.RUNNING,
    # imported and cached answers have no request of this run
    (_S.QUEUED, Transition.ANSWER): _S.RUNNING,
    (_S.QUEUED, Transition.REFUSE): _S.QUEUED,
    (_S.QUEUED, Transition.FAIL): _S.FAILED,
    (_S.QUEUED, Transition.SKIP): _S.SKIPPED,
    (_S.RUNNING, Transition.ANSWER): _S.RUNNING,
    # back in the queue, so that a re-ask survives the process
    (_S.RUNNING, Transition.REFUSE): _S.QUEUED,
    (_S.RUNNING, Transition.RETRY): _S.WAITING,
    (_S.RUNNING, Transition.GIVE_UP): _S.RUNNING,
    (_S.RUNNING, Transition.ABANDON): _S.QUEUED,
    (_S.RUNNING, Transition.HOLD): _S.WAITING,
    (_S.RUNNING, Transition.COMPLETE): _S.COMPLETED,
    (_S.RUNNING, Transition.FAIL): _S.FAILED,
    # its call was cut by a person who cancelled the run
    (_S.RUNNING, Transition.SKIP): _S.SKIPPED,
    (_S.WAITING, Transition.START): _S.RUNNING,
    (_S.WAITING, Transition.FAIL): _S.FAILED,
    (_S.WAITING, Transition.SKIP): _S.SKIPPED,
    (_S.COMPLETED, Transition.REOPEN): _S.QUEUED,
    (_S.FAILED, Transition.REOPEN): _S.QUEUED,
    (_S.SKIPPED, Transition.REOPEN): _S.QUEUED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRow:
    """A task as stored in the projection."""

    task: int  #: dense number from 1, in planning order
    stage: str
    key: str
    model: str
    replicate: int
    root: int
    state: TaskState
    attempts: int  #: number of the latest attempt, abandoned ones included
    abandoned: int  #: of these, attempts with unknown outcome
    tries: int  #: since the last reopening, without abandoned ones: the retry bound's
    reply_seq: int | None  #: event that holds the reply that counts
    not_before_us: int | None  #: earliest next attempt, for a waiting task
    error: str | None  #: class of the last failure
    reason: str | None  #: of the skip, or of the parse failure of a completed task
    latency_ms: float | None
    cost_usd: float | None
    context: str | None
    group: str | None
    updated_seq: int

    @property
    def is_held(self) -> bool:
        """Whether it was abandoned with `hold` and waits for a person."""
        return self.state is TaskState.WAITING and self.not_before_us is None


_STATES = tuple(TaskState)


def task_row(columns: Sequence[Any]) -> TaskRow:
    """Return a task from the columns of the projection, in the order of `TaskDraft`.

    Called for every row of a page or replay, hence without a draft.
    """
    cost_pico = columns[20]
    return TaskRow(
        task=columns[0],
        stage=columns[1],
        key=columns[3],
        model=columns[2],
        replicate=columns[4],
        root=columns[5],
        state=_STATES[columns[8]],
        attempts=columns[9],
        abandoned=columns[10],
        tries=columns[11],
        reply_seq=columns[15],
        not_before_us=columns[16],
        error=columns[17],
        reason=columns[18],
        latency_ms=columns[19],
        cost_usd=None if cost_pico is None else usd(cost_pico),
        context=columns[7],
        group=columns[6],
        updated_seq=columns[21],
    )


def planned_state(skip: str | None) -> TaskState:
    """Return the state of a newly planned task, which may have a reason to skip it."""
    return TaskState.QUEUED if skip is None else TaskState.SKIPPED


@dataclass(slots=True)
class TaskDraft:
    """A task during a fold: every column of the projection, changeable.

    Fields are in the order of the table's columns, so rows and drafts convert by
    position.
    """

    task: int
    stage: str
    model: str
    key: str
    replicate: int
    root: int
    group: str | None
    context: str | None
    state: TaskState
    attempts: int
    abandoned: int
    tries: int
    sent: bool  #: an attempt without a recorded outcome is in flight
    since_us: int | None  #: when its present attempt started
    started_seq: int | None  #: event of the latest started attempt
    reply_seq: int | None
    not_before_us: int | None
    error: str | None
    reason: str | None
    latency_ms: float | None
    cost_pico: int | None
    updated_seq: int
    event_seq: int | None  #: the latest event about this task only

    @classmethod
    def planned(cls, task: int, plan: PlannedTask, seq: int) -> TaskDraft:
        """Return a newly planned task: queued, or skipped from the start."""
        return cls(
            task=task,
            stage=plan.stage,
            model=plan.model,
            key=plan.key,
            replicate=plan.replicate,
            root=plan.root,
            group=plan.group,
            context=plan.context,
            state=planned_state(plan.skip),
            attempts=0,
            abandoned=0,
            tries=0,
            sent=False,
            since_us=None,
            started_seq=None,
            reply_seq=None,
            not_before_us=None,
            error=None,
            reason=plan.skip,
            latency_ms=None,
            cost_pico=None,
            updated_seq=seq,
            event_seq=None,
        )


Scope: TypeAlias = tuple[str | None, str | None]
"""A stage and a model; None matches every one."""


def is_within(inner: Scope, outer: Scope) -> bool:
    """Return whether *outer* covers everything that *inner* names."""
    return all(o in {None, i} for i, o in zip(inner, outer, strict=True))
