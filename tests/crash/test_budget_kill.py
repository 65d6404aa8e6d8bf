"""A budget over kill -9: the endpoint's own bill never passes the cap.

The endpoint drops replies, spoils them and refuses requests. Its ledger is the bill:
whatever it began to answer is charged, whether a reply arrived or not.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from runner.cli.console import BUDGET
from runner.simulate.options import RequestOutcome
from tests.corpus import write_corpus
from tests.gates import Gate, gated
from tests.ledgers import read_ledger
from tests.processes import siftlog, simulated, start, status

JOB = "paper-investigation"

PROVE = "SIFTLOG_PROVE" in os.environ
PAPERS, KILLS = (200, 20) if PROVE else (24, 3)
CAP_USD = 0.5 * PAPERS
"""More than the kills reserve, less than the whole run: answers cost 0.28 a paper, and
calls with an unknown outcome may have cost 0.4."""

USD_PER_MTOK = 100.0
UNBILLED = {
    RequestOutcome.RATE_LIMITED,
    RequestOutcome.SERVER_ERROR,
    RequestOutcome.REFUSED,
}
"""They have an error status."""

FAULTS = ("--rate-429=0.05", "--rate-5xx=0.05", "--rate-drop=0.1")
SERVER = ("--job", JOB, "--seed=3", "--latency-ms=60", *FAULTS, "--rate-malformed=0.05")
SHORT = ("--max-tokens-extract=256", "--max-tokens-question=64")
"""So that a call's worst case is not many times what it costs."""

SETTLED_S = 0.4
"""By then the endpoint has settled whatever was in flight at a kill."""


def _bill_usd(ledger: Path) -> float:
    """What the endpoint charges: every token it read or wrote for a request."""
    tokens = [n.tokens for n in read_ledger(ledger) if n.outcome not in UNBILLED]
    return sum(tokens) * USD_PER_MTOK / 1e6


def _kill(words: Sequence[object], cwd: Path, gate: Gate, requests: int) -> None:
    """Start a command and kill it once it has sent so many requests, and one more."""
    gate.let(requests)
    process = start(*words, cwd=cwd)
    gate.wait(process)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, (cwd / "err.txt").read_text()
    time.sleep(SETTLED_S)


@pytest.mark.timeout(1200 if PROVE else 120)
def test_what_the_endpoint_bills_stays_within_the_cap_over_kills(
    tmp_path: Path,
) -> None:
    chance = random.Random(7)
    corpus = write_corpus(tmp_path / "corpus", PAPERS)
    ledger = tmp_path / "ledger.jsonl"
    with (
        simulated(*SERVER, "--ledger", ledger, cwd=tmp_path) as url,
        gated(url, passes=0) as gate,
    ):
        money = (f"--price={USD_PER_MTOK},{USD_PER_MTOK}", f"--budget={CAP_USD}")
        engine = ("--model=mine", "--base-url", gate.url, "--concurrency=4", *money)
        words: tuple[object, ...] = ("run", JOB, *corpus, *SHORT, *engine)
        words = (*words, "--run-id=r")
        for _ in range(KILLS):
            _kill(words, tmp_path, gate, chance.randint(5, 30))
            said = status(tmp_path, "r")
            worst = said["possible_usd"] + said["in_flight_usd"]
            assert _bill_usd(ledger) <= said["cost_usd"] + worst <= CAP_USD
            words = ("resume", "r")
        gate.open()
        ended = siftlog(*words, "--no-score", cwd=tmp_path, check=False)
        assert ended.returncode == BUDGET, ended.stderr
        # A kill may find every call answered, when little of the budget was left.
        told = "outcome is unknown (they may have cost up to $" in ended.stderr
        assert told == (said["in_flight_usd"] > 0), ended.stderr

        said = status(tmp_path, "r")
        known, possible = said["cost_usd"], said["possible_usd"]
        assert said["state"] == "budget_stop"
        assert known < _bill_usd(ledger) <= known + possible <= CAP_USD

        siftlog("resume", "r", "--budget", 9 * CAP_USD, "--no-score", cwd=tmp_path)
        said = status(tmp_path, "r")
        assert (said["state"], said["tasks"]["open"]) == ("finished", 0)
        assert _bill_usd(ledger) <= said["cost_usd"] + said["possible_usd"]
