"""Appending: the log against the floors, closed loop and open loop (A1-A5, F1-F2).

All ways are measured in turn, round after round, on the same disk; a figure is the
median of the rounds' ratios. `event-log.md` 9 states the targets.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from store.log.integrity import HeadWriter, open_slots
from tests.bench.appenders import (
    Append,
    Way,
    bare,
    naive,
    plain_file,
    whole_log,
    without,
)
from tests.bench.prose import replies
from tests.bench.row import Row
from tests.bench.verdict import least, most, shown

COROUTINES = 512
KB = 1024


def measure(quick: bool) -> list[Row]:
    """The rows of A1 to A5 and F1."""
    rounds = 2 if quick else 5
    scale = 1 if quick else 4
    return [
        *_closed(KB, 3000 * scale, rounds),
        *_closed(8 * KB, 1500 * scale, rounds),
        *_closed(32 * KB, 500 * scale, rounds),
        *_sidecar(2000 * scale),
        *_open(rounds),
    ]


def _closed(size: int, count: int, rounds: int) -> list[Row]:
    """Appends a second of 512 coroutines that each wait for their own."""
    ways: dict[str, Way] = {
        "naive": naive(),
        "bare": bare(),
        "bare NORMAL": bare("NORMAL"),
        "file": plain_file(),
        "log": whole_log(count),
        "log, core tables": whole_log(count, "monitor"),
        "log, core, no zstd": whole_log(count, "monitor", "zstd"),
        "log, no zstd": whole_log(count, "zstd"),
        "log, no chain": whole_log(count, "chain"),
        "log, no triggers": whole_log(count, "triggers"),
        "log, no sidecar": whole_log(count, "sidecar"),
    }
    bodies = replies(size, count)
    rates: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            # the slowest by far: a part of the events tells its rate
            some = bodies[: count // 6] if name == "naive" else bodies
            rates[name].append(_rate(way, some))
    at = f"{size // KB} KB / {COROUTINES}"

    def ratio(one: str, other: str) -> float:
        return statistics.median(
            a / b for a, b in zip(rates[one], rates[other], strict=True)
        )

    core = "log, core tables"
    bare_core = "log, core, no zstd"
    return [
        least("A1", f"group commit / naive, {at}", ratio("bare", "naive"), _A1[size]),
        least("A2", f"FULL / NORMAL, {at}", ratio("bare", "bare NORMAL"), 0.8),
        least("A3", f"group commit / file, {at}", ratio("bare", "file"), _A3[size]),
        least("A4", f"whole log / naive, {at}", ratio("log", "naive"), _A4[size]),
        least("A4", f"core tables / naive, {at}", ratio(core, "naive"), _A4[size]),
        least("A4", f"whole log / core tables, {at}", ratio("log", core), 0.8),
        least(
            "A4",
            f"core tables without zstd / group commit, {at}",
            ratio(bare_core, "bare"),
            0.85,
        ),
        least("F1", f"triggers / none, {at}", ratio("log", "log, no triggers"), 0.95),
        least("F1", f"chain / none, {at}", ratio("log", "log, no chain"), _F1[size]),
        shown(f"sidecar / none, {at}", ratio("log", "log, no sidecar")),
        shown(f"whole log, events/s, {at}", statistics.median(rates["log"])),
    ]


def _sidecar(count: int) -> list[Row]:
    """What it costs to note each commit outside of the database.

    Most where each append is a commit of its own. Appends with and without take turns
    in one log, so that the moods of the disk are those of both.
    """
    bodies = replies(KB, count)

    async def run(path: Path) -> tuple[float, float]:
        taken: tuple[list[float], list[float]] = ([], [])
        async with whole_log(count)(path) as append:
            for number, body in enumerate(bodies):
                left_out = number % 2
                with without(*("sidecar",) * left_out):
                    began = time.perf_counter()
                    await append(number, body)
                    taken[left_out].append(time.perf_counter() - began)
        return statistics.median(taken[0]), statistics.median(taken[1])

    with tempfile.TemporaryDirectory() as folder:
        noted, bare_s = asyncio.run(run(Path(folder, "log.db")))
    note_s = _note_s(count)
    return [
        least("F2", "sidecar / none, rate of lone appends, 1 KB", bare_s / noted, 0.97),
        most("F2", "sidecar, share of a lone append's time", note_s / noted, 0.03),
        shown("sidecar, us a commit", note_s * 1e6),
    ]


def _note_s(count: int) -> float:
    """Seconds to note one commit."""
    with tempfile.TemporaryDirectory() as folder:
        heads = HeadWriter(
            open_slots(Path(folder, "log.heads")), genesis=bytes(32), epoch=1
        )
        began = time.perf_counter()
        for seq in range(count):
            heads.note(seq, bytes(32))
        taken = time.perf_counter() - began
        heads.close()
    return taken / count


_A1 = {KB: 20.0, 8 * KB: 5.0, 32 * KB: 3.0}
_A3: Mapping[int, float | None] = {KB: 0.4, 8 * KB: 0.55, 32 * KB: None}
_A4: Mapping[int, float | None] = {KB: 12.0, 8 * KB: 4.5, 32 * KB: None}
_F1: Mapping[int, float | None] = {KB: None, 8 * KB: 0.75, 32 * KB: None}


def _rate(way: Way, bodies: list[bytes]) -> float:
    async def run(path: Path) -> float:
        async with way(path) as append:
            numbers = iter(enumerate(bodies))
            began = time.perf_counter()
            async with asyncio.TaskGroup() as group:
                for _ in range(COROUTINES):
                    group.create_task(_appender(append, numbers))
            return len(bodies) / (time.perf_counter() - began)

    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(run(Path(folder, "log.db")))


async def _appender(append: Append, numbers: enumerate[bytes]) -> None:
    for number, body in numbers:
        await append(number, body)


def _open(rounds: int) -> list[Row]:
    """Time to acknowledgement when events come at a rate of their own (Poisson)."""
    naive_rate = _rate(naive(), replies(8 * KB, 500))
    rows = []
    for rate, goal_50, goal_99 in (
        (500, 1.2, None),
        (2000, 0.1, 0.25),
        # what 2000/s stood for: more than one commit an event can do on this disk
        (round(1.5 * naive_rate), 0.1, 0.25),
    ):
        naive_50, naive_99 = _latencies(rate, rounds, "naive")
        log_50, log_99 = _latencies(rate, rounds, "log")
        at = f"{rate}/s x 8 KB"
        rows += [
            most("A5", f"{at}: p50 / naive", log_50 / naive_50, goal_50),
            most("A5", f"{at}: p99 / naive", log_99 / naive_99, goal_99),
            shown(f"{at}: p50 of the log, ms", log_50 * 1000),
        ]
    return rows


def _latencies(rate: int, rounds: int, name: str) -> tuple[float, float]:
    """Median over rounds of (p50, p99), in seconds."""
    count = int(rate * 1.5)
    bodies = replies(8 * KB, count)
    found = []
    for number in range(rounds):
        way = naive() if name == "naive" else whole_log(count)
        with tempfile.TemporaryDirectory() as folder:
            taken = asyncio.run(
                _arrivals(way, Path(folder, "log.db"), bodies, rate, number)
            )
        found.append((statistics.median(taken), statistics.quantiles(taken, n=100)[98]))
    return (
        statistics.median(p50 for p50, _ in found),
        statistics.median(p99 for _, p99 in found),
    )


async def _arrivals(
    way: Way, path: Path, bodies: list[bytes], rate: int, seed: int
) -> list[float]:
    chance = random.Random(seed)
    taken: list[float] = []

    async def one(append: Append, number: int, due: float) -> None:
        await append(number, bodies[number])
        taken.append(time.perf_counter() - due)

    async with way(path) as append, asyncio.TaskGroup() as group:
        due = time.perf_counter()
        for number in range(len(bodies)):
            due += chance.expovariate(rate)
            if (wait := due - time.perf_counter()) > 0:
                await asyncio.sleep(wait)
            group.create_task(one(append, number, due))
    return taken
