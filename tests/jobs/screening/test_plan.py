"""What is asked first, what follows, and what is skipped and why."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobs.kit.chat import is_longer_than, most_tokens
from jobs.screening.data import ArticleText, Criteria
from jobs.screening.inputs import ScreeningDataset
from jobs.screening.plan import follow_up, plan, planned_stages, screen
from jobs.screening.settings import StageName
from runner.job import Answer, TaskSpec
from runner.prompts import PromptBook
from tests.jobs.screening.asked_about import answer, data, task

STAGES = ("title", "abstract", "fulltext")


def said(decision: str, p: float | None = None) -> str:
    stated = "null" if p is None else p
    return f'{{"decision": "{decision}", "p_include": {stated}}}'


def after(
    dataset: ScreeningDataset, stage: str, reply: str | None, key: str = "R7:1"
) -> list[tuple[str, str, str | None]]:
    """Stage, key and skip of what follows."""
    spec = TaskSpec(stage=stage, key=key)
    found = follow_up(dataset, (answer(dataset, spec, reply),))
    return [(each.stage, each.key, each.skip) for each in found]


def test_records_are_asked_in_set_order_at_the_first_stage() -> None:
    for stages in (("abstract",), STAGES):
        dataset = data(stages=stages)
        specs = list(plan(dataset))
        assert [(each.stage, each.key) for each in specs] == [
            (stages[0], "R7:1"),
            (stages[0], "R7:2"),
        ]
        # what nothing follows is gathered by nobody
        follows = len(stages) > 1
        assert [each.group for each in specs] == (
            ["R7:1", "R7:2"] if follows else [None, None]
        )
        assert planned_stages(dataset) == set(stages)


@pytest.mark.parametrize(
    ("reply", "skip"),
    [
        (said("include", 0.9), None),
        (said("unclear", 0.05), None),
        (said("exclude", 0.10), "excluded_earlier"),
        (said("exclude", 0.11), None),
        (said("exclude"), None),
        ("what?", None),
        ("", None),
        (None, None),
    ],
)
def test_a_title_ends_a_record_only_where_it_is_sure(
    reply: str | None, skip: str | None
) -> None:
    dataset = data(stages=STAGES)
    assert after(dataset, "title", reply) == [("abstract", "R7:1", skip)]


def test_every_exclusion_by_title_can_be_made_to_count() -> None:
    dataset = data(stages=("title", "abstract"), title_exclude_below=1.0)
    for reply in (said("exclude"), said("exclude", 0.9)):
        assert after(dataset, "title", reply)[0][2] == "excluded_earlier"
    assert after(dataset, "title", said("include", 0.0))[0][2] is None


@pytest.mark.parametrize(
    ("reply", "skip"),
    [
        (said("include"), None),
        (said("unclear"), None),
        ("?", None),
        (None, None),
        (said("exclude", 0.49), "excluded_earlier"),
    ],
)
def test_full_texts_are_read_of_what_an_abstract_leaves_alive(
    reply: str | None, skip: str | None
) -> None:
    dataset = data(stages=("abstract", "fulltext"), fulltexts={"1": Path(__file__)})
    assert after(dataset, "abstract", reply) == [("fulltext", "R7:1", skip)]
    found = after(dataset, "abstract", reply, "R7:2")
    assert found == [("fulltext", "R7:2", skip or "no_fulltext")]


def test_the_last_stage_and_what_was_never_asked_have_no_follow_up() -> None:
    assert after(data(), "abstract", said("include")) == []
    assert after(data(stages=STAGES), "fulltext", said("include")) == []
    assert after(data(stages=STAGES), "title", said("include"), "R7:9") == []
    for left in (
        Answer(task=task("title"), skip="cancelled"),
        Answer(task=task("title"), is_open=True),
    ):
        assert list(follow_up(data(stages=STAGES), (left,))) == []


def test_a_model_s_criteria_go_with_every_task_of_their_review() -> None:
    dataset = data(criteria_source="llm", stages=("title", "abstract"))
    (spec,) = plan(dataset)
    assert (spec.stage, spec.key, spec.group) == ("criteria", "R7", "R7")
    assert planned_stages(dataset) == {"criteria", "title", "abstract"}
    read = answer(dataset, spec, '{"question": "Is it dark?"}')
    titles = list(follow_up(dataset, (read,)))
    assert [(each.stage, each.key) for each in titles] == [
        ("title", "R7:1"),
        ("title", "R7:2"),
    ]
    assert titles[0].context is not None
    assert "Is it dark?" in titles[0].context
    (abstract,) = follow_up(dataset, (answer(dataset, titles[0], said("include")),))
    assert abstract.context == titles[0].context


@pytest.mark.parametrize("reply", ["no idea", "", None])
def test_without_a_model_s_criteria_its_records_are_asked_all_the_same(
    reply: str | None,
) -> None:
    dataset = data(criteria_source="llm")
    (spec,) = plan(dataset)
    found = list(follow_up(dataset, (answer(dataset, spec, reply),)))
    assert [(each.key, each.context, each.skip) for each in found] == [
        ("R7:1", None, None),
        ("R7:2", None, None),
    ]


def test_what_cannot_be_asked_is_skipped_with_its_reason() -> None:
    def skips(dataset: ScreeningDataset) -> list[str | None]:
        return [each.skip for each in plan(dataset)]

    assert skips(data(criteria=None, criteria_source="file")) == ["no_criteria"] * 2
    assert (
        skips(data(criteria=Criteria(), criteria_source="file")) == ["no_criteria"] * 2
    )
    assert skips(data(criteria=None)) == [None, None]
    assert skips(data(max_prompt_tokens=10)) == ["too_long"] * 2
    assert skips(data(stages=("fulltext",))) == ["no_fulltext"] * 2
    long = {
        "1": ArticleText(title="x", abstract="words " * 9000),
        "2": ArticleText(title="y"),
    }
    assert skips(data(papers=long, max_prompt_tokens=4000)) == ["too_long", None]
    assert skips(data(criteria_source="llm", max_prompt_tokens=10)) == ["too_long"] * 3


@pytest.mark.parametrize("stage", ["title", "abstract"])
@pytest.mark.parametrize("shows", [True, False])
@pytest.mark.parametrize("times", [1, 2])
def test_a_prompt_is_too_long_by_its_own_length(
    stage: StageName, *, shows: bool, times: int
) -> None:
    """Most prompts are not built to see that they are short; it changes no skip."""
    papers = {
        "1": ArticleText(title="x" * 40, abstract=" a  b" * 90, year=1999),
        "2": ArticleText(),
        "3": ArticleText(title=" x\ty ", abstract="é" * 300, year=2021),
    }
    kinds: dict[str, Any] = {"papers": papers, "stages": (stage,), "show_ids": shows}
    texts = dict(data().prompts.texts)
    texts[f"{stage}.user"] += "{paper}" * (times - 1)
    prompts = PromptBook(texts=texts)
    whole = replace(data(**kinds), prompts=prompts)
    lengths = [
        most_tokens(screen(whole, stage, whole.record(f"R7:{paper}"), None))
        for paper in papers
    ]
    for limit in (length // by + more for length in lengths for by in (1, 3, 4)
                  for more in (-1, 0, 1, 80)):  # fmt: skip
        dataset = replace(data(max_prompt_tokens=limit, **kinds), prompts=prompts)
        assert [spec.skip for spec in plan(dataset)] == [
            "too_long" if is_longer_than(request, limit) else None
            for request in (
                screen(dataset, stage, dataset.record(f"R7:{paper}"), None)
                for paper in papers
            )
        ]
