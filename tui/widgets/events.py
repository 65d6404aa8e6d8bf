"""The table of events with its columns, and the pane of one event.

It draws like every table, but its rows are a window of the log: the first and last
events, and the rows beyond an end, must be requested.
"""

from __future__ import annotations

import sqlite3
from bisect import bisect_right
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.notifications import SeverityLevel
from textual.widget import Widget
from textual.worker import Worker

from store.errors import StoreError
from store.events import (
    AttemptAnswered,
    AttemptFailed,
    AttemptsAbandoned,
    AttemptStarted,
    CommandRejected,
    RecordedEvent,
    RunCancelled,
    RunDrained,
    TaskCompleted,
    TaskFailed,
    UnknownEvent,
)
from store.printable import printable
from tui.render.event_text import event_line, facts_text
from tui.render.format import count, task_name, utc
from tui.render.glyphs import Glyphs
from tui.render.layout import TableColumn
from tui.render.tasks import time_of_day
from tui.sources.events import EventLine
from tui.terminal.export import save_text
from tui.widgets.panel import TextLine
from tui.widgets.scrolling import CursorMove, Viewport
from tui.widgets.table import PagedTable, TableMessage
from tui.widgets.text_view import TextView

NEAR = 200
"""Distance from an end, in rows, at which more rows are read in advance."""
_PART = 4
"""In a short list, an end is near within this fraction (1/n) of its rows."""
_WHEEL = 3
"""Rows that a notch of the wheel moves the cursor."""
_UPWARD = {CursorMove.UP, CursorMove.HALF_UP, CursorMove.PAGE_UP}
_DOWNWARD = {CursorMove.DOWN, CursorMove.HALF_DOWN, CursorMove.PAGE_DOWN}


class EventTable(PagedTable[EventLine]):
    """Events by seq; `show` sets them."""

    class EndRequested(TableMessage):
        """Requests the log's first or last event."""

        def __init__(self, table: EventTable, *, is_last: bool) -> None:
            super().__init__(table)
            self.is_last = is_last

    class EdgeNeared(TableMessage):
        """The cursor approaches an end of the rows."""

        def __init__(self, table: EventTable, *, is_last: bool) -> None:
            super().__init__(table)
            self.is_last = is_last

    @property
    def is_at_bottom(self) -> bool:
        """Whether the cursor is on the last row, and that is visible."""
        last = len(self.numbers) - 1
        is_seen = last - self.scroll_offset.y < self._room
        return self.cursor >= last and is_seen

    def point_at(self, seq: int) -> None:
        """Move the cursor to an event, or to the last one before it.

        A row out of view is centred, because both sides of it matter.
        """
        position = max(0, bisect_right(self.numbers, seq) - 1)
        viewport, room = self._viewport, self._room
        if not viewport.top <= position < viewport.top + room:
            viewport = Viewport(position, position - room // 2)
        self._go(viewport.at(position, len(self.numbers), room))

    def to_bottom(self) -> None:
        """Move the cursor to the last row."""
        super().action_move(CursorMove.LAST.name)

    def action_move(self, move: str) -> None:
        """Move the cursor; the ends of the log are requested by a message."""
        moved = CursorMove[move]
        if moved in {CursorMove.FIRST, CursorMove.LAST}:
            self.post_message(self.EndRequested(self, is_last=moved is CursorMove.LAST))
            return
        super().action_move(move)
        near = min(NEAR, len(self.numbers) // _PART)
        if moved in _UPWARD and self.cursor <= near:
            self.post_message(self.EdgeNeared(self, is_last=False))
        if moved in _DOWNWARD and self.cursor >= len(self.numbers) - 1 - near:
            self.post_message(self.EdgeNeared(self, is_last=True))

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Move the cursor with the wheel, so that it stays visible."""
        self._wheeled(event, CursorMove.UP)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Move the cursor with the wheel, towards the newest."""
        self._wheeled(event, CursorMove.DOWN)

    def _wheeled(self, event: events.MouseEvent, move: CursorMove) -> None:
        event.stop()
        event.prevent_default()
        for _ in range(_WHEEL):
            self.action_move(move.name)


def event_columns() -> tuple[TableColumn[EventLine], ...]:
    """Return the columns of events."""
    return (
        TableColumn(
            title="event",
            width=9,
            most=11,
            text=lambda line: count(line.recorded.seq),
            is_right=True,
            grows=True,
        ),
        TableColumn(
            title="day",
            width=5,
            most=5,
            text=lambda line: line.day[5:],
            grows=True,
            hides=True,
            drops=1,
        ),
        TableColumn(
            title="UTC", width=8, text=lambda line: time_of_day(line.recorded.ts_us)
        ),
        TableColumn(
            title="kind", width=16, text=lambda line: line.recorded.kind, tone=_tone
        ),
        TableColumn(
            title="task",
            width=7,
            most=9,
            text=_number_text,
            is_right=True,
            grows=True,
        ),
        TableColumn(
            title="what happened",
            width=28,
            text=lambda line: event_line(line.recorded.event),
            grows=True,
        ),
    )


def task_number_of(line: EventLine) -> int | None:
    """Return the only task of an event; None for several or none."""
    event = line.recorded.event
    return None if isinstance(event, UnknownEvent) else getattr(event, "task", None)


def _number_text(line: EventLine) -> str:
    number = task_number_of(line)
    return "" if number is None else str(number)


def task_of(line: EventLine) -> str:
    """Return the name of its task, if it has one."""
    number = task_number_of(line)
    return "" if number is None else task_name(number)


def plain(line: EventLine) -> str:
    """Return the whole line, for the clipboard."""
    recorded = line.recorded
    parts = (
        str(recorded.seq),
        recorded.kind,
        task_of(line),
        event_line(recorded.event),
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


MAX_BODY_CHARS = 60_000
"""Maximum characters of a displayed body; a file gets all of them."""

Body: TypeAlias = Callable[[RecordedEvent], Awaitable[str]]
"""Reads the payload of an event."""


class EventPane(Vertical):
    """One event; `show` sets it."""

    DEFAULT_CSS = """
    EventPane { background: $background; }
    EventPane #event-head { text-style: bold; }
    EventPane TextView { height: 1fr; }
    """

    def __init__(self, body: Body, glyphs: Glyphs) -> None:
        """Create an empty pane.

        Args:
            body: reads the payload of an event.
            glyphs: the characters that the terminal supports.
        """
        super().__init__()
        self._body = body
        self._glyphs = glyphs
        self._line: EventLine | None = None

    def compose(self) -> ComposeResult:
        """Yield the event's heading, its line, and all its data."""
        yield TextLine(self._glyphs, id="event-head")
        yield TextLine(self._glyphs, id="event-said")
        yield TextView(self._glyphs, id="event-text")

    def is_inside(self, widget: Widget | None) -> bool:
        """Return whether *widget* is a part of this pane."""
        return widget is not None and self in widget.ancestors

    def show(self, line: EventLine | None) -> None:
        """Show an event; the same event keeps its scroll position."""
        if line == self._line:
            return
        self._line = line
        _: Worker[None] = self.run_worker(
            self._reading, group="event", exclusive=True, exit_on_error=False
        )

    async def _reading(self) -> None:
        line = self._line
        if line is None:
            self._say("", "", "", "")
            return
        recorded = line.recorded
        parts = (f"event {count(recorded.seq)}", recorded.kind, task_of(line))
        head = " · ".join(filter(None, parts))
        text = await self._text(recorded)
        if len(text) > MAX_BODY_CHARS:
            text = (
                f"{text[:MAX_BODY_CHARS]}\n\n… cut here: w writes all of it to a file"
            )
        self._say(head, utc(recorded.ts_us), event_line(recorded.event), text)

    def _say(self, head: str, when: str, words: str, text: str) -> None:
        self.query_one("#event-head", TextLine).say(head, when)
        self.query_one("#event-said", TextLine).say(words)
        self.query_one(TextView).show(text)

    async def _text(self, recorded: RecordedEvent) -> str:
        """Return fields and body; an unreadable body becomes a message."""
        facts = facts_text(recorded.event)
        if not recorded.payload_bytes:
            return f"{facts}\n\nThis event has no further data."
        try:
            body = await self._body(recorded)
        except (StoreError, sqlite3.Error) as error:
            body = f"{error}."
        size = f"kept beside it, {count(recorded.payload_bytes)} bytes"
        return f"{facts}\n\n{size}\n\n{body}"

    async def write(self, line: EventLine) -> None:
        """Write an event with its payload to a file in this folder."""
        recorded = line.recorded
        head = f"event {recorded.seq}  {utc(recorded.ts_us)}  {recorded.kind}\n\n"
        text = await self._text(recorded)
        name = f"event-{recorded.seq}.txt"
        problem = save_text(self.app, f"{head}{text}\n", name)
        severity: SeverityLevel = "error" if problem else "information"
        self.notify(
            printable(problem) or f"{name} written",
            timeout=3,
            severity=severity,
            markup=False,
        )
