"""Checking recorded runs with today's code: `siftlog regress`.

Answers a second are of two processors that do nothing else: twice the answers over the
processor seconds of all processes, start included. Imported decisions, which have no
prompts, are parsed and scored; a run's own answers are also planned, and their requests
built and hashed again. Both are compared with a bare loop over the answers by the same
functions of the job, and nothing else: what no check can do without.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from runner.clients.wire_shared import skeleton
from runner.plan import reply_of, stage_of, task_of
from runner.score.repeat import ScoringBasis, rescorer
from store.runs import RunFolder
from store.scoring import families
from store.tables import last_seq
from tests.bench.prose import prose
from tests.bench.row import Row
from tests.bench.screening_decisions import _run, _sheet, _write
from tests.bench.verdict import least, shown
from tests.processes import SIFTLOG

TARGET = "regress"
PROCESSORS = 2
ABSTRACT = 1_500
"""Bytes of a record to screen."""


def measure(quick: bool) -> list[Row]:
    """Two kinds of runs, each in a folder of its own."""
    imported, called = (20_000, 2_000) if quick else (200_000, 60_000)
    return [*_imported(imported, None if quick else 30_000), *_called(called)]


def _imported(n: int, goal: float | None) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name:
        cwd = Path(name)
        _write(cwd / "decisions.csv", _sheet(n))
        _do(cwd, "import screening --decisions decisions.csv --run-id r --no-report")
        rate, peak = _rate(cwd, n)
        bare = _bare_rate(cwd, n)
    what = f"{n:,} imported decisions, without prompts"
    yield least(TARGET, f"{what}, a second", rate, goal)
    yield shown(f"{what}: of the rate of a bare loop", rate / bare, TARGET)
    yield shown(f"{what}: peak memory of a process, MB", peak, TARGET)


def _called(n: int) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name:
        cwd = Path(name)
        with (cwd / "library.ris").open("w", encoding="utf-8") as file:
            for number in range(n):
                text = prose(ABSTRACT, number).decode()
                file.write(f"TY  - JOUR\nTI  - {text[:90]}\nAB  - {text[90:]}\n")
                file.write(f"AN  - {10_000_000 + number}\nER  - \n\n")
        _do(cwd, "run screening --library library.ris --question Q --run-id r "
                 "--no-report")  # fmt: skip
        rate, peak = _rate(cwd, n)
        bare = _bare_rate(cwd, n)
    what = f"{n:,} answers with prompts of {ABSTRACT / 1000} KB"
    yield shown(f"{what}, a second", rate, TARGET)
    yield shown(f"{what}: of the rate of a bare loop", rate / bare, TARGET)
    yield shown(f"{what}: peak memory of a process, MB", peak, TARGET)


def _do(cwd: Path, line: str) -> None:
    silent = subprocess.DEVNULL
    subprocess.run(
        [SIFTLOG, *line.split()], cwd=cwd, check=True, stdout=silent, stderr=silent
    )


def _rate(cwd: Path, n: int) -> tuple[float, float]:
    """Return answers a second of two processors, and the peak of one process."""
    cpu_s, peak = _run(cwd, "regress", "--processes", str(PROCESSORS))
    return PROCESSORS * n / cpu_s, peak


def _bare_rate(cwd: Path, n: int) -> float:
    """Return answers a second of two processors that load, ask and parse alone."""
    before = time.process_time()
    with rescorer(RunFolder(cwd / "runs" / "r")) as run:
        started, job = run.started, run.job
        settings = json.loads(started.settings)
        basis = ScoringBasis(settings=settings, inputs=tuple(started.inputs), seq=0)
        dataset = job.load(run.placed(basis))
        for row, stored in families(run.reader, last_seq(run.reader)):
            task = task_of(row)
            if not started.imported:
                skeleton(job.request(dataset, task), row.model)
            if stored is not None:
                stage_of(job, row.stage).parse(dataset, task, reply_of(stored))
    return PROCESSORS * n / (time.process_time() - before)
