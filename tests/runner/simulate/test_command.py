"""tests.runner.simulate.test_command"""

from __future__ import annotations

import json
import math
import signal
import subprocess
import sys
import urllib.request
from decimal import Decimal
from pathlib import Path

import pytest
from click.testing import CliRunner

from runner.errors import UsageError
from runner.simulate.command import simulate
from runner.simulate.options import RequestOutcome
from tests.ledgers import read_ledger
from tests.processes import simulated


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
    assert [line.outcome for line in read_ledger(ledger)] == [RequestOutcome.ANSWERED]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--rate-429=0.7", "--rate-drop=0.7"], "together at most 1"),
        (["--batch-error-rate=0.7", "--batch-expire-rate=0.7"], "of their items"),
        (["--batch-queue=0"], "--batch-queue is a number of items"),
        (["--batch-seconds=-1"], "--batch-seconds and --batch-lag-seconds are times"),
        (["--job=nothing-like-it"], "no job 'nothing-like-it'"),
        (["--dialect=klingon"], "no dialect 'klingon'"),
        (["--bill-price=1"], "--bill-price takes IN,OUT"),
        (["--bill-tier", "flex", "x"], "--bill-tier takes a number"),
        (["--quota=-1"], "--quota takes a number"),
        (["--bytes-per-token=0.5"], "no tokenizer has less"),
        (["--rate-refuse=0.5", "--max-output=0"], "--max-output and --cache-least"),
    ],
)
def test_a_bad_option_of_the_command_is_a_usage_error(
    words: list[str], said: str
) -> None:
    error = CliRunner().invoke(simulate, words).exception
    assert isinstance(error, UsageError)
    assert said in str(error)


def test_the_command_bills_in_its_dialect_by_the_prices_it_is_given(
    tmp_path: Path,
) -> None:
    ledger = tmp_path / "ledger.jsonl"
    words = (
        *("--dialect", "openai", "--bill-price", "2,8", "--bill-tier", "flex", "0.25"),
        *("--ledger", ledger, "--bytes-per-token", 2, "--model", "m"),
    )
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": "What of rs42?"}],
        "service_tier": "flex",
    }
    with simulated(*words, cwd=tmp_path) as base_url:
        for number in range(9):
            request = urllib.request.Request(  # noqa: S310 - loopback
                f"{base_url}/chat/completions",
                json.dumps({**body, "seed": number}).encode(),
                {"authorization": "Bearer k"},
            )
            with urllib.request.urlopen(request) as reply:  # noqa: S310
                assert reply.headers["x-request-id"]
    lines = read_ledger(ledger)
    assert {line.served_model for line in lines} == {"m-2025-08-07"}
    assert {line.tokens_in for line in lines} == {math.ceil(13 / 2) + 4 + 3}
    for line in lines:
        price = (line.tokens_in * 2 + line.tokens_out * 8) / Decimal(10**6)
        factor = Decimal("0.25") if line.tier == "flex" else 1
        assert Decimal(line.cost_usd) == price * factor
    assert "flex" in {line.tier for line in lines}
