"""Scroll bars in the signs that a terminal has; hatched while a length is not known."""

from __future__ import annotations

from textual.scrollbar import ScrollBarRender
from textual.widget import Widget

from tui.drawing.glyphs import Glyphs


class _Hatched(ScrollBarRender):
    BLANK_GLYPH = "░"


class _Plain(ScrollBarRender):
    # whole cells only: no terminal without signs has eighths of one
    VERTICAL_BARS = [" "]  # noqa: RUF012 - as textual declares it


class _PlainHatched(_Plain):
    BLANK_GLYPH = "-"


def dress(widget: Widget, glyphs: Glyphs, *, is_hatched: bool = False) -> None:
    """Draw the vertical bar of *widget* in the signs of *glyphs*."""
    plain, hatched = (
        (_Plain, _PlainHatched) if glyphs.plain else (ScrollBarRender, _Hatched)
    )
    renderer = hatched if is_hatched else plain
    bar = widget.vertical_scrollbar
    if bar.renderer is not renderer:
        # of this bar alone, as textual's documentation has it
        bar.renderer = renderer  # type: ignore[misc]
        bar.refresh()
