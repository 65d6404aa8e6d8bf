"""baseline/lexical: what words alone make of a prompt."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.lexical import content_words
from jobs.screening.baseline import baseline
from jobs.screening.data import ArticleText, Criteria, ScreeningJudgement
from jobs.screening.parsing import parse_criteria, parse_screen
from jobs.screening.plan import request
from runner.messages import Reply
from tests.jobs.screening.asked_about import data, task

ASKED = Criteria(
    question="Does walking help?",
    pico={"population": "tired adults", "intervention": "daily walking"},
    inclusion=("randomised trials",),
)
"""Content words: walking, help, tired, adult, daily."""


def reply(
    title: str,
    abstract: str,
    criteria: Criteria | None = ASKED,
    stage: str = "abstract",
) -> dict[str, Any]:
    dataset = data(
        papers={"1": ArticleText(title=title, abstract=abstract, year=2020)},
        criteria=criteria,
    )
    answer: dict[str, Any] = json.loads(baseline(request(dataset, task(stage))))
    return answer


@pytest.mark.parametrize(
    ("title", "abstract", "decision", "p", "code"),
    [
        (
            "Help",
            "A trial: tired adults, daily walking",
            "include",
            1.0,
            "meets_criteria",
        ),
        # four of five words, and no design
        ("Walking", "Daily help of adults.", "include", 0.64, "meets_criteria"),
        ("Walking", "Daily help at home.", "unclear", 0.48, "study_design"),
        ("Walking", "A placebo for dogs.", "unclear", 0.36, "population"),
        ("Adults", "A randomly chosen choir", "unclear", 0.36, "intervention"),
        ("Dogs", "A placebo", "exclude", 0.2, "population"),
        ("Singing", "A survey.", "exclude", 0.0, "study_design"),
    ],
)
def test_the_share_of_words_and_the_design_make_the_probability(
    title: str, abstract: str, decision: str, p: float, code: str
) -> None:
    found = reply(title, abstract)
    assert (found["decision"], found["p_include"], found["reason_code"]) == (
        decision,
        p,
        code,
    )


def test_a_title_is_judged_by_its_words_alone() -> None:
    found = reply("Walking and help for adults", "unread", stage="title")
    assert (found["p_include"], found["decision"]) == (0.6, "include")


def test_without_question_and_pico_the_review_s_title_counts() -> None:
    found = reply("Sleep", "after a walking holiday", criteria=None)
    assert found["p_include"] == 1.0
    # the design counts as met where no criterion speaks of it
    assert reply("Dogs", "", criteria=None)["p_include"] == 0.2
    assert reply("Dogs", "", criteria=None)["reason_code"] == "other"


def test_the_year_and_the_id_are_no_words_of_the_paper() -> None:
    assert set(content_words("The trials: 2020 classes of ABC-boxes, by us")) == {
        "trial",
        "classe",
        "abc",
        "boxe",
    }


def test_criteria_are_the_sections_of_the_abstract() -> None:
    text = ArticleText(
        title="Walking", abstract="Objectives To walk. Selection criteria All."
    )
    for review, question, inclusion in (
        (text, "To walk.", ("All.",)),
        (ArticleText(title="Walking"), "Walking", ()),
    ):
        dataset = data(text=review, criteria=None, criteria_source="llm")
        said = baseline(request(dataset, task("criteria", "R7")))
        assert parse_criteria(Reply(text=said)) == Criteria(
            question=question, inclusion=inclusion
        )


@given(st.text(), st.text())
def test_every_answer_is_readable_and_consistent(title: str, abstract: str) -> None:
    dataset = data(papers={"1": ArticleText(title=title, abstract=abstract)})
    found = parse_screen(Reply(text=baseline(request(dataset, task("abstract")))))
    assert isinstance(found, ScreeningJudgement)
    assert found.issues == ()
