"""Text fitted to a terminal's width: tables by their columns, the rest by words.

Pure, and for people at a terminal only: files and pipes get lines as they were made.
A continued line is always indented, so that no text can begin a line of its own. Words
are never broken: a path or a command that is too long is left to the terminal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

_CELL = re.compile(r"(?:^|(?<=  ))\S")
"""Two blanks part the columns of a table, and a label from what it names."""

_QUOTE = re.compile(r" *\| ")
"""The margin of quoted text, which goes on before each of its lines."""

_FEWEST = 3
"""Columns that make a table; a label and its text, one below the other, make none."""

INDENT = 2


def folded(text: str, width: int) -> str:
    """*text* in lines of at most *width* characters, where words allow it.

    Consecutive lines with the same three or more columns are a table. One that is too
    wide is told in several, each with its first column; a line of prose goes on below
    what its label names.
    """
    lines: list[str] = []
    for block in _blocks(text.split("\n")):
        if max(map(len, block)) <= width:
            lines += block
        elif len(block) > 1:
            lines += _parted(block, _starts(block[0]), width)
        else:
            lines += _wrapped(block[0], width)
    return "\n".join(lines)


def in_columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Rows of cells as lines of a table; the last cell of a row is as long as it is."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
    for *cells, last in rows:
        padded = (f"{c:<{width}}" for c, width in zip(cells, widths, strict=True))
        yield "  ".join((*padded, last)).rstrip()


def _blocks(lines: Sequence[str]) -> Iterator[list[str]]:
    """The lines of each table together, every other line alone."""
    block: list[str] = []
    for line in lines:
        if block and _is_row(line, _starts(block[0])):
            block.append(line)
            continue
        if block:
            yield block
        block = [line]
    if block:
        yield block


def _starts(line: str) -> list[int]:
    return [found.start() for found in _CELL.finditer(line)]


def _is_row(line: str, starts: Sequence[int]) -> bool:
    """Whether the cells of *line* begin where those of the table's head do."""
    return len(starts) >= _FEWEST and _starts(line) == starts


def _parted(rows: Sequence[str], starts: Sequence[int], width: int) -> Iterator[str]:
    """A table as tables beside which the first column is repeated."""
    ends = [*starts[1:], max(map(len, rows))]
    columns = [
        [row[start:end].rstrip() for row in rows]
        for start, end in zip(starts, ends, strict=True)
    ]
    widths = [max(map(len, column)) for column in columns]
    parts: list[list[int]] = [[0]]
    for place in range(1, len(columns)):
        taken = sum(widths[each] + INDENT for each in parts[-1])
        if len(parts[-1]) > 1 and starts[0] + taken + widths[place] > width:
            parts.append([0])
        parts[-1].append(place)
    for part in parts:
        for place in range(len(rows)):
            cells = (f"{columns[each][place]:<{widths[each]}}" for each in part)
            yield " " * starts[0] + (" " * INDENT).join(cells).rstrip()


def _wrapped(line: str, width: int) -> Iterator[str]:
    margin = _margin(line, width)
    gaps = [found.start() for found in re.finditer(r" +", line)] + [len(line)]
    begin, prefix = 0, ""
    for here, after in pairwise(gaps):
        is_full = len(prefix) + after - begin > width
        # a break before the first word of a line would leave it empty
        if is_full and line[begin:here].strip(" |"):
            yield prefix + line[begin:here]
            begin = here + len(line[here:]) - len(line[here:].lstrip(" "))
            prefix = margin
    yield prefix + line[begin:]


def _margin(line: str, width: int) -> str:
    """What stands before the lines on which *line* goes on."""
    if quote := _QUOTE.match(line):
        return quote[0]
    starts = _starts(line) or [0]
    names = len(starts) > 1 and starts[1] <= width // 3
    return " " * (starts[1] if names else starts[0] + INDENT)
