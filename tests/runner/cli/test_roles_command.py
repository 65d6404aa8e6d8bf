"""The real command with a job of all roles, found by entry point like any plug-in."""

from __future__ import annotations

import json
import signal
from collections import Counter
from pathlib import Path

import pytest

from runner.simulate.options import RequestOutcome
from tests.gates import gated
from tests.ledgers import read_ledger
from tests.plugging import plugged
from tests.processes import siftlog, simulated, start, status

ITEMS = 40
TASKS = 7 * ITEMS
ROLES = {"subject": ["a", "b"], "judge": ["j"], "embed": ["e"], "rerank": ["r"]}


@pytest.fixture
def panel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which the job `panel` is installed."""
    installed = plugged(tmp_path / "plugins", panel="tests.crash.panel.job:job")
    for name, value in installed.items():
        monkeypatch.setenv(name, value)
    return tmp_path


@pytest.mark.timeout(180)
def test_roles_are_named_once_kept_through_a_kill_and_shown(panel: Path) -> None:
    config = panel / "run.toml"
    config.write_text(
        'price = [0.0, 0.0]\nembed_model = "e"\nmodel = ["a", "b"]\n'
        "[models.j]\nconcurrency = 3\n"
    )
    ledger = panel / "ledger.jsonl"
    faults = ("--job", "panel", "--rate-5xx", 0.05, "--latency-ms", 150)
    with (
        simulated(*faults, "--ledger", ledger, cwd=panel) as url,
        gated(url, passes=TASKS // 3) as gate,
    ):
        words = (
            "run",
            "panel",
            "--run-id",
            "r1",
            "--config",
            config,
            "--base-url",
            gate.url,
        )
        process = start(
            *(*words, "--judge-model", "j", "--items", ITEMS, "--concurrency", 8),
            cwd=panel,
            env={"SIFTLOG_RERANK_MODEL": "r"},
        )
        gate.wait(process)
        process.send_signal(signal.SIGKILL)
        process.wait()
        gate.open()
        before = status(panel, "r1")
        assert before["models"] == ROLES
        assert 0 < before["tasks"]["completed"] < TASKS
        # who is asked was settled when the run began
        other = {"SIFTLOG_JUDGE_MODEL": "other", "SIFTLOG_EMBED_MODEL": "other"}
        siftlog("resume", "r1", cwd=panel, env=other)
    after = status(panel, "r1")
    assert after["models"] == ROLES
    assert (after["tasks"]["completed"], after["tasks"]["open"]) == (TASKS, 0)
    assert after["attempts"]["unknown"] <= 4 * 8 + 3
    served = read_ledger(ledger)
    assert {line.model for line in served} == {"a", "b", "j", "e", "r"}
    answered = Counter(
        line.request
        for line in served
        if line.outcome in {RequestOutcome.ANSWERED, RequestOutcome.GONE}
    )
    assert len(answered) == TASKS
    assert sum(answered.values()) - TASKS <= after["attempts"]["unknown"]
    shown = siftlog("status", "r1", cwd=panel).stdout
    assert "models    subject a, b; judge j; embed e; rerank r" in shown
    # the same on a server that is gone: nothing is asked
    scored = siftlog("score", "r1", "--json", cwd=panel).stdout
    again = siftlog("score", "r1", "--json", cwd=panel).stdout
    assert json.loads(scored)["digest"] == json.loads(again)["digest"]
    siftlog("export", "r1", "answers", cwd=panel)
    rows = (panel / "runs/r1/exports/answers.jsonl").read_text().splitlines()
    vectors = next(row for row in map(json.loads, rows) if row["stage"] == "embed")
    assert len(json.loads(vectors["reply"])) == 4


def test_a_role_that_nobody_is_named_for_is_the_baselines_and_told(panel: Path) -> None:
    done = siftlog("run", "panel", "--embed-model", "baseline/lexical", cwd=panel)
    assert "judge, sum: no judge model was named" in done.stderr
    assert "rerank: no rerank model was named" in done.stderr
    assert "--embed-model" not in done.stderr
    assert "15 answers" in done.stdout


def test_a_list_of_jobs_says_which_stages_have_a_role_of_their_own(panel: Path) -> None:
    done = siftlog("jobs", cwd=panel)
    assert "embed (embed), rerank (rerank), answer, judge (judge), sum" in done.stdout
