"""Calls per second and CPU per call, against floors measured in the same run.

Everything talks to one bare server in a process of its own, in turns, and each figure
is the median of its rounds. The ratios are what counts; the absolute rates say how
fast the machine is.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TypeAlias

from tests.bench.row import Row
from tests.bench.siftlog_run import Figures, siftlog
from tests.bench.verdict import least, most, shown

ROOT = Path(__file__).resolve().parents[2]

Measured: TypeAlias = dict[str, Figures]

#: Calls of a round, enough for a second or more of each; quick rounds take a quarter.
CALLS = {
    "socket": 20_000,
    "durable": 12_000,
    "aiohttp": 8_000,
    "client": 8_000,
    "per_slot": 3_000,
    "litellm": 800,
}
SIFTLOG_CALLS = 6_000

#: The shared client slows down once all its connections stand: a round has to last.
SHARED_CALLS = {64: 600, 256: 1_500}

#: CPU per call of inspect_ai over that of the shared client, measured side by side
#: where both were installed: 18.1 and 5.8 ms, 19.6 and 13.8 ms.
INSPECT_OF_SHARED = {64: 18.1 / 5.8, 256: 19.6 / 13.8}


def measure(quick: bool) -> list[Row]:
    """The rows of this table."""
    rounds = 1 if quick else 3
    rows = []
    with serving(latency_ms=0) as base_url:
        for concurrency in (64, 256):
            rows += _at_full_speed(base_url, concurrency, rounds, 4 if quick else 1)
    with serving(latency_ms=200) as base_url:
        rows += _at_200_ms(base_url, rounds, 2_560 if quick else 12_800, 5_120)
    if not quick:
        with serving(latency_ms=2000) as base_url:
            rows += _at_2_s(base_url)
    return rows


@contextmanager
def serving(latency_ms: int, certificate: Path | None = None) -> Iterator[str]:
    """The bare server, for as long as the context is open; yields its base URL.

    With *certificate*, the folder of `trusted.pem` and `key.pem`, it encrypts.
    """
    words = [sys.executable, "-m", "tests.bench.floor_server", str(latency_ms)]
    with subprocess.Popen(
        words if certificate is None else [*words, str(certificate)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.stdin.close()


def floor(name: str, base_url: str, calls: int, concurrency: int) -> Figures:
    """What the script `floor_<name>.py` makes of it, in a process of its own."""
    words = [sys.executable, "-m", f"tests.bench.floor_{name}", base_url]
    done = subprocess.run(
        [*words, str(calls), str(concurrency)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=True,
    )
    return Figures(**json.loads(done.stdout))


def _at_full_speed(
    base_url: str, concurrency: int, rounds: int, divisor: int
) -> list[Row]:
    runs: dict[str, Callable[[], Figures]] = {
        name: lambda name=name, calls=calls: floor(
            name, base_url, calls // divisor, concurrency
        )
        for name, calls in CALLS.items()
    }
    runs["shared"] = lambda: floor(
        "shared", base_url, SHARED_CALLS[concurrency], concurrency
    )
    runs["siftlog"] = lambda: siftlog(base_url, SIFTLOG_CALLS // divisor, concurrency)
    got = _medians(runs, rounds)
    ours, shared = got["siftlog"], got["shared"]
    of_per_slot = _ratio(ours, got["per_slot"])
    engine_ms = ours.cpu_ms - got["client"].cpu_ms
    of_inspect = _ratio(ours, shared) * INSPECT_OF_SHARED[concurrency]
    at = f"at {concurrency} connections"
    return [
        *_orientation(got, at),
        least(
            "calls/s", f"of durable sockets {at}", _ratio(ours, got["durable"]), None
        ),
        least("calls/s", f"of aiohttp {at}", _ratio(ours, got["aiohttp"]), 0.5),
        least("calls/s", f"of one httpx client per slot {at}", of_per_slot, 2),
        least("calls/s", f"of one shared httpx client {at}", _ratio(ours, shared), 10),
        least("calls/s", f"of litellm {at}", _ratio(ours, got["litellm"]), 6),
        least("calls/s", f"of inspect_ai, by its known ratio {at}", of_inspect, 60),
        *_processor(got, at),
        most("CPU ms/call", f"whole {at}", ours.cpu_ms, 0.37),
        most("CPU ms/call", f"engine without HTTP client {at}", engine_ms, 0.18),
    ]


def _at_200_ms(base_url: str, rounds: int, calls: int, ramped_calls: int) -> list[Row]:
    """Two lengths: what the start costs shows in a short run, the steady rate later."""
    at = "at 200 ms x 256 connections"
    ramped = _medians(_waiting(base_url, ramped_calls), rounds)
    long = _medians(_waiting(base_url, calls), rounds)
    ours = ramped["siftlog"]
    steady = long["siftlog"].steady_per_s / long["socket"].steady_per_s
    start = f"{at}, {ramped_calls:,} calls from the first"
    return [
        *_orientation(ramped, start),
        least("latency", f"of sockets {start}", _ratio(ours, ramped["socket"]), 0.85),
        *_orientation(long, f"{at}, {calls:,} calls from the first"),
        least("latency", f"of sockets {at}, once under way", steady, 0.95),
    ]


def _waiting(base_url: str, calls: int) -> dict[str, Callable[[], Figures]]:
    """siftlog beside the floors that a latency leaves comparable."""
    return {
        **{
            name: lambda name=name: floor(name, base_url, calls, 256)
            for name in ("socket", "durable", "aiohttp", "per_slot")
        },
        "siftlog": lambda: siftlog(base_url, calls, 256),
    }


def _at_2_s(base_url: str) -> list[Row]:
    calls, concurrency = 20_000, 1_000
    at = "at 2 s x 1,000 connections"
    got = {
        **{
            name: floor(name, base_url, calls, concurrency)
            for name in ("socket", "durable", "aiohttp")
        },
        "siftlog": siftlog(base_url, calls, concurrency),
    }
    share = got["siftlog"].steady_per_s / (concurrency / 2)
    return [
        *_orientation(got, f"{at}, from the first call"),
        least("latency", f"of the ideal {at}, once under way", share, 0.98),
    ]


def _medians(runs: dict[str, Callable[[], Figures]], rounds: int) -> Measured:
    """Every run once a round, in turns: a slow moment of the machine hits them all."""
    taken = [{name: run() for name, run in runs.items()} for _ in range(rounds)]
    return {
        name: Figures(
            calls_per_s=median(each[name].calls_per_s for each in taken),
            cpu_ms=median(each[name].cpu_ms for each in taken),
            steady_per_s=median(each[name].steady_per_s for each in taken),
        )
        for name in runs
    }


def _ratio(ours: Figures, other: Figures) -> float:
    return ours.calls_per_s / other.calls_per_s


def _orientation(got: Measured, at: str) -> list[Row]:
    return [shown(f"{name} {at}", f.calls_per_s, "calls/s") for name, f in got.items()]


def _processor(got: Measured, at: str) -> list[Row]:
    return [shown(f"{name} {at}", f.cpu_ms, "CPU ms/call") for name, f in got.items()]
