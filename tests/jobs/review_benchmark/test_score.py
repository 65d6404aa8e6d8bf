"""The files of a scoring: names, fields and rows, whatever ids and texts hold."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.review_benchmark.documents import ResultPaths
from jobs.review_benchmark.score import score
from runner.score.result_files import _inside, write_files
from runner.scorecard import ReferenceLine, Scorecard, StreamedRow
from tests.jobs.review_benchmark.agents import Given
from tests.jobs.review_benchmark.lost_studies import (
    CALM,
    FIRST,
    LOST_AT,
    SECOND,
    SLEEP,
    imported,
    scored,
)
from tests.jobs.review_benchmark.small_review import read_review

NAMES = st.lists(st.text(max_size=30), min_size=1, max_size=4, unique=True)


@pytest.fixture
def card(tmp_path: Path) -> Scorecard:
    return scored(tmp_path)


def documents(card: Scorecard) -> dict[str, Any]:
    return {
        own.name: json.loads(own.text)
        for own in card.artifacts
        if own.name.endswith(".json")
    }


def rows(card: Scorecard, table: str) -> list[dict[str, Any]]:
    (declared,) = (own for own in card.tables if own.name == table)
    cells = declared.rows or [
        own.cells
        for own in card.details
        if isinstance(own, StreamedRow) and own.table == table
    ]
    return [dict(zip(declared.columns, each, strict=True)) for each in cells]


@given(NAMES, NAMES)
def test_each_result_has_a_safe_file_of_its_own(
    models: list[str], reviews: list[str]
) -> None:
    places = ResultPaths(models, reviews)
    files = [places.result(model, review) for model in models for review in reviews]
    assert len({name.lower() for name in files}) == len(files)
    assert {_inside(name).count("/") for name in files} == {1 + (len(models) > 1)}


def test_results_of_several_models_lie_in_folders(card: Scorecard) -> None:
    names = [name for name in documents(card) if name.startswith("results/")]
    assert names == [
        f"results/{model}/benchmark_{review}.json"
        for model in ("a_one", "b__two__2J_")
        for review in ("CD_8_..__", "CD7")
    ]


def test_a_result_has_all_fields_and_rounds_in_its_summary_alone(
    card: Scorecard,
) -> None:
    own = documents(card)["results/a_one/benchmark_CD7.json"]
    known = {
        "cochrane_id": "CD7",
        "model": FIRST,
        "total_ground_truth_papers": 7,
        "total_agent_included": 2,
        "papers_found": 5,
        "papers_found_and_included": 1,
        "papers_not_found": 2,
        "papers_found_but_excluded": 4,
        "recall": 1 / 7,
        "precision": 0.5,
        "passed": False,
        "match_methods": {"null": 2, "pmid": 5},
        "distinct_documents_matched": 5,
        "failure_reasons": [
            "2 ground truth paper(s) not found in database",
            "4 ground truth paper(s) found but not included",
        ],
        "ceiling": 5 / 7,
        "retrieval_recall": 3 / 7,
        "screening_recall": 1 / 3,
        "recall_distinct": 1 / 7,
        "nnr": 2.0,
        "plan_fallback": False,
    }
    assert {name: own[name] for name in known} == known
    assert own["summary"]["recall"] == 0.1429
    assert {name: own[name] for name in own["summary"]} == own["summary"] | {
        "recall": 1 / 7
    }
    assert (own["settings"]["threshold"], own["threshold"]) == (None, 3.0)
    assert len(own["truth_sha256"]) == len(own["database_sha256"]) == 64
    assert own["versions"].keys() == {"siftlog", "format"}


def test_a_result_holds_the_review_it_was_held_against(
    card: Scorecard, tmp_path: Path
) -> None:
    own = documents(card)["results/a_one/benchmark_CD7.json"]
    path = tmp_path / "cochrane_CD7.json"
    path.write_text(json.dumps(own["ground_truth"]))
    # a truth file by itself, with every study, criterion and the conclusion
    found = read_review(path)
    assert [study.pmid for study in found.studies] == [
        study.pmid for study in SLEEP.studies
    ]
    # readers strip blanks; nothing else may differ
    assert replace(found, studies=()) == replace(SLEEP, studies=())


def test_a_result_of_an_import_names_no_threshold_of_ours() -> None:
    card = score(*imported())
    found = [own for own in documents(card).values() if "ground_truth" in own]
    assert found
    assert {own["threshold"] for own in found} == {None}
    hints = " ".join(row["hint"] for row in rows(card, "lost_papers"))
    assert "too low" not in hints
    (figure,) = (own for own in card.figures if own.name == "threshold")
    assert "Dashed" not in figure.caption
    assert not any(
        isinstance(mark, ReferenceLine)
        for panel in figure.panels
        for mark in panel.marks
    )


def test_every_study_is_a_match_and_every_lost_one_says_where(card: Scorecard) -> None:
    own = documents(card)["results/a_one/benchmark_CD7.json"]
    assert tuple(match["lost_at"] for match in own["matches"]) == LOST_AT
    assert [match["ground_truth_index"] for match in own["matches"]] == [*range(7)]
    assert own["matches"][0]["ground_truth_paper"] == {
        "pmid": "90000001",
        "title": "Walking at dusk",
        "cochrane_ref_id": "Ahn 2008",
    }
    assert [match["matched_document_id"] for match in own["matches"]] == [
        *"12345",
        None,
        None,
    ]
    assert [each["ground_truth_index"] for each in own["lost"]] == [1, 2, 3, 4, 5, 6]
    near = own["lost"][4]["nearest"]
    assert near["document_id"] == "6"
    assert 0.8 <= near["ratio"] < 0.85
    table = rows(card, "lost_papers")
    mine = [row for row in table if row["model"] == FIRST]
    assert [row["hint"] for row in mine] == [each["hint"] for each in own["lost"]]
    assert all(each["hint"] for each in own["lost"])
    assert Counter(row["model"] for row in rows(card, "matches")) == {
        FIRST: 8,
        SECOND: 8,
    }


def test_the_sweep_and_the_curve_end_where_the_scoring_is(card: Scorecard) -> None:
    sweep = [
        row
        for row in rows(card, "threshold_sweep")
        if (row["model"], row["cochrane_id"]) == (FIRST, "CD7")
    ]
    assert [row["threshold"] for row in sweep] == [4.0, 1.5]
    assert [row["recall"] for row in sweep] == [1 / 7, 2 / 7]
    curve = [
        row
        for row in rows(card, "retrieval_curve")
        if (row["model"], row["cochrane_id"]) == (FIRST, "CD7")
    ]
    assert (curve[-1]["kept"], curve[-1]["recall"]) == (4, 3 / 7)
    review = rows(card, "per_review")[1]
    assert review["candidates"] == 4
    assert review["lost_date_filtered"] == 1
    (pair,) = rows(card, "comparison")
    assert (pair["left_alone"], pair["right_alone"], pair["n"]) == (0, 2, 8)


def test_the_failure_report_acts_on_no_text_from_outside(card: Scorecard) -> None:
    (report,) = (own for own in card.artifacts if own.name == "failure_report.md")
    assert "1 of 2 reviews failed." in report.text
    assert CALM.title not in report.text
    assert "`date_filtered` (1):" in report.text
    assert r"Walking \| \<b\>uphill\</b\>" in report.text
    assert "\x1b" not in report.text


def test_an_import_has_no_database_and_no_ranks() -> None:
    dataset, answers = imported()
    card = score(dataset, answers)
    own = documents(card)["results/benchmark_CD7.json"]
    assert own["database_sha256"] is None
    assert own["matches"][1]["rationale"] == "Too old."
    assert rows(card, "retrieval_curve") == []
    summary = documents(card)["summary.json"]
    assert summary["models"]["x"]["reviews"]["CD7"]["recall"] == 1 / 7
    assert "macro.recall" in summary["models"]["x"]["metrics"]


def test_what_is_written_has_the_names_that_people_expect(
    card: Scorecard, tmp_path: Path
) -> None:
    write_files(tmp_path / "draft", card, b"{}", b"{}")
    written = {path.name for path in (tmp_path / "draft").iterdir()}
    assert written == {
        "baselines.csv",
        "baselines.txt",
        "comparison.csv",
        "failure_report.md",
        "history.csv",
        "lost_papers.csv",
        "matches.csv",
        "metrics.csv",
        "operations.json",
        "per_review.csv",
        "result.json",
        "results",
        "retrieval_curve.csv",
        "scorecard.json",
        "summary.json",
        "summary.txt",
        "threshold_sweep.csv",
        "verdicts.db",
    }
    assert (tmp_path / "draft/results/a_one/benchmark_CD7.json").is_file()


def test_a_review_without_answers_is_in_no_file() -> None:
    dataset, answers = imported()
    nothing = Given(models=answers.models, each=(), imported=True)
    card = score(dataset, nothing)
    assert not [name for name in documents(card) if name.startswith("results/")]
    assert not list(card.figures)
    assert "Benchmark Result" not in card.summary
