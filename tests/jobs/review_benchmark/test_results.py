"""What an agent's result comes to for a review, and over reviews."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from msgspec import structs

from jobs.kit.comparison.models import model_pairs
from jobs.review_benchmark.data import AgentRecord, Review, TruthPaper
from jobs.review_benchmark.predictions import collect_predictions
from jobs.review_benchmark.result_files import AgentResult
from jobs.review_benchmark.results import (
    PAIRED,
    BenchmarkResults,
    compared,
    measure_agents,
)
from jobs.review_benchmark.score import score
from runner.messages import Reply
from tests.jobs.review_benchmark.agents import dataset_of, imported

GREEK = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron "
    "pi rho sigma tau upsilon phi chi psi omega"
)


def test_nothing_included_is_a_result_without_a_precision() -> None:
    results = _results([_of("7")], [_agent([], ["7"])])
    found = results.columns["x"].benchmarks["CD1"]
    assert (found.recall, found.precision, found.nnr) == (0.0, None, None)
    assert (found.found_but_excluded, found.passes(1.0)) == (1, False)
    metric = results.columns["x"].by_path()["macro.precision"]
    assert (metric.value, metric.n, metric.n_defined) == (None, 1, 0)


def test_each_row_of_a_repeated_paper_counts_in_precision() -> None:
    results = _results([_of("7")], [_agent(["7", "7", "8"], [])])
    found = results.columns["x"].benchmarks["CD1"]
    assert (found.included_rows, found.right_rows, found.documents) == (3, 2, 1)
    assert found.precision == 2 / 3
    assert [each.code for each in results.findings] == ["repeated_rows"]


@pytest.mark.parametrize(("n", "is_few"), [(9, True), (10, False)])
def test_ten_reviews_are_enough_for_intervals(n: int, *, is_few: bool) -> None:
    ids = [f"CD{i}" for i in range(n)]
    dataset = dataset_of([_of("7", review=name) for name in ids], None, boot_b=10)
    answers = imported(*(_agent(["7"], [], review=name) for name in ids))
    results = measure_agents(dataset, collect_predictions(dataset, answers))
    assert ("few_reviews" in {each.code for each in results.findings}) == is_few


def test_an_interval_that_many_replicates_lack_says_so() -> None:
    ids = ("CD1", "CD2", "CD3")
    settings = {"boot_b": 50, "interval": "percentile"}
    dataset = dataset_of([_of("7", review=name) for name in ids], None, **settings)
    answers = imported(
        *(_agent(["7"] * (name == "CD1"), ["7"], review=name) for name in ids)
    )
    results = measure_agents(dataset, collect_predictions(dataset, answers))
    metrics = results.columns["x"].by_path()
    for path in ("macro.precision", "micro.precision"):
        used = int(metrics[path].definition.rpartition("B_used=")[2])
        assert used < 50
        assert metrics[path].note == f"undefined in {50 - used} replicates"
    assert metrics["macro.recall"].note is None


def test_a_paper_in_both_lists_is_included_and_counts_once() -> None:
    results = _results([_of("7")], [_agent(["7"], ["7", "8"])])
    column = results.columns["x"]
    found = column.benchmarks["CD1"]
    assert (found.included_rows, found.found_and_included) == (1, 1)
    documents = [each.document for each in column.rebuilt["CD1"].candidates]
    assert documents == ["7", "8"]
    assert [each.code for each in results.findings] == ["in_both_lists"]


def test_a_study_that_is_listed_twice_is_found_twice_in_one_record() -> None:
    review = _of("7", "7", "8")
    results = _results([review], [_agent(["7"], [])])
    column = results.columns["x"]
    found = column.benchmarks["CD1"]
    assert (found.found_and_included, found.documents, found.distinct) == (2, 1, 1)
    assert (found.recall, found.recall_distinct) == (2 / 3, 1 / 3)
    told = [(each.index, each.reason) for each in column.suspicious["CD1"]]
    assert told == [(0, "shared"), (1, "shared")]
    strict = _results([review], [_agent(["7"], [])], unique_claims=True)
    found = strict.columns["x"].benchmarks["CD1"]
    assert (found.found, found.recall) == (1, 1 / 3)


def test_precision_may_count_truth_papers_and_pass_one() -> None:
    results = _results(
        [_of("7", "7")], [_agent(["7"], [])], precision="gt_over_included"
    )
    assert results.columns["x"].benchmarks["CD1"].precision == 2.0


def test_titles_of_other_papers_and_years_are_suspicious() -> None:
    paper = TruthPaper(pmid="7", title="voiding by the clock", year=2001)
    review = Review(id="CD1", title="r", question="q", studies=(paper,))
    record = AgentRecord(
        document="a", pmid="8", title="Voiding by the clock.", year=1999, included=True
    )
    result = AgentResult(review="CD1", label="x", records=(record,))
    (one, two) = _results([review], [result]).columns["x"].suspicious["CD1"]
    assert (one.reason, two.reason) == ("other_pmid", "other_year")
    assert two.message == "matched by its title; years differ: 2001 and 1999"


def test_a_result_that_cannot_be_read_any_more_is_an_error() -> None:
    answers = imported(_agent(["7"], []))
    ((answer,),) = answers.each
    broken = replace(answers, each=[(structs.replace(answer, reply=Reply(text="[]")),)])
    dataset = dataset_of([_of("7")], None, boot_b=0)
    results = measure_agents(dataset, collect_predictions(dataset, broken))
    told = [(each.severity, each.code, each.where) for each in results.findings]
    assert told == [
        ("error", "bad_result", "CD1 of x"),
        ("warn", "review_not_done", "x"),
    ]


def test_both_counts_are_told_where_autojunk_matters() -> None:
    words = f"{GREEK} {GREEK}".split()
    paper = TruthPaper(title=" ".join(words))
    review = Review(id="CD1", title="r", question="q", studies=(paper,))
    title = " ".join([words[0], "changed", *words[2:]])
    record = AgentRecord(document="a", title=title, included=True)
    result = AgentResult(review="CD1", label="x", records=(record,))
    for autojunk, found in ((True, 0), (False, 1)):
        results = _results([review], [result], autojunk=autojunk)
        assert results.columns["x"].benchmarks["CD1"].found == found
        (told,) = (each for each in results.findings if each.code == "autojunk_matters")
        assert told.message.endswith("found 0 with it and 1 without, included 0 and 1.")


def test_replicates_of_an_import_are_one_by_majority() -> None:
    said = [_agent(["7", "8"], []), _agent(["7"], ["8"]), _agent(["8"], ["9"])]
    column = _results([_of("7", "8", "9")], said).columns["x"]
    assert sorted(column.rebuilt["CD1"].included) == ["7", "8"]
    alone = [column.by_path()[f"replicate.{n}.recall"].value for n in (1, 2, 3)]
    assert alone == [pytest.approx(2 / 3), pytest.approx(1 / 3), pytest.approx(1 / 3)]


def test_models_are_compared_on_the_reviews_that_both_have_done() -> None:
    reviews = [_of("1", "2", "3", review="CD1"), _of("4", review="CD2")]
    agents = [
        _agent(["1", "2", "3"], [], review="CD1", label="a"),
        _agent(["4"], [], review="CD2", label="a"),
        _agent(["1"], ["2", "3"], review="CD1", label="b"),
    ]
    results = _results(reviews, agents)
    columns = results.columns
    given = results.dataset.settings
    comparables = {model: compared(results, own) for model, own in columns.items()}
    (pair,) = model_pairs(comparables, PAIRED, given, "micro.recall")
    reviews, test = pair.metrics["macro.recall"].overlap, pair.sign_test
    assert (reviews.common, reviews.unpaired, test.n) == (1, 1, 3)
    assert (test.left_alone, test.right_alone, test.p) == (2, 0, 0.5)
    assert test.p_holm == 0.5
    gaps = {path: found.gap.value for path, found in pair.metrics.items()}
    # one review of both has no winner, however far they are apart
    assert {found.verdict for found in pair.metrics.values()} == {"too few"}
    assert gaps == {
        "macro.recall": pytest.approx(2 / 3),
        "macro.precision": 0.0,
        "micro.recall": pytest.approx(2 / 3),
        "micro.precision": 0.0,
    }
    left = [each for each in results.findings if each.code == "review_not_done"]
    assert [(each.where, each.n, each.example) for each in left] == [("b", 1, "CD2")]


def test_only_what_is_matched_alike_is_compared() -> None:
    def micro(*pmids: str, **settings: object) -> tuple[Sequence[str], str]:
        dataset = dataset_of([_of(*pmids)], None, boot_b=0, **settings)
        card = score(dataset, imported(_agent(["7"], [])))
        assert set(card.comparable["x"]) == {
            "macro.recall",
            "macro.precision",
            "micro.recall",
            "micro.precision",
        }
        values = card.comparable["x"]["micro.recall"]()
        assert values.first == [float(pmid == "7") for pmid in pmids]
        return values.items, values.definition

    items, definition = micro("7", "8")
    assert len(items) == 2
    again, other = micro("7", "8", matching="single-pass")
    assert (again, other == definition) == (items, False)
    changed, same = micro("7", "9")
    assert same == definition
    assert not set(changed) & set(items)


def _of(*pmids: str, review: str = "CD1") -> Review:
    studies = tuple(TruthPaper(pmid=pmid) for pmid in pmids)
    return Review(id=review, title="r", question="q", studies=studies)


def _agent(
    included: Sequence[str],
    excluded: Sequence[str],
    *,
    review: str = "CD1",
    label: str = "x",
) -> AgentResult:
    """Papers by their PMIDs, which are their ids too."""
    return AgentResult(
        review=review,
        label=label,
        records=(
            *(
                AgentRecord(document=pmid, pmid=pmid, included=True)
                for pmid in included
            ),
            *(AgentRecord(document=pmid, pmid=pmid) for pmid in excluded),
        ),
    )


def _results(
    reviews: Sequence[Review], results: Sequence[AgentResult], **settings: object
) -> BenchmarkResults:
    dataset = dataset_of(reviews, None, boot_b=0, **settings)
    return measure_agents(dataset, collect_predictions(dataset, imported(*results)))
