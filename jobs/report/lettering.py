"""Text in pictures: safe, and in letters that the font has."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import matplotlib as mpl
from matplotlib.ft2font import FT2Font

from store.printable import printable

LABEL = 44
"""Characters of a series' name in a legend."""

MISSING = "\N{REPLACEMENT CHARACTER}"


def words(text: str) -> str:
    """*text* as a picture can show it: what the font has no glyph for is replaced."""
    known = _glyphs()
    safe = printable(text)
    return "".join(c if c == "\n" or ord(c) in known else MISSING for c in safe)


def label(text: str) -> str | None:
    """The name of a series for a legend, cut where it is too long; None without one."""
    # matplotlib keeps what begins with an underscore out of its legends
    safe = words(text).replace("\n", " ").lstrip("_")
    if not safe:
        return None
    return safe if len(safe) <= LABEL else f"{safe[: LABEL - 1]}…"


@cache
def _glyphs() -> frozenset[int]:
    """Characters of the font that matplotlib brings with it."""
    font = Path(mpl.get_data_path(), "fonts", "ttf", "DejaVuSans.ttf")
    return frozenset(FT2Font(str(font)).get_charmap())
