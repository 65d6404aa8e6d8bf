"""Runs without curated values: the table, no metric of a truth, a truth given later."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jobs.property_extraction.inputs import SAMPLE
from tests.commands import Done, command
from tests.csv_files import rows, write_csv
from tests.jobs.property_extraction.real_predictions import CHAT, GEMINI

REPLIES = [
    word
    for path in sorted((SAMPLE / "replies").iterdir())
    for word in ("--model", f"recorded:{path}")
]
RULES = ("--truth", SAMPLE / "truth.csv", "--rubric", SAMPLE / "rubric.csv")
QUICK = ("--set", "boot_b=50")


def siftlog(runs: Path, *words: object) -> Done:
    done = command(*words, "--runs-dir", runs)
    assert done.code == 0, done.err
    return done


def run(runs: Path, name: str, *words: object) -> Path:
    """A run of the sample's papers by its recorded models; returns its scorings."""
    papers = ("--papers", SAMPLE / "papers", *REPLIES, *QUICK, "--run-id", name)
    siftlog(runs, "run", "property-extraction", *papers, *words, "--no-report")
    return runs / name / "scores"


def card(scoring: Path) -> Any:
    return json.loads((scoring / "scorecard.json").read_bytes())


def files(scoring: Path) -> dict[str, bytes]:
    return {
        path.relative_to(scoring).as_posix(): path.read_bytes()
        for path in scoring.rglob("*.csv")
    }


def paths(scoring: Path) -> set[str]:
    return {
        path for model in card(scoring)["models"].values() for path in model["metrics"]
    }


def test_the_table_is_that_of_a_run_with_a_truth(tmp_path: Path) -> None:
    bare = run(tmp_path, "bare") / "1"
    labelled = run(tmp_path, "labelled", *RULES) / "1"
    assert files(bare)["predictions.csv"] == files(labelled)["predictions.csv"]
    extracted = rows(bare / "extracted.csv")
    grounded = [
        row for path in sorted(labelled.glob("*/grounding.csv")) for row in rows(path)
    ]
    names = ("refno", "units", "quote", "grounding", "quote_start", "value_in_text")
    assert len(grounded) > 90
    assert sorted(tuple(row[name] for name in names) for row in extracted) == sorted(
        tuple(row["unit" if name == "units" else name] for name in names)
        for row in grounded
    )


def test_metrics_of_a_truth_are_absent_and_one_note_says_so(tmp_path: Path) -> None:
    scorings = run(tmp_path, "r")
    assert {"rows", "grounded_rate", "numbers.value"} <= paths(scorings / "1")
    absent = (
        "f1",
        "precision",
        "recall",
        "tp",
        "fp",
        "encompassment",
        "units.",
        "macro",
    )
    assert not [path for path in paths(scorings / "1") if path.startswith(absent)]
    (note,) = [f for f in card(scorings / "1")["findings"] if f["code"] == "no_truth"]
    assert note["message"].endswith("siftlog score RUN --truth FILE")
    assert not (scorings / "1" / "baselines.csv").exists()
    shown = siftlog(tmp_path, "score", "r", "--no-record")
    assert "No truth given" in shown.out
    assert "TP" not in shown.out


def test_a_truth_given_later_scores_as_one_given_at_once(tmp_path: Path) -> None:
    bare, labelled = run(tmp_path, "bare"), run(tmp_path, "labelled", *RULES)
    siftlog(tmp_path, "score", "bare", *RULES, "--no-report")
    assert files(bare / "2") == files(labelled / "1")
    assert card(bare / "2")["missing"] == 0


def test_a_paper_that_only_a_later_truth_has_is_skipped_and_not_missing(
    tmp_path: Path,
) -> None:
    curated = rows(SAMPLE / "truth.csv")
    further = {**curated[0], "refno": "SL-999"}
    truth = write_csv(tmp_path / "truth.csv", [*further], [*curated, further])
    bare = run(tmp_path, "bare")
    labelled = run(tmp_path, "labelled", "--truth", truth)
    siftlog(tmp_path, "score", "bare", "--truth", truth, "--no-report")
    assert files(bare / "2") == files(labelled / "1")
    assert card(bare / "2")["missing"] == 0


def test_a_sample_is_scored_by_a_later_truth_without_its_limit(tmp_path: Path) -> None:
    scorings = run(tmp_path, "r", "--limit", 2)
    (note,) = [f for f in card(scorings / "1")["findings"] if f["code"] == "no_truth"]
    assert note["message"].endswith("--truth FILE --limit 0")
    siftlog(tmp_path, "score", "r", *RULES, "--limit", 0, "--no-report")
    (papers,) = {
        frozenset(row["refno"] for row in rows(path))
        for path in (scorings / "2").glob("*/papers.csv")
    }
    named = {row["refno"] for row in rows(scorings / "1/papers.csv")}
    assert papers == named
    assert len(named) == 2


def test_two_models_agree_where_their_values_match(tmp_path: Path) -> None:
    scoring = run(tmp_path, "r", "--rubric", SAMPLE / "rubric.csv") / "1"
    (pair,) = rows(scoring / "agreement.csv")
    only = [int(pair["only_a"]), int(pair["only_b"])]
    assert int(pair["matched"]) > 0
    total = 2 * int(pair["matched"])
    assert float(pair["agreement"]) == pytest.approx(total / (total + sum(only)))
    assert len(rows(scoring / "disagreements.csv")) == sum(only)


def test_explain_compare_and_figures_work_without_a_truth(tmp_path: Path) -> None:
    run(tmp_path, "r")
    page = siftlog(tmp_path, "explain", "r", "SL-001").out
    assert "space group" in page
    assert "truth  " not in page
    page = siftlog(tmp_path, "explain", "r", "SL-001", "space group").out
    assert "All reflections are explained" in page
    assert "FP" not in page
    assert "grounded_rate" in siftlog(tmp_path, "compare", "r").out
    siftlog(tmp_path, "score", "r")
    drawn = {path.stem for path in (tmp_path / "r/scores/2/figures").iterdir()}
    assert drawn == {"headline", "quotes"}


def test_properties_of_the_truth_need_one(tmp_path: Path) -> None:
    words = ("--papers", SAMPLE / "papers", "--properties", "truth")
    done = command("run", "property-extraction", *words, "--runs-dir", tmp_path)
    assert done.code == 2
    assert "--truth FILE" in done.err
    assert not list(tmp_path.iterdir())


@pytest.mark.realdata
@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", [GEMINI, CHAT])
def test_real_predictions_without_their_truth(
    name: str, tmp_path: Path, realdata: Path
) -> None:
    folder = realdata / "sci_llm"
    truth = ("--truth", folder / "gt.csv", "--set", "pymatgen=leave_out")
    words = ("import", "property-extraction", folder / name, "--model", "m", *QUICK)
    siftlog(tmp_path, *words, "--run-id", "bare", "--no-report")
    siftlog(tmp_path, *words, *truth, "--run-id", "labelled", "--no-report")
    bare, labelled = tmp_path / "bare/scores", tmp_path / "labelled/scores"
    assert (
        files(bare / "1")["predictions.csv"] == files(labelled / "1")["predictions.csv"]
    )
    assert [row["value_string"] for row in rows(bare / "1/extracted.csv")] == [
        row["value_string"] for row in rows(labelled / "1/predictions.csv")
    ]
    siftlog(tmp_path, "score", "bare", *truth, "--no-report")
    assert files(bare / "2") == files(labelled / "1")
