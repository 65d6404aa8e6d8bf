"""The real process, killed as it asks by batches: nothing is billed or recorded twice.

The endpoint is the project's own, in both forms. It misbehaves, keeps some batches to
itself that it has created, and bills in a ledger of its own.
"""

from __future__ import annotations

import os
import random
import shutil
import time
from collections import Counter
from pathlib import Path

import pytest

from runner.simulate.billing import BatchAct
from store.database import open_reader
from store.events import AttemptAnswered
from store.read.tasks import events
from store.runs import RunFolder
from tests.gates import gated
from tests.ledgers import read_batch_ledger
from tests.plugging import plugged
from tests.processes import siftlog, simulated, start, status

PROVE = "SIFTLOG_PROVE" in os.environ
LAG_S = 0.5 if PROVE else 0.2
"""Until the provider shows a batch that it has."""
SETTLE_S = 3.0 if PROVE else 1.0
LOST = ("--batch-lost-create-rate", 0.2, "--batch-lag-seconds", LAG_S)
MISBEHAVING = (
    *("--rate-429", 0.02, "--rate-5xx", 0.02, "--rate-drop", 0.02),
    *("--rate-malformed", 0.02, "--batch-error-rate", 0.05),
    *("--batch-expire-rate", 0.02, *LOST),
)
ASKED = (
    *("--batch", "--batch-requests=9", "--batch-poll-s=0.1", "--price=1,2"),
    *("--timeout-s=2", "--grace-s=1", "--no-score"),
)
KILLS = 25 if PROVE else 1
"""Of each form."""
PASSES = 16 if PROVE else 1
"""Requests other than looks that a process may make before it is killed; the run needs
some more than all its processes may make."""
LOSSES = 3 if PROVE else 1
FORMS = ("anthropic", "openai") if PROVE else ("anthropic",)
"""The form whose lists tell less comes first; the other one's short form is
`tests/runner/batch/test_batch_forms.py`."""


def _billed(ledger: Path) -> Counter[int]:
    """How often each task's answer was paid for."""
    return Counter(
        int(line.custom_id.split("-")[-2])
        for line in read_batch_ledger(ledger)
        if line.act is BatchAct.BILLED
    )


def _at(form: str, url: str, environment: dict[str, str]) -> tuple[str, ...]:
    """The options that reach batches of a form; Anthropic's go by the environment."""
    if form == "openai":
        return f"--base-url={url}", "--api-key-env=SIMULATED_KEY"
    environment["ANTHROPIC_BASE_URL"] = url
    return ("--api-key-env=SIMULATED_KEY",)


def _recorded(folder: Path) -> Counter[int]:
    """How often each task's answer stands in the log."""
    with open_reader(RunFolder(folder / "runs/r").log) as reader:
        found = events(reader, kinds=["attempt_answered"], limit=100_000)
    return Counter(
        each.event.task for each in found if isinstance(each.event, AttemptAnswered)
    )


@pytest.mark.parametrize("form", FORMS)
def test_a_killed_process_pays_for_no_item_of_a_batch_again(
    form: str, tmp_path: Path
) -> None:
    environment = {
        **plugged(tmp_path / "plugged", survey="tests.crash.survey.job:job"),
        "SIMULATED_KEY": "any-key-will-do",
    }
    ledger = tmp_path / "ledger.jsonl"
    chance = random.Random(3)
    server = (
        *("--job", "survey", "--seed", 5, "--ledger", ledger),
        *("--batch-seconds", *((0.6, *MISBEHAVING) if PROVE else (0.3, *LOST))),
    )
    with (
        simulated(*server, cwd=tmp_path, env=environment) as url,
        gated(url, passes=0) as gate,
    ):
        (tmp_path / "run.toml").write_text(f"batch_settle_s = {SETTLE_S}\n")
        endpoint = _at(form, gate.url, environment)
        what = ("survey", f"--model={form}/m", "--reask=0", "--config=run.toml")
        new = ("run", *what, "--run-id=r")
        sizes = ("--items=900", "--words=3") if PROVE else ("--items=8", "--words=0")
        command = (*new, *sizes)
        for _ in range(KILLS):
            gate.let(PASSES)
            process = start(*command, *ASKED, *endpoint, cwd=tmp_path, env=environment)
            while not ledger.stat().st_size:
                time.sleep(0.01)  # a run that never began could not be resumed
            time.sleep(chance.uniform(0, 1.5 if PROVE else 0.4))
            assert process.poll() is None, "the run was over before its kills were"
            process.kill()
            process.wait()
            command = ("resume", "r")
        gate.open()
        siftlog(*command, *ASKED, *endpoint, cwd=tmp_path, env=environment, check=False)

    end = status(tmp_path, "r")
    assert (end["tasks"]["open"], end["attempts"]["unknown"]) == (0, 0)
    assert end["batches"] == {"open": 0, "requests": 0, "oldest_age_s": None}
    assert end["possible_usd"] == end["in_flight_usd"] == 0
    billed, recorded = _billed(ledger), _recorded(tmp_path)
    assert set(billed.values()) == set(recorded.values()) == {1}
    assert billed == recorded
    assert len(recorded) == end["tasks"]["completed"]


@pytest.mark.parametrize("form", FORMS if PROVE else ("openai",))
def test_a_run_whose_log_is_lost_pays_for_no_item_of_a_batch_again(
    form: str, tmp_path: Path
) -> None:
    environment = {
        **plugged(tmp_path / "plugged", survey="tests.crash.survey.job:job"),
        "SIMULATED_KEY": "any-key-will-do",
    }
    ledger = tmp_path / "ledger.jsonl"
    server = ("--job", "survey", "--seed", 5, "--ledger", ledger, "--batch-seconds", 1)
    with simulated(*server, cwd=tmp_path, env=environment) as url:
        endpoint = _at(form, url, environment)
        command = (
            *("run", "survey", f"--model={form}/m", "--reask=0", "--run-id=r"),
            *("--items=40", "--words=0", "--batch-adopt", *ASKED, *endpoint),
        )
        for _ in range(LOSSES):
            process = start(*command, cwd=tmp_path, env=environment)
            made = len(ledger.read_bytes())
            while process.poll() is None and (
                len(ledger.read_bytes()) == made or not _has_batches(ledger)
            ):
                time.sleep(0.01)
            process.kill()
            process.wait()
            shutil.rmtree(tmp_path / "runs/r")
        siftlog(*command, cwd=tmp_path, env=environment, check=False)
    billed, recorded = _billed(ledger), _recorded(tmp_path)
    assert len(recorded) == 40
    assert billed == recorded
    assert set(billed.values()) == {1}


def _has_batches(ledger: Path) -> bool:
    """Whether the provider has any: what is not sent yet cannot be lost."""
    return any(line.act is BatchAct.CREATED for line in read_batch_ledger(ledger))
