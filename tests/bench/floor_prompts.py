"""The work that every floor does: distinct prompts of 2 KB, and how it is timed.

Each floor is a script of its own, run by `calls_per_second.py`:

    python -m tests.bench.floor_socket BASE_URL CALLS CONCURRENCY

It prints one JSON object, `{"calls_per_s": ..., "cpu_ms": ...}`.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

SENTENCE = "Carriers of the variant needed a lower dose than the other patients did. "


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What the command line asks of a floor."""

    url: str
    calls: int
    concurrency: int


def work() -> Work:
    """The arguments of the script."""
    base_url, calls, concurrency = sys.argv[1:4]
    return Work(
        url=f"{base_url}/chat/completions",
        calls=int(calls),
        concurrency=int(concurrency),
    )


def prompt(number: int) -> str:
    """A prompt of 2 KB that no other number has."""
    return f"Paper {number}. " + SENTENCE * 28


def body(number: int) -> dict[str, object]:
    """The request's body, as a hand-written script has it."""
    return {
        "model": "bench",
        "messages": [{"role": "user", "content": prompt(number)}],
        "max_tokens": 100,
        "temperature": 0.0,
    }


def timed(calls: int) -> Callable[[], None]:
    """Start the watch; the function returned stops it and prints the figures."""
    began, cpu = time.perf_counter(), time.process_time()

    def stop() -> None:
        seconds, busy = time.perf_counter() - began, time.process_time() - cpu
        figures = {"calls_per_s": calls / seconds, "cpu_ms": busy / calls * 1000}
        print(json.dumps(figures))

    return stop
