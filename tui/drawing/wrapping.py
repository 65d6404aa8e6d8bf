"""A long text from outside in harmless lines as wide as a screen, one after another.

Pure, and lazy: a text of a megabyte costs what is in view. Its time grows with the text
alone, whatever stands in it: no line is looked at twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from store.printable import printable
from tui.drawing.clip import fitting

SHOWN = 1_000_000
"""Characters of a text that a screen shows; nobody scrolls further."""
_CHUNK = 2_000
"""Characters made harmless at once."""
_LONGEST = 8
"""Characters that stand for one at most, such as `<E0100>`."""
#: Characters for each cell: a letter can carry any number of marks.
_DENSITY = 4


class Piece(NamedTuple):
    """What stands on one line of the screen."""

    text: str
    first: str  #: the first character of the line that this is a piece of


def wrapped(text: str, cells: int) -> Iterator[Piece]:
    """*text* in harmless lines of at most *cells* cells, two at least.

    Nothing is lost up to `SHOWN` characters; what is cut is counted in a last line.
    """
    cells = max(2, cells)
    begin, end = 0, min(len(text), SHOWN)
    while begin <= end:
        newline = text.find("\n", begin, end)
        after = end if newline < 0 else newline
        line = text[begin:after].removesuffix("\r")
        first = line[:1]
        for piece in _broken(line, cells):
            yield Piece(piece, first)
        begin = after + 1
    if len(text) > SHOWN:
        cut = len(text) - SHOWN
        yield from wrapped(f"… {cut:,} more characters: w writes all of them", cells)


def _broken(line: str, cells: int) -> Iterator[str]:
    """*line* in pieces, after a blank where there is one in the second half."""
    rest = ""
    for begin in range(0, len(line), _CHUNK):
        chunk = line[begin : begin + _CHUNK]
        rest += printable(chunk, line=_CHUNK * _LONGEST)
        at = 0
        while (end := _end(rest, at, cells)) < len(rest):
            at_blank = rest.rfind(" ", at + (end - at) // 2, end) + 1
            end = at_blank or end
            yield rest[at:end]
            at = end
        rest = rest[at:]
    yield rest


def _end(safe: str, at: int, cells: int) -> int:
    """Where a line that begins at *at* ends, if nothing but its width counts."""
    window = safe[at : at + _DENSITY * cells]
    return at + (cells if window.isascii() else len(fitting(window, cells)))
