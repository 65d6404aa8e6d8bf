"""`siftlog watch` with a stop-watch on its event loop: everything that runs on it.

    python -m tests.bench.timed_watch FILE [WORDS OF WATCH...]

The milliseconds of every step of the loop, from the first look on, go to FILE as JSON
when the monitor is left.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path

from tui.cli import watch

_WARM_S = 3.0
"""Building the first screen is no handler of a running monitor."""


class _Timed:
    """Runs what the loop would run, and keeps how long it took."""

    def __init__(self) -> None:
        self.taken_ms: list[float] = []
        self._run = asyncio.Handle._run
        self._since = time.perf_counter() + _WARM_S

    def install(self) -> None:
        """From now on."""
        timed, run = self, self._run

        def stopped(handle: asyncio.Handle) -> None:
            began = time.perf_counter()
            run(handle)
            if began > timed._since:
                timed.taken_ms.append((time.perf_counter() - began) * 1000)

        asyncio.Handle._run = stopped  # type: ignore[method-assign]


if __name__ == "__main__":
    path, *words = sys.argv[1:]
    timed = _Timed()
    timed.install()
    watch.main(words, standalone_mode=False)
    Path(path).write_text(json.dumps(timed.taken_ms), "ascii")
