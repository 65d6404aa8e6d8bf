"""A panel of rows, each of which leads to the tasks it is about."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.events import Click, MouseEvent, MouseScrollDown, MouseScrollUp
from textual.message import Message

from tui.drawing.glyphs import Glyphs
from tui.drawing.room import LEAD, Room, visible
from tui.drawing.run.panels import Part
from tui.sources.sight import Snapshot
from tui.widgets.panel import TitledPanel


class RowPanel(TitledPanel[Snapshot]):
    """A part of the Run screen.

    A cursor stands on one of its rows and stays on it where rows change their order; it
    is shown while keys act on this panel.
    """

    class Picked(Message):
        """A row was clicked, or the panel beside its rows."""

        def __init__(self, name: str, *, is_twice: bool) -> None:
            super().__init__()
            self.name = name
            self.is_twice = is_twice

    def __init__(self, part: Part, glyphs: Glyphs) -> None:
        super().__init__(part.draw, part.title, glyphs, part.name)
        self._part = part
        self._goals: Sequence[str] = ()
        self._at = 0
        self._has_keys = False

    @property
    def goal(self) -> str | None:
        """Where the row under the cursor leads; None: there is no row."""
        return self._goals[self._at] if self._goals else None

    def show(self, seen: Snapshot) -> None:
        """Draw what was seen; the cursor stays on its row."""
        goal, self._goals = self.goal, self._part.goals(seen)
        if goal in self._goals:
            self._at = self._goals.index(goal)
        self._at = max(0, min(self._at, len(self._goals) - 1))
        super().show(seen)

    def take_keys(self, *, takes: bool) -> None:
        """Show the cursor, or hide it."""
        self._has_keys = takes
        self._fit()

    def move(self, by: int) -> None:
        """Move the cursor by some rows, as far as there are any."""
        self._at = max(0, min(self._at + by, len(self._goals) - 1))
        self._fit()

    def mark(self, letter: str) -> None:
        """Show the letter that leads here, or none."""
        title = self._part.title
        self.border_title = Content(f"[{letter}] {title}" if letter else title)

    def on_click(self, event: Click) -> None:
        """The cursor goes to the row that was clicked."""
        line = event.get_content_offset(self)
        if line is not None and line.y and self._goals:
            shown = visible(len(self._goals), self._room())
            self._at = shown[min(line.y, len(shown)) - 1]
        self.post_message(self.Picked(self._part.name, is_twice=event.chain > 1))

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        """The wheel moves the cursor, and what is in view with it."""
        self._wheel(event, 1)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        """Likewise."""
        self._wheel(event, -1)

    def _wheel(self, event: MouseEvent, by: int) -> None:
        event.stop()
        self.post_message(self.Picked(self._part.name, is_twice=False))
        self.move(by)

    def _room(self) -> Room:
        width, height = self.content_size
        cursor = self._at if self._has_keys and self._goals else None
        return Room(
            width=max(0, width - LEAD),
            height=height,
            glyphs=self._glyphs,
            has_lead=True,
            cursor=cursor,
        )

    def _fit(self) -> None:
        room = self._room()
        if self._shown is not None and room.width and room.height:
            self.say(self._draw(self._shown, room))
