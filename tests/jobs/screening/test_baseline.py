"""baseline/lexical: what words alone make of a prompt.

A run over two stages, by the command, and what a changed reading makes of it.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.kit.chat import read_blocks
from jobs.kit.lexical import content_words
from jobs.screening.baseline import baseline, is_title_alone
from jobs.screening.data import ArticleText, Criteria, ScreeningJudgement
from jobs.screening.parsing import parse_criteria, parse_screen
from jobs.screening.plan import request
from runner.messages import ParseFailure, Reply
from tests.answering import answering
from tests.commands import command
from tests.jobs.screening.asked_about import data, task
from tests.jobs.screening.commanded import some_records

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


RECORDS = 40
"""Of the sample: those of one review, and some of another."""


def said(prompt: str) -> str | int:
    """Criteria for one review and none for the other; of its records, by their titles,
    some are surely excluded, some unreadable, some fail, and the rest is unsure."""
    found = dict(read_blocks(prompt))
    if not found:  # what is asked again
        return "Nobody."
    if "paper" not in found:
        is_first = "in adults" in found["review"]
        return '{"question": "Does it help them?"}' if is_first else "Ask somebody."
    letter = found["paper"].split("\n")[0][-1]
    if letter in "aeiou":
        return 400
    if letter in "st":
        return "Who knows?"
    p = 0.05 if letter in "mn" else 0.4
    decision = "exclude" if is_title_alone(found["paper"]) else "include"
    return json.dumps({"decision": decision, "p_include": p, "reason_code": "outcome"})


def scored(folder: Path, number: int) -> dict[str, Any]:
    """What a scoring says of the first model, by path."""
    path = folder / "x" / "scores" / str(number) / "scorecard.json"
    card = json.loads(path.read_bytes())
    found = {name: own["value"] for name, own in card["models"]["m"]["metrics"].items()}
    return {**found, "findings": card["findings"]}


def outcomes(card: dict[str, Any]) -> list[int]:
    """How many records were included, excluded, not read, and not answered."""
    names = ("include", "exclude", "unparsed", "failed")
    return [card[f"all.micro.outcome.{name}"] for name in names]


def read_otherwise(reply: Reply) -> ScreeningJudgement | ParseFailure:
    """A parser of tomorrow, which includes what nobody can read."""
    found = parse_screen(reply)
    return (
        ScreeningJudgement(decision="include")
        if isinstance(found, ParseFailure)
        else found
    )


def test_a_run_asks_once_and_is_read_as_often_as_one_likes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = ("--runs-dir", tmp_path, "--no-report")
    with answering(said) as endpoint:
        done = command(
            *("run", "screening", "--run-id", "x", *here),
            *("--validation-set", some_records(tmp_path, lambda i, _: i < RECORDS)),
            *("--stages", "title,abstract", "--criteria-source", "llm", "--boot-b", 0),
            *("--reask", 1, "--model", "m", "--model", "n", "--replicates", 2),
            *("--base-url", endpoint.url, "--allow-unknown-price"),
        )
    assert done.code == 3, done.err
    asked = [prompt for prompt in endpoint.asked if "<paper-" in prompt]
    # all papers of a review stand behind the same words, a model's own or the review's
    heads = {prompt[: prompt.index("<paper-")] for prompt in asked}
    assert sorted(head.count("Does it help them?") for head in heads) == [0, 1]
    first = scored(tmp_path, 1)
    flagged = [f for f in first["findings"] if f["code"] == "criteria_not_stated"]
    assert [(f["where"], f["n"]) for f in flagged] == [
        ("criteria of m", 1),
        ("criteria of n", 1),
    ]
    # what cannot be read is asked a second time, as part of its task
    titles = [
        prompt for prompt in asked if is_title_alone(dict(read_blocks(prompt))["paper"])
    ]
    assert len(titles) == 4 * RECORDS
    assert endpoint.asked.count(titles[0]) == 4
    # criteria are stated once a model, whatever the replicates
    stated = [prompt for prompt in endpoint.asked if prompt.count("<") == 2]
    assert len(stated) == 2 * 2
    # the endpoint is gone: what follows is read from the log alone
    included, excluded, unread, failed = outcomes(first)
    assert min(included, excluded, unread, failed) > 0
    for number, word in enumerate(("threshold=0.9", "title_exclude_below=1"), start=2):
        again = command("score", "x", *here, "--set", word)
        assert again.code == 0, again.err
        changed = [0, included + excluded, unread, failed]
        assert outcomes(scored(tmp_path, number)) == changed
    monkeypatch.setattr("jobs.screening.parsing.parse_screen", read_otherwise)
    shutil.rmtree(tmp_path / "x" / "parsed")  # the source is the same, so the key too
    again = command("score", "x", *here)
    assert again.code == 0, again.err
    assert outcomes(scored(tmp_path, 4)) == [included + unread, excluded, 0, failed]
