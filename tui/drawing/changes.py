"""What differs between two drawings: all that the terminal has to be sent.

Most looks change a few digits of a panel; sent whole, panels are ten times the bytes.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import TypeAlias

from rich.cells import cell_len
from textual.content import Content
from textual.geometry import Region

Sign: TypeAlias = tuple[str, tuple[object, ...]]
"""A character, and the styles that lie on it."""


def changes(old: Content, new: Content, width: int) -> list[Region]:
    """The parts of a drawing at the left edge, *width* cells wide, that changed.

    None are named where lines may have been wrapped: then it is all of it.
    """
    pairs = list(zip_longest(_lines(old), _lines(new), fillvalue=Content()))
    if any(line.cell_length > width for pair in pairs for line in pair):
        return []
    return [
        Region(first, y, end - first, 1)
        for y, (before, after) in enumerate(pairs)
        if not after.is_same(before)
        for first, end in (_between(before, after, width),)
        if end > first
    ]


def _lines(content: Content) -> list[Content]:
    return list(content.split("\n", allow_blank=True))


def _between(before: Content, after: Content, width: int) -> tuple[int, int]:
    """Cells from the first sign that differs to behind the last one."""
    old, new = _signs(before), _signs(after)
    same = _shared(old, new)
    first = cell_len(after.plain[:same])
    if before.cell_length != after.cell_length:
        return first, width
    behind = _shared(old[same:][::-1], new[same:][::-1])
    return first, after.cell_length - cell_len(after.plain[len(new) - behind :])


def _signs(line: Content) -> list[Sign]:
    styles: list[tuple[object, ...]] = [()] * len(line.plain)
    for span in line.spans:
        for at in range(max(0, span.start), min(span.end, len(styles))):
            styles[at] += (span.style,)
    return list(zip(line.plain, styles, strict=True))


def _shared(old: list[Sign], new: list[Sign]) -> int:
    """How many signs both begin with."""
    pairs = enumerate(zip(old, new, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(old), len(new)))
