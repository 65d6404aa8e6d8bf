"""Defines the colour themes of the monitor, and drawing without colours.

A colour is the third sign of a state, after its glyph and its word; blue is good and
orange-red is bad, never green and red. Every theme has a contrast of 4.5 on its
background (WCAG 2.2, 1.4.3) and distinguishable states for people with protanopia,
deuteranopia and tritanopia: a test computes both.

Textual replaces colours by greys, which are colours to a terminal and hide its
background. Here text with a separate background, such as the current row, is reversed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache

from rich.color import Color as RichColor
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter
from textual.theme import Theme


@dataclass(frozen=True, slots=True, kw_only=True)
class StateColours:
    """A colour for each state of a task, as hexadecimal or a terminal's own."""

    done: str
    running: str
    waiting: str
    failed: str
    queued: str

    def variables(self) -> dict[str, str]:
        """Return the style sheet variables, such as `$state-done`."""
        return {
            f"state-{field.name}": getattr(self, field.name) for field in fields(self)
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ColourTheme:
    """A theme of the monitor."""

    name: str
    is_dark: bool
    background: str
    foreground: str
    panel: str  #: background of headers and of the current row
    accent: str
    states: StateColours

    def theme(self) -> Theme:
        """Return the Textual theme."""
        return Theme(
            name=self.name,
            dark=self.is_dark,
            background=self.background,
            surface=self.background,
            panel=self.panel,
            foreground=self.foreground,
            primary=self.accent,
            accent=self.accent,
            success=self.states.done,
            warning=self.states.waiting,
            error=self.states.failed,
            variables={
                **self.states.variables(),
                **{
                    f"{cursor}-{role}": colour
                    for cursor in ("block-cursor", "block-cursor-blurred")
                    for role, colour in (
                        ("background", self.foreground),
                        ("foreground", self.background),
                    )
                },
                "footer-key-foreground": self.accent,
            },
        )


DARK = ColourTheme(
    name="siftlog-dark",
    is_dark=True,
    background="#121212",
    foreground="#e0e0e0",
    panel="#262626",
    accent="#56b4e9",
    states=StateColours(
        done="#56b4e9",
        running="#f5f5f5",
        waiting="#f0e442",
        failed="#e8602c",
        queued="#8a8a8a",
    ),
)

LIGHT = ColourTheme(
    name="siftlog-light",
    is_dark=False,
    background="#f7f7f7",
    foreground="#1a1a1a",
    panel="#e4e4e4",
    accent="#2844f9",
    states=StateColours(
        done="#2844f9",
        running="#1a1a1a",
        waiting="#9004a7",
        failed="#992607",
        queued="#6d6d6d",
    ),
)

CONTRAST = ColourTheme(
    name="siftlog-contrast",
    is_dark=True,
    background="#000000",
    foreground="#ffffff",
    panel="#1c1c1c",
    accent="#7cc0ff",
    states=StateColours(
        done="#7cc0ff",
        running="#ffffff",
        waiting="#ffe600",
        failed="#ff8055",
        queued="#a8a8a8",
    ),
)

_GREY = "#d0d0d0"
MONOCHROME = ColourTheme(
    name="siftlog-monochrome",
    is_dark=True,
    background="#000000",
    foreground=_GREY,
    panel="#000000",
    accent=_GREY,
    states=StateColours(
        done=_GREY, running=_GREY, waiting=_GREY, failed=_GREY, queued=_GREY
    ),
)
"""One grey on black: only bold and reverse distinguish things."""

COLOUR_THEMES = (DARK, LIGHT, CONTRAST, MONOCHROME)

_TERMINAL = StateColours(
    done="ansi_blue",
    running="ansi_default",
    waiting="ansi_magenta",
    failed="ansi_red",
    queued="ansi_default",
)
"""For themes that leave colours to the terminal, which knows its background."""


def state_variables(theme: Theme) -> Mapping[str, str]:
    """Return the colours of states for a theme of Textual's."""
    if theme.ansi:
        return _TERMINAL.variables()
    return (DARK if theme.dark else LIGHT).states.variables()


_MIDDLE = 0.4
"""Brightness between the backgrounds of a dark theme and its highlights."""


class NoColours(LineFilter):
    """Removes all colours from a line."""

    def __init__(self, *, is_dark: bool) -> None:
        """Create a filter for a theme.

        Args:
            is_dark: whether the theme is dark.
        """
        super().__init__()
        self._is_dark = is_dark

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the same text in the terminal's default colours."""
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
    """Return whether a background is bright; unknown ones are the theme's."""
    if colour is None or colour.is_default:
        return not is_dark
    return Color.from_rich_color(colour).brightness > _MIDDLE
