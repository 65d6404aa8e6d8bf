"""Prices and budgets on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.answering import answering
from tests.commands import siftlog
from tests.corpus import write_corpus
from tests.processes import simulated, status

JOB = "paper-investigation"
PRICES = {"SIFTLOG_ALLOW_UNKNOWN_PRICE": ""}


@pytest.fixture
def corpus(tmp_path: Path) -> list[str]:
    return write_corpus(tmp_path / "corpus", 3)


@pytest.mark.parametrize("verb", ["run", "run --no-score"])
def test_an_unknown_price_is_refused_before_anything_is_written(
    tmp_path: Path, corpus: list[str], verb: str
) -> None:
    words = (
        *verb.split(),
        JOB,
        *corpus,
        "--model=mine",
        "--base-url=http://127.0.0.1:9",
    )
    done = siftlog(*words, "--run-id=r", cwd=tmp_path, check=False, env=PRICES)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "The price of mine is unknown" in done.stderr
    assert not (tmp_path / "runs").exists()


SHORT = 0.75
"""Of what the run costs: calls fit at their worst, a token a byte, but not all."""


def test_a_run_ends_at_its_budget_is_scored_and_goes_on_with_a_higher_one(
    tmp_path: Path, corpus: list[str]
) -> None:
    with simulated("--job", JOB, cwd=tmp_path) as url:
        words = (JOB, *corpus, "--model=mine", "--base-url", url, "--price=100,10")
        siftlog("generate", *words, "--run-id=all", cwd=tmp_path, env=PRICES)
        whole = status(tmp_path, "all")["cost_usd"]

        money = ("--budget", whole * SHORT, "--run-id=r", "--json")
        done = siftlog("run", *words, *money, cwd=tmp_path, check=False, env=PRICES)
        last = json.loads(done.stdout.splitlines()[-1])
        assert (done.returncode, last["exit"], last["scoring"]) == (4, 4, 1)
        assert "is reached: $" in done.stderr
        assert "tasks are open and missing from scores" in done.stderr
        assert "siftlog resume r --budget USD" in done.stderr

        said = status(tmp_path, "r")
        assert said["state"] == "budget_stop"
        assert said["budget_usd"] == pytest.approx(whole * SHORT)
        assert whole / 4 < said["cost_usd"] <= whole * SHORT
        check = siftlog("status", "r", "--check", cwd=tmp_path, check=False)
        assert check.returncode == 4

        # price and cap hold until others are said
        again = siftlog("resume", "r", cwd=tmp_path, check=False, env=PRICES)
        assert again.returncode == 4
        assert status(tmp_path, "r")["attempts"] == said["attempts"]
        siftlog("resume", "r", "--budget", whole * 9, cwd=tmp_path, env=PRICES)
        said = status(tmp_path, "r")
        assert said["state"] == "finished"
        assert said["budget_usd"] == pytest.approx(whole * 9)
        assert said["cost_usd"] == whole


def test_dollars_are_added_to_a_budget_and_counted_from_the_next_resume_on(
    tmp_path: Path, corpus: list[str]
) -> None:
    with simulated("--job", JOB, cwd=tmp_path) as url:
        words = (JOB, *corpus, "--model=mine", "--base-url", url, "--price=100,10")
        money = ("--budget=0.1", "--run-id=r")
        run = siftlog("generate", *words, *money, cwd=tmp_path, check=False, env=PRICES)
        assert run.returncode == 4, run.stderr
        siftlog("budget", "r", "--add=5", cwd=tmp_path)
        siftlog("resume", "r", "--no-score", cwd=tmp_path, env=PRICES)
    said = status(tmp_path, "r")
    assert (said["state"], said["budget_usd"]) == ("finished", 5.1)


@pytest.mark.parametrize("how", [(), ("--dry-run",), ("--no-wait",)])
def test_nothing_is_added_where_no_budget_was_given(
    tmp_path: Path, corpus: list[str], how: tuple[str, ...]
) -> None:
    siftlog("generate", JOB, *corpus, "--run-id=r", cwd=tmp_path)
    done = siftlog("budget", "r", "--add=5", *how, cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert "has no budget" in done.stderr
    assert "siftlog resume r --budget USD" in done.stderr
    assert not (tmp_path / "runs/r/control.jsonl").exists()


def test_answers_from_before_there_was_a_price_are_told_to_be_left_out(
    tmp_path: Path, corpus: list[str]
) -> None:
    with answering(lambda _: "[]") as endpoint:
        words = (JOB, *corpus, "--model=mine", "--base-url", endpoint.url)
        free = ("--allow-unknown-price", "--run-id=r")
        siftlog("generate", *words, *free, cwd=tmp_path, env=PRICES)
        money = ("--price=1,1", "--budget=5", "--no-score")
        done = siftlog("resume", "r", *money, cwd=tmp_path, env=PRICES)
    assert "the budget counts without them" in done.stderr


def test_a_budget_below_the_first_call_sends_nothing_and_says_so(
    tmp_path: Path, corpus: list[str]
) -> None:
    with answering(lambda _: "[]") as endpoint:
        words = ("run", JOB, *corpus, "--model=mine", "--base-url", endpoint.url)
        money = ("--price=1,1", "--budget=0.0001", "--run-id=r")
        done = siftlog(*words, *money, cwd=tmp_path, check=False, env=PRICES)
        assert done.returncode == 4
        assert "is too small: a single call of mine may cost $" in done.stderr
        assert endpoint.asked == []


def test_a_models_table_of_the_configuration_has_its_price(
    tmp_path: Path, corpus: list[str]
) -> None:
    with answering(lambda _: "[]") as endpoint:
        (tmp_path / "run.toml").write_text(
            f'model = ["mine"]\nbase_url = "{endpoint.url}"\n'
            '[models."mine"]\nusd_per_mtok_in = 1000000\nusd_per_mtok_out = 0\n'
        )
        siftlog(
            *("generate", JOB, *corpus, "--config=run.toml", "--run-id=r"),
            cwd=tmp_path,
            env=PRICES,
        )
        said = status(tmp_path, "r")
        # the endpoint counts one token a prompt
        assert said["cost_usd"] == said["attempts"]["answered"] == said["tokens_in"]


def test_what_nobody_is_paid_for_is_said_to_cost_nothing(
    tmp_path: Path, corpus: list[str]
) -> None:
    siftlog("generate", JOB, *corpus, "--run-id=r", cwd=tmp_path, env=PRICES)
    assert "cost      $0.0000\n" in siftlog("status", "r", cwd=tmp_path).stdout
    with answering(lambda _: "[]") as endpoint:
        siftlog(
            *("generate", JOB, *corpus, "--model=mine", "--base-url", endpoint.url),
            *("--allow-unknown-price", "--run-id=unpriced"),
            cwd=tmp_path,
            env=PRICES,
        )
    assert (
        "cost      ? (a price is unknown)\n"
        in siftlog("status", "unpriced", cwd=tmp_path).stdout
    )
