"""Predictions made elsewhere: a million rows imported by the command itself.

Seconds are of the processor, of the whole process, its start included. Beside them
stands what the same rows take in one plain table of SQLite.
"""

from __future__ import annotations

import csv
import os
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from tests.bench.properties import PER_PAPER, PREDICTIONS, STATED, Papers
from tests.bench.row import Row
from tests.bench.verdict import shown
from tests.processes import SIFTLOG

TARGET = "properties"
BLOCK = 1_000
"""Rows that the plain way commits at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a process took."""

    seconds: float  #: of the processor
    peak_mb: float
    log_mb: float


def measure(quick: bool) -> list[Row]:
    """At two sizes, to see how time and memory grow."""
    few, many = (166, 1_666) if quick else (1_666, 16_666)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        small = _import(folder / "few", few)
        large = _import(folder / "many", many)
        plain = _plain(folder / "many")
    n = many * PER_PAPER * STATED
    what = f"{n:,} predicted rows imported"
    return [
        shown(f"{what}, s", large.seconds, TARGET),
        shown("the same rows in a plain table, s", plain, TARGET),
        shown("peak memory, MB", large.peak_mb, TARGET),
        shown("log, MB", large.log_mb, TARGET),
        shown("time, of that for a tenth", large.seconds / small.seconds, TARGET),
        shown("memory, of that for a tenth", large.peak_mb / small.peak_mb, TARGET),
    ]


def _import(folder: Path, papers: int) -> Cost:
    folder.mkdir()
    files = Papers(papers).write(folder)
    process = subprocess.Popen(
        [
            *(SIFTLOG, "import", "property-extraction", "--no-score"),
            *_named(files),
            *("--runs-dir", folder, "--run-id", "r"),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, code, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(code)
    if process.returncode:
        raise RuntimeError(f"the import ended with {process.returncode}")
    return Cost(
        seconds=usage.ru_utime + usage.ru_stime,
        peak_mb=usage.ru_maxrss / 1024,
        log_mb=(folder / "r" / "log.db").stat().st_size / 1e6,
    )


def _named(files: Mapping[str, Path]) -> list[str]:
    return [word for name, path in files.items() for word in (f"--{name}", str(path))]


def _plain(folder: Path) -> float:
    """Seconds of the processor for reading the file and storing its cells."""
    began = time.process_time()
    marks = ", ".join("?" * len(PREDICTIONS))
    with (
        closing(sqlite3.connect(folder / "plain.db")) as connection,
        (folder / "predictions.csv").open(encoding="utf-8", newline="") as lines,
    ):
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"CREATE TABLE row({', '.join(PREDICTIONS)})")
        rows = csv.reader(lines)
        while block := list(islice(rows, BLOCK)):
            with connection:
                connection.executemany(f"INSERT INTO row VALUES ({marks})", block)
    return time.process_time() - began
