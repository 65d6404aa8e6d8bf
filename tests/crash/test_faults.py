"""A run against an endpoint that misbehaves: every task final, the books agree."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.corpus import write_corpus
from tests.ledgers import read_ledger
from tests.processes import siftlog, simulated, status

SERVER = (
    *("--job", "paper-investigation", "--seed", 3, "--latency-ms", 200),
    *("--rate-429", 0.05, "--rate-5xx", 0.02),
    *("--rate-malformed", 0.01, "--rate-drop", 0.01),
)


@pytest.mark.timeout(300)
def test_every_task_becomes_final_and_log_and_ledger_agree(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus", 60)
    ledger = tmp_path / "ledger.jsonl"
    with simulated(*SERVER, "--ledger", ledger, cwd=tmp_path) as url:
        done = siftlog(
            *("run", "paper-investigation", *corpus, "--run-id=r", "--json"),
            *("--model=x", "--model=y", f"--base-url={url}", "--concurrency=64"),
            cwd=tmp_path,
        )
    end = json.loads(done.stdout.splitlines()[-1])
    outcomes = Counter(line.outcome.value for line in read_ledger(ledger))
    assert end["exit"] == 0
    assert end["tasks"]["open"] == end["tasks"]["failed"] == 0
    assert end["tasks"]["completed"] == end["tasks"]["planned"] > 800
    assert end["attempts"]["unknown"] == 0
    assert end["attempts"]["started"] == outcomes.total()
    assert end["attempts"]["answered"] == outcomes["answered"]
    assert end["attempts"]["failed"] == outcomes.total() - outcomes["answered"]
    errors = status(tmp_path, "r")["errors"]
    assert errors["RateLimited"] == outcomes["429"] > 0
    assert errors["MalformedReply"] == outcomes["malformed"] > 0
    assert errors["ConnectionLost"] == outcomes["dropped"] > 0
    assert errors["ServerError"] + errors.get("Overloaded", 0) == outcomes["5xx"] > 0


def test_two_runs_on_the_same_replies_have_the_same_scorecard(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus", 8)
    with simulated(*SERVER, cwd=tmp_path) as url:
        for run, concurrency in (("one", 3), ("other", 40)):
            siftlog(
                *("run", "paper-investigation", *corpus, f"--run-id={run}"),
                *("--model=x", f"--base-url={url}", f"--concurrency={concurrency}"),
                cwd=tmp_path,
            )
    one, other = (
        (tmp_path / "runs" / run / "scores" / "1" / "scorecard.json").read_bytes()
        for run in ("one", "other")
    )
    assert one == other
