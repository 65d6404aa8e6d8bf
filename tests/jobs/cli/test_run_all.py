"""`siftlog run-all` as a process: shared limits, one budget, killed and taken up."""

from __future__ import annotations

import json
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from runner.cli.main import exit_code
from runner.simulate.billing import LedgerLine
from tests.gates import gated
from tests.ledgers import read_ledger
from tests.plugging import plugged
from tests.processes import siftlog, simulated, start, status, until

MATRIX = """
group = "g"
model = ["m", "n"]
price = [7000.0, 1.0]  # a first call reserves 16,384 tokens of output
{more}

[endpoints.here]
base_url = "{url}"
models = ["m", "n"]
concurrency = 3

[[jobs]]
job = "toy"
vary = {{ items = [5, 8] }}
"""
KILLED_BY = 60
"""Requests that pass before the kill, of a hundred and more."""
RUNS = ("g-toy-m-items-5", "g-toy-n-items-5", "g-toy-m-items-8", "g-toy-n-items-8")


@pytest.fixture(name="env")
def _env(tmp_path: Path) -> dict[str, str]:
    return plugged(tmp_path / "plug", toy="tests.jobs.toys:job")


def _write(folder: Path, url: str, more: str = "") -> Path:
    path = folder / "g.toml"
    path.write_text(MATRIX.format(url=url, more=more))
    return path


def _all(folder: Path) -> list[dict[str, Any]]:
    return [status(folder, run) for run in RUNS]


def _at_a_time(served: Sequence[LedgerLine]) -> int:
    """The most requests that the endpoint had under way; a moment's end comes first."""
    moves = [(line.received_ms, 1) for line in served]
    moves += [(line.finished_ms, -1) for line in served]
    most = now = 0
    for _, move in sorted(moves):
        now += move
        most = max(most, now)
    return most


def test_killed_and_typed_again_it_goes_on_within_the_limits_and_pays_nothing_twice(
    tmp_path: Path, env: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    ledger = tmp_path / "ledger"
    with (
        simulated("--latency-ms", 40, "--ledger", ledger, cwd=tmp_path) as url,
        gated(url, passes=KILLED_BY) as gate,
    ):
        file = _write(tmp_path, gate.url)
        process = start("run-all", file, cwd=tmp_path, env=env)
        for run in RUNS:
            until(tmp_path, run, lambda seen: seen["attempts"]["answered"] >= 2)
        process.send_signal(signal.SIGKILL)
        process.wait()
        gate.open()
        assert any(seen["tasks"]["open"] for seen in _all(tmp_path))
        done = siftlog("run-all", file, "--json", cwd=tmp_path, env=env)
        asked = len(read_ledger(ledger))
        again = siftlog("run-all", file, cwd=tmp_path, env=env)
    served = read_ledger(ledger)
    assert len(served) == asked
    assert "4 of 4 runs are over already." in again.stderr
    found = _all(tmp_path)
    assert [seen["state"] for seen in found] == ["finished"] * 4
    assert {seen["group"] for seen in found} == {"g"}
    answered = sum(seen["attempts"]["answered"] for seen in found)
    unknown = sum(seen["attempts"]["unknown"] for seen in found)
    # a log knows its own order alone: another run's call may have a slot already
    assert all(seen["attempts"]["unknown"] <= 3 for seen in found)
    assert answered <= asked <= answered + unknown
    # a call that the kill cut off may be under way there for a moment longer
    assert _at_a_time(served) <= 3 + unknown
    *_, compared = map(json.loads, done.stdout.splitlines())
    assert [run["run"] for run in compared["runs"]] == list(RUNS)
    assert (tmp_path / "runs/g/comparison.csv").read_text().count("\n") == 5
    for group, count in (("g", 4), ("h", 0)):
        runs_dir = str(tmp_path / "runs")
        assert exit_code(["runs", "--group", group, "--runs-dir", runs_dir]) == 0
        assert capsys.readouterr().out.count("finished") == count


def test_one_budget_stops_them_all_and_a_raised_one_lets_them_go_on(
    tmp_path: Path, env: dict[str, str]
) -> None:
    with simulated(cwd=tmp_path) as url:
        file = _write(tmp_path, url, "budget = 1.0")
        done = siftlog("run-all", file, cwd=tmp_path, env=env, check=False)
        assert done.returncode == 4, done.stderr
        found = _all(tmp_path)
        spent = sum(seen["cost_usd"] + seen["possible_usd"] for seen in found)
        assert 0.8 < spent <= 1.0
        assert all(seen["tasks"]["open"] for seen in found)
        alone = siftlog("resume", RUNS[0], cwd=tmp_path, env=env, check=False)
        assert alone.returncode == 4
        assert (
            status(tmp_path, RUNS[0])["cost_usd"]
            <= 1.0 - spent + (found[0]["cost_usd"])
        )
        _write(tmp_path, url, "budget = 50.0")
        done = siftlog("run-all", file, cwd=tmp_path, env=env)
    assert [seen["state"] for seen in _all(tmp_path)] == ["finished"] * 4
    assert "g: 4 runs" in done.stdout
