"""A run that finds all its answers in the response cache, with follow-ups.

Over the same corpus as other benches; a first run fills the cache, over loopback HTTP.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from store.database import open_reader
from store.events import AttemptAnswered
from store.read.tasks import events
from store.tables import last_seq
from tests.bench.row import Row
from tests.corpus import write_corpus
from tests.processes import SIFTLOG, simulated

GOAL = 2000


def measure(quick: bool) -> list[Row]:
    """Hits a second, and the memory of the run beside that of the one that asked."""
    with tempfile.TemporaryDirectory() as name:
        cwd = Path(name)
        corpus = write_corpus(cwd / "corpus", 200 if quick else 3000)
        with simulated("--job", "paper-investigation", cwd=cwd) as url:
            asked_mb = _run(cwd, corpus, url, "asked")
            found_mb = _run(cwd, corpus, url, "found")
        hits, per_s = _rate(cwd / "runs/found/log.db")
    return [
        Row(
            target="cache",
            what=f"answers from the cache a second, of {hits:,}",
            value=per_s,
            goal=f">= {GOAL:,}",
            met=per_s >= GOAL,
        ),
        Row(
            target="cache",
            what="peak memory of that run / of the run that asked",
            value=found_mb / asked_mb,
            goal="<= 1.1",
            met=found_mb / asked_mb <= 1.1,
        ),
    ]


def _run(cwd: Path, corpus: list[str], url: str, run: str) -> float:
    """Peak MiB of one run with the cache."""
    process = subprocess.Popen(
        [
            *(SIFTLOG, "generate", "paper-investigation", *corpus),
            *("--model=x", f"--base-url={url}", f"--run-id={run}"),
            *("--cache", "--cache-dir=caches", "--price=0.15,0.60"),
        ],
        cwd=cwd,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"siftlog ended with {process.returncode}")
    return usage.ru_maxrss / 1024


def _rate(log: Path) -> tuple[int, float]:
    """Answers that were found, and how many a second from the first event on."""
    with open_reader(log) as reader:
        (first,) = events(reader, limit=1)
        answers = events(reader, limit=last_seq(reader), kinds=["attempt_answered"])
    found = [
        answer.ts_us
        for answer in answers
        if isinstance(answer.event, AttemptAnswered) and answer.event.cached
    ]
    if len(found) != len(answers):
        raise RuntimeError(f"{len(answers) - len(found)} answers were asked for")
    return len(found), len(found) / ((found[-1] - first.ts_us) / 1e6)
