"""Bundling a long run and verifying the bundle: seconds, megabytes, and their growth.

Each step is a process of its own. To make a bundle is to copy, pack, unpack and check a
log and to score it once more, so it is held against a verification of the log alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from store.runs import RunFolder
from tests.bench.long_log import EVENTS_A_TASK
from tests.bench.row import Row
from tests.bench.verdict import most, shown
from tests.plugging import ROOT, plugged
from tests.processes import SIFTLOG
from tests.store.samples import RUN_STARTED

SMALL, LARGE = 50_000, 1_000_000
"""Events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a process took, and the largest of those that it waited for."""

    seconds: float
    peak_mb: float


def measure(quick: bool) -> list[Row]:
    """All steps at two sizes."""
    events = LARGE // 10 if quick else LARGE
    with tempfile.TemporaryDirectory() as name:
        cwd = Path(name)
        job = {RUN_STARTED.job: "tests.bench.sample_job:job"}
        environment = os.environ | plugged(cwd / "plugins", **job)
        few, many = (
            _steps(cwd, environment, RunFolder(cwd / "runs" / str(count)), count)
            for count in (SMALL, events)
        )
        log, bundle = cwd / "runs" / str(events) / "log.db", cwd / f"{events}.zip"
        sizes = log.stat().st_size, bundle.stat().st_size
    of_log = many["verify log"].seconds
    rows = [
        shown(f"a log of {events:,} events, MB", sizes[0] / 1e6, "bundle"),
        shown("its bundle, MB", sizes[1] / 1e6, "bundle"),
        shown("the log verified, s", of_log, "bundle"),
        most("bundle", "bundled / that", many["bundle"].seconds / of_log, 3),
        most("bundle", "bundle verified / that", many["verify"].seconds / of_log, 2),
    ]
    for step in ("bundle", "verify"):
        peak = many[step].peak_mb
        rows += [
            shown(f"{step}, MB at its peak", peak, "bundle"),
            most(
                "bundle", f"the same / {SMALL:,} events", peak / few[step].peak_mb, 1.5
            ),
        ]
    return rows


def _steps(
    cwd: Path, environment: dict[str, str], folder: RunFolder, events: int
) -> dict[str, Cost]:
    # by another process: a child's peak begins at that of who starts it
    tasks = str(events // EVENTS_A_TASK)
    words = (
        sys.executable,
        "-m",
        "tests.bench.long_log",
        folder.path,
        "--tasks",
        tasks,
    )
    subprocess.run(words, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    out = f"{events}.zip"
    steps = {
        "score": ("score", folder.path, "--no-report"),
        "verify log": ("verify", folder.path),
        "bundle": ("bundle", folder.path, "--no-report", "--out", out),
        "verify": ("verify", out),
    }
    return {step: _run(cwd, environment, *typed) for step, typed in steps.items()}


def _run(cwd: Path, environment: dict[str, str], *words: object) -> Cost:
    """One command to its end."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [SIFTLOG, *map(str, words)], cwd=cwd, env=environment, stdout=subprocess.DEVNULL
    )
    _, code, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(code)
    if process.returncode:
        raise RuntimeError(f"siftlog {words[0]} ended with {process.returncode}")
    return Cost(seconds=time.perf_counter() - began, peak_mb=usage.ru_maxrss / 1024)
