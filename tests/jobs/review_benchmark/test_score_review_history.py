"""What a scoring of this job leaves behind, and what the history makes of it.

What a scoring says of single tasks, of searches and of what replies took.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from jobs.review_benchmark.data import AgentRecord, Review, TruthPaper
from jobs.review_benchmark.database.papers import ImportedRecord
from jobs.review_benchmark.database.reader import PaperDatabase
from jobs.review_benchmark.inputs import SAMPLE
from jobs.review_benchmark.predictions import collect_predictions
from jobs.review_benchmark.rebuilt_reviews import AgentUsage
from jobs.review_benchmark.result_files import AgentResult
from jobs.review_benchmark.results import measure_agents
from jobs.review_benchmark.score import score
from runner.job import Answer
from runner.scorecard import HistoryEntry, Verdict
from store.results import ItemScore
from tests.commands import Done, command
from tests.csv_files import rows
from tests.jobs.review_benchmark.agents import (
    UNREADABLE,
    Agent,
    Asked,
    Given,
    database_of,
    dataset_of,
    imported,
)
from tests.replacing import replace

REVIEW = Review(
    id="CD1",
    title="Rest",
    question="Does rest help?",
    studies=(
        TruthPaper(pmid="7", ref_id="Ahn 2008"),
        TruthPaper(pmid="8", ref_id="Bo 2009"),
    ),
)


def _kept(
    results: Sequence[AgentResult], review: Review = REVIEW, **settings: object
) -> HistoryEntry:
    dataset = dataset_of([review], None, boot_b=0, **settings)
    kept = score(dataset, imported(*results)).history_entry
    assert kept is not None
    return kept


def _result(included: Sequence[str], excluded: Sequence[str] = ()) -> AgentResult:
    return AgentResult(
        review="CD1",
        label="x",
        records=tuple(
            AgentRecord(document=pmid, pmid=pmid, score=score, included=score > 2)
            for pmids, score in ((included, 5.0), (excluded, 2.0))
            for pmid in pmids
        ),
    )


def test_a_review_leaves_its_recall_and_its_studies_with_their_scores() -> None:
    kept = _kept([_result(["7"], ["8"])])
    own = kept.milestone
    assert own.standings == {"x": {"CD1": ItemScore(got=1, of=2, passed=False)}}
    assert (own.data, own.partial) == ("", False)
    ahn, bo = kept.parts.models["x"]["CD1"]
    assert kept.parts.names["CD1"] == ["Ahn 2008", "Bo 2009"]
    assert (ahn.got, ahn.score, ahn.lost_at) == (True, 5.0, "")
    assert (bo.got, bo.score, bo.lost_at) == (False, 2.0, "excluded")


def test_each_replicate_alone_stands_beside_what_they_come_to_together() -> None:
    results = [_result(["7", "8"]), _result(["7"], ["8"]), _result(["7"], ["8"])]
    (standing,) = _kept(results).milestone.standings["x"].values()
    assert (standing.got, standing.tries) == (1, [2, 1, 1])


def test_recall_is_unfinished_while_a_candidate_was_not_asked_about(
    tmp_path: Path,
) -> None:
    papers = [
        ImportedRecord(source_id="1", title="Rest by day", pmid="7"),
        ImportedRecord(source_id="2", title="Rest by night", pmid="8"),
    ]
    queries = {"CD1": [{"label": "q", "all_of": [["rest"]], "none_of": []}]}

    def partial(second: float | str | None) -> bool:
        agent = Agent(
            model="m",
            queries=queries,
            score=lambda _review, paper, _replicate: 4.0 if paper == 1 else second,
        )
        asked = Asked(dataset=dataset, agents=[agent])
        kept = score(dataset, asked.answers()).history_entry
        assert kept is not None
        assert kept.milestone.data == dataset.database.content_hash
        return kept.milestone.partial

    with closing(database_of(tmp_path / "papers.db", papers)) as database:
        dataset = dataset_of([REVIEW], database, boot_b=0, verdict="off")
        assert partial(None)
        # a failure is an answer, and so is what cannot be read
        assert not any(map(partial, (2.0, "timeout", UNREADABLE)))


def test_another_study_or_way_of_matching_is_something_else_and_a_note_is_not() -> None:
    results = [_result(["7"])]
    first = _kept(results).milestone.items["CD1"]
    assert _kept(results, replace(REVIEW, notes="seen")).milestone.items["CD1"] == first
    studies = (*REVIEW.studies, TruthPaper(pmid="9"))
    others = {
        _kept(results, replace(REVIEW, studies=studies)).milestone.items["CD1"],
        _kept(results, matching="single-pass").milestone.items["CD1"],
        _kept(results, title_cutoff=0.9).milestone.items["CD1"],
    }
    assert first not in others
    assert len(others) == 3


def test_the_sample_falls_and_recovers_over_two_older_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _import("first", "older/first")
    _import("second", "older/second")
    lines = rows(Path("runs/second/scores/1/history.csv"))
    assert [own["recall"] for own in lines] == [str(8 / 12), str(7 / 8), str(4 / 6)]
    done = _history("--against", "last")
    assert done.code == 6
    assert "lost    CD990003  QUINCE-4 2012  score 4 -> 2.5" in done.out
    assert [line.partition(" in first")[0] for line in done.err.splitlines()[1:]] == [
        "siftlog: the review CD990002 passed",
        "siftlog: the review CD990003 passed",
    ]
    _import("third", "results")
    assert _history("--against", "last").code == 0
    best = _history("--against", "best", "--max-drop", 0.1)
    assert best.code == 6
    assert best.err == (
        "siftlog: the review CD990002 passed in first and fails with linden in third.\n"
    )
    # the same code says that a scoring is below what was asked for
    assert command("score", "third", "--no-record", "--fail-under", 1.0).code == 6
    # what is matched in another way is not compared
    assert command("score", "third", "--matching", "single-pass").code == 0
    done = _history("--against", "best")
    assert done.code == 0
    assert "2 runs left out" in done.out


def _history(*words: object) -> Done:
    return command("history", "review-benchmark", *words)


def _import(run: str, results: str) -> None:
    done = command(
        *("import", "review-benchmark", "--truth", SAMPLE / "truth"),
        *("--results", SAMPLE / results, "--run-id", run, "--no-report"),
    )
    assert done.code == 0, done.err


QUERIES = (
    {"label": "all", "all_of": [["voiding"]], "none_of": []},
    {"label": "none", "all_of": [["nothing"]], "none_of": []},
)
TASKS_REVIEW = Review(
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
    dataset = dataset_of([TASKS_REVIEW], papers, boot_b=0)
    card = score(dataset, Asked(dataset=dataset, agents=[agent]).answers())
    told = {each.key: each for each in card.details if isinstance(each, Verdict)}
    plan = told.pop("CD1")
    assert (plan.value, plan.correct) == ("2 queries", None)
    assert {
        key: (own.value, own.expected, own.correct) for key, own in told.items()
    } == {
        "CD1:1": ("4, include (relevance, scale 1-5)", "include", True),
        "CD1:2": ("2, exclude (relevance, scale 1-5)", "include", False),
        "CD1:3": ("4, include (relevance, scale 1-5)", "exclude", False),
        "CD1:4": ("1, exclude (relevance, scale 1-5)", "exclude", True),
        "CD1:5": ("", "", None),
    }
    assert told["CD1:5"].rule
    assert card.worth_explaining == "CD1"


def test_an_imported_result_is_right_where_its_review_passes() -> None:
    records = tuple(
        AgentRecord(document=pmid, pmid=pmid, included=True) for pmid in ("1", "2")
    )
    result = AgentResult(review="CD1", label="x", records=records)
    dataset = dataset_of([TASKS_REVIEW], None, boot_b=0)
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
    dataset = dataset_of([TASKS_REVIEW], papers, boot_b=0, max_candidates=2)
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
    dataset = dataset_of([TASKS_REVIEW], papers, boot_b=0)
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
    dataset = dataset_of([TASKS_REVIEW], papers, boot_b=0)
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
