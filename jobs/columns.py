"""Tables and texts that fit a page, whatever they hold.

What comes from files and models is made printable before it is measured: a hidden
character is shown as its number, and takes the room of that.
"""

from __future__ import annotations

import math
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, takewhile

from store.printable import printable

WIDTH = 80
"""Cells of a page: the narrowest terminal in common use."""

NONE = "-"
"""Stands where there is no value."""

_GAP = "  "
_CUT = "…"
_WIDE = frozenset({"W", "F"})
_MARKS = frozenset({"Mn", "Me"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a table; numbers stand to the right, words to the left."""

    title: str
    cells: Sequence[str]
    has_words: bool = False


def table(columns: Sequence[Column], indent: str = "  ") -> Iterator[str]:
    """The title line and the rows; what lies beyond the page is cut."""
    for row in zip(*map(_aligned, columns), strict=True):
        yield cut((indent + _GAP.join(row)).rstrip(), WIDTH)


def _aligned(column: Column) -> Iterator[str]:
    texts = [column.title, *column.cells]
    width = max(map(taken, texts))
    for text in texts:
        yield padded(text, width, is_number=not column.has_words)


def padded(text: str, width: int, *, is_number: bool = False) -> str:
    """A printable text with blanks that make it *width* cells wide."""
    blank = " " * (width - taken(text))
    return blank + text if is_number else text + blank


def word(text: str, width: int) -> str:
    """A name from outside as a cell."""
    return cut(one_line(text), width)


def one_line(text: str) -> str:
    """A text from outside without anything that a terminal acts on, on one line."""
    return printable(text.replace("\n", "\N{SYMBOL FOR LINE FEED}"))


def cut(text: str, width: int) -> str:
    """The beginning of a printable text that takes at most *width* cells."""
    if taken(text) <= width:
        return text
    return _begun(text, width - len(_CUT)) + _CUT


def shortened(text: str, width: int) -> str:
    """A printable text of at most *width* cells, cut in its middle.

    For names of models, which differ at their ends more often than at their beginnings.
    """
    if taken(text) <= width:
        return text
    room = width - len(_CUT)
    head = _begun(text, room // 3)
    return head + _CUT + _begun(text[::-1], room - taken(head))[::-1]


def _begun(text: str, room: int) -> str:
    """As much of the beginning of a text as fits into *room* cells."""
    ends = takewhile(lambda end: end <= room, accumulate(map(_cells, text)))
    return text[: sum(1 for _ in ends)]


def taken(text: str) -> int:
    """Cells of a terminal that a printable text takes."""
    return sum(map(_cells, text))


def number(value: float | None, decimals: int = 4) -> str:
    """A number, or `NONE` where it is None or NaN; an infinite one is `inf`."""
    if value is None or math.isnan(value):
        return NONE
    return f"{value:.{decimals}f}"


def words(values: Iterable[object]) -> str:
    """Values one after the other, or `NONE` where there are none."""
    return " ".join(map(str, values)) or NONE


def hanging(label: str, text: str) -> Iterator[str]:
    """A text of our own behind its label, over as many lines as it takes."""
    before = label
    for line in textwrap.wrap(text, WIDTH - taken(label), break_on_hyphens=False):
        yield cut(before + line, WIDTH)
        before = " " * taken(label)


def _cells(character: str) -> int:
    if unicodedata.category(character) in _MARKS:
        return 0
    return 2 if unicodedata.east_asian_width(character) in _WIDE else 1
