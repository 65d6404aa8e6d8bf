"""What a judge is shown, and what vectors are asked for."""

from __future__ import annotations

import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from jobs.chat import read_blocks
from jobs.review_benchmark import requests
from jobs.review_benchmark.baseline import baseline
from jobs.review_benchmark.data import Review
from jobs.review_benchmark.inputs import ReviewDataset
from jobs.review_benchmark.parsing import STAGES, parse_vector
from jobs.review_benchmark.plan import (
    comparison_tasks,
    mismatched_reviews,
    planned_stages,
    truth_vectors,
)
from jobs.review_benchmark.prompts import JudgeReply
from jobs.review_benchmark.requests import request
from jobs.review_benchmark.settings import ReviewBenchmarkSettings
from runner.job import TaskSpec
from runner.messages import ChatRequest, EmbedRequest, ParseFailure, Vectors
from tests.jobs.review_benchmark.small_review import REVIEW, task

OTHERS = tuple(
    replace(REVIEW, id=f"CD{n}", conclusion="" if n == 8 else f"Conclusion {n}.")
    for n in range(8, 14)
)


def data(*reviews: Review, **settings: object) -> ReviewDataset:
    every = reviews or (REVIEW, *OTHERS)
    return ReviewDataset(
        settings=ReviewBenchmarkSettings.model_validate(settings), reviews=every
    )


def asked(dataset: ReviewDataset, said: str = "It helps.") -> list[TaskSpec]:
    return list(comparison_tasks(dataset, REVIEW, said, "m/x"))


def shown(dataset: ReviewDataset, spec: TaskSpec) -> str:
    """The two conclusions of a judge's prompt."""
    prompt = request(dataset, task(spec))
    assert isinstance(prompt, ChatRequest)
    assert prompt.messages[0].text == dataset.prompts.text("judge.system")
    assert prompt.schema is not None
    assert set(json.loads(prompt.schema.json)["properties"]) == {
        *JudgeReply.model_fields
    }
    ((name, content),) = read_blocks(prompt.messages[1].text)
    assert name == "conclusions"
    return content


def test_a_judge_is_shown_the_authors_and_as_many_others_as_are_wanted() -> None:
    for null_pairs, expected in ((0, 1), (2, 3), (99, 6)):
        specs = asked(data(verdict="judge", null_pairs=null_pairs))
        assert len(specs) == len({spec.key for spec in specs}) == expected
        assert {spec.stage for spec in specs} == {"judge"}
        assert specs[0].key.startswith("CD7~CD7#")
        assert all(spec.key.endswith("/m/x") for spec in specs)
        assert not any("~CD8#" in spec.key for spec in specs)


@given(st.permutations(OTHERS), st.integers(0, 6))
def test_which_others_are_shown_hangs_on_the_ids_alone(
    others: list[Review], null_pairs: int
) -> None:
    settings = {"verdict": "judge", "null_pairs": null_pairs}
    chosen = mismatched_reviews(data(REVIEW, *others, **settings), REVIEW)
    assert chosen == mismatched_reviews(data(REVIEW, *OTHERS, **settings), REVIEW)
    fewer = {**settings, "null_pairs": max(null_pairs - 1, 0)}
    assert chosen[: max(null_pairs - 1, 0)] == mismatched_reviews(
        data(REVIEW, *others, **fewer), REVIEW
    )


@given(st.text("abc .", min_size=1))
def test_which_of_the_two_is_called_a_is_tossed_by_the_key(said: str) -> None:
    dataset = data(verdict="judge")
    for spec in asked(dataset, said):
        truth = dataset.review(spec.key.partition("~")[2].partition("#")[0])
        pair = (" ".join(said.split()), truth.conclusion)
        first, second = pair if requests.is_first(spec.key) else reversed(pair)
        lines = [f"{name}: {text}" for name, text in (("A", first), ("B", second))]
        assert shown(dataset, spec) == "\n".join(
            line for line in lines if not line.endswith(": ")
        )


def test_both_ways_to_call_the_two_occur() -> None:
    dataset = data(verdict="judge")
    tosses = [
        requests.is_first(spec.key)
        for said in ("It helps.", "It harms.", "It does nothing.")
        for spec in asked(dataset, said)
    ]
    assert {*tosses} == {True, False}


def test_another_conclusion_on_either_side_is_another_task() -> None:
    dataset = data(REVIEW, verdict="judge")
    changed = replace(REVIEW, conclusion="Walking harms.")
    specs = [
        *comparison_tasks(dataset, REVIEW, "It helps.", "m/x"),
        *comparison_tasks(dataset, changed, "It helps.", "m/x"),
        *comparison_tasks(dataset, REVIEW, "It harms.", "m/x"),
        *comparison_tasks(dataset, REVIEW, "It helps.", "m/y"),
    ]
    assert len({spec.key for spec in specs}) == 4


def test_vectors_are_asked_for_of_every_conclusion_once() -> None:
    dataset = data(verdict="embedding")
    specs = [*truth_vectors(dataset), *asked(dataset)]
    assert len({spec.key for spec in specs}) == len(specs) == 7
    texts = [request(dataset, task(spec)) for spec in specs]
    assert texts == [
        *(EmbedRequest(texts=(own.conclusion,)) for own in dataset.concluded),
        EmbedRequest(texts=("It helps.",)),
    ]
    assert {spec.stage for spec in specs} == {"embed"}


def test_words_are_compared_by_no_model() -> None:
    for verdict, stages in (
        ("off", set()),
        ("tfidf", {"conclude"}),
        (None, {"conclude"}),
        ("judge", {"conclude", "judge"}),
        ("embedding", {"conclude", "embed"}),
    ):
        dataset = data(verdict=verdict)
        assert planned_stages(dataset) == {"plan", "score", *stages}
        assert bool(asked(dataset)) == (len(stages) == 2)
    assert data(OTHERS[0]).verdict == "off"
    assert planned_stages(data(verdict="judge")) <= {stage.name for stage in STAGES}


def test_what_is_too_long_for_a_prompt_is_not_sent() -> None:
    for verdict in ("judge", "embedding"):
        dataset = data(verdict=verdict, max_prompt_tokens=200)
        assert {spec.skip for spec in asked(dataset, "word " * 300)} == {"too_long"}
        assert "too_long" not in {spec.skip for spec in truth_vectors(dataset)}


def test_the_baseline_answers_with_vectors_and_shared_words() -> None:
    dataset = data(verdict="embedding")
    (spec,) = asked(dataset)
    vectors = baseline(request(dataset, task(spec)))
    assert isinstance(vectors, Vectors)
    assert isinstance(parse_vector(vectors), tuple)
    judge = data(verdict="judge", null_pairs=0)
    (spec,) = asked(judge, "Walking may well help.")
    said = json.loads(str(baseline(request(judge, task(spec)))))
    # walking, help; well is one word more
    assert (said["similarity"], said["direction"]) == (66.7, "unclear")


def test_a_vector_is_one_of_some_length() -> None:
    for rows in ([], [[1.0], [2.0]], [[]], [[0.0, 0.0]], [[1.0, float("nan")]]):
        assert parse_vector(Vectors.of(rows)) == ParseFailure(reason="bad_vector")
    assert parse_vector(Vectors.of([[0.0, -1.5]])) == (0.0, -1.5)
