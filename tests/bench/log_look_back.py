"""Looking back on a long log: the way to a moment, what is read there, and the way on.

The processor's share of a replay is reckoned without a screen: what folding and looking
twice a second take of a second.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from store.database import open_reader
from store.read.status import status
from store.runs import RunFolder
from store.tables import last_seq
from store.time_travel import LogPrefix, moment_at, moment_of
from tests.bench.long_log import build
from tests.bench.row import Row
from tests.bench.verdict import shown

TASKS = 100_000
SPEED = 10
LOOKS_A_SECOND = 2
LOOKS = 40


def measure(quick: bool) -> list[Row]:
    """A million events; quick takes a tenth of them."""
    with tempfile.TemporaryDirectory() as name:
        folder = RunFolder(Path(name, "long"))
        build(folder, TASKS // (10 if quick else 1))
        with open_reader(folder.log) as whole, LogPrefix(folder.log) as prefix:
            last = last_seq(whole)
            half, end = moment_of(whole, last // 2), moment_of(whole, last)
            to_half = _took(lambda: prefix.move_to(half))
            replayed = 0.0
            with prefix.open_reader() as reader:
                read = _took(lambda: status(reader))
                for look in range(1, LOOKS + 1):
                    on_us = round(look * SPEED / LOOKS_A_SECOND * 1e6)
                    moment = moment_at(whole, half.at_us + on_us)
                    replayed += _took(lambda at=moment: prefix.move_to(at))
                    replayed += _took(lambda: status(reader))
            to_end = _took(lambda: prefix.move_to(end))
    share = replayed / (LOOKS / LOOKS_A_SECOND)
    return [
        shown(f"prefix of {last // 2:,} events, s", to_half),
        shown(f"and on to {last:,}, s", to_end),
        shown("status from a prefix, ms", read * 1e3),
        shown(f"replay at {SPEED}x of 300 events/s, share of a core, %", share * 100),
    ]


def _took(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
