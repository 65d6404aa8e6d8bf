"""The screen where NO_COLOR is set: bold, underlined and reversed, and nothing else.

Textual's own way is greys, which are colours to a terminal and hide its ground. Here
what stood on a ground of its own, such as the row that keys act on, is reversed.
"""

from __future__ import annotations

from functools import lru_cache

from rich.color import Color as RichColor
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter

_MIDDLE = 0.4
"""Brightness between the grounds of a dark theme and what is marked on them."""


class NoColours(LineFilter):
    """Takes every colour out of a line."""

    def __init__(self, *, is_dark: bool) -> None:
        """A filter for a theme.

        Args:
            is_dark: whether the theme's ground is.
        """
        super().__init__()
        self._is_dark = is_dark

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """The same text in the terminal's own colours."""
        del background
        return [
            segment
            if segment.style is None
            else segment._replace(style=_plain(segment.style, is_dark=self._is_dark))
            for segment in segments
        ]


@lru_cache(maxsize=1024)
def _plain(style: Style, *, is_dark: bool) -> Style:
    is_marked = _is_bright(style.bgcolor, is_dark=is_dark) == is_dark
    return Style(
        bold=style.bold,
        italic=style.italic,
        underline=style.underline,
        reverse=bool(style.reverse) != is_marked,
        meta=style.meta,
    )


def _is_bright(colour: RichColor | None, *, is_dark: bool) -> bool:
    """Whether a ground is bright; one that is not known is the theme's."""
    if colour is None or colour.is_default:
        return not is_dark
    return Color.from_rich_color(colour).brightness > _MIDDLE
