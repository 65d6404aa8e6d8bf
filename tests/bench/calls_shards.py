"""The same run by one process and by several shards of this machine.

As many calls are in flight in all, however the run is split. Client and server share
the processors, so a rate says what they do together, and beside other work more
processes get a larger share of it. What a call costs the shards in processor time,
starting them included, and what memory they hold at a time are their own.
"""

from __future__ import annotations

import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

from store.database import open_reader
from store.read.tasks import events
from store.runs import RunFolder
from tests.bench.calls_per_second import serving
from tests.bench.row import Row
from tests.bench.siftlog_run import command, papers
from tests.bench.steady import steady_per_s
from tests.bench.verdict import least, shown

IN_FLIGHT = 64
"""Calls at a time, of all shards together."""
SAMPLE_S = 0.1
"""Between two looks at what memory is held."""
SPLIT = (1, 2, 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Split:
    """What so many processes did together."""

    calls_per_s: float  #: once under way, see `steady`
    cpu_ms: float  #: of them all, per call
    peak_mb: float  #: proportional share of memory, of them all at a time


def measure(quick: bool) -> list[Row]:
    """Plain shards and placed ones, waiting for replies and at full speed."""
    calls = 2_000 if quick else 6_000
    rows = []
    for latency_ms, at in ((50, "at 50 ms"), (0, "at full speed")):
        with serving(latency_ms) as base_url:
            plain = {count: _plain(base_url, calls, count) for count in SPLIT}
            placed = _placed(base_url, calls, 4) if latency_ms else None
        for count, split in plain.items():
            rows += _shown(f"{count} x {IN_FLIGHT // count} in flight {at}", split)
        for count in SPLIT[1:]:
            ratio = plain[count].calls_per_s / plain[1].calls_per_s
            what = f"{count} shards / one process {at}"
            rows.append(least("shards", what, ratio, 0.9 if latency_ms else None))
        if placed is not None:
            what = f"4 x {IN_FLIGHT // 4} placed by --engine processes {at}"
            rows += _shown(what, placed)
            ratio = placed.calls_per_s / plain[1].calls_per_s
            rows.append(least("shards", f"4 placed / one process {at}", ratio, 0.9))
    return rows


def _shown(what: str, split: _Split) -> list[Row]:
    return [
        shown(f"{what}: calls/s", split.calls_per_s, "calls/s"),
        shown(f"{what}: CPU ms a call", split.cpu_ms),
        shown(f"{what}: peak memory of all (PSS), MB", split.peak_mb),
    ]


def _plain(base_url: str, calls: int, count: int) -> _Split:
    """Processes that know nothing of one another; one: no shard at all."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        concurrency = IN_FLIGHT // count
        if count == 1:
            commands = [_words("generate", folder, base_url, calls, concurrency)]
        else:
            words = _words("run", folder, base_url, calls, concurrency)
            commands = [[*words, f"--shard={i}/{count}"] for i in range(count)]
        return _figures(folder, commands, calls)


def _placed(base_url: str, calls: int, count: int) -> _Split:
    """The shards of a driver, which lends them what they may send, and scores."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        words = _words("run", folder, base_url, calls, IN_FLIGHT)
        placing = ["--engine=processes", f"--shards={count}"]
        return _figures(folder, [[*words, *placing]], calls)


def _words(
    verb: str, folder: Path, base_url: str, calls: int, concurrency: int
) -> list[str]:
    made = papers(folder, calls)
    return [*command(verb, folder, base_url, made, concurrency), "--rate-share=1"]


def _figures(folder: Path, commands: list[list[str]], calls: int) -> _Split:
    before = getrusage(RUSAGE_CHILDREN)
    processes = [
        subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        for words in commands
    ]
    with _peak_of([process.pid for process in processes]) as peak:
        for process in processes:
            _, said = process.communicate()
            if process.returncode != 0:
                raise RuntimeError(
                    f"siftlog ended with {process.returncode}: {said.decode()}"
                )
    after = getrusage(RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return _Split(
        calls_per_s=steady_per_s(
            _answered_s(RunFolder(folder / "bench"), calls), IN_FLIGHT
        ),
        cpu_ms=cpu_s / calls * 1000,
        peak_mb=max(peak),
    )


def _answered_s(folder: RunFolder, calls: int) -> list[float]:
    """When each call was answered, by any of the processes; ascending."""
    times: list[float] = []
    for part in folder.shards() or (folder,):
        with open_reader(part.log) as reader:
            found = events(reader, kinds=["attempt_answered"], limit=calls)
        times += [event.ts_us / 1e6 for event in found]
    if len(times) != calls:
        raise RuntimeError(f"{len(times)} of {calls} calls were answered")
    return sorted(times)


@contextmanager
def _peak_of(pids: list[int]) -> Iterator[list[float]]:
    """What processes and their children hold, in MB, looked at again and again."""
    held: list[float] = [0.0]
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(SAMPLE_S):
            held.append(sum(map(_held_mb, pids)))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield held
    finally:
        ended.set()
        thread.join()


def _held_mb(pid: int) -> float:
    """The proportional share of a process and its children; 0 once it has ended."""
    own = Path("/proc", str(pid))
    try:
        rollup = (own / "smaps_rollup").read_text().splitlines()
        # those that any of its threads has started
        children = [
            int(child)
            for started in own.glob("task/*/children")
            for child in started.read_text().split()
        ]
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    kb = sum(int(line.split()[1]) for line in rollup if line.startswith("Pss:"))
    return kb / 1024 + sum(map(_held_mb, children))
