"""At which step a truth paper was lost, and what is said about it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import pytest

from jobs.review_benchmark.data import AgentRecord, Review, TruthPaper
from jobs.review_benchmark.database.papers import ImportedRecord
from jobs.review_benchmark.database.reader import PaperDatabase
from jobs.review_benchmark.losses import PaperMatch
from jobs.review_benchmark.predictions import collect_predictions
from jobs.review_benchmark.result_files import AgentResult
from jobs.review_benchmark.results import BenchmarkResults, measure_agents
from tests.jobs.review_benchmark.agents import (
    Agent,
    Asked,
    database_of,
    dataset_of,
    imported,
)

COCHRANE = "10.1002/14651858.cd000001"

PAPERS = (
    ImportedRecord(
        source_id="1", pmid="1", title="voiding by the clock in women", year=2005
    ),
    ImportedRecord(
        source_id="2", pmid="2", title="voiding by habit in women", year=1990
    ),
    ImportedRecord(source_id="3", pmid="3", title="bladder training", year=2005),
    ImportedRecord(
        source_id="4", pmid="4", title="voiding in children with spina bifida"
    ),
    ImportedRecord(source_id="5", pmid="5", doi=COCHRANE, title="voiding, reviewed"),
    ImportedRecord(source_id="6", pmid="6", title="prompted voiding in nursing homes"),
    ImportedRecord(source_id="7", pmid="7"),
)
QUERIES = (
    {"label": "voiding", "all_of": [["voiding"]], "none_of": ["spina bifida"]},
    {"label": "homes", "all_of": [["voiding", "x"], ["homes", "habit"]], "none_of": []},
)


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PaperDatabase]:
    found = database_of(tmp_path_factory.mktemp("lost") / "papers.db", PAPERS)
    yield found
    found.close()


@pytest.mark.parametrize(
    ("paper", "step", "hint"),
    [
        (
            TruthPaper(pmid="99", doi="10.1/a"),
            "not_in_database",
            r"import it \(PMID 99 DOI 10.1/a\), or record it as a limitation",
        ),
        (
            TruthPaper(title="voiding by the clock for babies"),
            "not_in_database",
            "import it, or .*; the most similar title, at 0.77, is that of 1",
        ),
        (
            TruthPaper(title="voiding by clocks in old men"),
            "near_miss_match",
            "check the title of 1: its ratio is 0.8421, and 0.85 would match",
        ),
        (
            TruthPaper(pmid="3"),
            "not_retrieved",
            r"voiding: .* of \(voiding\); .* \(voiding \| x\), \(homes \| habit\)",
        ),
        (
            TruthPaper(pmid="4"),
            "not_retrieved",
            r"voiding: its text has spina bifida, which it excludes; homes: its .*",
        ),
        (
            TruthPaper(pmid="5"),
            "not_retrieved",
            "it is a Cochrane review itself: search with --exclude-reviews=false",
        ),
        (
            TruthPaper(pmid="2"),
            "date_filtered",
            "it is of 1990, and the review's years are 2000 to 2010: correct them, .*",
        ),
        (
            TruthPaper(pmid="1"),
            "below_threshold",
            "its score 2.5 is 0.5 too low; .* from 2.5 down, .* precision of 50.0%",
        ),
        (TruthPaper(pmid="6"), None, ""),
    ],
)
def test_a_lost_paper_says_where_and_what_can_be_done(
    papers: PaperDatabase, paper: TruthPaper, step: str | None, hint: str
) -> None:
    found = _match(papers, paper, {})
    assert found.lost_at == step
    assert re.fullmatch(hint, found.resolution)


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({"top_k": 1}, r"voiding: it ranks 2: raise --top-k \(1\); homes: its .*"),
        (
            {"max_candidates": 1},
            r"it ranks 2 of all queries together: raise --max-candidates \(1\)",
        ),
    ],
)
def test_a_paper_beyond_the_lists_is_told_its_rank(
    papers: PaperDatabase, options: dict[str, object], hint: str
) -> None:
    found = _match(papers, TruthPaper(pmid="1"), options)
    assert found.lost_at == "not_retrieved"
    assert re.fullmatch(hint, found.resolution)


def again(reason: str) -> str:
    """How calls are made again; commands as they may be typed, but for the run."""
    return f"siftlog retry RUN --reason {reason}, then siftlog resume RUN"


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ("timeout", f"its call failed: {again('timeout')}"),
        ("?", f"its reply could not be read: {again('no_score')}"),
        (None, "not sent yet: siftlog resume RUN"),
    ],
)
def test_a_paper_without_a_score_says_why(
    papers: PaperDatabase, said: str | None, hint: str
) -> None:
    found = _match(papers, TruthPaper(pmid="1"), {}, said=said)
    assert found.lost_at == "unscored"
    assert re.fullmatch(hint, found.resolution)
    included = _match(papers, TruthPaper(pmid="1"), {"unscored": "include"}, said=said)
    assert included.included


def test_a_search_that_never_was_loses_all_papers(papers: PaperDatabase) -> None:
    dataset = dataset_of([_review(TruthPaper(pmid="1"))], papers, boot_b=0)
    asked = Asked(dataset=dataset, agents=[_agent(1.0)])
    answers = asked.failing("timeout")
    (found,) = _matches(measure_agents(dataset, collect_predictions(dataset, answers)))
    assert found.lost_at == "not_retrieved"
    assert found.resolution == f"no search was run: {again('timeout')}"


def test_a_record_that_serves_another_study_is_named(papers: PaperDatabase) -> None:
    studies = (TruthPaper(pmid="6"), TruthPaper(pmid="6"))
    review = _review(*studies)
    dataset = dataset_of([review], papers, boot_b=0, unique_claims=True)
    answers = Asked(dataset=dataset, agents=[_agent(1.0)]).answers()
    first, second = _matches(
        measure_agents(dataset, collect_predictions(dataset, answers))
    )
    assert first.included
    assert second.lost_at == "claimed"
    assert second.resolution == ("6 serves another study; see whether both are one")


def test_an_imported_result_says_no_more_than_that_it_excludes_a_paper() -> None:
    records = (
        AgentRecord(document="a", pmid="1", score=2.0),
        AgentRecord(document="b", pmid="2", score=4.5),
        AgentRecord(document="c", pmid="3"),
    )
    review = _review(*(TruthPaper(pmid=each.pmid) for each in records))
    dataset = dataset_of([review], None, boot_b=0)
    answers = imported(AgentResult(review="CD1", label="x", records=records))
    found = _matches(
        measure_agents(dataset, collect_predictions(dataset, answers)), "x"
    )
    steps = [own.lost_at for own in found]
    assert steps == ["excluded", "excluded", "excluded"]
    # no threshold of ours decided, and none is named
    hints = [own.resolution for own in found]
    assert hints[0] == (
        "the agent has a among the excluded, with a score of 2; no threshold on its "
        "scores would pass the review"
    )
    assert hints[2] == "the agent has c among the excluded: see its rationale"


def _review(*studies: TruthPaper) -> Review:
    return Review(
        id="CD1",
        title="voiding for incontinence",
        question="?",
        studies=studies,
        date_range=(2000, 2010),
    )


def _agent(score: float | str | None) -> Agent:
    """Includes what is about homes, and says the same of all else."""
    return Agent(
        model="m",
        queries={"CD1": QUERIES},
        score=lambda _, paper, __: 5.0 if paper == 6 else score,
    )


def _match(
    papers: PaperDatabase,
    paper: TruthPaper,
    options: Mapping[str, object],
    *,
    said: float | str | None = 2.5,
) -> PaperMatch:
    dataset = dataset_of([_review(paper)], papers, boot_b=0, **options)
    answers = Asked(dataset=dataset, agents=[_agent(said)]).answers()
    (found,) = _matches(measure_agents(dataset, collect_predictions(dataset, answers)))
    return found


def _matches(results: BenchmarkResults, model: str = "m") -> tuple[PaperMatch, ...]:
    return results.columns[model].matches["CD1"]
