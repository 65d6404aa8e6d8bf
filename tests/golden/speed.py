"""CPU time of what a redrawn house must not make slower, of one tree or of two.

Commands are executed one after another, the trees in turn (A B, B A, ...), and CPU time
of user and system is taken instead of the time on the clock: other work on the machine
then changes little. A ratio is the median of the ratios of neighbours, with the
quartiles around it; 1.03 is 3 % more work than before.
"""

from __future__ import annotations

import os
import shutil
import signal
import statistics
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.golden.taking import Tree

JOB = "paper-investigation"
REPLICATES = 25
"""Times the sample is asked: 98 calls each."""
MODEL = "--model some-model --price 0,0"
QUIET = "--no-score --no-report"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One figure: CPU seconds of a command, divided by what it did."""

    name: str
    unit: str
    scale: float  #: from seconds to the unit
    rounds: int
    command: Callable[[Tree, Path], float]  #: CPU seconds, with a fresh folder


@dataclass(slots=True)
class Series:
    """Figures of one measure, of the trees in turn."""

    measure: Measure
    values: list[list[float]] = field(default_factory=list)

    def row(self) -> tuple[str, ...]:
        """Cells of the table: name, a figure for each tree, the ratio."""
        own = self.measure
        cells = [
            f"{statistics.median(values) * own.scale:.3f}"
            for values in zip(*self.values, strict=True)
        ]
        row = (own.name, own.unit, *cells)
        if len(cells) == 1:
            return (*row, str(len(self.values)))
        ratios = sorted(second / first for first, second in self.values)
        low, middle, high = statistics.quantiles(ratios, n=4)
        return (*row, f"{middle:.3f} [{low:.3f}, {high:.3f}]", str(len(ratios)))


class Bench:
    """Commands on runs that are prepared once."""

    def __init__(self, work: Path, url: str) -> None:
        self.work = work
        self.url = url
        self._count = 0

    def folder(self) -> Path:
        """A fresh folder."""
        self._count += 1
        made = self.work / f"{self._count:04}"
        made.mkdir()
        return made

    def prepare(self, tree: Tree) -> None:
        """Record the runs that are read: a finished one, and one that was drained."""
        long = f"run {JOB} --run-id long {MODEL} --base-url {self.url} {QUIET}"
        self._do(tree, f"{long} --replicates {REPLICATES}", self.work)
        short = f"run {JOB} --run-id short {MODEL} --base-url {self.url} {QUIET}"
        self._do(tree, short, self.work)
        begun = f"run {JOB} --run-id begun {MODEL} {QUIET} --replicates {REPLICATES}"
        with first_call() as (address, called):
            process = _start(tree, f"{begun} --base-url {address}", self.work)
            called.wait(60)
            process.send_signal(signal.SIGKILL)
            process.wait()

    def measures(self, rounds: int) -> Iterator[Measure]:
        """Everything that is measured."""
        calls = 98 * (REPLICATES - 1)
        yield Measure(
            name="CPU of a call",
            unit="ms",
            scale=1000 / calls,
            rounds=max(3, rounds // 3),
            command=self._of_calls,
        )
        yield Measure(
            name="replay of an answer",
            unit="ms",
            scale=1000 / calls,
            rounds=max(3, rounds // 2),
            command=self._of_answers,
        )
        yield Measure(
            name="until the first call of a resumed run",
            unit="s",
            scale=1,
            rounds=max(3, rounds // 2),
            command=self._of_resuming,
        )
        for line in ("--help", "jobs", "status long", "tasks long --limit 5"):
            yield Measure(
                name=line,
                unit="s",
                scale=1,
                rounds=rounds,
                command=lambda tree, _, line=line: self._do(tree, line, self.work),
            )

    def _of_calls(self, tree: Tree, folder: Path) -> float:
        line = f"run {JOB} {MODEL} --base-url {self.url} {QUIET} --concurrency 32"
        few = self._do(tree, f"{line} --run-id few", folder)
        many = self._do(tree, f"{line} --run-id many --replicates {REPLICATES}", folder)
        return many - few

    def _of_answers(self, tree: Tree, _: Path) -> float:
        score = "--no-report --no-record --boot-b 0"
        long = self._do(tree, f"score long {score}", self.work)
        return long - self._do(tree, f"score short {score}", self.work)

    def _of_resuming(self, tree: Tree, folder: Path) -> float:
        shutil.copytree(self.work / "runs" / "begun", folder / "runs" / "begun")
        with first_call() as (address, called):
            line = f"resume begun {QUIET} --base-url {address}"
            process = _start(tree, line, folder)
            if not called.wait(60):
                raise RuntimeError(f"{line}: no call was made")
            spent = _cpu_of(process.pid)
            process.send_signal(signal.SIGKILL)
            process.wait()
        return spent

    @staticmethod
    def _do(tree: Tree, line: str, folder: Path) -> float:
        process = _start(tree, line, folder)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in {0, 3}:
            raise RuntimeError(f"siftlog {line}: exit code {process.returncode}")
        return used.ru_utime + used.ru_stime


def _start(tree: Tree, line: str, folder: Path) -> subprocess.Popen[bytes]:
    variables = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "LC_ALL": "C.UTF-8",
        "PYTHONHASHSEED": "0",
        "OPENBLAS_NUM_THREADS": "1",
    }
    return subprocess.Popen(
        [tree.python.with_name("siftlog"), *line.split()],
        cwd=folder,
        env=variables,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _cpu_of(pid: int) -> float:
    """CPU seconds of all threads of a living process, to the nanosecond."""
    tasks = Path("/proc", str(pid), "task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


@contextmanager
def first_call() -> Iterator[tuple[str, threading.Event]]:
    """An endpoint that answers nothing, and an event that a request sets."""
    called, released = threading.Event(), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            called.set()
            released.wait()

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", called
    finally:
        released.set()
        server.shutdown()
        server.server_close()


@contextmanager
def endpoint(tree: Tree, folder: Path) -> Iterator[str]:
    """A simulated endpoint without faults or latency; its address."""
    process = subprocess.Popen(
        [tree.python.with_name("siftlog"), "simulate", "--job", JOB],
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait()


def measure(
    trees: Sequence[Tree], *, rounds: int, only: Sequence[str]
) -> Iterator[Series]:
    """Measure one tree or two, in turn."""
    with tempfile.TemporaryDirectory(prefix="siftlog-speed-") as temporary:
        work = Path(temporary)
        with endpoint(trees[0], work) as url:
            bench = Bench(work, url)
            bench.prepare(trees[0])
            for each in bench.measures(rounds):
                if only and not any(word in each.name for word in only):
                    continue
                yield _measured(each, trees, bench)


def _measured(each: Measure, trees: Sequence[Tree], bench: Bench) -> Series:
    series = Series(each)
    for tree in trees:  # compiles what is not compiled yet
        each.command(tree, bench.folder())
    for number in range(each.rounds):
        order = list(enumerate(trees))
        if number % 2:
            order.reverse()
        values = {at: each.command(tree, bench.folder()) for at, tree in order}
        series.values.append([values[at] for at in range(len(trees))])
    return series


def table(found: Sequence[Series], names: Sequence[str]) -> str:
    """The figures as aligned text."""
    heads = ("measure", "unit", *names)
    heads += ("ratio [quartiles]", "n") if len(names) > 1 else ("n",)
    rows = [heads, *(series.row() for series in found)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    )
    return "".join(f"{line.rstrip()}\n" for line in lines)
