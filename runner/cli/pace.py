"""How a line of progress is shown: often on a terminal, rarely in a file."""

from __future__ import annotations

import shutil
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

from runner.cli.speech import ERASE, mutter
from runner.engine.beside import beside
from store.clock import Clock
from store.printable import printable

TERMINAL_S: Final = 0.5
PLAIN_S: Final = 30.0
WINDOW_S: Final = 60.0
"""Rates are over the last minute: a run's mean hides that it slowed down."""


class Rate:
    """How fast a count grows."""

    def __init__(self, clock: Clock, count: int = 0) -> None:
        """It stands at *count* now."""
        self._clock = clock
        self._marks = [(clock.monotonic(), count)]

    def per_s(self, count: int) -> float:
        """Its growth over the last minute, now that it stands at *count*."""
        now = self._clock.monotonic()
        self._marks.append((now, count))
        while self._marks[1][0] < now - WINDOW_S:
            self._marks.pop(0)
        began, before = self._marks[0]
        return (count - before) / max(now - began, 1e-9)


@asynccontextmanager
async def moving(
    line: Callable[[int | None], str], clock: Clock
) -> AsyncIterator[None]:
    """Show a line on stderr while the body runs, and once more at the end.

    Args:
        line: how things stand; fitted to a width, if one is given.
        clock: says when it is due.
    """
    async with beside(_move(line, clock)):
        yield
    erased = ERASE if sys.stderr.isatty() else ""
    mutter(f"{erased}{line(None)}\n")


async def _move(line: Callable[[int | None], str], clock: Clock) -> None:
    terminal = sys.stderr.isatty()
    while True:
        pause = TERMINAL_S if terminal else PLAIN_S
        await clock.sleep_until(clock.monotonic() + pause)
        if terminal:
            # a longer line would wrap, and leave its first part behind
            mutter(ERASE + line(shutil.get_terminal_size().columns - 1))
        else:
            mutter(f"{line(None)}\n")


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
