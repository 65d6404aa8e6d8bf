"""`siftlog watch` with a stop-watch on its event loop: everything that runs on it.

    python -m tests.bench.timed_watch FILE [WORDS OF WATCH...]

The milliseconds of every step of the loop go to FILE as JSON when the monitor is left,
by the clock and of the processor, but for those of building the first screen and of
leaving.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path

from tui.watch import watch

ENDS_S = 2.0
"""What is left out at either end."""


class _Timed:
    """Runs what the loop would run, and keeps how long it took."""

    def __init__(self) -> None:
        self._taken: list[tuple[float, float, float]] = []
        self._run = asyncio.Handle._run

    def install(self) -> None:
        """From now on."""
        taken, run = self._taken, self._run

        def stopped(handle: asyncio.Handle) -> None:
            began, cpu = time.perf_counter(), time.thread_time()
            run(handle)
            worked = time.thread_time() - cpu
            taken.append((began, time.perf_counter() - began, worked))

        asyncio.Handle._run = stopped  # type: ignore[method-assign]

    def taken_ms(self) -> list[tuple[float, float]]:
        """The steps of a running monitor."""
        first, last = self._taken[0][0], self._taken[-1][0]
        return [
            (took * 1000, worked * 1000)
            for began, took, worked in self._taken
            if first + ENDS_S < began < last - ENDS_S
        ]


if __name__ == "__main__":
    path, *words = sys.argv[1:]
    timed = _Timed()
    timed.install()
    watch.main(words, standalone_mode=False)
    Path(path).write_text(json.dumps(timed.taken_ms()), "ascii")
