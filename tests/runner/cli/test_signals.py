"""Signals to a real run: the first drains, the second stops, the books agree."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.corpus import write_corpus
from tests.ledgers import read_ledger
from tests.processes import (
    Process,
    siftlog,
    simulated,
    start,
    status,
    until,
    until_said,
)

JOB = "paper-investigation"
HEARD = "press again to stop at once"
ASKING = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


@contextmanager
def _running(cwd: Path, latency_ms: int) -> Iterator[Process]:
    """A run with calls in flight."""
    corpus = write_corpus(cwd / "corpus", 20)
    server = ("--latency-ms", latency_ms, "--job", JOB, "--ledger", cwd / "ledger")
    with simulated(*server, cwd=cwd) as url:
        engine = ("--model=x", f"--base-url={url}", "--concurrency=8", "--run-id=r")
        process = start("run", JOB, *corpus, *engine, cwd=cwd)
        until(cwd, "r", lambda s: s["tasks"]["running"] == 8)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


@pytest.mark.parametrize("number", ASKING, ids=lambda n: n.name)
def test_the_first_signal_lets_the_calls_in_flight_finish(
    tmp_path: Path, number: signal.Signals
) -> None:
    with _running(tmp_path, 500) as process:
        process.send_signal(number)
        assert process.wait() == 5
        end = status(tmp_path, "r")
        served = len(read_ledger(tmp_path / "ledger"))
    assert end["state"] == "drained"
    assert end["attempts"]["started"] == end["attempts"]["answered"] == served
    said = (tmp_path / "err.txt").read_text()
    assert HEARD in said
    assert "continue with: siftlog resume r" in said


@pytest.mark.parametrize("number", ASKING, ids=lambda n: n.name)
def test_the_second_stops_at_once_and_what_was_in_flight_is_told(
    tmp_path: Path, number: signal.Signals
) -> None:
    # calls that outlast the test: who waits for them does not stop at once
    with _running(tmp_path, 3_600_000) as process:
        process.send_signal(number)
        until_said(process, tmp_path / "err.txt", HEARD)
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 5
        assert "abandoned 8 calls in flight" in (tmp_path / "err.txt").read_text()
        assert siftlog("verify", "r", cwd=tmp_path).returncode == 0
        resumed = start("resume", "r", cwd=tmp_path)
        # what is unknown is told before signals are listened to; calls come after
        until(tmp_path, "r", lambda s: s["attempts"]["started"] == 16)
        assert status(tmp_path, "r")["attempts"]["unknown"] == 8
        resumed.send_signal(number)
        until_said(resumed, tmp_path / "err.txt", HEARD, times=2)
        resumed.send_signal(number)
        assert resumed.wait() == 5
