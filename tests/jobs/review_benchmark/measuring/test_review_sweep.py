"""What every threshold would give, and how recall grows with the list."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.review_benchmark.benchmark import passing_step
from jobs.review_benchmark.data import Review, TruthPaper
from jobs.review_benchmark.database.papers import ImportedRecord
from jobs.review_benchmark.database.reader import PaperDatabase
from jobs.review_benchmark.inputs import ReviewDataset
from jobs.review_benchmark.predictions import collect_predictions
from jobs.review_benchmark.results import BenchmarkResults, measure_agents
from tests.jobs.review_benchmark.agents import Agent, Asked, database_of, dataset_of

TITLES = (
    "timed voiding for urge incontinence in women",
    "timed voiding for urge incontinence in women",
    "timed voiding for urge incontinence in older women",
    "drug therapy for urge incontinence in women",
    "drug therapy for urge incontinence in women a trial",
    "a trial of fluid intake and incontinence",
)
STUDIES = (
    *(TruthPaper(title=title) for title in TITLES[1:]),
    TruthPaper(pmid="1"),
    TruthPaper(pmid="1", title=TITLES[2]),
    TruthPaper(pmid="6"),
    TruthPaper(pmid="99"),
)
QUERY = {"label": "all", "all_of": [["incontinence"]], "none_of": []}

scores = st.lists(
    st.sampled_from([1.0, 2.5, 3.0, 3.5, 5.0]),
    min_size=len(TITLES),
    max_size=len(TITLES),
)
options = st.fixed_dictionaries(
    {
        "matching": st.sampled_from(["whole-list", "single-pass"]),
        "unique_claims": st.booleans(),
        "precision": st.sampled_from(["rows", "gt_over_included"]),
        "boot_b": st.just(0),
        "verdict": st.just("off"),
    }
)
studies = st.lists(st.sampled_from(STUDIES), min_size=1, max_size=6)


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PaperDatabase]:
    path = tmp_path_factory.mktemp("sweep") / "papers.db"
    # of two papers with one title the years differ, or they would be one
    entries = [
        ImportedRecord(source_id=str(at), pmid=str(at), title=title, year=2000 + at)
        for at, title in enumerate(TITLES, start=1)
    ]
    found = database_of(path, entries)
    yield found
    found.close()


@settings(max_examples=50)
@given(studies, scores, options)
def test_each_step_is_what_scoring_again_at_that_threshold_gives(
    papers: PaperDatabase,
    studies: list[TruthPaper],
    scores: list[float],
    options: dict[str, object],
) -> None:
    review = Review(id="CD1", title="r", question="q", studies=tuple(studies))
    whole = _results(review, papers, scores, options)
    steps = whole.columns["m"].steps["CD1"]
    assert [step.threshold for step in steps] == sorted(set(scores), reverse=True)
    for step in steps:
        again = _results(
            review, papers, scores, {**options, "threshold": step.threshold}
        )
        found = again.columns["m"].benchmarks["CD1"]
        assert (
            step.included_rows,
            step.found_and_included,
            step.precision,
            step.passed,
        ) == (
            found.included_rows,
            found.found_and_included,
            found.precision,
            found.passes(1.0),
        )
    lowest = passing_step(steps)
    assert (lowest is None) == (not steps[-1].passed)
    overall = whole.columns["m"].overall
    assert [(own.threshold, own.recall, own.passed) for own in overall] == [
        (step.threshold, step.recall, int(step.passed)) for step in steps
    ]


def test_recall_grows_with_the_candidates_that_are_kept(papers: PaperDatabase) -> None:
    wanted = (TruthPaper(pmid="6"), TruthPaper(pmid="99"), TruthPaper(title=TITLES[0]))
    review = Review(id="CD1", title="r", question="q", studies=wanted)
    column = _results(review, papers, [1.0] * 6, {}).columns["m"]
    ranks = {own.document: own.rank for own in column.rebuilt["CD1"].candidates}
    found = [(point.n_candidates, point.retrieved) for point in column.curves["CD1"]]
    # either of the two papers with the title will do
    first, second = sorted([ranks["6"], min(ranks["1"], ranks["2"])])
    assert found == list({first: 1, second: 2, len(TITLES): 2}.items())
    assert column.benchmarks["CD1"].retrieval_recall == found[-1][1] / 3


def _results(
    review: Review,
    papers: PaperDatabase,
    scores: list[float],
    options: dict[str, object],
) -> BenchmarkResults:
    dataset: ReviewDataset = dataset_of([review], papers, **options)
    agent = Agent(
        model="m",
        queries={"CD1": [QUERY]},
        score=lambda _, paper, __: scores[paper - 1],
    )
    answers = Asked(dataset=dataset, agents=[agent]).answers()
    return measure_agents(dataset, collect_predictions(dataset, answers))
