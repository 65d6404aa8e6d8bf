"""Prints output of commands: data to stdout, messages to stderr; names exit codes."""

from __future__ import annotations

import gc
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import click

from store.printable import LINE, printable

if TYPE_CHECKING:
    from store.runs import RunFolder


_CELL = re.compile(r"(?:^|(?<=  ))\S")
"""Start of a cell: two blanks separate columns, and a label from its text."""

_QUOTE = re.compile(r" *\| ")
"""Margin of quoted text, repeated on each continuation line."""

_FEWEST = 3
"""Minimum number of columns of a table; a label with its text has fewer."""

INDENT = 2


def fold_text(text: str, width: int) -> str:
    """Wrap *text* to at most *width* characters at word boundaries.

    Consecutive lines with the same three or more columns are a table. A table that is
    too wide is split into several, each with the first column; a line of prose
    continues below the text after its label.
    """
    lines: list[str] = []
    for block in _blocks(text.split("\n")):
        if max(map(len, block)) <= width:
            lines += block
        elif len(block) > 1:
            lines += _split_columns(block, _starts(block[0]), width)
        else:
            lines += _wrapped(block[0], width)
    return "\n".join(lines)


def _blocks(lines: Sequence[str]) -> Iterator[list[str]]:
    """Yield the lines of each table together, every other line alone."""
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
    return [match.start() for match in _CELL.finditer(line)]


def _is_row(line: str, starts: Sequence[int]) -> bool:
    """Return whether the cells of *line* start at the columns of the table's head."""
    return len(starts) >= _FEWEST and _starts(line) == starts


def _split_columns(
    rows: Sequence[str], starts: Sequence[int], width: int
) -> Iterator[str]:
    """Yield a table as several narrower ones that repeat the first column."""
    ends = [*starts[1:], max(map(len, rows))]
    columns = [
        [row[start:end].rstrip() for row in rows]
        for start, end in zip(starts, ends, strict=True)
    ]
    widths = [max(map(len, column)) for column in columns]
    column_groups: list[list[int]] = [[0]]
    for column in range(1, len(columns)):
        used_width = sum(widths[index] + INDENT for index in column_groups[-1])
        if (
            len(column_groups[-1]) > 1
            and starts[0] + used_width + widths[column] > width
        ):
            column_groups.append([0])
        column_groups[-1].append(column)
    for group in column_groups:
        for row in range(len(rows)):
            cells = (f"{columns[index][row]:<{widths[index]}}" for index in group)
            yield " " * starts[0] + (" " * INDENT).join(cells).rstrip()


def _wrapped(line: str, width: int) -> Iterator[str]:
    margin = _margin(line, width)
    gaps = [match.start() for match in re.finditer(r" +", line)] + [len(line)]
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
    """Return the indentation of the continuation lines of *line*."""
    if quote := _QUOTE.match(line):
        return quote[0]
    starts = _starts(line) or [0]
    names = len(starts) > 1 and starts[1] <= width // 3
    return " " * (starts[1] if names else starts[0] + INDENT)


DONE, ERROR, USAGE, FAILED_TASKS, BUDGET, INTERRUPTED, CHECK_FAILED = range(7)
"""Exit codes of every command (architecture, "Command line")."""


ERASE = "\r\x1b[K"
"""Returns to the start of the terminal line and clears it."""


def print_note(sentence: str) -> None:
    """Print a sentence on stderr; it replaces a progress line."""
    erased = ERASE if sys.stderr.isatty() else ""
    write_stderr(f"{erased}{printable(sentence)}\n")


def write_stderr(safe: str) -> None:
    """Write to stderr as it is; ignores errors, so that a run continues."""
    try:
        sys.stderr.write(safe)
        sys.stderr.flush()
    except OSError:
        # a closed pipe, a lost terminal, a full disk: nothing more is printed
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def print_json(values: Mapping[str, Any]) -> None:
    """Print an object as one line of JSON on stdout and flush.

    Everything but ASCII is escaped: some other characters control terminals or are line
    ends for readers that split at more than the newline.
    """
    click.echo(json.dumps(values, allow_nan=False))
    sys.stdout.flush()


def warn_of_loss(folder: RunFolder) -> None:
    """Print a warning for each log of a run that lost acknowledged events."""
    for end in folder.ends():
        if end.has_loss:
            print_note(
                f"warning: {end.sentence}; see 'siftlog verify {folder.run_id}'."
            )


def print_text(block: str) -> None:
    """Print text on stdout, escaped and wrapped for a terminal."""
    safe = _safe(block)
    if sys.stdout.isatty():
        safe = fold_text(safe, shutil.get_terminal_size().columns)
    click.echo(safe)


def _safe(block: str) -> str:
    """Escape all line separators except the newline, and control characters."""
    return "\n".join(map(printable, block.removesuffix("\n").split("\n")))


def print_row(line: str) -> None:
    """Print one line of a list on stdout; newlines in it are replaced."""
    print_text(line[: LINE + 1].replace("\n", "\N{SYMBOL FOR LINE FEED}"))


def print_raw(lines: str) -> None:
    """Print data in another format on stdout; escaped only on a terminal."""
    if sys.stdout.isatty():
        click.echo(_safe(lines))
    else:
        click.echo(lines, nl=False)


_UNITS_S: Final = (("s", 1.0, 120.0), ("min", 60.0, 7200.0))
"""Unit, its length, and the upper end of its range; above that, hours."""


def number(value: float) -> str:
    """Format a count."""
    return f"{value:,.0f}"


def duration(seconds: float) -> str:
    """Format a duration in a suitable unit."""
    for unit, length, end in _UNITS_S:
        if seconds < end:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds / 3600:.1f} h"


def cost(usd: float | None) -> str:
    """Format an amount of money; an unknown price is never zero."""
    from store.read.usage import dollars

    return "? (a price is unknown)" if usd is None else dollars(usd)


THRESHOLDS = (50_000, 20, 50)


def relax_collector() -> None:
    """Collect garbage less often, and exempt objects that already exist.

    At 2,000 calls a second the default thresholds (700, 10, 10) walk the loaded data
    set over and over: 12,000 calls over loopback took 7.7 s of CPU with them and 5.8 s
    with these, at the same peak of memory.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
