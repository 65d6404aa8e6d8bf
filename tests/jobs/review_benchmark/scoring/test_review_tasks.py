"""What a scoring says of single tasks, of searches and of what replies took."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from jobs.review_benchmark.data import AgentRecord, Review, TruthPaper
from jobs.review_benchmark.database.papers import ImportedRecord
from jobs.review_benchmark.database.reader import PaperDatabase
from jobs.review_benchmark.predictions import collect_predictions
from jobs.review_benchmark.rebuilt_reviews import AgentUsage
from jobs.review_benchmark.result_files import AgentResult
from jobs.review_benchmark.results import measure_agents
from jobs.review_benchmark.score import score
from runner.job import Answer
from runner.scorecard import Verdict
from tests.jobs.review_benchmark.agents import (
    UNREADABLE,
    Agent,
    Asked,
    Given,
    database_of,
    dataset_of,
    imported,
)

QUERIES = (
    {"label": "all", "all_of": [["voiding"]], "none_of": []},
    {"label": "none", "all_of": [["nothing"]], "none_of": []},
)
REVIEW = Review(
    id="CD1",
    title="r",
    question="voiding?",
    studies=(TruthPaper(pmid="1"), TruthPaper(pmid="2"), TruthPaper(pmid="9")),
)


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PaperDatabase]:
    found = database_of(
        tmp_path_factory.mktemp("tasks") / "papers.db",
        [
            ImportedRecord(source_id=str(at), pmid=str(at), title=f"voiding {at}")
            for at in range(1, 6)
        ],
    )
    yield found
    found.close()


def test_a_score_is_right_where_it_decides_as_the_review_did(
    papers: PaperDatabase,
) -> None:
    scores = {1: 4.0, 2: 2.0, 3: 4.0, 4: 1.0, 5: UNREADABLE}
    agent = Agent(
        model="m", queries={"CD1": QUERIES}, score=lambda _, paper, __: scores[paper]
    )
    dataset = dataset_of([REVIEW], papers, boot_b=0)
    card = score(dataset, Asked(dataset=dataset, agents=[agent]).answers())
    told = {each.key: each for each in card.details if isinstance(each, Verdict)}
    plan = told.pop("CD1")
    assert (plan.value, plan.correct) == ("2 queries", None)
    assert {
        key: (own.value, own.expected, own.correct) for key, own in told.items()
    } == {
        "CD1:1": ("4", "include", True),
        "CD1:2": ("2", "include", False),
        "CD1:3": ("4", "exclude", False),
        "CD1:4": ("1", "exclude", True),
        "CD1:5": ("", "", None),
    }
    assert told["CD1:5"].rule
    assert card.worth_explaining == "CD1"


def test_an_imported_result_is_right_where_its_review_passes() -> None:
    records = tuple(
        AgentRecord(document=pmid, pmid=pmid, included=True) for pmid in ("1", "2")
    )
    result = AgentResult(review="CD1", label="x", records=records)
    dataset = dataset_of([REVIEW], None, boot_b=0)
    card = score(dataset, imported(result))
    (told,) = (each for each in card.details if isinstance(each, Verdict))
    assert (told.value, told.expected, told.correct) == (
        "2 of 3 included",
        "recall 100%",
        False,
    )


def test_searches_and_reviews_that_went_wrong_are_findings(
    papers: PaperDatabase,
) -> None:
    dataset = dataset_of([REVIEW], papers, boot_b=0, max_candidates=2)
    agents = [
        Agent(model="m", queries={"CD1": QUERIES}, score=lambda *_: 1.0),
        Agent(model="bad", queries={"CD1": ()}, score=lambda *_: 1.0),
        Agent(model="late", queries={}, score=lambda *_: 1.0),
    ]
    answers = Asked(dataset=dataset, agents=agents).answers()
    found = measure_agents(dataset, collect_predictions(dataset, answers)).findings
    assert {(each.code, each.where, each.example) for each in found} >= {
        ("no_hits", "m", "CD1: none"),
        ("candidates_cut", "m", "CD1: 3 more"),
        ("plan_fallback", "bad", "CD1"),
        ("review_not_done", "late", "CD1"),
    }


def test_replies_are_added_up_by_review(papers: PaperDatabase) -> None:
    dataset = dataset_of([REVIEW], papers, boot_b=0)
    agent = Agent(
        model="m",
        queries={"CD1": QUERIES},
        score=lambda _, paper, __: "timeout" if paper == 1 else 3.0,
    )
    answers: Given = Asked(dataset=dataset, agents=[agent], replicates=2).answers()
    column = measure_agents(dataset, collect_predictions(dataset, answers)).columns["m"]
    assert column.rebuilt["CD1"].spent == AgentUsage(
        calls=10, tokens_in=1000, tokens_out=100, cost_usd=0.01
    )
    assert column.by_path()["replicate.2.recall"].value == pytest.approx(1 / 3)


def test_a_replicate_that_has_not_begun_includes_nothing(papers: PaperDatabase) -> None:
    dataset = dataset_of([REVIEW], papers, boot_b=0)
    agent = Agent(model="m", queries={"CD1": QUERIES}, score=lambda *_: 4.0)
    answers = Asked(dataset=dataset, agents=[agent], replicates=2).answers()
    first, second = answers.each
    still_open = (Answer(task=first[0].task, is_open=True),)
    unfinished = replace(answers, each=[still_open, second])
    column = measure_agents(dataset, collect_predictions(dataset, unfinished)).columns[
        "m"
    ]
    assert {each.votes for each in column.rebuilt["CD1"].candidates} == {(False, True)}
    assert column.benchmarks["CD1"].recall == pytest.approx(2 / 3)
    assert column.by_path()["replicate.1.recall"].value == 0.0
