"""The screen of a terminal that has ASCII only: every other sign by a plain one."""

from __future__ import annotations

from textual.content import Content

from tui.glyphs import Glyphs

_OTHER = "?"


def shown_by(glyphs: Glyphs, content: Content) -> Content:
    """*content* in signs that the terminal has: one for each, in the same style."""
    if not glyphs.plain or content.plain.isascii():
        return content
    text = content.plain.translate(glyphs.plain)
    signs = (character if character.isascii() else _OTHER for character in text)
    return Content("".join(signs), spans=list(content.spans))
