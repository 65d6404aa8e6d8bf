"""The lines of a review in a terminal: the same words in the same order, always."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from jobs.review_benchmark.benchmark import ReviewBenchmarkCounts, failure_reasons
from jobs.review_benchmark.data import TruthPaper
from jobs.review_benchmark.score import score
from jobs.review_benchmark.settings import ReviewBenchmarkSettings
from jobs.review_benchmark.summary import MOST_LOST, MOST_PAIRS, MOST_REVIEWS
from tests.jobs.review_benchmark.agents import Given
from tests.jobs.review_benchmark.lost_studies import FIRST, SLEEP, imported, scored


def test_a_failed_review_says_why_and_what_was_lost(tmp_path: Path) -> None:
    lines = scored(tmp_path, FIRST).summary.splitlines()
    at = lines.index("Benchmark Result: FAILED")
    hint = "its score 1.5 is 1.5 too low; no threshold would pass the review"
    assert lines[at : at + 15] == [
        "Benchmark Result: FAILED",
        "Cochrane ID: CD7",
        "Ground Truth Papers: 7",
        "Agent Included Papers: 2",
        "Papers Found & Included: 1",
        "Papers Not Found: 2",
        "Papers Found but Excluded: 4",
        "Recall: 14.3% (target: 100%)",
        "Precision: 50.0%",
        "Failure Reasons:",
        "  - 2 ground truth paper(s) not found in database",
        "  - 4 ground truth paper(s) found but not included",
        "Lost Papers:",
        "  - Walking by day  below_threshold",
        f"    {hint}",
    ]
    assert f"  - {SLEEP.studies[6].title[:60]}...  not_in_database" in lines
    assert lines.index("Benchmark Result: PASSED") < at


def test_models_are_named_where_there_are_several(tmp_path: Path) -> None:
    lines = scored(tmp_path).summary.splitlines()
    named = [line for line in lines if line.startswith("Model: ")]
    assert (
        named
        == [f"Model: {FIRST}"] * 2 + ["Model: b/=two\N{SYMBOL FOR ESCAPE}[2J|"] * 2
    )
    assert "\x1b" not in "".join(lines)
    assert any(
        line.startswith(
            f"{FIRST}: 8 studies, matched by pmid 6, doi 0, title 0; lost 6: "
            "not_in_database 1, "
        )
        for line in lines
    )


def test_ten_lost_papers_are_listed_and_the_others_counted() -> None:
    dataset, answers = imported()
    studies = tuple(TruthPaper(title=f"{n} swimmers") for n in range(MOST_LOST + 2))
    many = replace(dataset, reviews=(replace(SLEEP, studies=studies),))
    lines = score(many, answers).summary.splitlines()
    assert sum(line.endswith("  not_in_database") for line in lines) == MOST_LOST
    assert "  and 2 more in lost_papers.csv" in lines
    assert "Precision: 0.0%" in lines


@given(
    truth=st.integers(1, 50),
    found=st.integers(0, 50),
    included=st.integers(0, 50),
    recall_line=st.booleans(),
    target=st.sampled_from([0.5, 0.8, 1.0]),
)
def test_there_are_reasons_where_something_was_lost(
    truth: int, found: int, included: int, target: float, *, recall_line: bool
) -> None:
    found = min(found, truth)
    included = min(included, found)
    own = ReviewBenchmarkCounts(
        truth=truth,
        included_rows=included,
        found=found,
        found_and_included=included,
        right_rows=included,
        credited=included,
        documents=found,
        distinct=included,
        retrieved=found,
        methods={},
    )
    settings = ReviewBenchmarkSettings(target_recall=target, recall_line=recall_line)
    reasons = list(failure_reasons(own, settings))
    said = recall_line and included / truth < target
    assert len(reasons) == said + (found < truth) + (included < found)
    assert all(reason[:1].isdigit() for reason in reasons[said:])


def test_the_line_about_recall_comes_first_where_it_is_asked_for(
    tmp_path: Path,
) -> None:
    lines = scored(
        tmp_path, FIRST, recall_line=True, target_recall=0.995
    ).summary.splitlines()
    at = lines.index("Failure Reasons:")
    assert lines[at + 1] == "  - Recall 14.3% below target 99.5%"


@pytest.mark.parametrize("target", [0.125, 1.0])
def test_a_review_passes_at_its_target(tmp_path: Path, target: float) -> None:
    said = scored(tmp_path, FIRST, target_recall=target).summary
    assert said.count("Benchmark Result: PASSED") == (2 if target < 1 else 1)


def test_a_terminal_is_told_of_the_first_results_and_the_file_of_all() -> None:
    dataset, answers = imported()
    (family,) = answers.each
    names = tuple(
        f"maker/a-model-of-a-very-long-name-{n:02}" for n in range(MOST_REVIEWS + 2)
    )
    each = [
        tuple(
            structs.replace(a, task=structs.replace(a.task, model=name)) for a in family
        )
        for name in names
    ]
    card = score(dataset, Given(models=names, each=each, imported=True))
    (file,) = (own.text for own in card.artifacts if own.name == "summary.txt")
    assert card.summary.count("Benchmark Result: ") == MOST_REVIEWS
    assert "\n2 more results in summary.txt\n" in card.summary
    assert file.count("Benchmark Result: ") == len(names)
    pairs = len(names) * (len(names) - 1) // 2
    assert f"\n{pairs - MOST_PAIRS:,} more pairs of models in comparison.csv\n" in file
    # numbers keep their room, and names differ at their ends
    assert "\nmaker/a-mo…f-a-very-long-name-61  0/1 " in file
