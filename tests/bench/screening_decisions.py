"""Screening decisions by the million: measuring them, and recording those of others.

Seconds are the processor's; only recording waits, for the disk. A tenth
of the records are included papers, the others near misses and random papers in turn;
confidences have two decimals, as models write them, so that there are many ties.
"""

from __future__ import annotations

import asyncio
import csv
import os
import resource
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

import numpy as np

from jobs.kit.metrics.columns import Floats
from jobs.screening.decisions import (
    EXCLUDE,
    INCLUDE,
    Decisions,
    Records,
    ScreeningPredictions,
)
from jobs.screening.inputs import ScreeningDataset
from jobs.screening.job import job
from jobs.screening.results import measure_decisions
from jobs.screening.settings import ScreeningSettings
from runner.imported_answers import AnswerSpool, census, write_answers
from runner.plan import BLOCK
from runner.workload import load_workload
from store.clock import SystemClock
from store.log.sqlite import SqliteLog
from tests.bench.row import Row
from tests.bench.verdict import least, most, shown
from tests.processes import SIFTLOG

PER_REVIEW = 1_000
INCLUDED = 100
LOOPED = 10
"""Replicates that are drawn row by row; the rest in a straight line."""


def measure(quick: bool) -> list[Row]:
    """Measuring, then recording: a process's peak memory never falls."""
    scored, recorded = (100_000, 10_000) if quick else (1_000_000, 100_000)
    return [*_measuring(scored), *_recording(recorded), *_scoring(recorded)]


def _measuring(n: int) -> Iterator[Row]:
    settings = ScreeningSettings()
    sheet = _sheet(n)
    seconds = _timed(
        lambda: measure_decisions(ScreeningDataset(settings=settings), sheet)
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    what = f"{n:,} decisions, {settings.boot_b:,} replicates"
    # of one stratum and two rates alone, where measuring has three and all of them
    looped = _timed(lambda: _row_by_row(sheet)) * settings.boot_b / LOOPED
    yield most("N12", f"{what}: measured, s", seconds, 10 * n / 1_000_000)
    yield shown(f"{what}: peak memory, MB", peak)
    yield least("N12", "two rates by drawing rows, times longer", looped / seconds, 1)


def _sheet(n: int) -> ScreeningPredictions:
    chance = np.random.default_rng(20260118)
    place = np.arange(n)
    label = (place % PER_REVIEW < INCLUDED).astype(np.int64)
    p: Floats = np.clip(chance.normal(0.3 + 0.3 * label, 0.25), 0, 1).round(2)
    outcome = np.where(p >= 0.5, INCLUDE, EXCLUDE)
    reviews = n // PER_REVIEW
    decisions = Decisions(
        model="a",
        outcome=outcome,
        p=p,
        stage=np.zeros(n, dtype=np.int64),
        ended=np.zeros(n, dtype=np.int64),
        latest=outcome,
        reason_code=["other"] * n,
        reason=[""] * n,
    )
    return ScreeningPredictions(
        records=Records(
            reviews=tuple(f"{at:06d}" for at in range(reviews)),
            papers=tuple(f"{at:08d}" for at in range(n)),
            review=place // PER_REVIEW,
            label=label,
            kinds=("included", "near-miss", "random"),
            kind=np.where(label == 1, 0, 1 + place % 2),
            reason_code=[""] * n,
        ),
        decisions=(decisions,),
        models=("a",),
    )


def _row_by_row(sheet: ScreeningPredictions) -> None:
    """What a bootstrap by review costs that draws the rows of the reviews."""
    records, own = sheet.records, sheet.decisions[0]
    chance = np.random.default_rng(20260118)
    rows = np.split(
        np.arange(len(records)), np.arange(PER_REVIEW, len(records), PER_REVIEW)
    )
    called = own.outcome == INCLUDE
    for _ in range(LOOPED):
        drawn = chance.integers(0, len(rows), len(rows))
        at = np.concatenate([rows[review] for review in drawn])
        is_included, is_called = records.label[at] == 1, called[at]
        np.mean(is_called[is_included])
        np.mean(~is_called[~is_included])


def _recording(n: int) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "decisions.csv")
        _write(path, _sheet(n))
        bare = _timed(lambda: _bare(path))
        seconds = _timed(lambda: asyncio.run(_import(path)))
        size = Path(folder, "log.db").stat().st_size
    what = f"{n:,} decisions imported"
    yield most("import", f"{what}, us each", seconds / n * 1e6, 35)
    yield shown(f"{what}, bytes each", size / n)
    yield shown(f"{what}, of bare rows in SQLite", seconds / bare)


def _scoring(n: int) -> Iterator[Row]:
    """Whole scorings of imported decisions without reports, each in its own process."""
    with tempfile.TemporaryDirectory() as folder:
        cwd = Path(folder)
        _write(cwd / "decisions.csv", _sheet(n))
        made = ("import", "screening", "--decisions", "decisions.csv", "--run-id", "r")
        _run(cwd, *made, "--no-score")
        cold, peak = _run(cwd, "score", "r", "--no-report")
        warm, _ = _run(cwd, "score", "r", "--no-report")
    what = f"{n:,} screening decisions scored"
    yield most("scoring", f"{what}: cold, us each", cold / n * 1e6, 10)
    yield most(
        "scoring", f"{what}: only the scorer changed, us each", warm / n * 1e6, 3
    )
    yield most("scoring", f"{what}: peak memory, MB", peak, 250)


def _run(cwd: Path, *words: str) -> tuple[float, float]:
    """Run a command; return the processor's seconds and the peak memory in MB."""
    silent = subprocess.DEVNULL
    with subprocess.Popen([SIFTLOG, *words], cwd=cwd, stdout=silent) as own:
        _, status, used = os.wait4(own.pid, 0)
        own.returncode = os.waitstatus_to_exitcode(status)
    if own.returncode:
        raise RuntimeError(f"siftlog {' '.join(words)} ended with {own.returncode}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def _write(path: Path, sheet: ScreeningPredictions) -> None:
    records, own = sheet.records, sheet.decisions[0]
    with path.open("w", encoding="utf-8", newline="") as lines:
        rows = csv.writer(lines)
        rows.writerow(
            ("review_pmid", "paper_pmid", "label", "kind", "decision", "confidence")
        )
        for at, paper in enumerate(records.papers):
            rows.writerow(
                (
                    records.reviews[records.review[at]],
                    paper,
                    records.label[at],
                    records.kinds[records.kind[at]],
                    "include" if own.outcome[at] == INCLUDE else "exclude",
                    own.p[at],
                )
            )


async def _import(path: Path) -> None:
    """As the command does it."""
    settings = ScreeningSettings(decisions=path)
    work = load_workload(job, settings)
    with AnswerSpool() as spool:
        answers = job.importer.read((), settings, model=None, form=None, replicates={})
        census(job, spool.fill(answers))
        async with await SqliteLog.create(
            path.with_name("log.db"),
            run_id="r",
            config_sha256=b"",
            clock=SystemClock(),
            owner="bench",
        ) as log:
            await write_answers(log, work, spool)


def _bare(path: Path) -> None:
    """The same rows in one plain table, committed as often: no events, no checks."""
    with (
        closing(sqlite3.connect(path.with_name("bare.db"))) as conn,
        path.open(encoding="utf-8", newline="") as lines,
    ):
        conn.execute("PRAGMA journal_mode = WAL")
        conn.execute("CREATE TABLE row(a, b, c, d, e, f)")
        rows = csv.reader(lines)
        while block := list(islice(rows, BLOCK)):
            with conn:
                conn.executemany("INSERT INTO row VALUES (?, ?, ?, ?, ?, ?)", block)


def _timed(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began
