"""A long, scrollable text from outside; drawn line by line, never as markup.

The visible part is wrapped at once, the rest between other work: a text of a megabyte
appears with the next frame.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import islice
from types import MappingProxyType
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import BindingType
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.worker import Worker

from tui.render.glyphs import Glyphs, displayable_text
from tui.render.layout import WrappedLine, wrapped
from tui.widgets.scrolling import MOVES, CursorMove, Viewport, dress

_ABOVE = 3
"""Lines above a marked passage that is scrolled to."""
AT_ONCE = 400
"""Lines wrapped at a time: more than any screen has, some milliseconds of work."""
#: Possible colours of lines; each has a class in the style sheet.
TONES = ("added", "removed", "dim", "marked")
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
        &> .text-view--marked { text-style: bold reverse; }
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
        self._signs: tuple[str, str] | None = None
        self._mark: int | None = None  #: the marked line that is shown; None: any line
        self._pieces: list[WrappedLine] = []
        self._inside: list[bool] = []  #: whether a line begins in a marked passage
        self._is_to_end = False  #: scroll to the end when it is known

    @property
    def text(self) -> str:
        """The text as given."""
        return self._text

    def show(
        self,
        text: str,
        tones: Mapping[str, str] = NO_TONES,
        *,
        signs: tuple[str, str] | None = None,
    ) -> None:
        """Show another text from its start, or from its first marked passage.

        Args:
            text: any text.
            tones: colours of lines, one of `TONES`, by their first character.
            signs: characters that begin and end a marked passage; None: no marks.
        """
        if (text, tones, signs) == (self._text, self._tones, self._signs):
            return
        self._text, self._tones, self._signs = text, tones, signs
        self._wrap()
        self._show_line(0)
        self._mark = None if signs is None else 0
        self._show_mark()

    def next_mark(self) -> bool:
        """Scroll to the next marked line, after the last the first; False: none."""
        lines = self._marked_lines()
        top = self.scroll_offset.y
        if self._mark is None:
            after = sum(line <= top + _ABOVE for line in lines)
        else:
            after = self._mark + 1
        self._mark = after % len(lines) if lines else None
        self._show_mark()
        return bool(lines)

    def _marked_lines(self) -> list[int]:
        """Return the lines in which a marked passage begins."""
        if self._signs is None:
            return []
        begin, _ = self._signs
        return [at for at, piece in enumerate(self._pieces) if begin in piece.text]

    def _show_mark(self) -> None:
        lines = self._marked_lines()
        if self._mark is not None and self._mark < len(lines):
            self._show_line(max(0, lines[self._mark] - _ABOVE))

    def _show_line(self, line: int) -> None:
        self.scroll_to(y=line, animate=False, force=True, immediate=True)

    def action_move(self, move: str) -> None:
        """Scroll without animation."""
        self._mark = None
        self._is_to_end = CursorMove[move] is CursorMove.LAST
        tops = max(1, len(self._pieces) - self.size.height + 1)
        top = Viewport(self.scroll_offset.y).moved(
            CursorMove[move], tops, self.size.height
        )
        self._show_line(top.cursor)

    def on_mount(self) -> None:
        """Draw the scroll bar in supported characters."""
        dress(self, self._glyphs)

    def on_resize(self) -> None:
        """Wrap the lines again."""
        self._wrap()
        self._show_mark()

    def _wrap(self) -> None:
        pieces = wrapped(self._text, self.size.width - 2, is_hanging=True)
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
        self._show_mark()
        if self._is_to_end:
            self.action_move(CursorMove.LAST.name)

    def _set_pieces(self, pieces: list[WrappedLine]) -> None:
        self._pieces = pieces
        self._inside = (
            [] if self._signs is None else list(_inside(pieces, *self._signs))
        )
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
        if self._signs is None or not has_piece:
            text = f" {' ' * piece.lead}{piece.text}"
            segments = [Segment(self._displayed(text), style)]
        else:
            segments = [
                Segment(" " * (1 + piece.lead), style),
                *self._marked(piece.text, style, is_inside=self._inside[position]),
            ]
        return Strip(segments).adjust_cell_length(self.size.width, style)

    def _displayed(self, text: str) -> str:
        return displayable_text(self._glyphs, text)

    def _marked(self, text: str, style: Style, *, is_inside: bool) -> Iterator[Segment]:
        """Yield a line's parts, marked passages in another style."""
        marked = self.get_component_rich_style("text-view--marked")
        for part in _parts(text, *(self._signs or ("", ""))):
            if self._signs is not None and part == self._signs[0]:
                is_inside = True
            yield Segment(self._displayed(part), marked if is_inside else style)
            if self._signs is not None and part == self._signs[1]:
                is_inside = False


def _parts(text: str, begin: str, end: str) -> list[str]:
    """Split a line at its signs, which are parts of their own."""
    return [part for part in re.split(f"([{begin}{end}])", text) if part]


def _inside(pieces: list[WrappedLine], begin: str, end: str) -> Iterator[bool]:
    """Yield for each line whether it begins in a marked passage."""
    is_inside = False
    for piece in pieces:
        yield is_inside
        is_inside = (
            piece.text.rfind(begin) > piece.text.rfind(end)
            if begin in piece.text or end in piece.text
            else is_inside
        )
