"""Labelling on a terminal: from a key to the next item, its label on disk before.

A key is timed from its byte written to the terminal until the next item's heading has
arrived there.
"""

from __future__ import annotations

import statistics
import sys
import tempfile

from tests.bench.row import Row
from tests.bench.screen import screen
from tests.bench.verdict import most, shown

COMMAND = (sys.executable, "-m", "tests.tui.labelling.sitting", "screen")
SIZES = ((80, 24), (160, 50))


def measure(quick: bool) -> list[Row]:
    """All rows; quick types a tenth."""
    count = 200 if quick else 2000
    return [row for size in SIZES for row in _typed(count, *size)]


def _typed(count: int, columns: int, lines: int) -> list[Row]:
    with (
        tempfile.TemporaryDirectory() as folder,
        screen(folder, count, command=COMMAND, columns=columns, lines=lines) as seat,
    ):
        opened_s = seat.until(b"item-00001")
        seat.settled()
        taken = []
        for number in range(2, count + 1):
            began = seat.type("i")
            taken.append((seat.until(f"item-{number:05}".encode()) - began) * 1000)
        seat.type("i")
        seat.until(b"Nothing is left")
        seat.left()
    what = f"labelling at {columns}x{lines}"
    percentiles = statistics.quantiles(taken, n=100)
    return [
        shown(f"{what}, start to first item, s", opened_s),
        shown(f"{what}, key to next item, p50 ms", percentiles[49]),
        most("tui", f"{what}, key to next item, p95 ms", percentiles[94], 50),
        shown(f"{what}, key to next item, p99 ms", percentiles[98]),
    ]
