"""kill -9 of the real process, from outside, at any moment: nothing is paid twice.

The endpoint is the project's own and keeps a ledger of what it served; the two books
are compared after every kill. The short form runs in `make test`, the counts of the
promise (5,000 tasks, 50 kills) in `make prove`.
"""

from __future__ import annotations

import hashlib
import os
import random
import signal
import statistics
import subprocess
import time
from pathlib import Path

import pytest

from jobs.paper_investigation import job
from runner.cli.choices import job_settings
from runner.plan import task_of
from runner.settings import resolve
from runner.simulate.ledger import LedgerLine, read_ledger
from runner.wire import Structure, encode_chat
from store.clock import SystemClock
from store.runs import RunFolder
from store.task import TaskRow, TaskState
from store.views import open_reader, tasks
from tests.corpus import TASKS_A_PAPER, write_corpus
from tests.processes import siftlog, simulated, start, status

PROVE = "SIFTLOG_PROVE" in os.environ
PAPERS, KILLS = (620, 50) if PROVE else (60, 6)
CONCURRENCY = 32
MODEL = "tested"
ENGINE = ("--concurrency", CONCURRENCY, "--json")
SETTLED_S = 0.4
"""By then the endpoint has settled whatever was in flight at a kill."""
SERVER = ("--job", "paper-investigation", "--seed", 5, "--latency-ms", 150)


class Books:
    """A run's log and the endpoint's ledger, side by side."""

    def __init__(self, cwd: Path, corpus: list[str]) -> None:
        self.folder = RunFolder(cwd / "runs" / "r")
        self.ledger = cwd / "ledger.jsonl"
        typed = job_settings(corpus, [])
        settings = resolve(job, typed=typed, environment={}, file={})
        self._dataset = job.load(settings)

    def served(self) -> list[LedgerLine]:
        """Requests that were answered in full, in order of arrival."""
        return [line for line in read_ledger(self.ledger) if line.outcome == "answered"]

    def rows(self) -> list[TaskRow]:
        """All tasks of the run."""
        rows: list[TaskRow] = []
        with open_reader(self.folder.log) as reader:
            while page := tasks(reader, after=len(rows), limit=2000):
                rows += page
        return rows

    def body(self, row: TaskRow) -> str:
        """SHA-256 of the body that asks for a task: the ledger's name of it."""
        request = job.request(self._dataset, task_of(row))
        content = encode_chat(request, MODEL, structure=Structure.SCHEMA)
        return hashlib.sha256(content).hexdigest()


def _wait_for_requests(
    ledger: Path, count: int, process: subprocess.Popen[str]
) -> None:
    """Until the endpoint has seen *count* requests, or the run has ended."""
    for _ in range(60_000):
        if process.poll() is not None:
            return
        if ledger.exists() and ledger.read_bytes().count(b"\n") >= count:
            return
        time.sleep(0.002)
    pytest.fail("the run hangs")


class Toll:
    """What the kills found, and the checks that hold at each."""

    def __init__(self) -> None:
        self.in_flight: list[int] = []
        self.unrecorded: list[int] = []  #: served before the kill, not in the log
        self.recorded: set[str] = set()  #: bodies whose answer was in the log
        self.served = 0  #: answered requests at the latest kill
        self.lines = 0  #: of the ledger, once it had settled

    @property
    def kills(self) -> int:
        return len(self.in_flight)

    def check_repeats(self, books: Books) -> None:
        later = {line.request for line in books.served()[self.served :]}
        assert not later & self.recorded, "an answer in the log was asked for again"

    def take(self, books: Books, killed_ms: int) -> None:
        time.sleep(SETTLED_S)
        rows = books.rows()
        running = [row for row in rows if row.state is TaskState.RUNNING]
        self.in_flight.append(sum(row.reply_seq is None for row in running))
        self.recorded = {books.body(row) for row in rows if row.reply_seq is not None}
        served = books.served()
        before = {line.request for line in served if line.finished_ms <= killed_ms}
        self.unrecorded.append(len(before - self.recorded))
        self.served = len(served)
        self.lines = books.ledger.read_bytes().count(b"\n")

    def __str__(self) -> str:
        return (
            f"{self.kills} kills, {sum(self.in_flight)} unknown; in flight: median "
            f"{statistics.median(self.in_flight)}, at most {max(self.in_flight)}; "
            f"served and not recorded: median {statistics.median(self.unrecorded)}, "
            f"at most {max(self.unrecorded)}"
        )


def _run_under_fire(command: list[object], books: Books, cwd: Path) -> Toll:
    """Kill the run and resume it until the kills are used up and it ends by itself."""
    chance = random.Random(11)
    planned = PAPERS * TASKS_A_PAPER * 3 // 4  # a spoiled extraction asks less
    toll = Toll()
    while True:
        process = start(*command, cwd=cwd)
        if toll.kills < KILLS:
            at = int((toll.kills + chance.random()) * planned / KILLS)
            _wait_for_requests(books.ledger, max(at, toll.lines + 5), process)
            time.sleep(chance.uniform(0, 0.3))
            process.send_signal(signal.SIGKILL)
        killed_ms = SystemClock().now_us() // 1000
        code = process.wait(timeout=600)
        toll.check_repeats(books)
        if code != -signal.SIGKILL:
            assert code == 0, (cwd / "err.txt").read_text()[-2000:]
            return toll
        toll.take(books, killed_ms)
        command = ["resume", "r", *command[-4:]]


@pytest.mark.timeout(1800 if PROVE else 300)
def test_killed_at_random_moments_a_run_repeats_nothing_it_had_recorded(
    tmp_path: Path,
) -> None:
    corpus = write_corpus(tmp_path / "corpus", PAPERS)
    calm, wild = tmp_path / "calm", tmp_path / "wild"
    calm.mkdir()
    wild.mkdir()
    run = ["run", "paper-investigation", *corpus, f"--model={MODEL}", "--run-id=r"]
    with simulated(*SERVER, cwd=calm) as url:
        siftlog(*run, *ENGINE, f"--base-url={url}", cwd=calm)
    books = Books(wild, corpus)
    with simulated(*SERVER, "--ledger", books.ledger, cwd=wild) as url:
        toll = _run_under_fire([*run, *ENGINE, f"--base-url={url}"], books, wild)
    print(f"\n{toll}")
    assert toll.kills == KILLS, "the run was over before its kills were"
    assert min(toll.in_flight) > 0, "a kill hit nothing in flight"
    assert max(toll.in_flight) <= CONCURRENCY
    assert max(toll.unrecorded) <= CONCURRENCY

    end = status(wild, "r")
    assert end["attempts"]["unknown"] == sum(toll.in_flight)
    requests = len(read_ledger(books.ledger))
    # what was killed before its first byte left is known to the log alone
    assert end["attempts"]["started"] - sum(toll.in_flight) <= requests
    assert requests <= end["attempts"]["started"]
    assert end["tasks"]["open"] == end["tasks"]["failed"] == 0
    assert end["tasks"]["completed"] == end["tasks"]["planned"]
    score = Path("runs/r/scores/1/scorecard.json")
    assert (wild / score).read_bytes() == (calm / score).read_bytes()
    siftlog("verify", "r", cwd=wild)
