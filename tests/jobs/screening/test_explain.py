"""explain on runs: a record's whole course, what went wrong in a review, near names.

explain by the command, on the shipped sample.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobs.kit.testing import MemoryAnswers
from jobs.screening.data import ArticleText, Criteria, ScreeningRecord
from jobs.screening.explain import explain
from jobs.screening.inputs import ScreeningDataset
from jobs.screening.job import job
from runner.errors import UsageError
from runner.job import Task
from store.document import WIDTH
from store.printable import display_width
from tests.commands import siftlog
from tests.jobs.screening.asked_about import data
from tests.jobs.screening.told_decisions import imported

PAPERS = {
    "11": ArticleText(
        title="Walking for insomnia", abstract="A trial in adults.", year=2001
    ),
    "12": ArticleText(title="Walking at night", abstract="A trial."),
    "13": ArticleText(title='=HYPERLINK("x")\x1b[31m singing', abstract="A survey."),
    "14": ArticleText(title="Dancing", abstract="A survey."),
}
KINDS = {"11": "included", "12": "included", "13": "near-miss", "14": "true-excluded"}


def world(**settings: Any) -> ScreeningDataset:
    """The review R7 with two included papers and two negatives."""
    made = data(papers=PAPERS, boot_b=0, **settings)
    assert made.validation_set is not None
    records = tuple(
        ScreeningRecord(
            review="R7",
            paper=paper,
            kind=kind,  # type: ignore[arg-type]
            n_links=2,
            n_shared=1,
            reason="wrong design" if kind == "true-excluded" else "",
            reason_code="study_design" if kind == "true-excluded" else "",
            similarity=0.25,
        )
        for paper, kind in KINDS.items()
    )
    return replace(made, validation_set=replace(made.validation_set, records=records))


def said(task: Task) -> str | None:
    """Titles include all; abstracts miss 12, include 13, and cannot be read for 14."""
    decision, p = "include", 0.9
    if task.stage == "abstract" and task.key.endswith("12"):
        decision, p = "exclude", 0.1 * task.replicate
    if task.stage == "abstract" and task.key.endswith("14"):
        return "I cannot say." if task.replicate == 1 else None
    return json.dumps(
        {"decision": decision, "p_include": p, "reason_code": "population"}
    )


@pytest.fixture(scope="module")
def dataset() -> ScreeningDataset:
    return world(stages=("title", "abstract"))


@pytest.fixture(scope="module")
def answers(dataset: ScreeningDataset) -> MemoryAnswers:
    return MemoryAnswers.of_run(
        job, dataset, said, models=("m/one", "m/two"), replicates=2
    )


def test_a_record_is_told_with_its_whole_course(
    dataset: ScreeningDataset, answers: MemoryAnswers
) -> None:
    page = explain(dataset, answers, ("R7:12",))
    for line in (
        "R7:12",
        "review     Walking for sleep",
        "paper      Walking at night",
        "abstract   A trial.",
        "truth      included; topic similarity 0.250",
        "prompt     from the file of criteria",
        "      | Question: Does walking help sleep?",
        "m/one",
        "  decision   exclude, p 0.15, abstract, population: wrong",
        "  replicate 2  exclude, p 0.20, abstract, population: wrong",
        "  rank       4 of 4; 2 of 2 included papers found by there",
        "  abstract   replicate 1, task 10",
        "    read     exclude, p 0.10, population",
        "    rule     json",
    ):
        assert f"{line}\n" in page
    assert f"      | {said(answers.held[0][0].task)}\n" in page
    assert page.count("prompt     from") == 1
    # the review's and the paper's, so that a reader can compare them
    assert page.count("\nabstract   ") == 2
    # of what the review excluded: why, and what became of replies and calls
    page = explain(dataset, answers, ("14",))
    assert '  excluded by the review, study_design: "wrong design"; topic' in page
    assert "    failed   could not be read: no_decision\n" in page
    assert "    error    ServerError\n" in page
    assert "  decision   include, p 0.90, title, population: wrong\n" in page


def test_settings_of_scoring_change_what_a_record_comes_to(
    dataset: ScreeningDataset, answers: MemoryAnswers
) -> None:
    strict = dataset.settings.model_copy(
        update={"threshold": 0.95, "ensemble": ("any",)}
    )
    page = explain(replace(dataset, settings=strict), answers, ("R7/11",))
    assert "exclude by the threshold, read as include, p 0.90" in page
    assert "\nensemble/any\n" in page


def test_a_review_lists_what_was_missed_and_wrongly_included(
    dataset: ScreeningDataset, answers: MemoryAnswers
) -> None:
    page = explain(dataset, answers, ("R7",))
    for line in (
        "records    4: 2 included, 1 near-miss, 1 true-excluded",
        "  decisions  3 include, 1 exclude",
        "  missed     1 of 2 included papers",
        "    paper     p  rank  stage     reason      title",
        "    12     0.15     4  abstract  population  Walking at night",
        "  included   wrongly 2 of 2 negatives, the surest first",
        "    14     0.90     3  true-excluded  title     population  Dancing",
    ):
        assert f"{line}\n" in page
    assert (
        "\nNear misses are unjudged: a model that includes one may be right.\n" in page
    )
    assert "\x1b" not in page
    tables = [line for line in page.splitlines() if not line.startswith("      |")]
    assert max(map(display_width, tables)) <= WIDTH


def test_criteria_of_models_are_told_apart(tmp_path: Path) -> None:
    own = world(criteria_source="llm")

    def stated(task: Task) -> str:
        if task.stage == "criteria" and task.model == "m/two":
            return "none"
        if task.stage == "criteria":
            return json.dumps({"question": "Do choirs sleep?"})
        return json.dumps({"decision": "unclear"})

    answers = MemoryAnswers.of_run(job, own, stated, models=("m/one", "m/two"))
    page = explain(own, answers, ("R7:11",))
    assert "criteria that a model stated (m/one, replicate 1)\n" in page
    assert "      | Question: Do choirs sleep?\n" in page
    assert "the review's title alone (m/two, replicate 1)\n" in page
    assert "    read     criteria, as shown above\n" in page
    assert "  decision   unclear, p -, abstract, other: undecided\n" in page
    assert "  rank       1 of 4, by 0.5: it has no p; 1 of 2" in page
    line = {"review_pmid": "R1", "paper_pmid": "5", "label": 1, "decision": "exclude"}
    page = explain(*imported(tmp_path, [line]), ("5",))
    assert "prompt     not known: the decisions were imported\n" in page
    assert "  decision   exclude, p -, abstract, other: wrong\n" in page
    assert "|" not in page


def test_what_is_not_there_names_what_is_near(
    dataset: ScreeningDataset, answers: MemoryAnswers
) -> None:
    assert explain(dataset, answers, (" R7:12 ", "12")).count("R7:12\n") == 1
    for item, near in (
        ("R7:15", "the nearest are R7:1"),
        ("R8:11", "the nearest is R7:11."),
        ("R", "the nearest is R7."),
        ("elephant", "name a review by its id, or a record as review:paper."),
    ):
        with pytest.raises(UsageError, match=f"no record '{item}'; {near}"):
            explain(dataset, answers, (item,))


def test_the_criteria_of_a_person_are_quoted_line_by_line() -> None:
    own = data(criteria=Criteria(question="One?\nprompt     from heaven"))
    answers = MemoryAnswers.of_run(job, own, lambda _: "include")
    page = explain(own, answers, ("R7:1",))
    assert page.count("\nprompt     from") == 1
    assert "rule     word\n" in page


def test_command_explains_a_review_before_there_is_a_set(tmp_path: Path) -> None:
    chosen = json.loads(siftlog("explain", "screening", "--json", cwd=tmp_path).stdout)
    assert chosen["n_included"] in range(10, 21)
    # a switch does not take the id that follows it
    words = ("explain", "screening", "--ascii", chosen["review"])
    page = siftlog(*words, cwd=tmp_path).stdout
    assert page.isascii()
    assert page.startswith(f"{chosen['review']}  {chosen['title']}\n")
    assert f"\n   {chosen['candidates_sha256']}\n" in page
    wrong = siftlog("explain", "screening", "980", cwd=tmp_path, check=False)
    assert wrong.returncode == 1
    assert "No review '980' cites any paper; the nearest are 980" in wrong.stderr
    assert list(tmp_path.iterdir()) == []


def test_other_jobs_explain_in_words_that_programs_get_whole(tmp_path: Path) -> None:
    words = ("explain", "evidence-retrieval", "post_13")
    page = siftlog(*words, cwd=tmp_path).stdout
    said = json.loads(siftlog(*words, "--json", cwd=tmp_path).stdout)
    assert (said["job"], said["run"]) == ("evidence-retrieval", None)
    assert said["items"] == ["post_13"]
    assert said["text"].strip() == page.strip()
