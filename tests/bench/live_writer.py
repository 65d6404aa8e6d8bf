"""A process that works on a run of `long_log`: at a rate, or as fast as it can.

    python -m tests.bench.live_writer LOG RATE SECONDS

It says "ready" when it begins, and in the end how it went, as JSON. RATE is in events
a second; 0: as many as the disk and 64 callers at a time allow.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from store.clock import SystemClock
from store.events import AttemptsAbandoned, Entry, Event, RunResumed
from store.log.sqlite import SqliteLog
from tests.bench.long_log import ABREAST, BLOCK, EVENTS_A_TASK, planned, work
from tests.store.samples import plan

BEAT_S = 1.0
MOST = 40_000
"""Events a second that no disk reaches this way."""


async def write(path: Path, rate: float, seconds: float) -> dict[str, float]:
    """Work for a while; what it cost."""
    log = await SqliteLog.open(path, clock=SystemClock(), owner="bench")
    async with log:
        out = await log.in_flight()
        if out:
            await log.append(AttemptsAbandoned(attempts=out))
        await log.append(
            RunResumed(code_sha256="0" * 64, settings="{}", unknown=len(out))
        )
        first = (await log.planning()).tasks + 1
        end = first + round((rate or MOST) * seconds / EVENTS_A_TASK) + ABREAST
        for start in range(first, end, BLOCK):
            block = [planned(n) for n in range(start, min(start + BLOCK, end))]
            await log.append(plan(block, first=start))
        events = work(first, end)
        await log.heartbeat()
        print("ready", flush=True)
        acks: list[float] = []
        beating = asyncio.get_running_loop().create_task(_beat(log))
        began, before = time.perf_counter(), log.statistics().events
        peak = 0
        while (now := time.perf_counter() - began) < seconds:
            count = ABREAST
            if rate:
                count = int(now * rate) - (log.statistics().events - before)
            await _append(log, itertools.islice(events, max(0, count)), acks)
            peak = max(peak, log.statistics().wal_bytes)
            if rate:
                await asyncio.sleep(0.005)
        took = time.perf_counter() - began
        done = log.statistics().events - before
        beating.cancel()
        with suppress(asyncio.CancelledError):
            await beating
    return {
        "events_per_s": done / took,
        "ack_50_ms": statistics.median(acks),
        "ack_99_ms": statistics.quantiles(acks, n=100)[98],
        "wal_mib": peak / (1 << 20),
    }


async def _append(
    log: SqliteLog, events: Iterator[Entry | Event], acks: list[float]
) -> None:
    async def one(event: Entry | Event) -> None:
        began = time.perf_counter()
        await log.append(event)
        acks.append((time.perf_counter() - began) * 1000)

    async with asyncio.TaskGroup() as group:
        for event in events:
            group.create_task(one(event))


async def _beat(log: SqliteLog) -> None:
    while True:
        await log.heartbeat()
        await asyncio.sleep(BEAT_S)


if __name__ == "__main__":
    log_path, events_per_s, for_s = sys.argv[1:]
    said = asyncio.run(write(Path(log_path), float(events_per_s), float(for_s)))
    print(json.dumps(said))
