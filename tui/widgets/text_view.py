"""A long text from outside, scrolled; drawn line by line and never as markup."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from textual.binding import BindingType
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from store.printable import printable
from tui.drawing.clip import fitting
from tui.drawing.glyphs import Glyphs
from tui.drawing.only_ascii import drawn
from tui.widgets.moving import MOVES
from tui.widgets.pages import Move, Place


def wrapped(text: str, cells: int) -> list[str]:
    """*text* in harmless lines of at most *cells* cells; nothing in it is lost.

    What `printable` cuts of endless texts is marked as cut.
    """
    lines: list[str] = []
    for line in printable(text).split("\n"):
        lines += _broken(line, max(2, cells))
    return lines


def _broken(line: str, cells: int) -> Iterator[str]:
    """*line* in pieces, after a blank where there is one in the second half."""
    while cell_len(line) > cells:
        piece = fitting(line, cells)
        blank = piece.rfind(" ", len(piece) // 2) + 1
        yield line[: blank or len(piece)]
        line = line[blank or len(piece) :]
    yield line


class TextView(ScrollView, can_focus=True):
    """Shows one text; `show` exchanges it."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"text-view--line"}
    DEFAULT_CSS = """
    TextView {
        background: $background;
        color: $foreground;
        scrollbar-size-vertical: 1;
        overflow-x: hidden;
        &> .text-view--line { color: $foreground; background: $background; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [*MOVES]

    def __init__(
        self,
        glyphs: Glyphs,
        *,
        id: str | None = None,  # noqa: A002 - as every widget calls it
    ) -> None:
        super().__init__(id=id)
        self._glyphs = glyphs
        self._text = ""
        self._lines: list[str] = []

    @property
    def text(self) -> str:
        """What is shown, as it was given."""
        return self._text

    def show(self, text: str) -> None:
        """Show another text from its beginning."""
        if text == self._text:
            return
        self._text = text
        self._wrap()
        self.scroll_to(y=0, animate=False, force=True, immediate=True)

    def action_move(self, move: str) -> None:
        """Scroll, at once: nothing here glides."""
        tops = max(1, len(self._lines) - self.size.height + 1)
        top = Place(self.scroll_offset.y).moved(Move[move], tops, self.size.height)
        self.scroll_to(y=top.cursor, animate=False, force=True, immediate=True)

    def on_resize(self) -> None:
        """Break the lines anew."""
        self._wrap()

    def _wrap(self) -> None:
        self._lines = wrapped(self._text, self.size.width - 2)
        self.virtual_size = Size(self.size.width, len(self._lines))
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """One line of the screen."""
        position = y + self.scroll_offset.y
        # of a component, which Textual keeps: `rich_style` is reckoned anew each time
        style = self.get_component_rich_style("text-view--line")
        line = self._lines[position] if position < len(self._lines) else ""
        return Strip(
            [Segment(drawn(self._glyphs, f" {line}"), style)]
        ).adjust_cell_length(self.size.width, style)
