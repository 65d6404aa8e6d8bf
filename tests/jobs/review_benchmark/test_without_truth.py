"""Questions without a truth: studies, conclusions, metrics once a truth is given."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import rispy

from jobs.review_benchmark.inputs import SAMPLE
from jobs.review_benchmark.truth_files import read_questions
from runner.errors import DatasetError
from tests.commands import Done, command
from tests.csv_files import rows, write_csv

DATABASE = ("--database", SAMPLE / "papers.db")
TRUTH = ("--truth", SAMPLE / "truth")
QUESTIONS = ("--questions", SAMPLE / "truth")
QUICK = ("--set", "boot_b=50", "--no-report")
MODELS = [
    word
    for path in sorted((SAMPLE / "replies").iterdir())
    for word in ("--model", f"recorded:{path}")
]
QUESTION = "Do garden walking groups improve the mood of family carers?"


def siftlog(runs: Path, *words: object) -> Done:
    done = command(*words, "--runs-dir", runs)
    assert done.code == 0, done.err
    return done


def run(runs: Path, name: str, *words: object) -> Path:
    """A run on the sample's database; returns its scorings."""
    siftlog(
        runs, "run", "review-benchmark", *DATABASE, *words, "--run-id", name, *QUICK
    )
    return runs / name / "scores"


def card(scoring: Path) -> Any:
    return json.loads((scoring / "scorecard.json").read_bytes())


def files(scoring: Path) -> dict[str, bytes]:
    """All that a scoring writes, but what depends on time and costs."""
    return {
        path.relative_to(scoring).as_posix(): path.read_bytes()
        for path in scoring.rglob("*")
        if path.is_file() and path.name not in {"operations.json", "verdicts.db"}
    }


def included(scoring: Path) -> list[tuple[str, str]]:
    """Questions and documents of all models."""
    table = rows(scoring / "included.csv")
    return sorted((row["question_id"], row["document_id"]) for row in table)


def test_the_included_studies_are_those_of_a_run_with_a_truth(tmp_path: Path) -> None:
    bare = run(tmp_path, "bare", *QUESTIONS, *MODELS) / "1"
    labelled = run(tmp_path, "labelled", *TRUTH, *MODELS) / "1"
    results = [
        json.loads(path.read_bytes()) for path in (labelled / "results").rglob("*.json")
    ]
    expected = sorted(
        (result["cochrane_id"], str(paper["document_id"]))
        for result in results
        for paper in result["included_papers"]
    )
    assert len(expected) > 50
    assert included(bare) == expected
    texts = {
        (row["cochrane_id"], row["model"]): row["conclusion"]
        for row in rows(labelled / "verdicts.csv")
    }
    for row in rows(bare / "conclusions.csv"):
        assert row["conclusion"] == texts[row["question_id"], row["model"]]


def test_metrics_of_a_truth_are_absent_and_one_note_says_so(tmp_path: Path) -> None:
    scoring = run(tmp_path, "r", *QUESTIONS, *MODELS) / "1"
    paths = {
        path for model in card(scoring)["models"].values() for path in model["metrics"]
    }
    names = {"questions", "concluded", "candidates", "scored", "included"}
    assert paths == names | {"included_rate"}
    (note,) = [f for f in card(scoring)["findings"] if f["code"] == "no_truth"]
    assert note["message"].endswith("siftlog score RUN --truth DIR")


def test_a_truth_given_later_scores_as_one_given_at_once(tmp_path: Path) -> None:
    bare = run(tmp_path, "bare", *QUESTIONS, *MODELS)
    labelled = run(tmp_path, "labelled", *TRUTH, *MODELS)
    siftlog(tmp_path, "score", "bare", *TRUTH, *QUICK)
    assert files(bare / "2") == files(labelled / "1")


def test_a_typed_question_gets_studies_and_references(tmp_path: Path) -> None:
    words = ("--question", QUESTION, "--inclusion", "randomised trials")
    scoring = run(tmp_path, "r", *words, "--threshold", 2) / "1"
    (conclusion,) = rows(scoring / "conclusions.csv")
    assert conclusion["question"] == QUESTION
    studies = rows(scoring / "included.csv")
    assert len(studies) == int(conclusion["included"]) > 3
    references = conclusion["references"].split(" | ")
    assert [
        study["title"].rstrip(".") in reference
        for study, reference in zip(studies, references, strict=False)
    ] == [True] * len(references)
    scores = [float(study["score"]) for study in studies]
    assert scores == sorted(scores, reverse=True)
    page = next((scoring / "answers").rglob("*.txt")).read_text("utf-8")
    assert conclusion["conclusion"][:40] in " ".join(page.split())
    (ris,) = (scoring / "answers").rglob("*.ris")
    entries = rispy.loads(ris.read_text("utf-8"))
    titles = [(entry["title"], entry.get("accession_number", "")) for entry in entries]
    assert titles == [(study["title"], study["pmid"]) for study in studies]
    explained = siftlog(tmp_path, "explain", "r", "Q1").out
    assert "drawn from" in explained
    paper = siftlog(tmp_path, "explain", "r", f"Q1:{studies[0]['document_id']}").out
    assert "included: score" in paper
    assert "study " not in paper


def test_a_typed_question_is_scored_by_a_truth_of_its_id(tmp_path: Path) -> None:
    run(tmp_path, "r", "--question", QUESTION, "--threshold", 2)
    published = json.loads((SAMPLE / "truth/cochrane_CD990004.json").read_bytes())
    truth = tmp_path / "truth"
    truth.mkdir()
    path = truth / "cochrane_Q1.json"
    path.write_text(json.dumps({**published, "cochrane_id": "Q1"}), "utf-8")
    siftlog(tmp_path, "score", "r", "--truth", truth, *QUICK)
    (metrics,) = [
        m["metrics"] for m in card(tmp_path / "r/scores/2")["models"].values()
    ]
    assert metrics["macro.recall"]["value"] > 0.5
    assert card(tmp_path / "r/scores/2")["missing"] == 0
    done = command("score", "r", *TRUTH, *QUICK, "--runs-dir", tmp_path)
    assert done.code != 0
    assert "no cochrane_id is that of a question, such as Q1" in done.err


def test_models_are_compared_by_their_decisions(tmp_path: Path) -> None:
    scoring = run(tmp_path, "r", *QUESTIONS, *MODELS) / "1"
    (pair,) = rows(scoring / "agreement.csv")
    names = ("both_include", "only_a", "only_b", "both_exclude")
    assert sum(int(pair[name]) for name in names) == int(pair["papers"])
    assert "agreement  of the decisions" in siftlog(tmp_path, "compare", "r").out


def test_no_answer_of_a_published_review_is_read_as_a_question() -> None:
    for review in read_questions(SAMPLE / "truth"):
        assert (review.studies, review.conclusion) == ((), "")
        assert (review.direction, review.certainty) == (None, None)
        assert "authors_conclusion" not in review.further


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--question", "Does it help?"), "A run needs --database"),
        (
            ("--inclusion", "trials", *DATABASE),
            "inclusion and exclusion are criteria of a question",
        ),
        (
            ("--question", "Does it help?", *QUESTIONS, *DATABASE),
            "question and questions are both given",
        ),
        (("--questions", "gone", *DATABASE), "no such folder"),
    ],
)
def test_questions_that_cannot_be_answered_are_refused(
    words: tuple[object, ...], message: str, tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    done = command("run", "review-benchmark", *words, "--runs-dir", runs)
    assert done.code != 0
    assert message in " ".join(done.err.split())
    assert not runs.exists()


def test_a_file_without_a_question_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    path.write_text(json.dumps({"cochrane_id": "Q7", "title": "Naps"}), "utf-8")
    with pytest.raises(DatasetError, match=r"one\.json: missing or empty: research"):
        read_questions(path)
    shutil.copy(path, tmp_path / "two.json")
    fields = {"cochrane_id": "Q7", "research_question": "Do naps help?"}
    for name in ("one.json", "two.json"):
        (tmp_path / name).write_text(json.dumps(fields), "utf-8")
    with pytest.raises(DatasetError, match=r"Q7 is also in one\.json"):
        read_questions(tmp_path)


@pytest.mark.realdata
@pytest.mark.timeout(120)
def test_real_reviews_without_their_truth(tmp_path: Path, realdata: Path) -> None:
    folder = realdata / "bmlibrarian"
    papers = []
    for path in sorted((folder / "agent_runs").glob("*full_library.json")):
        result = json.loads(path.read_bytes())
        papers += [*result["included_papers"], *result["excluded_papers"]]
    columns = ("pmid", "doi", "title", "year")
    table = write_csv(tmp_path / "papers.csv", columns, papers)
    database = tmp_path / "papers.db"
    siftlog_import = ("prepare", "review-benchmark", "import", table)
    assert command(*siftlog_import, "--database", database).code == 0
    truth = folder / "ground_truth"
    words = ("--title-criteria", "--threshold", 2, "--database", database)
    bare = run(tmp_path, "bare", "--questions", truth, *words)
    labelled = run(tmp_path, "labelled", "--truth", truth, *words)
    assert len(included(bare / "1")) > 20
    siftlog(tmp_path, "score", "bare", "--truth", truth, *QUICK)
    later, at_once = files(bare / "2"), files(labelled / "1")
    assert later["matches.csv"] == at_once["matches.csv"]
    results = [
        json.loads(data)
        for name, data in at_once.items()
        if name.startswith("results/")
    ]
    assert included(bare / "1") == sorted(
        (result["cochrane_id"], str(paper["document_id"]))
        for result in results
        for paper in result["included_papers"]
    )
