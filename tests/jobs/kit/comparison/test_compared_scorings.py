"""Recorded scorings and several sides at once, by the command over real runs."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from jobs.paper_investigation.inputs import SAMPLE
from tests.processes import siftlog

JOB = "paper-investigation"
SCORE, TOTAL = "avg_paper_score", "pipeline.TOTAL.accuracy"


@pytest.fixture(scope="module")
def cwd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run, scored twice; the file of its truth was changed after that."""
    cwd = tmp_path_factory.mktemp("scorings")
    shutil.copy(SAMPLE / "variant_bench.jsonl", cwd / "bench.jsonl")
    inputs = (
        *("--bench", "bench.jsonl"),
        *("--papers", SAMPLE / "papers"),
        *("--questions", SAMPLE / "questions"),
    )
    siftlog("run", JOB, *inputs, "--run-id=base", "--no-report", cwd=cwd)
    siftlog("score", "base", "--set=variant_case=keep", "--no-report", cwd=cwd)
    lines = (cwd / "bench.jsonl").read_text().splitlines(keepends=True)
    (cwd / "bench.jsonl").write_text("".join(lines[:4]))
    return cwd


def compared(cwd: Path, *words: object) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(
        siftlog("compare", *words, "--json", cwd=cwd).stdout
    )
    return said


def test_scorings_of_one_run_are_compared_as_they_were(cwd: Path) -> None:
    said = compared(cwd, "base@1", "base@2")
    (pair,) = said["pairs"]
    assert (pair["a"]["scoring"], pair["b"]["scoring"]) == (1, 2)
    for side, number in (("a", 1), ("b", 2)):
        card = json.loads(
            (cwd / f"runs/base/scores/{number}/scorecard.json").read_bytes()
        )
        (model,) = card["models"].values()
        for path, found in pair["metrics"].items():
            if found["only_a"] == found["only_b"] == found["undefined"] == 0:
                value = model["metrics"][path]["value"]
                assert found[side] == pytest.approx(value, abs=1e-12)
    assert said["notes"][-1] == (
        "the settings differ: variant_case (fold in base@1, keep in base@2)."
    )


def test_a_scoring_against_the_run_as_it_stands_under_other_settings(cwd: Path) -> None:
    said = compared(cwd, "base@1", "base", "--set=p_rules=clinpgx-qa")
    (pair,) = said["pairs"]
    assert (pair["a"]["scoring"], pair["b"]["scoring"]) == (1, None)
    assert pair["metrics"][SCORE]["only_a"] > 0
    changed, *_, settings, gold = said["notes"]
    assert changed == "base: bench is not the file that the run was started with."
    assert "p_rules (robust in base@1, clinpgx-qa in base)" in settings
    assert gold.startswith("bench was not the same file for base@1 and base;")


def test_of_several_sides_every_two_are_one_family(cwd: Path, tmp_path: Path) -> None:
    items = tmp_path / "items.csv"
    words = ("base@1", "base@2", "base", "--metric", SCORE, "--metric", TOTAL)
    plot = tmp_path / "front.png"
    said = compared(cwd, *words, "--items", TOTAL, "--out", items, "--plot", plot)
    sides = [(pair["a"]["scoring"], pair["b"]["scoring"]) for pair in said["pairs"]]
    assert sides == [(1, 2), (1, None), (2, None)]
    assert said["family"].startswith("3 pairs of models, within: avg_paper_score (3 ")
    front = said["front"]
    assert [place["scoring"] for place in front["sides"]] == [1, 2, None]
    assert front["metric"] == SCORE
    assert front["n"] <= min(pair["metrics"][SCORE]["n"] for pair in said["pairs"])
    assert {place["usd"] for place in front["sides"]} == {0.0}
    assert front["sides"][0]["seconds"] > 0
    assert plot.read_bytes().startswith(b"\x89PNG")
    rows = list(csv.DictReader(items.read_text().splitlines()))
    for pair in said["pairs"]:
        own = [
            row
            for row in rows
            if (row["run_a"], row["run_b"])
            == tuple(
                "base" if side["scoring"] is None else f"base@{side['scoring']}"
                for side in (pair["a"], pair["b"])
            )
        ]
        found = pair["metrics"][TOTAL]
        counts = {"wins": "win", "ties": "tie", "losses": "loss"}
        assert len(own) == found["n"]
        for name, outcome in counts.items():
            met = sum(row["outcome"] == outcome for row in own)
            assert met == found["standing"][name]
