"""What verbs say: data to stdout, sentences to stderr, an exit code at the end."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from runner.cli.folding import folded
from store.printable import LINE, printable

if TYPE_CHECKING:
    from store.runs import RunFolder

DONE, ERROR, USAGE, FAILED_TASKS, BUDGET, INTERRUPTED, CHECK_FAILED = range(7)
"""Exit codes of every verb (architecture, "Command line")."""


ERASE = "\r\x1b[K"
"""To the beginning of a terminal's line, and empty it."""


def tell(sentence: str) -> None:
    """A sentence for people, on stderr; takes the place of a line of progress."""
    erased = ERASE if sys.stderr.isatty() else ""
    mutter(f"{erased}{printable(sentence)}\n")


def mutter(safe: str) -> None:
    """Write to stderr as it is; a run goes on where nobody can read that any more."""
    try:
        sys.stderr.write(safe)
        sys.stderr.flush()
    except OSError:
        # a closed pipe, a terminal that is gone, a full disk: silence from now on
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def record(values: Mapping[str, Any]) -> None:
    """One JSON object on one line of stdout, at once.

    All but ASCII is escaped: some characters beyond it steer terminals, or end a line
    for whoever splits at more than the newline.
    """
    click.echo(json.dumps(values, allow_nan=False))
    sys.stdout.flush()


def say_loss(folder: RunFolder) -> None:
    """A sentence on stderr for each log of a run that lost acknowledged events."""
    for end in folder.ends():
        if end.is_lost:
            tell(f"warning: {end.sentence}; see 'siftlog verify {folder.run_id}'.")


def text(block: str) -> None:
    """Text for people, on stdout, safe for a terminal and fitted to its width."""
    safe = _safe(block)
    if sys.stdout.isatty():
        safe = folded(safe, shutil.get_terminal_size().columns)
    click.echo(safe)


def _safe(block: str) -> str:
    """Of all that ends a line somewhere, the newline alone ends one; the rest shows."""
    return "\n".join(map(printable, block.removesuffix("\n").split("\n")))


def row(line: str) -> None:
    """A line of a list, on stdout: nothing in it can feign a further one."""
    text(line[: LINE + 1].replace("\n", "\N{SYMBOL FOR LINE FEED}"))


def raw(lines: str) -> None:
    """Data of another form on stdout, as it is; made safe where a terminal reads it."""
    if sys.stdout.isatty():
        click.echo(_safe(lines))
    else:
        click.echo(lines, nl=False)
