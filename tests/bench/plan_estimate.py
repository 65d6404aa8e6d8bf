"""Estimates of plans of any length, and what-ifs: their time, and that memory is flat.

Each size in a process of its own, which prints its figures:

    python -m tests.bench.plan_estimate (estimate | what-if) ITEMS
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from runner.estimate.estimate import preview
from runner.estimate.simulation import (
    RecordedAttempt,
    RecordedItem,
    RecordedTask,
    ReplayedModel,
    what_if,
)
from runner.limits.limiter import Endpoint, Limits
from runner.options import options_from
from runner.workload import load_workload
from tests.bench.row import Row
from tests.bench.verdict import most, shown
from tests.runner.toy_jobs import ToyJob, ToySettings

ROOT = Path(__file__).resolve().parents[2]


def measure(quick: bool) -> list[Row]:
    """CPU and peak memory at 10,000 and at a million items."""
    big = 100_000 if quick else 1_000_000
    rows = []
    for what in ("estimate", "what-if"):
        _, small_mb = _child(what, 10_000)
        cpu_s, big_mb = _child(what, big)
        at = f"{what} of {big:,} items"
        rows += [
            shown(f"{at}, us of CPU each", cpu_s / big * 1e6, "plan"),
            most("plan", f"{at}: peak / at 10,000", big_mb / small_mb, 1.1),
        ]
    return rows


def _child(what: str, items: int) -> tuple[float, float]:
    """CPU seconds and peak MiB."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.plan_estimate", what, str(items)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=True,
    )
    cpu_s, peak_mb = json.loads(done.stdout)
    return cpu_s, peak_mb


def _estimate(items: int) -> None:
    work = load_workload(ToyJob(), ToySettings(items=items))
    preview(work, options_from({"model": ["openai/m"]}), ROOT / "runs")


def _what_if(items: int) -> None:
    """Every fourth item is followed by one more call."""
    call = RecordedAttempt(duration_s=0.2, tokens_in=500, tokens_out=20)

    def recorded() -> Iterator[RecordedItem]:
        first = RecordedTask(stage="read", model="m", attempts=(call,))
        later = RecordedTask(stage="ask", model="m", attempts=(call,))
        for number in range(items):
            yield RecordedItem(first=first, later=(later,) if number % 4 == 0 else ())

    asked = ReplayedModel(
        model="m",
        stages=("read", "ask"),
        limits=Limits(concurrency=256, rpm=60_000),
        endpoint=Endpoint("m"),
        items=recorded(),
    )
    what_if([asked], deadline_s=3600)


def main() -> None:
    """Do what the command line says, and print what it took."""
    what, items = sys.argv[1:]
    began = time.process_time()
    {"estimate": _estimate, "what-if": _what_if}[what](int(items))
    cpu_s = time.process_time() - began
    peak_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps([cpu_s, peak_kb / 1024]))


if __name__ == "__main__":
    main()
