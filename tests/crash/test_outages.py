"""Endpoints that are away, overwhelmed or silent for a while: the run waits."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from runner.simulate.options import RequestOutcome
from tests.corpus import write_corpus
from tests.ledgers import read_ledger
from tests.processes import SIFTLOG, siftlog, simulated, start, status, until_said

JOB = "paper-investigation"
ANSWERED = RequestOutcome.ANSWERED


@contextmanager
def _kept_port() -> Iterator[int]:
    """A port that nobody is given meanwhile, but who asks for this one to listen."""
    with closing(socket.socket()) as keeping:
        keeping.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        keeping.bind(("127.0.0.1", 0))
        yield int(keeping.getsockname()[1])


def _serve(port: int, ledger: Path, latency_ms: int) -> subprocess.Popen[str]:
    """An endpoint at *port*, once it listens."""
    words = ("--port", port, "--job", JOB, "--ledger", ledger)
    server = subprocess.Popen(
        [SIFTLOG, "simulate", *map(str, words), f"--latency-ms={latency_ms}"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    with server.stdout:
        server.stdout.readline()
    return server


def test_an_endpoint_that_dies_and_comes_back_costs_time_and_no_task(
    tmp_path: Path,
) -> None:
    corpus = write_corpus(tmp_path / "corpus", 30)
    before, after = tmp_path / "before.jsonl", tmp_path / "after.jsonl"
    with _kept_port() as port:
        # so slow that it dies in the middle of the run
        server = _serve(port, before, latency_ms=1000)
        try:
            process = start(
                *("run", JOB, *corpus, "--model=x", "--run-id=r", "--concurrency=12"),
                f"--base-url=http://127.0.0.1:{port}/v1",
                cwd=tmp_path,
            )
            while before.read_bytes().count(b"\n") < 12:
                assert process.poll() is None
                time.sleep(0.01)
            server.send_signal(signal.SIGKILL)
            server.wait()
            until_said(process, tmp_path / "err.txt", "sending one probe at a time")
            server = _serve(port, after, latency_ms=50)
            assert process.wait(60) == 0, (tmp_path / "err.txt").read_text()
        finally:
            server.terminate()
            server.wait()
    end = status(tmp_path, "r")
    assert end["tasks"]["failed"] == end["tasks"]["open"] == 0
    assert end["errors"].keys() == {"ConnectionLost"}
    answered = [
        x for x in (*read_ledger(before), *read_ledger(after)) if x.outcome is ANSWERED
    ]
    # an answer that was under way when its server died may be in its ledger alone
    assert 0 <= len(answered) - end["attempts"]["answered"] <= 12


def test_a_storm_of_refusals_and_silence_fails_no_task(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus", 6)
    ledger = tmp_path / "ledger.jsonl"
    server = (
        *("--job", JOB, "--seed", 3, "--latency-ms", 20, "--rps", 40),
        *("--rate-429", 0.15, "--rate-hang", 0.05, "--ledger", ledger),
    )
    with simulated(*server, cwd=tmp_path) as url:
        siftlog(
            *("run", JOB, *corpus, "--model=x", "--run-id=r", "--timeout-s=0.5"),
            f"--base-url={url}",
            cwd=tmp_path,
        )
    end = status(tmp_path, "r")
    assert end["tasks"]["failed"] == end["tasks"]["open"] == 0
    assert end["errors"].keys() >= {"RateLimited", "Timeout"}
    served = read_ledger(ledger)
    answered = [x.request for x in served if x.outcome is ANSWERED]
    # what is not hung but comes late, as on a machine that stood still, is asked again
    late = end["errors"]["Timeout"] - sum(
        x.outcome is RequestOutcome.HANG for x in served
    )
    assert len(set(answered)) == end["attempts"]["answered"]
    assert 0 <= len(answered) - len(set(answered)) <= late
