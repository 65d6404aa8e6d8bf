"""The screen of a terminal that has ASCII only: every other sign by a plain one."""

from __future__ import annotations

from textual.content import Content

_SIGNS = {"·": "-", "–": "-", "…": "~", "→": ">", "↔": "="}
_OTHER = "?"


def only_ascii(content: Content) -> Content:
    """*content* with one ASCII character for each of its own, in the same style."""
    plain = content.plain
    if plain.isascii():
        return content
    signs = (c if c.isascii() else _SIGNS.get(c, _OTHER) for c in plain)
    return Content("".join(signs), spans=list(content.spans))
