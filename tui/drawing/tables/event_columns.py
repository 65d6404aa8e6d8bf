"""What the table of events shows of one."""

from __future__ import annotations

from store.events import (
    AttemptAnswered,
    AttemptFailed,
    AttemptsAbandoned,
    AttemptStarted,
    CommandRejected,
    RunCancelled,
    RunDrained,
    TaskCompleted,
    TaskFailed,
    Unknown,
)
from tui.drawing.format import count, task_name
from tui.drawing.tables.attempt_columns import time_of_day
from tui.drawing.tables.columns import Column
from tui.drawing.tables.event_words import said
from tui.lists.ring import EventLine


def event_columns() -> tuple[Column[EventLine], ...]:
    """The columns of the events."""
    return (
        Column(
            title="event",
            width=9,
            text=lambda line: count(line.recorded.seq),
            is_right=True,
        ),
        Column(title="day", width=5, text=lambda line: line.day[5:], drops=1),
        Column(
            title="UTC", width=8, text=lambda line: time_of_day(line.recorded.ts_us)
        ),
        Column(
            title="kind", width=16, text=lambda line: line.recorded.kind, tone=_tone
        ),
        Column(title="task", width=9, text=task_of),
        Column(
            title="what happened",
            width=24,
            text=lambda line: said(line.recorded.event),
            grows=True,
        ),
    )


def task_number_of(line: EventLine) -> int | None:
    """The task that an event is about alone; None for those about more, or none."""
    event = line.recorded.event
    return None if isinstance(event, Unknown) else getattr(event, "task", None)


def task_of(line: EventLine) -> str:
    """Its name, where there is one."""
    number = task_number_of(line)
    return "" if number is None else task_name(number)


def plain(line: EventLine) -> str:
    """The whole line, for a clipboard."""
    recorded = line.recorded
    parts = (
        str(recorded.seq),
        recorded.kind,
        task_of(line),
        said(recorded.event),
    )
    return "  ".join(filter(None, parts))


def _tone(line: EventLine) -> str:
    match line.recorded.event:
        case AttemptFailed(retry_in_s=None) | TaskFailed() | RunCancelled():
            return "failed"
        case AttemptFailed() | AttemptsAbandoned() | RunDrained() | CommandRejected():
            return "waiting"
        case AttemptAnswered(reask=str()) | TaskCompleted(unparsed=str()):
            return "waiting"
        case AttemptAnswered() | TaskCompleted():
            return "done"
        case AttemptStarted():
            return "running"
        case _:
            return "dim"
