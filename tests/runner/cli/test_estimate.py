"""Estimates on the command line, before a run, beside it, and instead of another."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import processes
from tests.commands import siftlog
from tests.corpus import write_corpus
from tests.processes import simulated, status

JOB = "paper-investigation"
PRICED = ("--model=openai/m", "--price=1,4")


def _estimate(*words: object, cwd: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        siftlog("estimate", *words, "--json", cwd=cwd).stdout
    )
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("estimates")


@pytest.fixture(scope="module")
def corpus(folder: Path) -> list[str]:
    return write_corpus(folder / "corpus", 12)


@pytest.fixture(scope="module")
def endpoint(folder: Path) -> Iterator[str]:
    with simulated("--job", JOB, "--latency-ms", 40, cwd=folder) as url:
        yield url


@pytest.fixture(scope="module")
def run(folder: Path, corpus: list[str], endpoint: str) -> str:
    """A finished run with a price."""
    words = (*corpus, *PRICED, f"--base-url={endpoint}", "--concurrency=4")
    siftlog("generate", JOB, *words, "--run-id=priced", cwd=folder)
    return "priced"


def test_an_estimate_makes_the_calls_that_the_baseline_would(tmp_path: Path) -> None:
    found = _estimate(JOB, cwd=tmp_path)
    assert not (tmp_path / "runs").exists()
    assert found["items"] == found["tried"] == 10
    assert found["cost_usd"] == {"low": 0, "expected": 0, "high": 0}
    siftlog("generate", JOB, "--run-id=offline", cwd=tmp_path)
    stands = status(tmp_path, "offline")
    assert found["calls"]["expected"] == stands["attempts"]["answered"]
    # nothing that costs was asked
    assert stands["estimate"] is None


def test_a_dry_run_is_an_estimate(folder: Path, corpus: list[str]) -> None:
    words = (*corpus, *PRICED)
    dry = siftlog("run", JOB, *words, "--dry-run", "--json", cwd=folder)
    assert json.loads(dry.stdout) == _estimate(JOB, *words, cwd=folder)
    assert not list((folder / "runs").glob("*dry*"))


def test_figures_stand_in_order_and_add_up(folder: Path, corpus: list[str]) -> None:
    words = (*corpus, *PRICED, "--model=openai/n", "--rpm=60", "--replicates=2")
    found = _estimate(JOB, *words, cwd=folder)
    for figures in (found, *found["models"].values(), *found["stages"]):
        for name in ("calls", "tokens_in", "tokens_out", "cost_usd"):
            span = figures[name]
            assert span["low"] <= span["expected"] <= span["high"]
    models = found["models"]
    assert list(models) == ["openai/m", "openai/n"]
    each = models["openai/m"]["calls"]["expected"]
    assert found["calls"]["expected"] == 2 * each
    # a call a second, side by side
    assert found["hours"]["expected"] == pytest.approx(each / 3600, abs=1e-4)


def test_a_budget_is_held_against_the_figures(folder: Path, corpus: list[str]) -> None:
    words = (JOB, *corpus, *PRICED)
    assert _estimate(*words, "--budget=1000", cwd=folder)["budget"] == {
        "usd": 1000,
        "verdict": "holds",
    }
    said = siftlog("estimate", *words, "--budget=0.0001", cwd=folder).stdout
    assert "A budget of $0.0001 does not hold: the low figure is" in said
    assert "assumed:\n  " in said


def test_an_unknown_price_is_shown_as_unknown(folder: Path, corpus: list[str]) -> None:
    words = (JOB, *corpus, "--model=nobody/knows")
    assert _estimate(*words, cwd=folder)["cost_usd"] is None
    said = siftlog("estimate", *words, "--budget=5", cwd=folder).stdout
    assert "? (a price is unknown)" in said
    assert "has no effect while a price is unknown" in said


def test_litellm_counts_only_when_asked(folder: Path, corpus: list[str]) -> None:
    words = (JOB, *corpus, "--model=gpt-4o")
    rule = _estimate(*words, cwd=folder)["tokens_in"]["expected"]
    # in a process of its own: litellm sets a variable when it is imported
    counting = ("estimate", *words, "--count-tokens", "--json")
    printed = processes.siftlog(*counting, cwd=folder).stdout
    counted = json.loads(printed)["tokens_in"]["expected"]
    assert rule == pytest.approx(counted, rel=0.15)
    assert rule != counted


def test_earlier_replies_are_believed(
    folder: Path, corpus: list[str], run: str
) -> None:
    words = (JOB, *corpus, "--price=1,4")
    known = _estimate(*words, "--model=openai/m", cwd=folder)
    new = _estimate(*words, "--model=openai/new", cwd=folder)
    stands = status(folder, run)
    calls = stands["attempts"]["answered"]
    mean = int(str(stands["tokens_out"])) / calls
    each = known["tokens_out"]["expected"] / known["calls"]["expected"]
    assert each == pytest.approx(mean, rel=0.2)
    assert known["tokens_out"] != new["tokens_out"]


def test_status_tells_how_good_the_estimate_was(folder: Path, run: str) -> None:
    estimate: Any = status(folder, run)["estimate"]
    assert estimate["done"] == 1
    cost = estimate["cost_usd"]
    assert cost["comes_to"] == cost["so_far"] == status(folder, run)["cost_usd"]
    assert cost["low"] <= cost["so_far"] <= cost["high"]
    said = siftlog("status", run, cwd=folder).stdout
    assert "estimate  $" in said
    assert " before the start\n" in said


def test_a_recorded_run_is_played_again_under_other_limits(
    folder: Path, run: str
) -> None:
    stands: Any = status(folder, run)
    same = _estimate("--from", run, cwd=folder)
    assert same["cost_usd"] == pytest.approx(stands["cost_usd"])
    assert same["models"]["openai/m"]["calls"] == stands["attempts"]["started"]
    wide = _estimate("--from", run, "--concurrency=64", cwd=folder)
    assert wide["seconds"] < same["seconds"] / 2
    slow = _estimate("--from", run, "--rpm=60", cwd=folder)
    assert slow["seconds"] == pytest.approx(stands["attempts"]["started"], rel=0.1)
    dear = _estimate("--from", run, "--price=2,8", cwd=folder)
    assert dear["cost_usd"] == pytest.approx(2 * stands["cost_usd"])
    poor = _estimate("--from", run, "--budget=0.0001", cwd=folder)
    assert poor["budget"] == {"usd": 0.0001, "verdict": "does not hold"}
    said = siftlog("estimate", "--from", run, "--budget=5", cwd=folder).stdout
    assert "budget     $5.0000: holds" in said
    assert "at most 4 calls at a time" in said
    assert "assumed:\n  " in said


def test_other_models_go_like_the_one_that_was_asked(folder: Path, run: str) -> None:
    words = ("--from", run, "--model=openai/m", "--model=openai/n")
    found = _estimate(*words, cwd=folder)
    assert found["models"]["openai/m"]["calls"] == found["models"]["openai/n"]["calls"]
    assert "openai/n answers as openai/m did" in found["assumes"]


def test_a_model_that_stands_in_has_a_price_of_its_own(folder: Path, run: str) -> None:
    words = ("--from", run, "--model=openai/m", "--model=openai/gpt-4o")
    found = _estimate(*words, cwd=folder)["models"]
    alike, dear = found["openai/m"], found["openai/gpt-4o"]
    assert alike["cost_usd"] == pytest.approx(status(folder, run)["cost_usd"])
    listed = 2.5e-6 * dear["tokens_in"] + 10e-6 * dear["tokens_out"]
    assert dear["cost_usd"] == pytest.approx(listed)
    unknown = _estimate("--from", run, "--model=nobodys", cwd=folder)
    assert unknown["cost_usd"] is None


def test_a_limit_is_lifted_by_inf(
    folder: Path, corpus: list[str], endpoint: str
) -> None:
    words = (*corpus, *PRICED, f"--base-url={endpoint}", "--rpm=6000")
    siftlog("generate", JOB, *words, "--run-id=limited", cwd=folder)
    kept = _estimate("--from=limited", cwd=folder)
    lifted = _estimate("--from=limited", "--rpm=inf", cwd=folder)
    assert lifted["seconds"] < kept["seconds"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "Name a recorded run to replay; siftlog run JOB --dry-run"),
        ((JOB, "--from", "priced"), "RUN defines the job"),
        (("--from", "priced", "--bench=x"), "RUN defines the job"),
        (("--from", "priced", "--replicates=3"), "uses the replicates of its run"),
        (("--from", "nowhere"), "no run in runs has the id or prefix 'nowhere'"),
        ((JOB, "--rpm=-1"), "Option rpm"),
    ],
)
def test_what_cannot_be_estimated_is_said_in_a_sentence(
    folder: Path, run: str, words: tuple[str, ...], said: str
) -> None:
    del run
    done = siftlog("estimate", *words, cwd=folder, check=False)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
