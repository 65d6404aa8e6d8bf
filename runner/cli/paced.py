"""Shows the progress of a command, without importing what reads a run."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from runner.cli.console import ERASE, write_stderr
from store.clock import Clock
from store.printable import printable

TERMINAL_S: Final = 0.5
PLAIN_S: Final = 30.0
"""Seconds between two lines: on a terminal, and elsewhere."""


@contextmanager
def paced_progress(clock: Clock) -> Iterator[Callable[[str], None]]:
    """Yield a callback that shows progress on stderr at a limited rate.

    On a terminal the line is updated in place, and removed at the end.
    """
    is_terminal = sys.stderr.isatty()
    pause = TERMINAL_S if is_terminal else PLAIN_S
    due = clock.monotonic() + pause

    def show(line: str) -> None:
        nonlocal due
        now = clock.monotonic()
        if now < due:
            return
        due = now + pause
        if is_terminal:
            # a longer line would wrap and leave its first part on the screen
            width = shutil.get_terminal_size().columns - 1
            write_stderr(ERASE + printable(line)[:width])
        else:
            write_stderr(f"{printable(line)}\n")

    try:
        yield show
    finally:
        if is_terminal:
            write_stderr(ERASE)
