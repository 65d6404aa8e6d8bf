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
from runner.wire import encode_chat
from store.runs import RunFolder
from store.task import TaskRow, TaskState
from store.views import open_reader, run_started, tasks
from tests.corpus import TASKS_A_PAPER, write_corpus
from tests.processes import siftlog, simulated, start, status

PROVE = "SIFTLOG_PROVE" in os.environ
PAPERS, KILLS = (500, 50) if PROVE else (60, 6)
CONCURRENCY = 32
MODEL = "tested"
ENGINE = ("--model", MODEL, "--concurrency", CONCURRENCY, "--json")
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
        content = encode_chat(request, MODEL, structured=True)
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


@pytest.mark.timeout(1800 if PROVE else 300)
def test_killed_at_random_moments_a_run_repeats_nothing_it_had_recorded(
    tmp_path: Path,
) -> None:
    chance = random.Random(11)
    corpus = write_corpus(tmp_path / "corpus", PAPERS)
    calm = tmp_path / "calm"
    wild = tmp_path / "wild"
    calm.mkdir()
    wild.mkdir()
    with simulated(*SERVER, cwd=calm) as url:
        siftlog(
            "run",
            "paper-investigation",
            *corpus,
            *ENGINE,
            f"--base-url={url}",
            "--run-id=r",
            cwd=calm,
        )
    books = Books(wild, corpus)
    planned = PAPERS * TASKS_A_PAPER
    recorded: set[str] = set()  # bodies whose answer was in the log at a kill
    seen_at_kill = 0
    kills, in_flight, unrecorded = 0, [], []
    with simulated(*SERVER, "--ledger", books.ledger, cwd=wild) as url:
        command: tuple[object, ...] = (
            "run",
            "paper-investigation",
            *corpus,
            *ENGINE,
            f"--base-url={url}",
            "--run-id=r",
        )
        while True:
            process = start(*command, cwd=wild)
            at = int((kills + chance.random()) * planned / KILLS)
            if kills < KILLS:
                _wait_for_requests(books.ledger, max(at, seen_at_kill + 5), process)
                time.sleep(chance.uniform(0, 0.3))
                process.send_signal(signal.SIGKILL)
            code = process.wait(timeout=600)
            repeats = {line.request for line in books.served()[seen_at_kill:]}
            assert not repeats & recorded, "an answer in the log was asked for again"
            if code != -signal.SIGKILL:
                break
            kills += 1
            command = ("resume", "r", *ENGINE[2:], f"--base-url={url}")
            rows = books.rows() if books.folder.log.exists() else []
            running = [row for row in rows if row.state is TaskState.RUNNING]
            in_flight.append(len(running))
            recorded = {books.body(row) for row in rows if row.reply_seq is not None}
            served = {line.request for line in books.served()}
            unrecorded.append(len(served - recorded))
            seen_at_kill = len(books.served())
    end = status(wild, "r")
    assert code == 0, (wild / "err.txt").read_text()[-2000:]
    assert kills == KILLS, "the run was over before its kills were"
    assert statistics.median(in_flight) > 0, "the kills hit nothing in flight"
    assert max(in_flight) <= CONCURRENCY
    assert max(unrecorded) <= CONCURRENCY
    assert end["attempts"]["unknown"] == sum(in_flight)
    lines = read_ledger(books.ledger)
    # what was killed before its first byte left is known to the log alone
    assert end["attempts"]["started"] - sum(in_flight) <= len(lines)
    assert len(lines) <= end["attempts"]["started"]
    assert end["tasks"]["open"] == end["tasks"]["failed"] == 0
    assert end["tasks"]["completed"] == end["tasks"]["planned"]
    score = Path("runs/r/scores/1/scorecard.json")
    assert (wild / score).read_bytes() == (calm / score).read_bytes()
    siftlog("verify", "r", cwd=wild)
    with open_reader(books.folder.log) as reader:
        assert run_started(reader).run_id == "r"
    print(
        f"\n{kills} kills, {end['tasks']['planned']} tasks, {sum(in_flight)} unknown, "
        f"served but not recorded at a kill: median {statistics.median(unrecorded)}, "
        f"at most {max(unrecorded)}; in flight: median {statistics.median(in_flight)}"
    )
