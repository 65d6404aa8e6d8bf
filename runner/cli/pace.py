"""How often a line of progress is shown: often on a terminal, rarely in a file."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from runner.cli.speech import ERASE, mutter
from store.clock import Clock
from store.printable import printable

TERMINAL_S: Final = 0.5
PLAIN_S: Final = 30.0


@contextmanager
def paced(clock: Clock) -> Iterator[Callable[[str], None]]:
    """Shows on stderr how far something is; of many lines those that are due.

    On a terminal the line changes in its place, and is gone at the end.
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
            # a longer line would wrap, and leave its first part behind
            width = shutil.get_terminal_size().columns - 1
            mutter(ERASE + printable(line)[:width])
        else:
            mutter(f"{printable(line)}\n")

    try:
        yield show
    finally:
        if is_terminal:
            mutter(ERASE)
