"""Conclusions compared by models, by command: asked once, priced, and told apart."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.commands import command
from tests.csv_files import rows
from tests.jobs.review_benchmark.database.test_reader import (
    attempts,
    generated,
    resumed,
    scored,
    tasks,
)
from tests.jobs.review_benchmark.small_review import REVIEW, stocked, write_truth


@pytest.fixture
def _papers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    truth = tmp_path / "truth"
    write_truth(truth)
    write_truth(truth, replace(REVIEW, id="CD8", conclusion="Singing may help."))
    write_truth(truth, replace(REVIEW, id="CD9", conclusion=""))
    stocked(tmp_path / "papers.db")


@pytest.mark.usefixtures("_papers")
def test_a_judge_and_vectors_are_asked_for_what_a_scoring_misses() -> None:
    generated("--verdict", "judge", "--threshold", 2, "--replicates", 2)
    judged = tasks("judge")
    # two replicates of two reviews, each beside its own authors and the other's
    pairs = Counter(row["key"].partition("#")[0] for row in judged)
    assert pairs == {"CD7~CD7": 2, "CD7~CD8": 2, "CD8~CD8": 2, "CD8~CD7": 2}
    assert {row["state"] for row in judged} == {"completed"}
    before = attempts()
    assert scored() == (0, 0)
    verdicts = rows(Path("runs/r/scores/1/verdicts.csv"))
    assert [row["reason"] for row in verdicts] == ["", "", "no_truth_conclusion"]
    assert [row["direction"] for row in verdicts] == ["unclear unclear"] * 2 + [""]
    assert len(rows(Path("runs/r/scores/1/verdict_null.csv"))) == 2
    # a plan, three scores and a conclusion, twice; what the judge says is not its work
    spent = [row["calls"] for row in rows(Path("runs/r/scores/1/per_review.csv"))]
    assert spent == ["10", "10", "8"]
    page = command("explain", "r", "CD7", "CD9").out
    assert page.count("judged 0.00 alike, direction unclear") == 2
    assert page.count("conclusion of the authors\n      | Walking may help.") == 1
    assert "\n  states improves; certainty low\n" in page
    assert page.count("  none: no_truth_conclusion") == 2
    assert scored("--set", "null_pairs=0") == (0, 4)
    assert scored("--set", "verdict=tfidf") == (0, 8)
    # a vector for each of two truths and two conclusions, and all that twice
    assert scored("--set", "verdict=embedding") == (8, 8)
    assert attempts() == before
    assert resumed("--set", "verdict=embedding").code == 0
    assert attempts() == before + 8
    assert scored() == (0, 8)


@pytest.mark.usefixtures("_papers")
def test_an_estimate_counts_the_judge_and_its_mismatched_pairs() -> None:
    options = ("--truth", "truth", "--database", "papers.db", "--threshold", 2)
    models = ("--model", "m/x", "--judge-model", "m/j", "--verdict", "judge")
    done = command("estimate", "review-benchmark", *options, *models, "--json")
    assert done.code == 0, done.err
    calls = {
        each["stage"]: (each["model"], each["calls"]["expected"])
        for each in json.loads(done.out)["stages"]
    }
    # two conclusions, each beside its own authors and those of the one other review
    assert calls["conclude"] == ("m/x", 2)
    assert calls["judge"] == ("m/j", 4)
