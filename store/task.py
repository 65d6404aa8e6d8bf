"""A task's states, the moves between them, and its row in the projection.

The state machine is the table `MOVES`; a pair that is not in it is an error that
changes nothing. "Open" is queued, running or waiting; the rest is final.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass


class TaskState(enum.IntEnum):
    """Where a task stands; the numbers are stored."""

    QUEUED = 0  #: planned, no attempt under way
    RUNNING = 1  #: an attempt is under way, or its reply has not been read yet
    WAITING = 2  #: the last attempt failed; another is due at `not_before_us`
    COMPLETED = 3  #: a reply is stored, readable or not
    FAILED = 4  #: no reply after all attempts
    SKIPPED = 5  #: will never be asked

    @property
    def is_open(self) -> bool:
        """Whether the task can still get a reply without a person's word."""
        return self < TaskState.COMPLETED


class Move(enum.Enum):
    """What can happen to one task."""

    START = "attempt_started"
    ANSWER = "attempt_answered"
    RETRY = "attempt_failed, another is due"
    GIVE_UP = "attempt_failed, no further attempt"
    ABANDON = "attempts_abandoned"
    HOLD = "attempts_abandoned, held"
    COMPLETE = "task_completed"
    FAIL = "task_failed"
    SKIP = "task_skipped"
    REOPEN = "tasks_reopened"


_S = TaskState
MOVES: dict[tuple[TaskState, Move], TaskState] = {
    (_S.QUEUED, Move.START): _S.RUNNING,
    # work made elsewhere and cached answers arrive without a request of ours
    (_S.QUEUED, Move.ANSWER): _S.RUNNING,
    (_S.QUEUED, Move.SKIP): _S.SKIPPED,
    (_S.RUNNING, Move.ANSWER): _S.RUNNING,
    (_S.RUNNING, Move.RETRY): _S.WAITING,
    (_S.RUNNING, Move.GIVE_UP): _S.RUNNING,
    (_S.RUNNING, Move.ABANDON): _S.QUEUED,
    (_S.RUNNING, Move.HOLD): _S.WAITING,
    # a re-ask: the reply came, its content was refused
    (_S.RUNNING, Move.START): _S.RUNNING,
    (_S.RUNNING, Move.COMPLETE): _S.COMPLETED,
    (_S.RUNNING, Move.FAIL): _S.FAILED,
    (_S.WAITING, Move.START): _S.RUNNING,
    (_S.WAITING, Move.FAIL): _S.FAILED,
    (_S.WAITING, Move.SKIP): _S.SKIPPED,
    (_S.COMPLETED, Move.REOPEN): _S.QUEUED,
    (_S.FAILED, Move.REOPEN): _S.QUEUED,
    (_S.SKIPPED, Move.REOPEN): _S.QUEUED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRow:
    """A task as the projection holds it."""

    task: int  #: dense number from 1, in planning order
    stage: str
    key: str
    model: str
    replicate: int
    root: int
    state: TaskState
    attempts: int  #: started so far, abandoned ones included
    abandoned: int  #: of them, those whose outcome nobody knows
    reply_seq: int | None  #: event that holds the reply that counts
    not_before_us: int | None  #: earliest next attempt, for a waiting task
    error: str | None  #: class of the last failure
    reason: str | None  #: of the skip, or of the parse failure of a completed task
    latency_ms: float | None
    cost_usd: float | None
    context: str | None
    group: str | None
    updated_seq: int
