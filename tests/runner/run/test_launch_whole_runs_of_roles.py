"""Whole runs of every kind of request: over loopback, broken off, taken up, scored."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from runner.errors import RunChanged, UsageError
from runner.options import RunOptions, options_from, read_toml
from runner.roles import fixed
from runner.run import launch
from runner.score.scoring import Scoring, effective_settings, score_run
from runner.simulate.options import RequestOutcome
from runner.workload import load_workload
from store.clock import SystemClock
from store.database import open_reader
from store.read.status import Status, run_started, status
from store.runs import RunFolder
from tests.gates import gated
from tests.ledgers import read_ledger
from tests.processes import simulated
from tests.runner.run.test_launch import _shell
from tests.runner.toy_jobs import PanelJob, PanelSettings

ITEMS = 20
NAMES = {"model": ["a", "b"], "judge_model": "j", "embed_model": "e"}
WHOLE = {
    ("embed", "e"): ITEMS,
    ("rerank", "r"): ITEMS,
    ("answer", "a"): ITEMS,
    ("answer", "b"): ITEMS,
    ("judge", "j"): 2 * ITEMS,
    ("sum", "j"): ITEMS,
}

CHILD = """
import sys
from tests.runner.run.test_launch_whole_runs_of_roles import Run
from pathlib import Path
Run(Path(sys.argv[1]), sys.argv[2]).start()
"""


class Run:
    """A run of the job of all roles, at one endpoint."""

    def __init__(self, folder: Path, base_url: str, **options: object) -> None:
        values = {
            **NAMES,
            "rerank_model": "r",
            "base_url": base_url,
            "concurrency": 4,
            "price": [0, 0],
        }
        self.options: RunOptions = options_from(values | options)
        self.folder = RunFolder(folder / "r1")
        self.told: list[str] = []
        self.shell = _shell(folder, self.told)
        self.settings = PanelSettings(items=ITEMS)

    def start(self) -> launch.RunOutcome:
        work = load_workload(PanelJob(), self.settings)
        return asyncio.run(launch.start(self.folder, work, self.options, self.shell))

    def resume(self) -> launch.RunOutcome:
        work = load_workload(PanelJob(), self.settings)
        return asyncio.run(
            launch.resume(
                self.folder, work, self.options, self.shell, accept_changes=False
            )
        )

    def status(self) -> Status:
        with open_reader(self.folder.log) as reader:
            return status(reader)

    def completed(self) -> dict[tuple[str, str], int]:
        return {
            (lane.stage, lane.model): n
            for lane in self.status().queues
            for state, n in lane.states.items()
            if n and state.name == "COMPLETED"
        }

    def score(self) -> Scoring:
        settings = effective_settings(PanelJob(), self.folder, {})
        return asyncio.run(
            score_run(
                PanelJob(), self.folder, settings, clock=SystemClock(), record=False
            )
        )


def test_a_run_says_who_is_asked_in_which_role(tmp_path: Path) -> None:
    with simulated(cwd=tmp_path) as base_url:
        run = Run(tmp_path, base_url, rerank_model="baseline/lexical")
        run.options = options_from({**NAMES, "base_url": base_url, "price": [0, 0]})
        assert run.start().outcome == "finished"
    with open_reader(run.folder.log) as reader:
        first = run_started(reader)
    assert first.models == {
        "subject": ["a", "b"],
        "judge": ["j"],
        "embed": ["e"],
        "rerank": ["baseline/lexical"],
    }
    assert [said for said in run.told if "--rerank-model" in said]
    file = read_toml(run.folder.config)
    assert (file["judge_model"], file["embed_model"]) == ("j", "e")
    whole = {key: n for key, n in WHOLE.items() if key != ("rerank", "r")}
    assert run.completed() == {**whole, ("rerank", "baseline/lexical"): ITEMS}
    assert fixed(first.models)["rerank_model"] == "baseline/lexical"


def test_a_run_without_models_is_the_baselines_in_every_role(tmp_path: Path) -> None:
    run = Run(tmp_path, "http://127.0.0.1:9")
    run.options = options_from({})
    assert run.start().outcome == "finished"
    assert len([said for said in run.told if "baseline/lexical is used" in said]) == 3
    assert {model for _, model in run.completed()} == {"baseline/lexical"}


def test_a_model_of_any_role_needs_a_price(tmp_path: Path) -> None:
    run = Run(tmp_path, "http://127.0.0.1:9")
    price = {"usd_per_mtok_in": 1, "usd_per_mtok_out": 1}
    own = dict.fromkeys(("a", "b", "e", "r"), price)
    run.options = options_from({**NAMES, "rerank_model": "r", "models": own})
    with pytest.raises(UsageError, match="price of j is unknown"):
        run.start()
    assert not run.folder.path.exists()


def test_a_run_through_faults_ends_with_what_a_quiet_one_ends_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates = ("--rate-429", 0.05, "--rate-5xx", 0.1, "--rate-malformed", 0.1)
    runs = []
    for name, faults in (("quiet", ()), ("faults", (*rates, "--rate-drop", 0.1))):
        folder = tmp_path / name
        folder.mkdir()
        with simulated("--seed", 3, *faults, cwd=folder) as base_url:
            run = Run(folder, base_url)
            assert run.start().outcome == "finished"
        runs.append(run)

    def refuse(*_: object) -> None:
        raise AssertionError("scoring reached for the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    quiet, faults = (run.score() for run in runs)
    assert runs[0].completed() == runs[1].completed() == WHOLE
    assert runs[1].status().attempts.failed > 10
    assert quiet.content == faults.content


def test_a_killed_run_is_taken_up_and_no_stored_answer_is_asked_for_again(
    tmp_path: Path,
) -> None:
    ledger = tmp_path / "ledger.jsonl"
    words = ("--seed", 3, "--latency-ms", 100, "--ledger", ledger)
    with (
        simulated(*words, cwd=tmp_path) as base_url,
        gated(base_url, passes=2 * ITEMS) as gate,
    ):
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, tmp_path, gate.url],
            env=dict(os.environ),
            text=True,
        )
        try:
            gate.wait(child)
        finally:
            child.send_signal(signal.SIGKILL)
            child.wait()
        gate.open()
        run = Run(tmp_path, gate.url)
        before = run.status().attempts
        assert 0 < before.answered < sum(WHOLE.values())
        assert run.resume().outcome == "finished"
    after = run.status().attempts
    assert run.completed() == WHOLE
    served = Counter(
        line.request
        for line in read_ledger(ledger)
        if line.outcome in {RequestOutcome.ANSWERED, RequestOutcome.GONE}
    )
    repeated = sum(n - 1 for n in served.values())
    assert repeated <= after.unknown <= 4 * len(run.options.all_models)
    assert after.started == sum(WHOLE.values()) + after.unknown
    assert f"{sum(WHOLE.values())} answers" in run.score().scorecard.summary


def test_a_resume_with_other_texts_to_embed_says_so(tmp_path: Path) -> None:
    with simulated("--latency-ms", 20, cwd=tmp_path) as base_url:
        run = Run(tmp_path, base_url)
        run.start()

        class Other(PanelJob):
            def request(self, dataset: PanelSettings, task: object) -> object:
                request = super().request(dataset, task)
                if task.stage == "embed":
                    return replace(request, texts=(*request.texts, "more"))
                return request

        work = load_workload(Other(), run.settings)
        with pytest.raises(RunChanged, match="another request"):
            asyncio.run(
                launch.resume(
                    run.folder, work, run.options, run.shell, accept_changes=False
                )
            )
