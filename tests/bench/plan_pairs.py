"""Ten thousand pairs of names to verify: planned, killed half-way, and resumed.

The offline baseline answers, so what is measured is the plan, the log and the scoring.
Seconds are of the processor, of whole processes.
"""

from __future__ import annotations

import csv
import os
import subprocess
import tempfile
import time
from pathlib import Path

from tests.bench.properties import names
from tests.bench.row import Row
from tests.bench.verdict import most, shown
from tests.processes import SIFTLOG, environment, status, until

TARGET = "properties"
CONCURRENCY = 256
"""Calls at a time, the command's default: most that a crash can leave unanswered."""


def measure(quick: bool) -> list[Row]:
    """One run as it is, and one that is killed when half of it is done."""
    n = 1_000 if quick else 10_000
    with tempfile.TemporaryDirectory() as name:
        cwd = Path(name)
        candidates = cwd / "candidates.csv"
        _write(candidates, n)
        words = (
            *("run", "property-extraction", "--mode=verify", "--candidates"),
            *(candidates, "--model=baseline/lexical"),
        )
        whole = _seconds(cwd, *words, "--run-id=whole")
        began = time.perf_counter()
        killed = _started(cwd, *words, "--run-id=killed")
        until(cwd, "killed", lambda seen: bool(seen["planning_exhausted"]))
        planned = time.perf_counter() - began
        until(cwd, "killed", lambda seen: 2 * int(seen["tasks"]["completed"]) >= n)
        killed.kill()
        killed.wait()
        left = n - int(status(cwd, "killed")["tasks"]["completed"])
        resumed = _seconds(cwd, "resume", "killed")
        told = status(cwd, "killed")
        same = _verdicts(cwd, "killed") == _verdicts(cwd, "whole")
    if told["tasks"]["completed"] != n or not same:
        raise RuntimeError("the resumed run is not the whole one")
    asked = int(told["attempts"]["started"]) - n
    return [
        shown(f"{n:,} pairs of names verified and scored, s", whole, TARGET),
        shown(f"all {n:,} pairs planned after, s", planned, TARGET),
        shown(f"killed with {left:,} to do, resumed and scored, s", resumed, TARGET),
        most(TARGET, "pairs asked twice", asked, CONCURRENCY),
    ]


def _write(path: Path, n: int) -> None:
    with path.open("w", encoding="utf-8", newline="") as lines:
        rows = csv.writer(lines)
        rows.writerow(("pred_name", "gt_name", "count", "avg_sim"))
        rows.writerows(
            zip(names(n, 1), names(n, 2), ["1"] * n, ["0.5"] * n, strict=True)
        )


def _started(cwd: Path, *words: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [SIFTLOG, *map(str, words)],
        cwd=cwd,
        env=environment(None),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _seconds(cwd: Path, *words: object) -> float:
    process = _started(cwd, *words)
    _, code, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(code)
    if process.returncode:
        raise RuntimeError(f"siftlog {words[0]} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def _verdicts(cwd: Path, run: str) -> dict[str, bytes]:
    """The tables of verdicts of a run's last scoring."""
    found = sorted((cwd / "runs" / run / "scores").glob("*/*.csv"))
    return {path.name: path.read_bytes() for path in found}
