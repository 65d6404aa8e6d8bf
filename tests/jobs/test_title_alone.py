"""A review of which only the title is known starts no run unless that is asked for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jobs.review_benchmark.data import QuestionParts, Review, TruthPaper
from jobs.review_benchmark.inputs import SAMPLE as REVIEWS
from jobs.screening.inputs import SAMPLE as SCREENING
from tests.commands import siftlog


def _screening(_folder: Path) -> tuple[object, ...]:
    # one review of the shipped set has neither criteria nor sections
    return ("screening", "--validation-set", SCREENING / "set")


def _searching(folder: Path) -> tuple[object, ...]:
    path = next((REVIEWS / "truth").glob("*.json"))
    review = json.loads(path.read_text("utf-8"))
    for name in ("pico", "inclusion_criteria", "exclusion_criteria"):
        review.pop(name, None)
    review["research_question"] = f"{review['title']}?"
    (folder / path.name).write_text(json.dumps(review), "utf-8")
    database = REVIEWS / "papers.db"
    return ("review-benchmark", "--truth", folder, "--database", database)


@pytest.mark.parametrize("words", [_screening, _searching])
def test_a_run_by_titles_alone_is_refused_unless_it_is_asked_for(
    words: object, tmp_path: Path
) -> None:
    asked = words(tmp_path)  # type: ignore[operator]
    run = ("run", *asked, "--run-id", "r")
    for refused in (run, ("estimate", *asked)):
        done = siftlog(*refused, cwd=tmp_path, check=False)
        assert done.returncode == 1
        assert "by the title alone" in done.stderr
        assert "--title-criteria" in done.stderr
    assert not (tmp_path / "runs").exists()
    siftlog(*run, "--title-criteria", cwd=tmp_path)
    # the refusal is of runs that begin: what there is can be scored under any settings
    siftlog("score", "r", "--set", "title_criteria=false", cwd=tmp_path)


def test_criteria_that_must_come_from_a_file_leave_other_reviews_out(
    tmp_path: Path,
) -> None:
    words = (*_screening(tmp_path), "--criteria-source", "file")
    done = siftlog("run", *words, "--run-id", "r", cwd=tmp_path)
    assert "306 of 306 done" in done.stderr  # of 375 records


def _review(**fields: object) -> Review:
    known = {"title": "Light for sleep", "question": "Light for sleep?"}
    study = TruthPaper(title="A study")
    return Review(id="CD1", studies=(study,), **{**known, **fields})  # type: ignore[arg-type]


def test_a_question_of_its_own_or_any_criterion_is_more_than_a_title() -> None:
    assert _review().is_title_alone
    assert _review(pico=QuestionParts()).is_title_alone
    assert _review(question="LIGHT, for: sleep").is_title_alone
    assert not _review(question="Does light help people to sleep?").is_title_alone
    assert not _review(pico=QuestionParts(population="adults")).is_title_alone
    assert not _review(inclusion=("trials",)).is_title_alone
    assert not _review(exclusion=("surveys",)).is_title_alone
