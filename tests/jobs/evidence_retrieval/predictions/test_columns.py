"""A verdict for each task that was answered, for the monitor and for explain."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
from msgspec import structs

from jobs.evidence_retrieval.data import EvidenceDataset
from jobs.evidence_retrieval.pipeline import Config
from jobs.evidence_retrieval.predictions.columns import queries
from jobs.evidence_retrieval.queries import UNKNOWN, Predictions, ScoringInput
from jobs.evidence_retrieval.score import EvidenceVerdicts
from jobs.kit.testing import MemoryAnswers
from runner.job import Answers, Task
from runner.messages import AnyReply, Reply
from runner.scorecard import Verdict
from tests.jobs.evidence_retrieval.world import Sayings, answers, dataset

PLAIN = (Config(name="c", rerank="assess"),)


def _world(**settings: Any) -> EvidenceDataset:
    """A data set with one fold, for it may be smaller than folds are drawn for."""
    made = dataset(**settings)
    return replace(made, folds={post.id: "0" for post in made.posts})


def _of(world: EvidenceDataset, found: Answers) -> EvidenceVerdicts:
    sheet = ScoringInput(queries=queries(world), predictions=(), headline="", models=())
    return EvidenceVerdicts(dataset=world, answers=found, scoring_input=sheet)


def _verdicts(world: EvidenceDataset, found: Answers) -> list[Verdict]:
    return list(_of(world, found))


def _says(probability: object) -> Reply:
    said = {"evidence_probability": probability, "sentences": []}
    return Reply(text=json.dumps(said))


def test_an_assessment_is_judged_at_tau_as_the_model_said_it() -> None:
    world = _world(posts=3, criteria=2, share=0.5, configs=PLAIN, tau=0.6)
    found = _verdicts(world, answers(world, lambda _: _says(60)))
    assert world.gold is not None
    positive = {f"{post}/{criterion}" for post, criterion in world.gold.evidence}
    assert {own.value for own in found} == {"evidence 0.60"}
    assert {own.key for own in found if own.expected == "evidence"} == positive
    assert {own.key for own in found if own.correct} == positive
    assert 0 < len(positive) < len(found) == 6
    below = _verdicts(world, answers(world, lambda _: _says(59)))
    assert {own.key for own in below if own.correct is False} == positive


def test_what_was_mended_or_could_not_be_read_is_the_rule_of_a_verdict() -> None:
    world = _world(posts=1, criteria=2, configs=PLAIN)

    def say(task: Task) -> AnyReply:
        return _says(0.25) if task.key.endswith("A.1") else Reply(text="no idea")

    mended, failed = _verdicts(world, answers(world, say))
    assert (mended.value, mended.rule) == ("no evidence 0.25", "scale_guessed 1")
    assert (failed.value, failed.correct, failed.rule) == ("", None, "no_json")


def test_without_gold_nothing_is_right_or_wrong() -> None:
    world = _world(posts=1, criteria=1, configs=PLAIN)
    bare = replace(world, gold=None)
    (own,) = _verdicts(bare, answers(bare))
    assert (own.expected, own.correct) == ("", None)


def test_a_post_asked_at_once_is_right_if_each_of_its_criteria_is() -> None:
    world = _world(posts=2, criteria=2, share=1.0, configs=PLAIN, batch="post")

    def say(task: Task) -> AnyReply:
        second = 90 if task.key == "p000" else 10
        said = [
            {"id": "A.1", "evidence_probability": 80, "sentences": [1]},
            {"id": "A.2", "evidence_probability": second, "sentences": []},
        ]
        return Reply(text=json.dumps({"criteria": said}))

    right, wrong = _verdicts(world, answers(world, say))
    assert right.expected == "A.1: evidence; A.2: evidence"
    assert (right.value, right.correct, right.rule) == (
        "A.1: evidence 0.80; A.2: evidence 0.90",
        True,
        "A.2: inconsistent 1",
    )
    assert wrong.correct is False


def test_a_criterion_of_a_batch_that_cannot_be_read_is_named_in_the_rule() -> None:
    world = _world(posts=1, criteria=1, configs=PLAIN, batch="post")

    def say(task: Task) -> AnyReply:
        if "/" in task.key:
            return _says(10)
        said = [{"id": "A.1", "evidence_probability": 700, "sentences": []}]
        return Reply(text=json.dumps({"criteria": said}))

    batch, _ = _verdicts(world, answers(world, say))
    assert (batch.value, batch.correct) == ("", None)
    assert batch.rule == "A.1: probability_out_of_range"


def test_orders_vectors_and_endpoint_scores_have_no_right_or_wrong() -> None:
    configs = (
        Config(name="a", first_stage=("embedding",), rerank="llm"),
        Config(name="b", rerank="endpoint"),
    )
    world = _world(posts=2, criteria=2, configs=configs)
    found = _verdicts(world, answers(world))
    stages = {own.stage for own in found}
    assert {"rerank", "embed", "rerank_api"} <= stages
    for own in found:
        if own.stage != "assess":
            assert own.value
            assert (own.expected, own.correct) == ("", None)


def test_replies_that_the_plan_no_longer_asks_for_have_no_verdict() -> None:
    world = _world(posts=3, criteria=1, configs=PLAIN)
    whole = answers(world)
    fewer = replace(world, posts=world.posts[:2])
    assert [own.key for own in _verdicts(fewer, whole)] == ["p000/A.1", "p001/A.1"]


def test_verdicts_are_made_anew_whenever_they_are_read() -> None:
    world = _world(posts=2, criteria=2, configs=PLAIN)
    found = answers(world, Sayings(world=world))
    verdicts = _of(world, found)
    assert list(verdicts) == list(verdicts)
    assert [own.task for own in verdicts] == [1, 2, 3, 4]


def test_an_imported_prediction_is_judged_by_the_column_that_is_scored() -> None:
    world = _world(posts=3, criteria=1, share=1.0, configs=PLAIN)
    sheet = ScoringInput(
        queries=queries(world),
        predictions=(
            Predictions(
                model="m",
                config="given",
                status=["scored"] * 3,
                prob=np.array([0.9, 0.2, np.nan]),
                state=np.array([2, UNKNOWN, UNKNOWN]),
                lists={"given": [(), (), ("p002_1", "p002_0")]},
                final="given",
            ),
        ),
        headline="given",
        models=("m",),
    )
    held = tuple(
        (structs.replace(own, task=structs.replace(own.task, stage="given")),)
        for (own,) in answers(world).families()
    )
    found = MemoryAnswers(held=held, models=("m",), replicates=1, imported=True)
    said = list(EvidenceVerdicts(dataset=world, answers=found, scoring_input=sheet))
    assert [(own.value, own.expected, own.correct) for own in said] == [
        ("POS 0.90", "evidence", True),
        ("no evidence 0.20", "evidence", False),
        ("first p002_1", "evidence", None),
    ]
