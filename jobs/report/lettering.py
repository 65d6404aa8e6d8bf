"""Text in pictures: safe, and in letters that the font has."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import matplotlib as mpl
from matplotlib.ft2font import FT2Font

from jobs.columns import shortened
from store.printable import LINE as READABLE
from store.printable import printable

LINE = 60
"""Characters of a line of text; more would leave the picture no room."""

NAME = 36
"""Characters of a name at an axis."""

LABEL = 44
"""Characters of a series' name in a legend."""

MISSING = "\N{REPLACEMENT CHARACTER}"


def words(text: str, most: int = LINE) -> str:
    """*text* as a picture can show it, with *most* characters in a line.

    What the font has no glyph for is replaced.
    """
    known = _glyphs()
    safe = printable(text, line=most)
    return "".join(c if c == "\n" or ord(c) in known else MISSING for c in safe)


def label(text: str) -> str | None:
    """The name of a series for a legend; None without one."""
    # matplotlib keeps what begins with an underscore out of its legends
    return title(text.lstrip("_"), LABEL) or None


def title(text: str, most: int) -> str:
    """*text* on one line of *most* characters, cut in its middle.

    Two models whose names begin alike stay apart.
    """
    return shortened(words(text.replace("\n", " "), READABLE), most)


@cache
def _glyphs() -> frozenset[int]:
    """Characters of the font that matplotlib brings with it."""
    font = Path(mpl.get_data_path(), "fonts", "ttf", "DejaVuSans.ttf")
    return frozenset(FT2Font(str(font)).get_charmap())
