"""Shards as real processes: ended in the middle, lost, and started in other numbers."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path

import pytest

from runner.cli.main import exit_code
from store.database import open_reader
from store.read.status import status
from store.runs import RunFolder
from tests.corpus import write_corpus
from tests.gates import gated
from tests.ledgers import read_ledger
from tests.processes import siftlog, simulated, start, until_said

JOB = "paper-investigation"
PAPERS = 12
IN_FLIGHT = 4
MIDDLE = 12
"""Requests of a shard that pass before it is ended; it has some sixty."""


def _answered(cwd: Path, index: int, count: int) -> int:
    log = RunFolder(cwd / "runs/r").shard(index, count).log
    with open_reader(log) as reader:
        return status(reader).attempts.answered


def test_shards_that_end_in_the_middle_lose_no_more_than_what_was_in_flight(
    tmp_path: Path,
) -> None:
    corpus = write_corpus(tmp_path / "corpus", PAPERS)
    ledger = tmp_path / "ledger.jsonl"
    server = ("--job", JOB, "--seed", 5, "--latency-ms", 60, "--ledger", ledger)
    with (
        simulated(*server, cwd=tmp_path) as url,
        gated(url, passes=MIDDLE) as gate,
    ):
        words = [JOB, *corpus, "--model=x", "--run-id=r", "--ship=place"]
        words += [f"--base-url={gate.url}", "--concurrency=8", "--ship-every=0.5"]

        killed = start("run", *words, "--shard=0/2", cwd=tmp_path)
        gate.wait(killed)
        killed.kill()
        killed.wait()
        gate.open()
        again = siftlog("run", *words, "--shard=0/2", "--json", cwd=tmp_path)
        launch, *_, done = map(json.loads, again.stdout.splitlines())
        facts = {"event": "launch", "run": "r", "shard": "0/2"}
        assert launch == {"schema": "siftlog.launch/1", **facts}
        attempts = done["attempts"]
        assert 0 < attempts["unknown"] <= IN_FLIGHT
        assert attempts["started"] == attempts["answered"] + attempts["unknown"]

        gate.let(MIDDLE)
        drained = start("run", *words, "--shard=1/2", cwd=tmp_path)
        gate.wait(drained)
        drained.send_signal(signal.SIGTERM)
        until_said(drained, tmp_path / "err.txt", "press again to stop at once")
        gate.open()
        assert drained.wait() == 5
        kept = _answered(tmp_path, 0, 2) + _answered(tmp_path, 1, 2)
        before = len(read_ledger(ledger))
        assert before <= kept + IN_FLIGHT

        shutil.rmtree(tmp_path / "runs")
        words.remove("--ship-every=0.5")
        last = siftlog("run", *words, "--local-dir=elsewhere", "--json", cwd=tmp_path)
        planned = json.loads(last.stdout.splitlines()[-1])["tasks"]["planned"]
        asked = read_ledger(ledger)[before:]
    assert len(asked) == planned - kept
    assert all(line.seen == 0 for line in asked)


def test_what_a_shard_cannot_be_started_with_is_said_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def said(*words: str) -> str:
        assert exit_code(["run", JOB, *words]) == 2
        return capsys.readouterr().err.splitlines()[-1]

    assert "needs --run-id" in said("--shard=0/2")
    assert "write it as i/n" in said("--shard=2", "--run-id=r")
    both = ("--shard=0/2", "--engine=processes", "--run-id=r")
    assert "leave one of the two out" in said(*both)
    assert not (tmp_path / "runs").exists()
