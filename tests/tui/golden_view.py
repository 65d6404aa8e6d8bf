"""A screen as a text that can be kept and compared: its cells, then their styles.

Of a theme in which every tone has a colour of its own, so that a style can be named by
its tone: what a colour is worth is the business of the palette's test.
"""

from __future__ import annotations

from itertools import groupby

from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.screen import Screen

from tui.render.colours import ColourTheme, StateColours

_COLOURS = {
    "background": (16, 16, 16),
    "foreground": (224, 224, 224),
    "panel": (48, 48, 48),
    "accent": (80, 80, 240),
    "done": (80, 240, 240),
    "running": (208, 240, 208),
    "waiting": (240, 240, 80),
    "failed": (240, 80, 80),
    "queued": (128, 128, 128),
}
_NEAR = 6
"""Textual reckons its themes in other units, and rounds."""
_FRAMES = " ─│╭╮╰╯▔▁"
_HEX = {name: "#{:02x}{:02x}{:02x}".format(*own) for name, own in _COLOURS.items()}
_STATES = ("done", "running", "waiting", "failed", "queued")
THEME = ColourTheme(
    name="golden",
    is_dark=True,
    background=_HEX["background"],
    foreground=_HEX["foreground"],
    panel=_HEX["panel"],
    accent=_HEX["accent"],
    states=StateColours(**{tone: _HEX[tone] for tone in _STATES}),
)
_WORDS = ("bold", "dim", "italic", "underline", "reverse", "strike")


def cells(screen: Screen[object]) -> list[str]:
    """The lines of a screen without the blanks at their ends."""
    strips = screen._compositor.render_strips()
    return [strip.text.rstrip() for strip in strips]


def styles(screen: Screen[object]) -> list[str]:
    """Where a screen has another style than the common one, lines alike in one.

    `4-6: done bold 1-9` is said of the cells 1 to 9 of the lines 4 to 6. Frames, and
    what a blank would be written in, are left out.
    """
    strips = screen._compositor.render_strips()
    lines = [(at, _said(list(strip))) for at, strip in enumerate(strips)]
    found = []
    for said, alike in groupby(lines, key=lambda line: line[1]):
        at = [number for number, _ in alike]
        if said:
            found.append(f"{_span(at[0], at[-1])}: {said}")
    return found


def _said(segments: list[Segment]) -> str:
    places: dict[str, list[str]] = {}
    for name in (_ground, _ink):
        begin = 0
        for style, alike in groupby(segments, key=name):
            width = sum(segment.cell_length for segment in alike)
            if style:
                places.setdefault(style, []).append(_span(begin, begin + width - 1))
            begin += width
    return ", ".join(f"{style} {' '.join(at)}" for style, at in places.items())


def _span(first: int, last: int) -> str:
    return f"{first}" if first == last else f"{first}-{last}"


def _ground(segment: Segment) -> str:
    ground = _tone(segment.style and segment.style.bgcolor)
    return "" if ground == "background" else f"on {ground}"


def _ink(segment: Segment) -> str:
    style = segment.style or Style()
    words = [word for word in _WORDS if getattr(style, word)]
    if not segment.text.strip(_FRAMES) and "reverse" not in words:
        return ""
    tone = _tone(style.color)
    return " ".join([*([] if tone == "foreground" else [tone]), *words])


def _tone(colour: Color | None) -> str:
    """The name of a colour; what is mixed of two, as under a dialog, has none."""
    if colour is None or colour.triplet is None:
        return "none"
    for name, own in _COLOURS.items():
        if all(abs(a - b) <= _NEAR for a, b in zip(colour.triplet, own, strict=True)):
            return name
    return "mixed"
