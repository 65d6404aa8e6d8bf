"""The screen of a terminal that has ASCII only: every other sign by a plain one."""

from __future__ import annotations

from rich.cells import get_character_cell_size
from textual.content import Content

from tui.drawing.glyphs import Glyphs

_OTHER = "?"


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
