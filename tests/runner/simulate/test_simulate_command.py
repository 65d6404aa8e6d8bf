from __future__ import annotations

import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from click.testing import CliRunner

from runner.errors import UsageError
from runner.simulate.command import simulate
from runner.simulate.fate import Outcome
from runner.simulate.ledger import read_ledger


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_the_command_prints_its_address_and_ends_cleanly_on_a_signal(
    signum: signal.Signals, tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger.jsonl"
    with subprocess.Popen(
        [
            *(sys.executable, "-c"),
            "from runner.simulate.command import simulate; simulate()",
            f"--ledger={ledger}",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        base_url = process.stdout.readline().decode().strip()
        body = b'{"model":"x","messages":[{"role":"user","content":"rs42?"}]}'
        with urllib.request.urlopen(f"{base_url}/chat/completions", body) as reply:  # noqa: S310
            assert b"rs42" in reply.read()
        process.send_signal(signum)
        assert process.communicate() == (b"", b"")
    assert process.returncode == 0
    assert [line.outcome for line in read_ledger(ledger)] == [Outcome.ANSWERED]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--rate-429=0.7", "--rate-drop=0.7"], "together at most 1"),
        (["--batch-error-rate=0.7", "--batch-expire-rate=0.7"], "of their items"),
        (["--batch-queue=0"], "--batch-queue is a number of items"),
        (["--batch-seconds=-1"], "--batch-seconds and --batch-lag-seconds are times"),
        (["--job=nothing-like-it"], "no job 'nothing-like-it'"),
    ],
)
def test_a_bad_option_of_the_command_is_a_usage_error(
    words: list[str], said: str
) -> None:
    error = CliRunner().invoke(simulate, words).exception
    assert isinstance(error, UsageError)
    assert said in str(error)
