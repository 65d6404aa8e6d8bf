"""The monitor against its budget (tui.md, 11), as a person has it.

Real processes on a terminal of their own, beside a real writer, on a log of a hundred
thousand tasks and a million events. The log of the specification is ten times as long
and takes minutes to make, so it is kept where a variable says:

    SIFTLOG_BENCH_LOG=/tmp/long SIFTLOG_BENCH_TASKS=1000000 \\
        python -m tests.bench tui_monitor
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from store.runs import RunFolder
from tests.bench.long_log import build
from tests.bench.row import Row
from tests.bench.screen import TIMED, Screen, screen
from tests.bench.timed_watch import ENDS_S
from tests.bench.verdict import least, most, shown

TASKS = 100_000
KEPT_IN = "SIFTLOG_BENCH_LOG"
TASKS_IN = "SIFTLOG_BENCH_TASKS"
RATE = 1000.0
"""Events a second of the writer beside which the monitor is watched."""
STARTS = 7
KEYS = 40
JUMPS = 400
#: Of a task that failed and is far below the first page of all tasks.
FAR_FAILED = b" 700 "


def measure(quick: bool) -> list[Row]:
    """All rows; quick takes a tenth of the tasks and shorter looks."""
    tasks = int(os.environ.get(TASKS_IN, TASKS // (10 if quick else 1)))
    seconds = 6.0 if quick else 20.0
    with _log(tasks) as folder:
        bench = _Bench(folder, tasks, seconds)
        return [
            *bench.start(),
            *bench.keys(),
            *bench.live(),
            *bench.handlers(),
            *bench.memory(),
            *bench.writer(),
        ]


@contextmanager
def _log(tasks: int) -> Iterator[RunFolder]:
    kept = os.environ.get(KEPT_IN)
    with tempfile.TemporaryDirectory() as name:
        folder = RunFolder(Path(kept or name, f"long-{tasks}"))
        if not folder.log.exists():
            build(folder, tasks)
        yield folder


class _Bench:
    """One log, and what is measured on it."""

    def __init__(self, folder: RunFolder, tasks: int, seconds: float) -> None:
        self._folder = folder
        self._seconds = seconds
        self._what = f"{tasks:,} tasks"

    def _words(self) -> tuple[object, ...]:
        return self._folder.run_id, "--runs-dir", self._folder.path.parent

    def start(self) -> list[Row]:
        """Process start to first paint, and to a whole Run screen."""
        first, whole, cpu = [], [], []
        for _ in range(STARTS + 1):
            with screen(*self._words()) as seen:
                first.append(seen.until(self._folder.run_id.encode()))
                whole.append(seen.settled())
                cpu.append(seen.cpu_s())
        # the first start has read and compiled what the others find
        first, whole, cpu = first[1:], whole[1:], cpu[1:]
        median = statistics.median(first)
        return [
            most("tui", f"start to first paint, {self._what}, median s", median, 0.5),
            shown("start to first paint, worst s", max(first), "tui"),
            most("tui", "start to whole Run screen, median s", _median(whole), 0.7),
            shown("start to whole Run screen, worst s", max(whole), "tui"),
            shown("of it processor, median s", _median(cpu), "tui"),
        ]

    def keys(self) -> list[Row]:
        """Keys in Tasks, from the key to the last byte of the frame."""
        with screen(*self._words()) as seen:
            self._to_tasks(seen)
            steps = [seen.keyed("j") for _ in range(KEYS)]
            pages = [seen.keyed(key) for _ in range(KEYS // 4) for key in "\x04\x04Gg"]
            seen.keyed("/")
            seen.type("state:faile")
            seen.settled()
            began = seen.type("d")
            found_ms = (seen.until(FAR_FAILED) - began) * 1000
        return [
            shown("key to paint in Tasks, one row, p50 ms", _median(steps), "tui"),
            most("tui", "key to paint in Tasks, one row, p95 ms", _p95(steps), 50),
            shown("key to paint in Tasks, pages and ends, p50 ms", _median(pages)),
            most(
                "tui", "key to paint in Tasks, pages and ends, p95 ms", _p95(pages), 40
            ),
            most("tui", "filter: last key to first page, ms", found_ms, 250),
        ]

    def _to_tasks(self, seen: Screen) -> None:
        seen.until(self._folder.run_id.encode())
        seen.settled()
        seen.type("t")
        seen.until(b"TASKS ")
        seen.settled()

    def live(self) -> list[Row]:
        """Cost while a writer appends, and while nothing changes."""
        rows = []
        for columns, lines in ((120, 40), (80, 24)):
            size = f"{columns}x{lines}"
            with screen(*self._words(), columns=columns, lines=lines) as seen:
                seen.until(self._folder.run_id.encode())
                with self._writing(RATE, self._seconds * 2.5):
                    seen.watched(2.0)
                    cpu_2, bytes_2 = seen.watched(self._seconds)
                    seen.type("+")
                    seen.watched(0.5)
                    cpu_4, bytes_4 = seen.watched(self._seconds)
                seen.type("-")
                seen.watched(2.0)
                cpu_0, bytes_0 = seen.watched(self._seconds)
            rows += [
                most("tui", f"CPU at 1,000 events/s, 2 Hz, {size}, %", cpu_2 * 100, 5),
                most("tui", f"CPU at 1,000 events/s, 4 Hz, {size}, %", cpu_4 * 100, 8),
                most("tui", f"CPU idle, 2 Hz, {size}, %", cpu_0 * 100, 0.6),
                most(
                    "tui", f"to the terminal, 2 Hz, {size}, KiB/s", bytes_2 / 1024, 25
                ),
                shown(f"to the terminal, 4 Hz, {size}, KiB/s", bytes_4 / 1024, "tui"),
                shown(f"to the terminal, idle, {size}, KiB/s", bytes_0 / 1024, "tui"),
            ]
        return rows

    def handlers(self) -> list[Row]:
        """How long the loop was ever held, beside a writer."""
        with tempfile.TemporaryDirectory() as name:
            path = Path(name, "taken.json")
            with (
                self._writing(RATE, self._seconds + 2 * ENDS_S),
                screen(path, *self._words(), command=TIMED) as seen,
            ):
                seen.watched(self._seconds + 2 * ENDS_S)
                seen.left()
            taken, worked = zip(*json.loads(path.read_bytes()), strict=True)
        return [
            shown("a step of the loop, p50 ms", _median(taken), "tui"),
            most("tui", "a step of the loop, p99 ms", _p99(taken), 8),
            shown("of it processor, p99 ms", _p99(worked), "tui"),
            most("tui", "a step of the loop, longest ms", max(taken), 50),
        ]

    def memory(self) -> list[Row]:
        """Memory at the start, after looking for a while, and after many jumps."""
        with screen(*self._words()) as seen:
            seen.until(self._folder.run_id.encode())
            seen.settled()
            at_start = seen.rss_mib()
            with self._writing(RATE, self._seconds):
                seen.type("+")
                seen.watched(self._seconds)
            looked = seen.rss_mib()
            seen.type("t")
            seen.until(b"TASKS ")
            for _ in range(JUMPS // 2):
                for key in "Gg":
                    seen.type(key)
                    seen.watched(0.03)
            jumped = seen.rss_mib()
        return [
            shown("memory at the start, MiB", at_start, "tui"),
            shown(
                f"after {self._seconds * 4:.0f} looks beside a writer", looked, "tui"
            ),
            most("tui", f"after {JUMPS} jumps in Tasks, MiB", jumped, 120),
        ]

    def writer(self) -> list[Row]:
        """What monitors cost the writer: none, one and five of them."""
        rates: dict[int, list[float]] = {0: [], 1: [], 5: []}
        waits: dict[int, list[float]] = {0: [], 1: [], 5: []}
        wal: dict[int, float] = {}
        for _ in range(3):
            for count, each in rates.items():
                free, paced = self._beside(count, 0), self._beside(count, RATE)
                each.append(free["events_per_s"])
                waits[count].append(paced["ack_50_ms"])
                seen = max(free["wal_mib"], paced["wal_mib"])
                wal[count] = max(wal.get(count, 0), seen)
        rate = {count: _median(values) for count, values in rates.items()}
        wait = {count: _median(values) for count, values in waits.items()}
        return [
            shown("events/s, as many as go, unwatched", rate[0], "tui"),
            least(
                "tui", "the same with one monitor / without", rate[1] / rate[0], 0.99
            ),
            shown("the same with five monitors / without", rate[5] / rate[0], "tui"),
            shown("an append at 1,000/s, unwatched, p50 ms", wait[0], "tui"),
            shown("the same with one monitor / without", wait[1] / wait[0], "tui"),
            shown("the same with five monitors / without", wait[5] / wait[0], "tui"),
            shown("largest WAL, unwatched, MiB", wal[0], "tui"),
            most(
                "tui", "largest WAL with five monitors / without", wal[5] / wal[0], 1.5
            ),
        ]

    def _beside(self, monitors: int, rate: float) -> dict[str, float]:
        """How a writer fares while so many watch it."""
        with ExitStack() as stack:
            for _ in range(monitors):
                seen = stack.enter_context(screen(*self._words()))
                seen.until(self._folder.run_id.encode())
                seen.drained()
            process = self._start(rate, self._seconds / 2)
            return _said(process)

    @contextmanager
    def _writing(self, rate: float, seconds: float) -> Iterator[None]:
        process = self._start(rate, seconds)
        try:
            yield
        finally:
            _said(process)

    def _start(self, rate: float, seconds: float) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "tests.bench.live_writer"),
                *(str(self._folder.log), str(rate), str(seconds)),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        if process.stdout is None or process.stdout.readline() != "ready\n":
            raise RuntimeError("the writer did not come up")
        return process


def _said(process: subprocess.Popen[str]) -> dict[str, float]:
    said: dict[str, float] = json.loads(process.communicate()[0])
    return said


def _median(values: Sequence[float]) -> float:
    return statistics.median(values)


def _p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20)[18]


def _p99(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=100)[98]
