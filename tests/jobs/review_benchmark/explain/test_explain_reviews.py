"""Pages about a review or a paper, in a run, in an import and before any."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.review_benchmark.explain import select
from jobs.review_benchmark.job import job
from runner.errors import UsageError
from runner.messages import Reply
from tests.jobs.review_benchmark.agents import Given
from tests.jobs.review_benchmark.lost_studies import (
    CALM,
    FIRST,
    LOST_AT,
    SLEEP,
    imported,
    world,
)
from tests.jobs.review_benchmark.small_review import stocked
from tests.jobs.screening.commanded import command


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
    assert "    it says: By its title." in page
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
    assert page.startswith(f"CD7:2  {FIRST}\ntitle      Walking by day\n")
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
        ("5", "  nothing was asked about it"),
        ("5", "decision   not a candidate"),
        ("6", "study      none of the review's"),
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
    assert page.endswith(
        "nothing is known of it yet: its search plan is still to come\n"
    )


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
    assert "    the likest title, at 0.8471, is that of 6" in page
    assert "study      4 (Running for rest)" in page
    for paper in ("8", "0", "x", "²"):
        with pytest.raises(UsageError, match="has no paper"):
            job.explain(dataset, None, (f"CD7:{paper}",))


def test_ids_may_hold_colons_and_a_whole_name_goes_first() -> None:
    reviews = [replace(SLEEP, id=name) for name in ("A", "A:1", "B")]
    chosen = select(("A:1", "A:2", "B:x:y"), reviews)
    assert [(own.review.id, own.paper) for own in chosen] == [
        ("A:1", ""),
        ("A", "2"),
        ("B", "x:y"),
    ]
    with pytest.raises(UsageError, match="There is no review 'B2'; the nearest is B"):
        select(("B2",), reviews)
    with pytest.raises(UsageError, match="name a review by its id"):
        select(("zzzz:",), reviews)


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
