"""The table of events: the lines of a ring, with ends that can be read beyond.

It draws as every table does. What differs is that its rows are a window of the log: the
first and the last of the log are somewhere else, and so is what comes next when the
cursor nears an end.
"""

from __future__ import annotations

from bisect import bisect_right

from textual import events

from tui.lists.pages import Move, Viewport
from tui.lists.ring import EventLine
from tui.widgets.table import PagedTable, TableMessage

NEAR = 200
"""Rows from an end at which the next ones are read, so that nobody sees it happen."""
_PART = 4
"""Of a short list, so that a small part of it is near: one of so many."""
_WHEEL = 3
"""Rows that a notch of the wheel moves the cursor by."""
_UPWARD = {Move.UP, Move.HALF_UP, Move.PAGE_UP}
_DOWNWARD = {Move.DOWN, Move.HALF_DOWN, Move.PAGE_DOWN}


class EventTable(PagedTable[EventLine]):
    """Events by seq; `show` says which."""

    class EndWanted(TableMessage):
        """The log's first or last event is to be shown."""

        def __init__(self, table: EventTable, *, is_last: bool) -> None:
            super().__init__(table)
            self.is_last = is_last

    class EdgeNeared(TableMessage):
        """The cursor moves towards an end of the rows and is near it."""

        def __init__(self, table: EventTable, *, is_last: bool) -> None:
            super().__init__(table)
            self.is_last = is_last

    @property
    def is_at_bottom(self) -> bool:
        """Whether the cursor is on the last row, and the row in view."""
        last = len(self.numbers) - 1
        is_seen = last - self.scroll_offset.y < self._room
        return self.cursor >= last and is_seen

    def point_at(self, seq: int) -> None:
        """The cursor to an event, or to the last one before it.

        What is not in view comes into the middle: both sides of it are of interest.
        """
        position = max(0, bisect_right(self.numbers, seq) - 1)
        viewport, room = self._viewport, self._room
        if not viewport.top <= position < viewport.top + room:
            viewport = Viewport(position, position - room // 2)
        self._go(viewport.at(position, len(self.numbers), room))

    def to_bottom(self) -> None:
        """The cursor to the last row."""
        super().action_move(Move.LAST.name)

    def action_move(self, move: str) -> None:
        """Move the cursor; the ends of the log are somebody else's to find."""
        moved = Move[move]
        if moved in {Move.FIRST, Move.LAST}:
            self.post_message(self.EndWanted(self, is_last=moved is Move.LAST))
            return
        super().action_move(move)
        near = min(NEAR, len(self.numbers) // _PART)
        if moved in _UPWARD and self.cursor <= near:
            self.post_message(self.EdgeNeared(self, is_last=False))
        if moved in _DOWNWARD and self.cursor >= len(self.numbers) - 1 - near:
            self.post_message(self.EdgeNeared(self, is_last=True))

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """The wheel moves the cursor: what is in view and what it is on stay one."""
        self._wheeled(event, Move.UP)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Likewise, towards the newest."""
        self._wheeled(event, Move.DOWN)

    def _wheeled(self, event: events.MouseEvent, move: Move) -> None:
        event.stop()
        event.prevent_default()
        for _ in range(_WHEEL):
            self.action_move(move.name)
