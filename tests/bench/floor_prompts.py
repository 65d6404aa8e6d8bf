"""The work that every floor does: distinct prompts of 2 KB, and how it is timed.

Each floor is a script of its own, run by `calls_per_second.py`:

    python -m tests.bench.floor_socket BASE_URL CALLS CONCURRENCY

It prints one JSON object, `{"calls_per_s": ..., "cpu_ms": ...}`, with `steady_per_s`
where it told of each answer.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass

from tests.bench.steady import steady_per_s

SENTENCE = "Carriers of the variant needed a lower dose than the other patients did. "


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What the command line asks of a floor."""

    url: str
    calls: int
    concurrency: int


def work() -> Work:
    """The arguments of the script."""
    base_url, calls, concurrency = sys.argv[1:]
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


def timed(todo: Work) -> Watch:
    """Start the watch."""
    return Watch(todo)


class Watch:
    """Times the calls of a floor, and prints the figures when it is stopped."""

    def __init__(self, todo: Work) -> None:
        self._todo = todo
        self._answered_s: list[float] = []
        self._began, self._cpu = time.perf_counter(), time.process_time()

    def answered(self) -> None:
        """A call was answered."""
        self._answered_s.append(time.perf_counter())

    def stop(self) -> None:
        """All calls were answered."""
        seconds = time.perf_counter() - self._began
        busy = time.process_time() - self._cpu
        figures = {
            "calls_per_s": self._todo.calls / seconds,
            "cpu_ms": busy / self._todo.calls * 1000,
        }
        if self._answered_s:
            slots = self._todo.concurrency
            figures["steady_per_s"] = steady_per_s(self._answered_s, slots)
        print(json.dumps(figures))
