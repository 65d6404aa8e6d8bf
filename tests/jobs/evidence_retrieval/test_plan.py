"""The plan of evidence-retrieval: which tasks, which skips, and what follows."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any

import numpy as np
import pytest

from jobs.evidence_retrieval.data import EvidenceDataset, Post
from jobs.evidence_retrieval.parsing import Assessment, PostAssessment, PostVectors
from jobs.evidence_retrieval.pipeline import STANDARD, Config
from jobs.evidence_retrieval.plan import (
    STAGES,
    follow_up,
    needed_tasks,
    plan,
    read_assess,
)
from jobs.evidence_retrieval.prompts import request
from jobs.evidence_retrieval.sentence_order import listing
from runner.job import Answer, Task, TaskSpec
from runner.messages import ParseFailure, Ranking, Reply, Vectors
from runner.money.tokens import prompt_tokens
from tests.jobs.evidence_retrieval.asked import answered, data, reason, task
from tests.jobs.evidence_retrieval.asked import task_of as of

SLEEP = ("Fine.", "I lie awake at night.", "No sleep at night.", "My job is bad.")
POSTS = {"b": SLEEP, "a": ("One.",), "c": ()}
FAILURE = ParseFailure(reason="no_json")
OK = Reply(text="{}")


def named(specs: Any) -> list[tuple[str, str, str | None]]:
    return [(spec.stage, spec.key, spec.skip) for spec in specs]


def assessed(**relevance: int) -> Assessment:
    places = {int(name[1:]): each for name, each in relevance.items()}
    return Assessment(probability=0.9, relevance=places)


def follow(dataset: EvidenceDataset, asked: Task, parsed: object) -> list[TaskSpec]:
    return list(follow_up(dataset, answered(asked, OK, parsed)))


def test_queries_come_in_file_order_and_those_that_cannot_be_asked_are_skipped() -> (
    None
):
    assert named(plan(data(POSTS))) == [
        ("assess", "b/A.1", None),
        ("assess", "b/A.2", None),
        ("assess", "a/A.1", None),
        ("assess", "a/A.2", None),
        ("assess", "c/A.1", "no_sentences"),
        ("assess", "c/A.2", "no_sentences"),
    ]


def test_every_kind_of_task_has_its_items_and_skips() -> None:
    tasks = ("assess", "embed", "rerank_api", "rerank")
    specs = plan(data(POSTS, {"A": "sleep"}, tasks=tasks, batch="post"))
    assert named(specs) == [
        ("assess", "b", None),
        ("embed", "b", None),
        ("rerank_api", "b/A", None),
        ("rerank", "b/A#0", None),
        ("assess", "a", None),
        ("embed", "a", None),
        ("rerank_api", "a/A", "single_sentence"),
        ("rerank", "a/A#0", "single_sentence"),
        ("assess", "c", "no_sentences"),
        ("embed", "c", "no_sentences"),
        ("rerank_api", "c/A", "no_sentences"),
        ("rerank", "c/A#0", "no_sentences"),
    ]


def test_one_candidate_is_not_ordered_however_long_the_post() -> None:
    dataset = data({"b": SLEEP}, {"A": "sleep"}, tasks=("rerank",), rerank_depth=1)
    assert named(plan(dataset)) == [("rerank", "b/A#0", "single_sentence")]


def test_a_post_may_have_too_many_sentences_or_tokens() -> None:
    tasks = ("assess", "embed", "rerank_api", "rerank")
    many = data({"b": SLEEP}, {"A": "sleep"}, tasks=tasks, max_sentences=3)
    assert {spec.skip for spec in plan(many)} == {"too_long"}
    for kind in tasks:
        whole = data({"b": SLEEP}, {"A": "sleep"}, tasks=(kind,))
        (spec,) = plan(whole)
        tokens = prompt_tokens(request(whole, of(spec)))
        for limit, skip in ((tokens, None), (tokens - 1, "too_long")):
            dataset = data(
                {"b": SLEEP}, {"A": "sleep"}, tasks=(kind,), max_prompt_tokens=limit
            )
            assert [spec.skip for spec in plan(dataset)] == [skip], kind


def test_a_rerank_is_as_long_as_its_longest_window_whatever_the_order() -> None:
    post = (*("word " * 40 for _ in range(2)), *("word" for _ in range(4)))
    dataset = data(
        {"p": post}, {"A": "x"}, tasks=("rerank",), rerank_window=2, rerank_stride=1
    )
    (spec,) = plan(dataset)
    sizes = {
        prompt_tokens(request(dataset, of(spec, replicate))) for replicate in range(9)
    }
    settings = {"tasks": ("rerank",), "rerank_window": 2, "rerank_stride": 1}
    for limit, skip in ((max(sizes), None), (max(sizes) - 1, "too_long")):
        cut = data({"p": post}, {"A": "x"}, max_prompt_tokens=limit, **settings)
        assert [each.skip for each in plan(cut)] == [skip]
    assert len(sizes) > 1


def test_the_plan_is_lazy() -> None:
    class Untouchable(tuple[Post, ...]):
        __slots__ = ()

        def __iter__(self) -> Any:
            yield from islice(super().__iter__(), 1)
            raise AssertionError("the second post was looked at")

    made = data(POSTS)
    object.__setattr__(made, "posts", Untouchable(made.posts))
    assert [spec.key for spec in islice(plan(made), 2)] == ["b/A.1", "b/A.2"]


@pytest.mark.parametrize(
    ("config", "needed"),
    [
        (Config(name="x"), set()),
        (Config(name="x", first_stage=("document",), graph="ppr"), set()),
        (Config(name="x", first_stage=("bm25", "embedding")), {"embed"}),
        (Config(name="x", first_stage=("assess",)), {"assess"}),
        (Config(name="x", rerank="assess"), {"assess"}),
        (Config(name="x", rerank="llm"), {"rerank"}),
        (Config(name="x", rerank="endpoint"), {"rerank_api"}),
        (Config(name="x", gate="passthrough"), {"assess"}),
        (Config(name="x", gate="classifier"), {"assess"}),
    ],
)
def test_configurations_ask_for_what_they_need(
    config: Config, needed: set[str]
) -> None:
    assert needed_tasks(data(POSTS, configs=(config,), tasks=())) == needed
    assert needed_tasks(data(POSTS, configs=(config,), tasks=("embed",))) == {
        *needed,
        "embed",
    }


@pytest.mark.parametrize(
    ("stage", "needed"),
    [
        ("bm25", {"rerank"}),
        ("document", {"rerank"}),
        ("embedding", {"rerank", "embed"}),
        ("assess", {"rerank", "assess"}),
    ],
)
def test_a_rerank_needs_its_first_stage(stage: str, needed: set[str]) -> None:
    assert needed_tasks(data(POSTS, tasks=("rerank",), first_stage=stage)) == needed


def test_configurations_that_differ_in_a_late_stage_share_every_call() -> None:
    full, before = data(POSTS, configs=STANDARD), data(POSTS, configs=STANDARD[1:2])
    assert list(plan(full)) == list(plan(before))


def test_criteria_that_a_batch_left_out_or_failed_on_are_asked_alone_once() -> None:
    dataset = data({"b": SLEEP}, {"A": "x", "B": "y", "C": "z"}, batch="post")
    (spec,) = plan(dataset)
    text = json.dumps(
        {
            "criteria": [
                {"id": "B", "evidence_probability": 80, "sentences": [1]},
                {"id": "C", "evidence_probability": 800, "sentences": [1]},
                {"id": "D", "evidence_probability": 80, "sentences": [1]},
            ]
        }
    )
    parsed = read_assess(dataset, of(spec), Reply(text=text))
    alone = follow(dataset, of(spec), parsed)
    assert named(alone) == [("assess", "b/A", None), ("assess", "b/C", None)]
    assert follow(dataset, of(alone[0]), FAILURE) == []
    assert follow(dataset, of(alone[0]), assessed(s1=50)) == []
    assert follow(dataset, of(spec), FAILURE) == []


def test_a_rerank_on_the_order_of_an_assessment_follows_it() -> None:
    dataset = data({"b": SLEEP}, tasks=("rerank",), first_stage="assess")
    assert named(plan(dataset)) == [
        ("assess", "b/A.1", None),
        ("assess", "b/A.2", None),
    ]
    (spec,) = follow(dataset, task("assess", "b/A.1"), assessed(s3=90, s0=20))
    assert (spec.key, spec.skip) == ("b/A.1#0", None)
    assert listing(dataset, of(spec)).indices[0] == 3
    assert listing(dataset, of(spec)).indices[1] == 0
    (skipped,) = follow(dataset, task("assess", "b/A.1"), FAILURE)
    assert (skipped.key, skipped.skip) == ("b/A.1#0", "unparsed_parent")


def test_a_single_sentence_needs_no_parent() -> None:
    dataset = data({"a": ("One.",)}, tasks=("rerank",), first_stage="assess")
    (skipped,) = follow(dataset, task("assess", "a/A.1"), FAILURE)
    assert (skipped.key, skipped.skip) == ("a/A.1#0", "single_sentence")


def test_after_a_batch_each_criterion_that_was_read_is_reranked() -> None:
    dataset = data({"b": SLEEP}, tasks=("rerank",), first_stage="assess", batch="post")
    batch = PostAssessment(criteria={"A.2": assessed(s3=90)})
    assert named(follow(dataset, task("assess", "b"), batch)) == [
        ("assess", "b/A.1", None),
        ("rerank", "b/A.2#0", None),
    ]
    assert named(follow(dataset, task("assess", "b"), FAILURE)) == [
        ("rerank", "b/A.1#0", "unparsed_parent"),
        ("rerank", "b/A.2#0", "unparsed_parent"),
    ]


def test_a_rerank_on_the_order_of_vectors_follows_them() -> None:
    dataset = data({"b": SLEEP}, tasks=("rerank",), first_stage="embedding")
    assert named(plan(dataset)) == [("embed", "b", None)]
    vectors = PostVectors(
        criteria=np.array([[1.0, 0.0], [0.0, 5.0]]),
        sentences=np.array([[0.0, 1.0], [2.0, 2.0], [1.0, 0.0], [-1.0, 0.0]]),
    )
    specs = follow(dataset, task("embed", "b"), vectors)
    orders = [listing(dataset, of(spec)).order for spec in specs]
    assert orders == [(2, 1, 0, 3), (0, 1, 2, 3)]
    skipped = follow(dataset, task("embed", "b"), ParseFailure(reason="bad_vectors"))
    assert [spec.skip for spec in skipped] == ["unparsed_parent"] * 2


def test_vectors_that_no_rerank_starts_from_have_no_follow_up() -> None:
    dataset = data({"b": SLEEP}, tasks=("embed", "rerank"))
    assert follow(dataset, task("embed", "b"), FAILURE) == []


def test_an_answer_about_a_query_that_is_gone_is_unknown_and_followed_by_nothing() -> (
    None
):
    dataset = data({"b": SLEEP}, tasks=("rerank",), first_stage="assess")
    replies = {
        "assess": Reply(text="{}"),
        "rerank": Reply(text="{}"),
        "embed": Vectors(packed=()),
        "rerank_api": Ranking(results=()),
    }
    stages = {stage.name: stage for stage in STAGES}
    for name, reply in replies.items():
        asked = task(name, "gone/A.1#0")
        read = stages[name].parse(dataset, asked, reply)
        assert reason(read) == "unknown_query"
        group = (Answer(task=asked, reply=reply, parsed=read),)
        assert list(follow_up(dataset, group)) == []
