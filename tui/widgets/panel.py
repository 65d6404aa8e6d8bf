"""Parts of a screen that send to the terminal only what changed."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.events import Click, Resize
from textual.message import Message
from textual.widgets import Static

from tui.drawing.glyphs import Glyphs
from tui.drawing.only_ascii import shown_by
from tui.drawing.panels import Part
from tui.drawing.room import LEAD, Room, visible
from tui.sources.run import Snapshot


class Said(Static):
    """A line or a paragraph of words, whose height the style sheet decides."""

    def __init__(self, name: str, glyphs: Glyphs) -> None:
        super().__init__(id=name, markup=False)
        self._glyphs = glyphs
        self._said: Content | None = None

    def say(self, words: str | Content) -> None:
        """Show *words*; nothing is sent where they are the same as before."""
        content = Content(words) if isinstance(words, str) else words
        content = shown_by(self._glyphs, content)
        if self._said is None or not content.is_same(self._said):
            self._said = content
            self.update(content, layout=False)


class TooSmall(Said):
    """What stands in a window that has no room for anything else."""

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__("small", glyphs)

    def on_mount(self) -> None:
        """It always says the same."""
        self.say(
            "The monitor needs a window of 80 columns and 24 lines: make this one "
            "larger, or leave with q and use 'siftlog watch --plain'."
        )


class Panel(Said):
    """One drawing under a title; where it stands is the style sheet's business.

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
        super().__init__(part.name, glyphs)
        self.border_title = part.title
        self._part = part
        self._snapshot: Snapshot | None = None
        self._goals: Sequence[str] = ()
        self._at = 0
        self._has_keys = False

    @property
    def goal(self) -> str | None:
        """Where the row under the cursor leads; None: there is no row."""
        return self._goals[self._at] if self._goals else None

    def show(self, snapshot: Snapshot) -> None:
        """Draw *snapshot*."""
        self._snapshot = snapshot
        goal, self._goals = self.goal, self._part.goals(snapshot)
        if goal in self._goals:
            self._at = self._goals.index(goal)
        self._at = max(0, min(self._at, len(self._goals) - 1))
        self._fit()

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

    def on_resize(self, event: Resize) -> None:
        """Draw again for the new size."""
        del event
        self._fit()

    def on_click(self, event: Click) -> None:
        """The cursor goes to the row that was clicked."""
        line = event.get_content_offset(self)
        if line is not None and line.y and self._goals:
            shown = visible(len(self._goals), self._room())
            self._at = shown[min(line.y, len(shown)) - 1]
        self.post_message(self.Picked(self._part.name, is_twice=event.chain > 1))

    def _room(self) -> Room:
        width, height = self.content_size
        cursor = self._at if self._has_keys and self._goals else None
        return Room(
            width=max(0, width - LEAD),
            height=height,
            glyphs=self._glyphs,
            cursor=cursor,
        )

    def _fit(self) -> None:
        room = self._room()
        if self._snapshot is not None and room.width and room.height:
            self.say(self._part.draw(self._snapshot, room))
