"""Runs of two models that end once it is decided which is better, as processes."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from runner.errors import UsageError
from runner.options import options_from
from store.database import open_reader
from store.events import fields_of
from store.read.tasks import events
from store.results import StoppingRule
from tests.commands import siftlog
from tests.corpus import write_corpus
from tests.gates import gated
from tests.processes import simulated, start, status

JOB = "paper-investigation"
KEY = {"OPENAI_API_KEY": "k"}
GOOD, POOR = "openai/q", "openai/o"
"""The simulated endpoint spoils 0.3 % of the answers of one, 40 % of the other's."""
ENOUGH = 1_100
"""Requests after which the two have parted, of the 1,619 of 100 papers (800 do)."""
SCORE = "avg_paper_score"


def _models(*names: str) -> list[str]:
    return [word for name in names for word in ("--model", name)]


def _decisions(cwd: Path, run: str) -> list[dict[str, Any]]:
    with open_reader(cwd / "runs" / run / "log.db") as reader:
        found = events(reader, kinds=["comparison_decided"])
    return [fields_of(each.event) for each in found]


@pytest.mark.timeout(300)
def test_a_run_that_was_killed_is_resumed_to_the_decision_that_its_answers_make(
    tmp_path: Path,
) -> None:
    corpus = write_corpus(tmp_path / "corpus", 100)
    with (
        simulated("--job", JOB, "--latency-ms", 40, cwd=tmp_path) as url,
        gated(url, passes=80) as gate,
    ):
        words = ("--base-url", gate.url, "--concurrency", 4, "--run-id", "r")
        process = start(
            *("run", JOB, *corpus, *_models(GOOD, POOR), *words),
            *("--stop-when-decided", SCORE),
            cwd=tmp_path,
            env=KEY,
        )
        gate.wait(process)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert _decisions(tmp_path, "r") == []
        resumed = start("resume", "r", "--no-score", cwd=tmp_path, env=KEY)
        # enough for a decision, and not all: what is decided late is still no end
        gate.let(ENOUGH)
        while not _decisions(tmp_path, "r") and resumed.poll() is None:
            time.sleep(0.1)
        gate.open()
        assert resumed.wait() == 0
    (decided,) = _decisions(tmp_path, "r")
    assert (decided["a"], decided["b"], decided["verdict"]) == (GOOD, POOR, "worse")
    assert decided["hi"] < 0
    assert (
        f"{POOR} is worse than {GOOD} in {SCORE}" in (tmp_path / "err.txt").read_text()
    )
    stands = status(tmp_path, "r")
    assert stands["state"] == "drained"
    assert stands["tasks"]["open"] > 0
    # looked at afresh, and with more answers than there were then: the same
    looked = siftlog("compare", "r", "--sequential", SCORE, "--json", cwd=tmp_path)
    (seen,) = json.loads(looked.stdout)["comparisons"]
    assert (seen["standing"], seen["n"]) == ("worse", decided["clusters"])
    assert [seen[name] for name in ("difference", "lo", "hi")] == [
        decided[name] for name in ("difference", "lo", "hi")
    ]


def test_equal_models_are_asked_everything(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus", 4)
    with simulated("--job", JOB, cwd=tmp_path) as url:
        siftlog(
            *("run", JOB, *corpus, *_models("openai/k", "openai/r"), "--run-id", "r"),
            *("--base-url", url, "--stop-when-decided", SCORE, "--no-score"),
            cwd=tmp_path,
            env=KEY,
        )
    assert _decisions(tmp_path, "r") == []
    stands = status(tmp_path, "r")
    assert (stands["state"], stands["tasks"]["open"]) == ("finished", 0)


def test_what_cannot_be_watched_is_refused_before_anything_is_asked(
    tmp_path: Path,
) -> None:
    corpus = write_corpus(tmp_path / "corpus", 1)
    words = (*_models(GOOD, POOR), "--stop-when-decided", "precision")
    done = siftlog("run", JOB, *corpus, *words, cwd=tmp_path, env=KEY, check=False)
    assert done.returncode == 2
    assert "these can: avg_variant_recall" in done.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("models", "question", "said"),
    [
        ([GOOD], SCORE, "name two with --model"),
        ([GOOD, POOR], f"{SCORE}>=2", "no number from 0 to below 1"),
        ([GOOD, POOR], f"{SCORE}>=much", "no number from 0 to below 1"),
    ],
)
def test_a_question_that_is_none_is_refused(
    models: list[str], question: str, said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        options_from({"model": models, "stop_when_decided": question})


def test_a_question_is_read_as_it_is_typed() -> None:
    stopping = options_from(
        {"model": [GOOD, POOR], "stop_when_decided": f"{SCORE}>=0.05", "alpha": 0.1}
    ).stopping
    assert stopping == StoppingRule(metric=SCORE, margin=0.05, alpha=0.1)
    assert str(stopping) == f"{SCORE}>=0.05"
