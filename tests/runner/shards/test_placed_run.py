"""What must hold before shards are placed.

`run --engine` and `resume --engine`, typed as people type them. What a driver says of
logs that it cannot merge.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest

from runner.cli.main import exit_code
from runner.errors import RunnerError
from runner.run.context import RunContext
from runner.shards.placed_run import exclusive_driver, wait_for_orphans
from runner.shards.placed_tasks import FAILURE_TIMEOUT_S, FIRST_S, UnionRefresher
from store.database import WriterLock
from store.runs import RunFolder
from tests.corpus import write_corpus
from tests.gates import gated
from tests.ledgers import read_ledger
from tests.processes import siftlog, simulated, start, status, until_said
from tests.runner.shards.sharded import unwatched
from tests.store.memory_log import FakeClock


class Ending(FakeClock):
    """Every sleep is over at once; in the third of them *lock* is given up."""

    def __init__(self, lock: WriterLock, *, ends: bool) -> None:
        super().__init__()
        self._lock = lock
        self._left = 3 if ends else -1

    async def sleep_until(self, when: float) -> None:
        self.advance(when - self.monotonic())
        self._left -= 1
        if self._left == 0:
            self._lock.release()


@pytest.mark.parametrize("ends", [True, False])
def test_shards_of_a_driver_that_died_are_waited_for(
    tmp_path: Path, *, ends: bool
) -> None:
    folder, told = RunFolder(tmp_path / "r1"), list[str]()
    folder.path.mkdir()
    shard = folder.shard(0, 2)
    shard.log.touch()
    lock = WriterLock(shard.lock)
    lock.acquire()
    clock = Ending(lock, ends=ends)

    async def main() -> None:
        with exclusive_driver(folder):
            await wait_for_orphans(folder, clock, told.append, longest_s=10.0)

    if ends:
        asyncio.run(main())
    else:
        with pytest.raises(RunnerError, match="r1 were started by another process"):
            asyncio.run(main())
        lock.release()
    assert told == ["Shards of an earlier process still finish their calls."]
    assert (clock.monotonic() < 10) is ends


JOB = "paper-investigation"
PLACED = ("--engine=processes", "--shards=1")
SCORECARD = Path("scores/1/scorecard.json")


def test_a_run_that_is_drained_and_goes_on_in_more_shards_has_the_scores_of_one_process(
    tmp_path: Path,
) -> None:
    corpus = write_corpus(tmp_path / "corpus", 6)
    ledger = tmp_path / "ledger"
    server = ("--job", JOB, "--latency-ms", 200, "--ledger", ledger)
    with simulated(*server, cwd=tmp_path) as url, gated(url, passes=10) as gate:
        engine = ("--model=x", f"--base-url={gate.url}", "--concurrency=4")
        words = ("run", JOB, *corpus, *engine)
        driver = start(*(*words, *PLACED, "--run-id=placed", "--json"), cwd=tmp_path)
        gate.wait(driver)
        driver.send_signal(signal.SIGTERM)
        shard = tmp_path / "runs/placed/run.0-1.log"
        until_said(driver, shard, "press again to stop at once")
        gate.open()
        assert driver.wait() == 5
        said = (tmp_path / "err.txt").read_text("utf-8")
        assert (
            "continue with: siftlog resume placed --engine processes --shards 1"
        ) in said
        resumed = siftlog(
            *("resume", "placed", "--engine=processes", "--shards=2", "--json"),
            "--concurrency=64",
            cwd=tmp_path,
        )
        assert not [line for line in read_ledger(ledger) if line.seen]
        siftlog(*words, "--concurrency=64", "--run-id=whole", cwd=tmp_path)
    launched, done = map(json.loads, resumed.stdout.splitlines())
    assert (launched["event"], launched["run"]) == ("launch", "placed")
    assert (done["event"], done["exit"], done["tasks"]["open"]) == ("done", 0, 0)
    assert status(tmp_path, "placed")["state"] == "finished"
    runs = tmp_path / "runs"
    placed, whole = (runs / run / SCORECARD for run in ("placed", "whole"))
    assert placed.read_bytes() == whole.read_bytes()
    assert (runs / "placed" / "run.0-1.log").exists()


def test_what_a_shard_stumbles_over_again_is_said_in_its_own_words(
    tmp_path: Path,
) -> None:
    done = siftlog(
        *("run", JOB, "--model=openai/gpt-4o-mini", "--limit=1", *PLACED),
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("siftlog: Shard 0/1 was given up; its last line: ")
    assert "OPENAI_API_KEY" in last


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--stop-when-decided=recall", "--model=a", "--model=b"), "omit it or"),
        (("--local-dir=here",), "name with --ship DIR|URL where these come together"),
        (("--run-id=there",), "There is a run 'there' already"),
    ],
)
def test_what_cannot_be_placed_is_refused_before_anything_is(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "there").mkdir(parents=True)
    (tmp_path / "runs" / "there" / "log.db").touch()
    assert exit_code(["run", JOB, *PLACED, *words]) == 2
    assert said in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["there"]


def test_a_place_that_takes_nothing_is_refused_before_anything_is_placed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    assert exit_code(["run", JOB, *PLACED, "--run-id=r", "--ship=file"]) == 1
    assert "file cannot be used" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_a_run_with_one_log_is_not_split_afterwards(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    corpus = write_corpus(tmp_path / "corpus", 1)
    assert exit_code(["run", JOB, *corpus, "--run-id=r", "--no-score"]) == 0
    assert exit_code(["resume", "r", *PLACED]) == 2
    assert "Run r is not split, and cannot be split now" in capsys.readouterr().err


class Seen(FakeClock):
    """Every sleep is over at once, up to *end_s*; notes when something was told."""

    def __init__(self, told: list[str], end_s: float) -> None:
        super().__init__()
        self._told = told
        self._end_s = end_s
        self.told_at: list[float] = []

    async def sleep_until(self, when: float) -> None:
        self.told_at += [self.monotonic()] * (len(self._told) - len(self.told_at))
        self.advance(when - self.monotonic())
        if self.monotonic() > self._end_s:
            raise asyncio.CancelledError


def test_logs_that_cannot_be_read_for_long_are_told_once(tmp_path: Path) -> None:
    folder, told = RunFolder(tmp_path / "r1"), list[str]()
    folder.path.mkdir()
    folder.places.write_text("no list")
    clock = Seen(told, 4 * FAILURE_TIMEOUT_S)
    shell = RunContext(
        clock=clock,
        environment=os.environ,
        runs_dir=tmp_path,
        notify=told.append,
        launched=lambda: None,
        watch=unwatched,
    )

    async def main() -> None:
        await UnionRefresher(folder, shell).keep()

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
    (said,) = told
    assert "places.json is no list of places" in said
    (at_s,) = clock.told_at
    assert FAILURE_TIMEOUT_S < at_s < FAILURE_TIMEOUT_S + 4 * FIRST_S
