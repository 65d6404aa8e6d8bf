"""A plan of a million tasks: when the first call leaves, and what memory it takes.

A thousand papers asked a thousand times, over loopback HTTP. The run is drained once
everything is planned and the window of calls is full: what is measured is the plan, not
how far the window had opened when the plan ended, which takes 10 MiB.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from store.clock import SystemClock
from tests.bench.row import Row
from tests.corpus import write_corpus
from tests.ledgers import read_ledger
from tests.processes import SIFTLOG, simulated, status

WINDOW, OPENING_S = 256, 60.0
"""Slots for calls, and how long nine tenths of them may take to be in use, s."""


def measure(quick: bool) -> list[Row]:
    """First call and peak memory at 10,000 and at a million planned tasks."""
    big = 100 if quick else 1000
    with tempfile.TemporaryDirectory() as name:
        cwd = Path(name)
        corpus = write_corpus(cwd / "corpus", 1000)
        small_s, small_mb, _ = _plan(cwd, corpus, replicates=10)
        large_s, large_mb, planned_s = _plan(cwd, corpus, replicates=big)
    tasks = f"{1000 * big:,}"
    growth = large_mb / small_mb
    return [
        _row("first call after, at 10,000 tasks, s", small_s, "<= 1", small_s <= 1),
        _row(f"first call after, at {tasks} tasks, s", large_s, "<= 1", large_s <= 1),
        _row(f"all {tasks} tasks planned after, s", planned_s),
        _row("peak memory at 10,000 tasks, MiB", small_mb),
        _row(f"peak at {tasks} tasks / at 10,000", growth, "<= 1.1", growth <= 1.1),
    ]


def _row(what: str, value: float, goal: str = "", met: bool = True) -> Row:
    return Row(target="plan", what=what, value=value, goal=goal, met=met)


def _plan(cwd: Path, corpus: list[str], replicates: int) -> tuple[float, float, float]:
    """Seconds to the first call, peak MiB, seconds until all is planned."""
    run = f"r{replicates}"
    ledger = cwd / f"{run}.jsonl"
    with simulated("--latency-ms", 500, "--ledger", ledger, cwd=cwd) as url:
        began = time.perf_counter()
        began_ms = SystemClock().now_us() / 1000
        process = subprocess.Popen(
            [
                *(SIFTLOG, "generate", "paper-investigation", *corpus),
                *("--mode=extract", "--model=x", f"--base-url={url}"),
                *("--price=0.15,0.60", "--budget=1000000"),
                *(f"--run-id={run}", f"--replicates={replicates}"),
                f"--concurrency={WINDOW}",
            ],
            cwd=cwd,
            stderr=subprocess.DEVNULL,
        )
        while not (ledger.exists() and ledger.stat().st_size):
            time.sleep(0.005)
        # the line is written with the reply; the request came a latency before
        first = (read_ledger(ledger)[0].received_ms - began_ms) / 1000
        while not status(cwd, run)["planning_exhausted"]:
            time.sleep(0.2)
        planned = time.perf_counter() - began
        opened = time.perf_counter() + OPENING_S
        while status(cwd, run)["tasks"]["running"] < 0.9 * WINDOW:
            assert time.perf_counter() < opened, "the window never fills"
            time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0
    return first, usage.ru_maxrss / 1024, planned
