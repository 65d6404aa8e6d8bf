"""Prints output of commands: data to stdout, messages to stderr; names exit codes."""

from __future__ import annotations

import gc
import json
import os
import shutil
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from store import document
from store.document import fitted_lines
from store.printable import printable

if TYPE_CHECKING:
    from store.runs import RunFolder


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


def print_json(form: str, values: Mapping[str, Any]) -> None:
    """Print an object as one line of JSON on stdout and flush.

    The first field, `schema`, is *form*: a key of `FORMS` in `runner.cli.json_forms`
    or `jobs.cli.json_forms`, which describe the fields.

    Everything but ASCII is escaped: some other characters control terminals or are line
    ends for readers that split at more than the newline.
    """
    click.echo(json.dumps({"schema": form, **values}, allow_nan=False))
    sys.stdout.flush()


def warn_of_loss(folder: RunFolder) -> None:
    """Print a warning for each log of a run that lost acknowledged events."""
    for end in folder.ends():
        if end.has_loss:
            print_note(
                f"warning: {end.sentence}; see 'siftlog verify {folder.run_id}'."
            )


def page_width() -> int:
    """Return the cells of a line on stdout: those of the terminal, or of a page."""
    is_terminal = sys.stdout.isatty()
    return shutil.get_terminal_size().columns if is_terminal else document.WIDTH


def print_text(text: str) -> None:
    """Print text on stdout, escaped and wrapped for a terminal."""
    if sys.stdout.isatty():
        click.echo("\n".join(fitted_lines(text, page_width())))
    else:
        click.echo(_safe(text))


def _safe(block: str) -> str:
    """Escape all line separators except the newline, and control characters."""
    return "\n".join(map(printable, block.removesuffix("\n").split("\n")))


def print_raw(lines: str) -> None:
    """Print data in another format on stdout; escaped only on a terminal."""
    if sys.stdout.isatty():
        click.echo(_safe(lines))
    else:
        click.echo(lines, nl=False)


def number(value: float) -> str:
    """Format a count."""
    return f"{value:,.0f}"


duration = document.duration


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
