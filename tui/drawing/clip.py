"""One line of text from outside, made to fit a number of cells exactly.

`store.printable` decides what a terminal may be given; this adds what a screen of cells
needs: no newline, a width counted in cells and not in characters, and a bound on marks
that take no cell at all, of which one letter can carry thousands.
"""

from __future__ import annotations

from functools import lru_cache

from rich.cells import cell_len, get_character_cell_size

from store.printable import printable

ELLIPSIS = "…"
#: Characters looked at for each cell: letters with their marks, and some to spare.
_DENSITY = 4
_NEWLINE = "\N{SYMBOL FOR LINE FEED}"


def one_line(text: str, cells: int) -> str:
    """The beginning of *text* as one harmless line of at most *cells* cells.

    What does not fit is cut, with an ellipsis in the last cell. The length of *text*
    does not matter: only its beginning is looked at.
    """
    if cells <= 0:
        return ""
    bound = _DENSITY * (cells + 1)
    safe = printable(text[:bound].replace("\r\n", "\n").replace("\n", _NEWLINE))
    if len(text) <= bound and cell_len(safe) <= cells:
        return safe
    return fitting(safe, cells - 1) + ELLIPSIS


def fitting(safe: str, cells: int) -> str:
    """The beginning of *safe* that fits into *cells*; nothing wide is halved."""
    used = 0
    for position, character in enumerate(safe):
        used += get_character_cell_size(character)
        if used > cells:
            return safe[:position]
    return safe


def clip(text: str, cells: int, *, is_right: bool = False) -> str:
    """*text* as one harmless line of exactly *cells* cells."""
    return _clipped(text[: _DENSITY * (cells + 1) + 1], cells, is_right=is_right)


# a table draws the same cells again and again; short ones, so that little is kept
@lru_cache(maxsize=2048)
def _clipped(text: str, cells: int, *, is_right: bool) -> str:
    line = one_line(text, cells)
    blank = " " * (cells - cell_len(line))
    return blank + line if is_right else line + blank
