"""One event with all of its facts, and the text that is kept beside it."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.notifications import SeverityLevel
from textual.widget import Widget
from textual.worker import Worker

from store.errors import StoreError
from store.events import Recorded
from store.printable import printable
from tui.drawing.format import count
from tui.drawing.glyphs import Glyphs
from tui.drawing.tables.event_columns import task_of
from tui.drawing.tables.event_words import facts_text, said
from tui.drawing.words import utc
from tui.lists.ring import EventLine
from tui.terminal.keeping import write
from tui.widgets.line import TextLine
from tui.widgets.text_view import TextView

SHOWN = 60_000
"""Characters of a body that are shown; a file gets all of them."""

Body: TypeAlias = Callable[[Recorded], Awaitable[str]]
"""Reads what is kept beside an event."""


class EventPane(Vertical):
    """One event; `show` says which."""

    DEFAULT_CSS = """
    EventPane { background: $background; }
    EventPane #event-head { text-style: bold; }
    EventPane TextView { height: 1fr; }
    """

    def __init__(self, body: Body, glyphs: Glyphs) -> None:
        """A pane that shows nothing yet.

        Args:
            body: reads what is kept beside an event.
            glyphs: the signs that the terminal can show.
        """
        super().__init__()
        self._body = body
        self._glyphs = glyphs
        self._line: EventLine | None = None

    def compose(self) -> ComposeResult:
        """Which event it is, what it says, and all of it."""
        yield TextLine(self._glyphs, id="event-head")
        yield TextLine(self._glyphs, id="event-said")
        yield TextView(self._glyphs, id="event-text")

    def is_inside(self, widget: Widget | None) -> bool:
        """Whether *widget* is a part of this."""
        return widget is not None and self in widget.ancestors

    def show(self, line: EventLine | None) -> None:
        """Show an event; what is shown already stays as it was scrolled."""
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
        if len(text) > SHOWN:
            text = f"{text[:SHOWN]}\n\n… cut here: w writes all of it to a file"
        self._say(head, utc(recorded.ts_us), said(recorded.event), text)

    def _say(self, head: str, when: str, words: str, text: str) -> None:
        self.query_one("#event-head", TextLine).say(head, when)
        self.query_one("#event-said", TextLine).say(words)
        self.query_one(TextView).show(text)

    async def _text(self, recorded: Recorded) -> str:
        """Facts and body; a body that cannot be read is a sentence."""
        facts = facts_text(recorded.event)
        if not recorded.payload_bytes:
            return f"{facts}\n\nNothing else is kept beside this event."
        try:
            body = await self._body(recorded)
        except (StoreError, sqlite3.Error) as error:
            body = f"{error}."
        size = f"kept beside it, {count(recorded.payload_bytes)} bytes"
        return f"{facts}\n\n{size}\n\n{body}"

    async def write(self, line: EventLine) -> None:
        """Keep an event, with all that belongs to it, in a file of this folder."""
        recorded = line.recorded
        head = f"event {recorded.seq}  {utc(recorded.ts_us)}  {recorded.kind}\n\n"
        text = await self._text(recorded)
        name = f"event-{recorded.seq}.txt"
        problem = write(self.app, f"{head}{text}\n", name)
        severity: SeverityLevel = "error" if problem else "information"
        self.notify(
            printable(problem) or f"{name} written",
            timeout=3,
            severity=severity,
            markup=False,
        )
