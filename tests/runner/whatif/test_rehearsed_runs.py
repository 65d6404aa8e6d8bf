"""What-ifs against real runs: recorded once, played again otherwise, then run so.

The real command against the real loopback endpoint. How long a real run takes is the
machine's affair too: SIFTLOG_PROVE makes the runs long enough (some 20 s each) for a
tolerance of a tenth, and adds cases. Otherwise they are short, and compared with what
no machine can do them faster than; what is foretold exactly, on a virtual clock, is
`test_simulation_of_runs.py`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from store.database import open_reader
from store.read.status import status
from store.read.tasks import events
from store.runs import RunFolder
from store.tables import last_seq
from tests.corpus import write_corpus
from tests.processes import siftlog, simulated

JOB = "paper-investigation"
PROVE = "SIFTLOG_PROVE" in os.environ
PAPERS = 130 if PROVE else 5
TOLERANCE = 0.1

LATENCIES = ("--latency-ms=500", "--jitter-ms=400")
RATE = ("--latency-ms=100", "--jitter-ms=100", "--rps=50")

#: What the server does, how the run is recorded, and what is tried instead.
CASES = {
    "more calls at a time": (LATENCIES, ("--concurrency=16",), ("--concurrency=32",)),
    "a limit by hand": (
        LATENCIES,
        ("--concurrency=16",),
        ("--concurrency=128", "--rpm=2400"),
    ),
    "a server that refuses": (RATE, ("--concurrency=12",), ("--concurrency=48",)),
}
MORE = {
    "fewer calls at a time": (LATENCIES, ("--concurrency=64",), ("--concurrency=24",)),
    "below what it refuses": (
        RATE,
        ("--concurrency=32",),
        ("--concurrency=32", "--rpm=2400"),
    ),
}
if PROVE:
    CASES |= MORE


def _seconds(folder: RunFolder) -> float:
    """From the first call to the last event that is about a task."""
    with open_reader(folder.log) as reader:
        (first,) = events(reader, kinds=["attempt_started"], limit=1)
        last = events(reader, after=last_seq(reader) - 200, kinds=["task_completed"])
    return (last[-1].ts_us - first.ts_us) / 1e6


def _least_s(server: tuple[str, ...], tried: tuple[str, ...], calls: int) -> float:
    """What so many calls take, all of the slots being in use all the time."""
    latency_ms, slots = (float(words[0].split("=")[1]) for words in (server, tried))
    return calls * latency_ms / 1000 / slots


@pytest.mark.timeout(300)
@pytest.mark.parametrize("case", CASES)
def test_the_duration_of_a_run_is_foretold(tmp_path: Path, case: str) -> None:
    server, recorded, tried = CASES[case]
    words = [*write_corpus(tmp_path / "corpus", PAPERS), "--model=openai/m"]
    words += ["--price=0,0"]
    with simulated("--job", JOB, *server, cwd=tmp_path) as url:
        words.append(f"--base-url={url}")
        siftlog("generate", JOB, *words, *recorded, "--run-id=then", cwd=tmp_path)
        shown = siftlog("estimate", "--from=then", *tried, "--json", cwd=tmp_path)
        siftlog("generate", JOB, *words, *tried, "--run-id=now", cwd=tmp_path)
    foretold = json.loads(shown.stdout)
    now = RunFolder(tmp_path / "runs" / "now")
    with open_reader(now.log) as reader:
        attempts = status(reader).attempts
    took_s = _seconds(now)
    if PROVE:
        assert foretold["seconds"] == pytest.approx(took_s, rel=TOLERANCE)
    assert min(foretold["seconds"], took_s) >= _least_s(
        server, tried, attempts.answered
    )
    assert foretold["models"]["openai/m"]["answered"] == attempts.answered
