"""Parts of a screen that send to the terminal only what changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from textual.content import Content
from textual.events import Resize
from textual.widgets import Static

from tui.drawing.changes import changes
from tui.drawing.glyphs import Glyphs
from tui.drawing.only_ascii import shown_by
from tui.drawing.room import Room

_T = TypeVar("_T")


class TextBlock(Static):
    """A line or a paragraph of words, whose height the style sheet decides."""

    def __init__(self, name: str, glyphs: Glyphs) -> None:
        super().__init__(id=name, markup=False)
        self._glyphs = glyphs
        self._said: Content | None = None

    def render(self) -> Content:
        """What is said."""
        return self._said or Content()

    def say(self, words: str | Content) -> None:
        """Show *words*; only what is not the same as before is sent."""
        content = Content(words) if isinstance(words, str) else words
        content = shown_by(self._glyphs, content)
        before, self._said = self._said, content
        if before is None or self.styles.text_align not in {"left", "start"}:
            self.refresh()
        elif not content.is_same(before):
            self.refresh(*changes(before, content, self.content_size.width))


class TooSmall(TextBlock):
    """What stands in a window that has no room for anything else."""

    DEFAULT_CSS = """
    TooSmall { display: none; height: 1fr; padding: 1; }
    """

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__("small", glyphs)

    def on_mount(self) -> None:
        """It always says the same."""
        self.say(
            "The monitor needs a window of 80 columns and 24 lines: make this one "
            "larger, or leave with q and use 'siftlog watch --plain'."
        )


class TitledPanel(TextBlock, Generic[_T]):
    """One drawing under a title; where it stands is the style sheet's business."""

    def __init__(
        self,
        draw: Callable[[_T, Room], Content],
        title: str,
        glyphs: Glyphs,
        name: str,
    ) -> None:
        super().__init__(name, glyphs)
        self.border_title = title
        self._draw = draw
        self._shown: _T | None = None

    def show(self, seen: _T) -> None:
        """Draw what was seen."""
        self._shown = seen
        self._fit()

    def on_resize(self, event: Resize) -> None:
        """Draw again for the new size."""
        del event
        self._fit()

    def _fit(self) -> None:
        width, height = self.content_size
        if self._shown is not None and width and height:
            room = Room(width=width, height=height, glyphs=self._glyphs)
            self.say(self._draw(self._shown, room))
