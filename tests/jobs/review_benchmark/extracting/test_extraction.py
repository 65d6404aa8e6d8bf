"""A whole extraction: what is asked, and what the answers come to."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import jobs
from jobs.review_benchmark.data import QuestionParts, Review, TruthPaper
from jobs.review_benchmark.extraction.plan import request
from jobs.review_benchmark.extraction.review_text import ExtractionInputs
from jobs.review_benchmark.job import job
from jobs.review_benchmark.settings import ReviewBenchmarkSettings
from jobs.review_benchmark.truth_files import read_review, review_to_json
from jobs.testing import MemoryAnswers
from runner.job import Task
from runner.scorecard import Scorecard

SAMPLE = Path(jobs.__file__).parent / "review_benchmark" / "sample" / "extraction"


def _loaded(
    tmp_path: Path, text: str | None = None, **settings: Any
) -> ExtractionInputs:
    """The sample, or another text, as a run's data."""
    path = SAMPLE / "review.txt"
    if text is not None:
        path = tmp_path / "review.txt"
        path.write_text(text, "utf-8")
    found = job.load(ReviewBenchmarkSettings(extract=path, **settings))
    assert isinstance(found, ExtractionInputs)
    return found


def _sample_text() -> str:
    return (SAMPLE / "review.txt").read_text("utf-8")


def _scored(
    extract: ExtractionInputs,
    answer: Callable[[Task], str | None] | None = None,
    **of: Any,
) -> Scorecard:
    def baseline(task: Task) -> str | None:
        said = job.baseline(request(extract, task))
        assert isinstance(said, str)
        return said

    answers = MemoryAnswers.of_run(job, extract, answer or baseline, **of)
    return job.score(extract, answers)


def _files(card: Scorecard) -> dict[str, Any]:
    return {each.name: each.text for each in card.artifacts}


def _values(card: Scorecard, model: str = "model") -> dict[str, Any]:
    return {each.path: each.value for each in card.models[model]}


def test_truth_that_is_written_is_read_back_to_the_same_value(tmp_path: Path) -> None:
    review = Review(
        id="CD1",
        title="T",
        question="Q?",
        studies=(
            TruthPaper(pmid="1", authors=("A", "B"), year=2001, further={"x": [1]}),
            TruthPaper(doi="10.5555/a", title="é", ref_id="A 2001", notes="n"),
        ),
        pico=QuestionParts(population="p"),
        inclusion=("a",),
        conclusion="c",
        date_range=(1990, 2001),
        further={"colour": "kept"},
    )
    for each in (review, replace(review, pico=None, date_range=None, conclusion="")):
        path = tmp_path / "cochrane_CD1.json"
        path.write_text(json.dumps(review_to_json(each)), "utf-8")
        assert read_review(path) == each


def test_small_chunks_come_to_the_same_truth_as_one(tmp_path: Path) -> None:
    whole = _scored(_loaded(tmp_path))
    cut = _scored(_loaded(tmp_path, chunk_references=5))
    name = "cochrane_CD900001.json"
    assert _files(cut)[name] == _files(whole)[name]
    assert len(json.loads(_files(whole)[name])["included_studies"]) == 10
    assert _values(cut)["count.references_repeated"] > 0
    assert _values(cut)["count.flags"] == _values(whole)["count.flags"] == 0
    assert not whole.failures


def test_sections_without_a_heading_are_asked_for_and_counted(tmp_path: Path) -> None:
    text = _sample_text()
    text = (
        text.replace(
            "References to studies included in this review", "Included studies: a list"
        )
        .replace("Objectives\n", "What we asked\n")
        .replace("O B J E C T I V E S", "Aims")
    )
    extract = _loaded(tmp_path, text)
    assert extract.missing_sections == ("objectives", "included")
    assert [spec.stage for spec in job.plan(extract)] == ["x.places"]
    assert job.reaches(extract) == {"x.places", "x.meta", "x.refs"}
    card = _scored(extract)
    values = _values(card)
    assert values["count.sections_placed"] == 2
    assert values["count.references"] >= 10
    assert "found by the model: objectives, included" in card.summary
    # where the model is of no help, the list is not read and nothing is written
    lost = _scored(extract, lambda _: '{"places": []}')
    codes = {finding.code for finding in lost.findings}
    assert {"section_not_found", "no_answer", "missing"} <= codes
    assert list(_files(lost)) == ["extraction_CD900001.json"]
    assert "since title, research_question, included_stu" in lost.failures[0]


def test_an_answer_of_another_cut_is_stale_and_its_place_is_missing(
    tmp_path: Path,
) -> None:
    before = _loaded(tmp_path, chunk_references=5)
    answers = MemoryAnswers.of_run(
        job, before, lambda task: str(job.baseline(request(before, task)))
    )
    card = job.score(_loaded(tmp_path), answers)
    chunks = sum(spec.stage == "x.refs" for spec in job.plan(before))
    assert chunks > 1
    assert (card.missing, card.stale) == (1, chunks)


def test_what_fails_or_cannot_be_read_makes_a_person_look(tmp_path: Path) -> None:
    extract = _loaded(tmp_path)
    said = _scored(extract, lambda task: None if task.stage == "x.refs" else "{}")
    (evidence,) = (json.loads(text) for text in _files(said).values())
    assert evidence["status"] == "incomplete"
    flags = [
        (flag["code"], flag["where"].partition("#")[0]) for flag in evidence["flags"]
    ]
    assert ("no_answer", "x.meta review") in flags
    assert ("no_answer", "x.refs review") in flags
    assert ("unread", "Alder 2008 {published data only}") in flags


def test_truth_that_an_extraction_is_scored_by_is_in_no_prompt(tmp_path: Path) -> None:
    truth = {
        "cochrane_id": "CD900001",
        "title": "Evening light for sleep",
        "research_question": "canary?",
        "authors_conclusion": "canary",
        "included_studies": [
            {"title": "Sleep by day after light in the evening", "pmid": "99000004"},
            {"title": "Light boxes in a control room", "pmid": "123"},
            {"title": "canary of another kind", "doi": "10.5555/canary"},
            {"title": "Evaluation of lamps of 3000 lux in a paper mill"},
        ],
    }
    path = tmp_path / "cochrane_CD900001.json"
    path.write_text(json.dumps(truth))
    extract = _loaded(tmp_path, against=path, with_excluded=True)
    specs = list(job.plan(extract))
    assert {spec.stage for spec in specs} == job.reaches(extract)
    for spec in specs:
        task = Task(
            number=1,
            stage=spec.stage,
            key=spec.key,
            model="m",
            replicate=1,
            context=spec.context,
        )
        assert "canary" not in repr(job.request(extract, task))
    values = _values(_scored(extract))
    assert values["studies.recall"] == 0.75
    assert values["studies.precision"] == 0.3
    assert values["identifiers.pmid"] == 0.5
    assert values["identifiers.doi"] is None
    assert 0.7 < values["similarity.title"] < 1.0
    other = replace(extract, against=(replace(extract.against[0], id="CD1"),))
    assert [each.code for each in _scored(other).findings] == ["no_truth"]


def test_each_model_has_a_folder_and_replicates_are_read_together(
    tmp_path: Path,
) -> None:
    extract = _loaded(tmp_path)

    def answer(task: Task) -> str | None:
        if task.replicate == 1 and task.stage == "x.refs":
            return None
        return str(job.baseline(request(extract, task)))

    card = _scored(extract, answer, models=("a", "b"), replicates=2)
    assert [name for name in _files(card) if "cochrane" in name] == []
    assert list(_files(card)) == [
        "a/extraction_CD900001.json",
        "b/extraction_CD900001.json",
    ]
    assert _values(card, "a")["count.references"] == 10
    assert _values(card, "a")["count.flags"] == 1


@pytest.mark.parametrize("said", ["(90 studies", "We included 11 trials ("])
def test_a_count_that_differs_from_the_abstracts_is_flagged(
    tmp_path: Path, said: str
) -> None:
    text = _sample_text().replace("We included 9 studies (9 studies", said)
    card = _scored(_loaded(tmp_path, text))
    assert [finding.code for finding in card.findings] == ["study_count"]
    assert "needs review" in _files(card)["extraction_CD900001.json"]
    assert "was not written, since 1 thing should be looked at" in card.failures[0]
    accepted = _scored(_loaded(tmp_path, text, accept=True))
    assert "cochrane_CD900001.json" in _files(accepted)
    assert not accepted.failures
