"""The screen of a terminal that has ASCII only: every other sign by a plain one."""

from __future__ import annotations

from rich.cells import get_character_cell_size
from rich.segment import Segment
from textual.color import Color
from textual.content import Content
from textual.filter import LineFilter

from tui.drawing.glyphs import Glyphs

_OTHER = "?"
#: Frames and bars that Textual draws: its notices, scroll bars and the palette.
_FRAMES = str.maketrans(
    {
        **dict.fromkeys("─━▔▁", "-"),
        **dict.fromkeys("│┃▌▐▎▊▏▕", "|"),
        **dict.fromkeys("╭╮╰╯┌┐└┘", "+"),
        **dict.fromkeys("▂▃▄▅▆▇█", "#"),
    }
)


def shown_by(glyphs: Glyphs, content: Content) -> Content:
    """*content* in signs that the terminal has: one for each, in the same style."""
    if not glyphs.plain or content.plain.isascii():
        return content
    text = content.plain.translate(glyphs.plain)
    signs = (character if character.isascii() else _OTHER for character in text)
    return Content("".join(signs), spans=list(content.spans))


def drawn(glyphs: Glyphs, text: str) -> str:
    """*text* in signs that the terminal has, in as many cells."""
    if not glyphs.plain or text.isascii():
        return text
    return "".join(
        character
        if character.isascii()
        else _OTHER * get_character_cell_size(character)
        for character in text.translate(glyphs.plain)
    )


class OnlyAscii(LineFilter):
    """The last word on what a terminal gets: frames of Textual's own widgets, too."""

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__()
        self._glyphs = glyphs

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Segments of the same width without other signs."""
        del background
        return [
            segment
            if segment.text.isascii()
            else segment._replace(
                text=drawn(self._glyphs, segment.text.translate(_FRAMES))
            )
            for segment in segments
        ]
