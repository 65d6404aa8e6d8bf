"""Holds the state of a fold: the run's phase, and its sums.

The sums are added to the tables. All are integers, so they do not depend on how events
were batched.
"""

from __future__ import annotations

import enum
import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from store.errors import IllegalMove
from store.events import (
    NAMES,
    RunCancelled,
    RunDrained,
    RunFinished,
    RunResumed,
    RunStarted,
    TasksPlanned,
)

Turn: TypeAlias = RunStarted | RunResumed | RunDrained | RunCancelled | RunFinished
"""Events that start or end a process's work on the run."""


@dataclass(slots=True, kw_only=True)
class RunState:
    """The one row of its table; a fold changes it in place."""

    phase: str = "created"  #: kind of the last `Turn`
    phase_by: str | None = None
    phase_why: str | None = None
    phase_us: int = 0  #: when that was, or when a pause in it was last lifted
    paused_by: str | None = None  #: who paused the whole run
    draining_by: str | None = None  #: who asked the current process to end
    tasks: int = 0  #: highest task number
    consumed: int = 0
    exhausted: bool = False
    success_us: int | None = None  #: when a task was last completed

    def turn(self, ts_us: int, event: Turn) -> None:
        """Record that work on the run started or ended."""
        self.phase = NAMES[type(event)]
        self.phase_us = ts_us
        self.phase_by = self.phase_why = self.draining_by = None
        if isinstance(event, RunDrained):
            self.phase_by, self.phase_why = event.by, event.why
        elif isinstance(event, RunCancelled):
            self.phase_by = event.by

    def plan(self, event: TasksPlanned, rows: int) -> None:
        """Extend the plan by *rows* tasks.

        Raises:
            IllegalMove: they do not follow the existing tasks.
        """
        if event.first != self.tasks + 1 or event.count != rows:
            raise IllegalMove(
                f"tasks {event.first} to {event.first + event.count - 1} cannot be "
                f"planned by {rows} rows after task {self.tasks}"
            )
        self.tasks += event.count
        self.consumed = max(self.consumed, event.consumed)
        self.exhausted = self.exhausted or event.exhausted


US_PER_S = 1_000_000
US_PER_MINUTE = 60 * US_PER_S
#: Latency buckets are 2 % wide: percentiles to 2 % without keeping every value.
BUCKET_RATIO = 1.02
LOG_RATIO = math.log(BUCKET_RATIO)


@dataclass(slots=True)
class MinuteSums:
    """Counts of one minute, stage and model."""

    started: int = 0
    succeeded: int = 0
    failed: int = 0
    retried: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost_pico: int = 0


@dataclass(slots=True)
class QueueSums:
    """Total counts of one stage and model."""

    started: int = 0
    succeeded: int = 0
    replies: int = 0  #: answers with a known latency
    tokens_in: int = 0
    tokens_out: int = 0
    cost_pico: int = 0


@dataclass(slots=True)
class ReplyTally:
    """Replies and failed tasks of one stage and model, by their faults.

    All replies ever received are counted; a `retry` does not decrease counts.
    """

    replies: int = 0  #: answers of the response cache included
    truncated: int = 0  #: ended at the output limit
    refused: int = 0  #: by the model
    filtered: int = 0  #: by the provider, with a reply or an error status
    empty: int = 0  #: without any text
    unparsed: int = 0  #: the job's parser could not read them
    failed: int = 0  #: tasks that ended without a reply


@dataclass(slots=True)
class ErrorSums:
    """Failed attempts of one class, stage and model."""

    n: int
    final: int  #: those without a further attempt
    last_seq: int
    sample_task: int


class FailureOutcome(enum.StrEnum):
    """Consequence of a failed attempt or an unusable reply."""

    RETRIED = "retried"
    FINAL = "final"  #: no further attempt
    REASKED = "re-ask"  #: the content was refused and requested again
    UNPARSED = "unparsed"  #: the reply is stored, but the parser could not read it


@dataclass(slots=True)
class FailureSums:
    """Failures of one minute by class, stage, model and outcome."""

    n: int
    last_task: int


def queue_sums(
    minutes: Mapping[tuple[str, str, int], MinuteSums],
    latencies: Mapping[tuple[str, str, int], int],
) -> dict[tuple[str, str], QueueSums]:
    """Return the totals of some minutes, by stage and model.

    Args:
        minutes: by stage, model and minute.
        latencies: answers by model, stage and bucket.
    """
    sums: dict[tuple[str, str], QueueSums] = defaultdict(QueueSums)
    for (stage, model, _), minute in minutes.items():
        queue = sums[stage, model]
        queue.started += minute.started
        queue.succeeded += minute.succeeded
        queue.tokens_in += minute.tokens_in
        queue.tokens_out += minute.tokens_out
        queue.cost_pico += minute.cost_pico
    for (model, stage, _), n in latencies.items():
        sums[stage, model].replies += n
    return sums


def bucket_of(latency_ms: float) -> int:
    """Return the latency bucket of a duration; bucket 0 holds all below 1 ms."""
    return int(math.log(latency_ms) / LOG_RATIO) if latency_ms > 1 else 0
