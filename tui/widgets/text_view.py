"""A long, scrollable text from outside; drawn line by line, never as markup.

The visible part is wrapped at once, the rest between other work: a text of a megabyte
appears with the next frame.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import islice
from types import MappingProxyType
from typing import ClassVar

from rich.segment import Segment
from textual.binding import BindingType
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.worker import Worker

from tui.render.glyphs import Glyphs, displayable_text
from tui.render.layout import WrappedLine, wrapped
from tui.widgets.scrolling import MOVES, CursorMove, Viewport, dress

AT_ONCE = 400
"""Lines wrapped at a time: more than any screen has, some milliseconds of work."""
#: Possible colours of lines; each has a class in the style sheet.
TONES = ("added", "removed", "dim")
NO_TONES: Mapping[str, str] = MappingProxyType({})


class TextView(ScrollView, can_focus=True):
    """Shows one text; `show` replaces it."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "text-view--line",
        *(f"text-view--{tone}" for tone in TONES),
    }
    DEFAULT_CSS = """
    TextView {
        background: $background;
        color: $foreground;
        scrollbar-size-vertical: 1;
        overflow-x: hidden;
        &> .text-view--line { color: $foreground; background: $background; }
        &> .text-view--added { color: $state-done; background: $background; }
        &> .text-view--removed { color: $state-failed; background: $background; }
        &> .text-view--dim { color: $state-queued; background: $background; }
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
        self._tones = NO_TONES
        self._pieces: list[WrappedLine] = []
        self._is_to_end = False  #: scroll to the end when it is known

    @property
    def text(self) -> str:
        """The text as given."""
        return self._text

    def show(self, text: str, tones: Mapping[str, str] = NO_TONES) -> None:
        """Show another text from its start.

        Args:
            text: any text.
            tones: colours of lines, one of `TONES`, by their first character.
        """
        if text == self._text and tones == self._tones:
            return
        self._text, self._tones = text, tones
        self._wrap()
        self.scroll_to(y=0, animate=False, force=True, immediate=True)

    def action_move(self, move: str) -> None:
        """Scroll without animation."""
        self._is_to_end = CursorMove[move] is CursorMove.LAST
        tops = max(1, len(self._pieces) - self.size.height + 1)
        top = Viewport(self.scroll_offset.y).moved(
            CursorMove[move], tops, self.size.height
        )
        self.scroll_to(y=top.cursor, animate=False, force=True, immediate=True)

    def on_mount(self) -> None:
        """Draw the scroll bar in supported characters."""
        dress(self, self._glyphs)

    def on_resize(self) -> None:
        """Wrap the lines again."""
        self._wrap()

    def _wrap(self) -> None:
        pieces = wrapped(self._text, self.size.width - 2)
        self._is_to_end = False
        self._set_pieces(list(islice(pieces, AT_ONCE)))
        if len(self._pieces) == AT_ONCE:
            _: Worker[None] = self.run_worker(
                partial(self._wrap_rest, pieces), group="wrap", exclusive=True
            )
        else:
            self.workers.cancel_group(self, "wrap")

    async def _wrap_rest(self, pieces: Iterator[WrappedLine]) -> None:
        # in turns, not in a thread, which would hold the interpreter as long
        begun = list(self._pieces)
        while more := list(islice(pieces, AT_ONCE)):
            begun += more
            await asyncio.sleep(0)
        self._set_pieces(begun)
        if self._is_to_end:
            self.action_move(CursorMove.LAST.name)

    def _set_pieces(self, pieces: list[WrappedLine]) -> None:
        self._pieces = pieces
        self.virtual_size = Size(self.size.width, len(pieces))
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Render one line."""
        position = y + self.scroll_offset.y
        has_piece = position < len(self._pieces)
        piece = self._pieces[position] if has_piece else WrappedLine("", "")
        # component styles are cached by Textual, unlike `rich_style`
        tone = self._tones.get(piece.first, "line")
        style = self.get_component_rich_style(f"text-view--{tone}")
        return Strip(
            [Segment(displayable_text(self._glyphs, f" {piece.text}"), style)]
        ).adjust_cell_length(self.size.width, style)
