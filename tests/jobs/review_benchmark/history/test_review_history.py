"""What a scoring of this job leaves behind, and what the history makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.review_benchmark.data import AgentRecord, Review, TruthPaper
from jobs.review_benchmark.database.papers import ImportedRecord
from jobs.review_benchmark.inputs import SAMPLE
from jobs.review_benchmark.result_files import AgentResult
from jobs.review_benchmark.score import score
from runner.scorecard import HistoryEntry
from store.results import ItemScore
from tests.jobs.review_benchmark.agents import (
    UNREADABLE,
    Agent,
    Asked,
    database_of,
    dataset_of,
    imported,
)
from tests.jobs.screening.commanded import Done, command, rows

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
