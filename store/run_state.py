"""Where a run as a whole stands: what began or ended it, and how far its plan is."""

from __future__ import annotations

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
"""Events after which a process works on the run, or none does any more."""


@dataclass(slots=True, kw_only=True)
class RunState:
    """The one row of its table; a fold changes it in place."""

    phase: str = "created"  #: kind of the last `Turn`
    phase_by: str | None = None
    phase_why: str | None = None
    phase_us: int = 0  #: when that was, or when a pause in it was last lifted
    paused_by: str | None = None  #: who holds the whole run back
    draining_by: str | None = None  #: who asked the present process to end
    tasks: int = 0  #: highest task number
    consumed: int = 0
    exhausted: bool = False
    success_us: int | None = None  #: when a task was last completed

    def turn(self, ts_us: int, event: Turn) -> None:
        """Work on the run began, or ended."""
        self.phase = NAMES[type(event)]
        self.phase_us = ts_us
        self.phase_by = self.phase_why = self.draining_by = None
        if isinstance(event, RunDrained):
            self.phase_by, self.phase_why = event.by, event.why
        elif isinstance(event, RunCancelled):
            self.phase_by = event.by

    def plan(self, event: TasksPlanned, rows: int) -> None:
        """The plan grew by *rows* tasks.

        Raises:
            IllegalMove: they do not follow the tasks that are there.
        """
        if event.first != self.tasks + 1 or event.count != rows:
            raise IllegalMove(
                f"tasks {event.first} to {event.first + event.count - 1} cannot be "
                f"planned by {rows} rows after task {self.tasks}"
            )
        self.tasks += event.count
        self.consumed = max(self.consumed, event.consumed)
        self.exhausted = self.exhausted or event.exhausted
