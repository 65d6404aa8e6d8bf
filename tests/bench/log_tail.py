"""Live readers beside a writer: how late they see, and what they cost it (D1, D2)."""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from store.clock import SystemClock
from store.log.sqlite import SqliteLog
from tests.bench.prose import replies
from tests.bench.row import Row
from tests.bench.tail_reader import POLL_S
from tests.bench.verdict import most, shown
from tests.store.samples import RUN_STARTED, plan, reply, task

RATE = 1000
BYTES = 2048


@dataclass(frozen=True, slots=True)
class _Seen:
    """One course of a writer: with or without readers."""

    ack_99_ms: float
    peak_wal: int
    delays_ms: list[float]
    ages_ms: list[float]  #: of the oldest event that task states did not show
    gaps: int


def measure(quick: bool) -> list[Row]:
    """The rows of D1 and D2."""
    seconds = 3.0 if quick else 10.0
    rounds = 2 if quick else 3
    alone, watched = [], []
    for _ in range(rounds):
        alone.append(_course(seconds, readers=0))
        watched.append(_course(seconds, readers=3))
    late = statistics.median(_p99(seen.delays_ms) for seen in watched)
    ack = statistics.median(
        w.ack_99_ms / a.ack_99_ms for a, w in zip(alone, watched, strict=True)
    )
    wal = statistics.median(
        w.peak_wal / a.peak_wal for a, w in zip(alone, watched, strict=True)
    )
    stale = max(max(seen.ages_ms) for seen in watched)
    poll_ms = POLL_S * 1000
    return [
        most("D1", "tail delay p99, ms (poll 20 ms), 1000/s", late, poll_ms + 10),
        most("D1", "writer's p99 with 3 readers / without", ack, 1.5),
        most("D1", "task states behind the log, longest ms, 1000/s", stale, 250),
        most("D1", "gaps seen", float(sum(seen.gaps for seen in watched)), 0),
        most("D2", "peak WAL with 3 readers / without", wal, 2),
        shown("events seen by readers", float(sum(len(s.delays_ms) for s in watched))),
    ]


def _p99(values: list[float]) -> float:
    return statistics.quantiles(values, n=100)[98]


def _course(seconds: float, readers: int) -> _Seen:
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_write(Path(folder, "log.db"), seconds, readers))


async def _write(path: Path, seconds: float, readers: int) -> _Seen:
    count = round(RATE * seconds)
    bodies = replies(BYTES, count)
    acks: list[float] = []
    peak = 0
    async with await SqliteLog.create(
        path, run_id="bench", config_sha256=b"", clock=SystemClock(), owner="bench"
    ) as log:
        await log.append(RUN_STARTED, plan([task(n) for n in range(1, count + 1)]))
        tails = [_reader(path, seconds + 1) for _ in range(readers)]

        async def one(number: int) -> None:
            began = time.perf_counter()
            await log.append(reply(number, bodies[number - 1]))
            acks.append((time.perf_counter() - began) * 1000)

        async with asyncio.TaskGroup() as group:
            began = time.perf_counter()
            for number in range(1, count + 1):
                due = began + number / RATE
                if (wait := due - time.perf_counter()) > 0:
                    await asyncio.sleep(wait)
                group.create_task(one(number))
                if number % 50 == 0:
                    peak = max(peak, log.statistics().wal_bytes)
        outputs = [await asyncio.to_thread(tail.communicate) for tail in tails]
        said = [json.loads(output) for output, _ in outputs]
    delays = [delay for each in said for delay in each["delays"]]
    ages = [age for each in said for age in each["ages"]]
    return _Seen(_p99(acks), peak, delays, ages, sum(each["gaps"] for each in said))


def _reader(path: Path, seconds: float) -> subprocess.Popen[str]:
    tail = subprocess.Popen(
        [sys.executable, "-m", "tests.bench.tail_reader", str(path), str(seconds)],
        stdout=subprocess.PIPE,
        text=True,
    )
    if tail.stdout is None or tail.stdout.readline() != "ready\n":
        raise RuntimeError("the reader did not come up")
    return tail
