"""Prints output of commands: data to stdout, messages to stderr; names exit codes."""

from __future__ import annotations

import gc
import json
import os
import shutil
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from store.document import fitted_lines
from store.printable import printable

if TYPE_CHECKING:
    from store.runs import RunFolder


DONE, ERROR, USAGE, FAILED_TASKS, BUDGET, INTERRUPTED, CHECK_FAILED = range(7)
"""Exit codes of every verb (architecture, "Command line")."""


ERASE = "\r\x1b[K"
"""To the beginning of a terminal's line, and empty it."""


def print_note(sentence: str) -> None:
    """A sentence for people, on stderr; takes the place of a line of progress."""
    erased = ERASE if sys.stderr.isatty() else ""
    write_stderr(f"{erased}{printable(sentence)}\n")


def write_stderr(safe: str) -> None:
    """Write to stderr as it is; a run goes on where nobody can read that any more."""
    try:
        sys.stderr.write(safe)
        sys.stderr.flush()
    except OSError:
        # a closed pipe, a terminal that is gone, a full disk: silence from now on
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def print_json(values: Mapping[str, Any]) -> None:
    """One JSON object on one line of stdout, at once.

    All but ASCII is escaped: some characters beyond it steer terminals, or end a line
    for whoever splits at more than the newline.
    """
    click.echo(json.dumps(values, allow_nan=False))
    sys.stdout.flush()


def warn_of_loss(folder: RunFolder) -> None:
    """A sentence on stderr for each log of a run that lost acknowledged events."""
    for end in folder.ends():
        if end.has_loss:
            print_note(
                f"warning: {end.sentence}; see 'siftlog verify {folder.run_id}'."
            )


def print_text(text: str) -> None:
    """Text for people, on stdout, safe for a terminal and fitted to its width."""
    if sys.stdout.isatty():
        columns = shutil.get_terminal_size().columns
        click.echo("\n".join(fitted_lines(text, columns)))
    else:
        click.echo(_safe(text))


def _safe(block: str) -> str:
    """Of all that ends a line somewhere, the newline alone ends one; the rest shows."""
    return "\n".join(map(printable, block.removesuffix("\n").split("\n")))


def print_raw(lines: str) -> None:
    """Data of another form on stdout, as it is; made safe where a terminal reads it."""
    if sys.stdout.isatty():
        click.echo(_safe(lines))
    else:
        click.echo(lines, nl=False)


_UNITS_S: Final = (("s", 1.0, 120.0), ("min", 60.0, 7200.0))
"""Unit, its length, and up to what it suits; beyond stand hours."""


def number(value: float) -> str:
    """A count."""
    return f"{value:,.0f}"


def duration(seconds: float) -> str:
    """A time in the unit that suits it."""
    for unit, length, end in _UNITS_S:
        if seconds < end:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds / 3600:.1f} h"


def cost(usd: float | None) -> str:
    """Money; an unknown price is never zero."""
    from store.read.usage import dollars

    return "? (a price is unknown)" if usd is None else dollars(usd)


THRESHOLDS = (50_000, 20, 50)


def relax_collector() -> None:
    """Collect less often, and never look at what is there already.

    At 2,000 calls a second the default thresholds (700, 10, 10) walk the loaded data
    set over and over: 12,000 calls over loopback took 7.7 s of CPU with them and 5.8 s
    with these, at the same peak of memory.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
