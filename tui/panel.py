"""A part of a screen that shows a snapshot, and draws only what changed."""

from __future__ import annotations

from textual.content import Content
from textual.events import Resize
from textual.widgets import Static

from tui.glyphs import Glyphs
from tui.panels import Draw, Room
from tui.source import Snapshot


class Panel(Static):
    """One drawing under a title; where it stands is the style sheet's business."""

    def __init__(self, draw: Draw, title: str, glyphs: Glyphs, name: str) -> None:
        super().__init__(id=name, markup=False)
        self.border_title = title
        self._draw = draw
        self._glyphs = glyphs
        self._snapshot: Snapshot | None = None
        self._shown: Content | None = None

    def show(self, snapshot: Snapshot) -> None:
        """Draw *snapshot*; nothing is sent where it looks as before."""
        self._snapshot = snapshot
        self._fit()

    def on_resize(self, event: Resize) -> None:
        """Draw again for the new size."""
        del event
        self._fit()

    def _fit(self) -> None:
        width, height = self.content_size
        if self._snapshot is None or not width or not height:
            return
        room = Room(width=width, height=height, glyphs=self._glyphs)
        content = self._draw(self._snapshot, room)
        if self._shown is None or not content.is_same(self._shown):
            self._shown = content
            self.update(content, layout=False)
