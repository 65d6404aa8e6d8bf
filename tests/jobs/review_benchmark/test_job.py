"""Pages about a review or a paper, in a run, in an import and before any.

A whole extraction: what is asked, and what the answers come to.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import jobs
from jobs.kit.testing import MemoryAnswers
from jobs.review_benchmark.data import QuestionParts, Review, TruthPaper
from jobs.review_benchmark.explain import selections
from jobs.review_benchmark.extraction.plan import request
from jobs.review_benchmark.extraction.review_text import ExtractionInputs
from jobs.review_benchmark.job import job
from jobs.review_benchmark.settings import ReviewBenchmarkSettings
from jobs.review_benchmark.truth_files import review_to_json
from runner.errors import UsageError
from runner.job import Task
from runner.messages import Reply
from runner.scorecard import Scorecard
from tests.commands import command
from tests.jobs.review_benchmark.agents import Given
from tests.jobs.review_benchmark.lost_studies import (
    CALM,
    FIRST,
    LOST_AT,
    SLEEP,
    imported,
    world,
)
from tests.jobs.review_benchmark.small_review import read_review, stocked
from tests.replacing import replace


def test_a_review_tells_its_queries_its_papers_and_what_was_lost(
    tmp_path: Path,
) -> None:
    dataset, answers = world(tmp_path, FIRST)
    page = job.explain(dataset, answers, ("CD7",)).splitlines()
    assert page[0] == f"CD7  {FIRST}"
    assert "years      1990 to 2010" in page
    assert "outcome    FAILED: recall 14.3% (target 100%), precision 50.0%" in page
    assert "studies    7: 5 with a record, 3 found by the search, 1 included" in page
    assert "      1     5     4  walk" in page
    assert '    1  (("walking"))' in page
    assert "  candidates: 4" in page
    assert "    rationale: By its title." in page
    for step in filter(None, LOST_AT):
        assert f"{step} (1)" in page
    assert (
        "    it is of 1950, and the review's years are 1990 to 2010: correct"
        in "\n".join(page)
    )


def test_each_model_has_a_page_and_no_other_review_is_on_it(tmp_path: Path) -> None:
    dataset, answers = world(tmp_path)
    pages = job.explain(dataset, answers, (CALM.id,)).split("\n\nCD ")
    assert [page.count("PASSED") for page in pages] == [1, 1]
    assert "sleep" not in "".join(pages)
    assert "\x1b" not in "".join(pages)


def test_a_paper_tells_its_ranks_its_reply_and_the_decision(tmp_path: Path) -> None:
    dataset, answers = world(tmp_path, FIRST)
    page = job.explain(dataset, answers, ("CD7:2",))
    assert page.startswith(
        f"CD7:2  {FIRST}\nsummary    truth: a study of the review; {FIRST}: not "
        "included, wrong\ntitle      Walking by day\n"
    )
    assert "study      1 (Boe 2009), by pmid (1.00)" in page
    assert '      | {"score": 1.5, "rationale": "By its title."}' in page
    assert "    read: 1.5 by rule json" in page
    assert "decision   not included: score 1.5, threshold 3" in page
    assert "lost       below_threshold: its score 1.5 is 1.5 too low" in page


@pytest.mark.parametrize(
    ("paper", "said"),
    [
        ("3", "    failed: server_error"),
        ("5", "  this paper: no query offers it"),
        ("5", "  no request about this paper"),
        ("5", "decision   not a candidate"),
        ("6", "study      not a study of the review"),
    ],
)
def test_a_paper_without_a_score_says_why(
    tmp_path: Path, paper: str, said: str
) -> None:
    dataset, answers = world(tmp_path, FIRST)
    assert said in job.explain(dataset, answers, (f"CD7:{paper}",)).splitlines()


def test_a_cut_paper_has_its_rank(tmp_path: Path) -> None:
    dataset, answers = world(tmp_path, FIRST, max_candidates=1)
    page = job.explain(dataset, answers, ("CD7",))
    assert "  candidates: 1, 3 more cut" in page
    pages = [job.explain(dataset, answers, (f"CD7:{n}",)) for n in (1, 2, 3, 6)]
    ranks = sorted(
        line
        for page in pages
        for line in page.splitlines()
        if line.startswith("  this paper: rank")
    )
    assert ranks == [
        "  this paper: rank 1 of all queries together",
        *(f"  this paper: rank {n} of all queries together, cut" for n in (2, 3, 4)),
    ]


def test_an_unreadable_plan_says_that_the_fixed_one_was_searched(
    tmp_path: Path,
) -> None:
    dataset, answers = world(tmp_path, FIRST)
    families = tuple(
        (replace(family[0], reply=Reply(text="Sorry.")),) for family in answers.each
    )
    page = job.explain(dataset, Given(models=(FIRST,), each=families), ("CD7",))
    assert "  the fixed plan, since the reply could not be read: " in page
    failed = tuple(
        (replace(family[0], reply=None, error="server_error"),)
        for family in answers.each
    )
    page = job.explain(dataset, Given(models=(FIRST,), each=failed), ("CD7",))
    assert "not done   server_error" in page
    assert "search, replicate 1\n  none: server_error\n" in page
    opened = tuple(
        (replace(family[0], reply=None, is_open=True),) for family in answers.each
    )
    page = job.explain(dataset, Given(models=(FIRST,), each=opened), ("CD7",))
    assert page.endswith("no result yet: its search plan is still open\n")


def test_an_import_shows_what_its_file_says() -> None:
    dataset, answers = imported()
    page = job.explain(dataset, answers, ("CD7", "CD7:12"))
    assert "papers, as given" in page
    assert "search" not in page.partition("CD7:12")[0]
    assert "decision   not included: score 4 (the agent's own rule)" in page
    assert "reason     Too old." in page
    with pytest.raises(UsageError, match="CD7 has no paper '99' here"):
        job.explain(dataset, answers, ("CD7:99",))


def test_before_a_run_the_fixed_plan_is_searched(tmp_path: Path) -> None:
    dataset, _ = world(tmp_path)
    page = job.explain(dataset, None, ("CD7", "CD7:5"))
    assert page.startswith("CD7  before any run\n")
    assert "studies    7: 5 in the database, 3 found by the fixed plan" in page
    assert "not in the database (2)" in page
    assert "not found (2)" in page
    assert "    the most similar title, at 0.8471, is that of 6" in page
    assert "study      4 (Running for rest)" in page
    for paper in ("8", "0", "x", "²"):
        with pytest.raises(UsageError, match="has no paper"):
            job.explain(dataset, None, (f"CD7:{paper}",))


def test_ids_may_hold_colons_and_a_whole_name_goes_first() -> None:
    reviews = [replace(SLEEP, id=name) for name in ("A", "A:1", "B")]
    chosen = selections(("A:1", "A:2", "B:x:y"), reviews)
    assert [(own.review.id, own.paper) for own in chosen] == [
        ("A:1", ""),
        ("A", "2"),
        ("B", "x:y"),
    ]
    with pytest.raises(UsageError, match="There is no review 'B2'; the nearest is B"):
        selections(("B2",), reviews)
    with pytest.raises(UsageError, match="name a review by its id"):
        selections(("zzzz:",), reviews)


def test_the_command_explains_before_any_run(tmp_path: Path) -> None:
    papers = stocked(tmp_path / "papers.db")
    truth = {
        "cochrane_id": "CD7",
        "title": "Walking for sleep",
        "research_question": "Does walking help sleep?",
        "included_studies": [{"title": "Walking at dusk"}],
    }
    (tmp_path / "cochrane_CD7.json").write_text(json.dumps(truth))
    inputs = ("--truth", tmp_path, "--database", papers)
    done = command("explain", "review-benchmark", "CD7", "CD7:1", *inputs)
    assert done.code == 0, done.err
    assert "studies    1: 1 in the database, 1 found by the fixed plan" in done.out
    assert "  this paper: rank 2 of all queries together" in done.out
    assert command("explain", "review-benchmark", "CD9", *inputs).code == 2


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
    assert "was not written, since 1 thing should be checked" in card.failures[0]
    accepted = _scored(_loaded(tmp_path, text, accept=True))
    assert "cochrane_CD900001.json" in _files(accepted)
    assert not accepted.failures
