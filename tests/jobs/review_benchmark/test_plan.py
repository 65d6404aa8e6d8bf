"""What a judge is shown, and what vectors are asked for.

What is searched, scored and concluded, and what is skipped and why. A rehearsal against
a simulated model: its search plans find papers.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.kit.chat import read_blocks
from jobs.review_benchmark import inputs, requests
from jobs.review_benchmark import requests as asking
from jobs.review_benchmark.baseline import baseline
from jobs.review_benchmark.data import Review, SearchPlan
from jobs.review_benchmark.database.papers import DatabasePaper
from jobs.review_benchmark.database.reader import PaperDatabase
from jobs.review_benchmark.inputs import ReviewDataset
from jobs.review_benchmark.parsing import STAGES, parse_plan, parse_vector
from jobs.review_benchmark.plan import (
    comparison_tasks,
    conclusion,
    follow_up,
    mismatched_reviews,
    plan,
    planned_stages,
    searched,
    truth_vectors,
)
from jobs.review_benchmark.prompts import JudgeReply
from jobs.review_benchmark.requests import documents_from_context, request
from jobs.review_benchmark.settings import ReviewBenchmarkSettings
from runner.job import Answer, TaskSpec
from runner.messages import ChatRequest, EmbedRequest, ParseFailure, Reply, Vectors
from runner.simulate.model import fitting
from runner.simulate.options import Chance
from runner.simulate.requests import chat_text
from tests.jobs.review_benchmark.small_review import REVIEW, answer, data, stocked, task

OTHERS = tuple(
    replace(REVIEW, id=f"CD{n}", conclusion="" if n == 8 else f"Conclusion {n}.")
    for n in range(8, 14)
)


def vectors_data(*reviews: Review, **settings: object) -> ReviewDataset:
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
        specs = asked(vectors_data(verdict="judge", null_pairs=null_pairs))
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
    chosen = mismatched_reviews(vectors_data(REVIEW, *others, **settings), REVIEW)
    assert chosen == mismatched_reviews(
        vectors_data(REVIEW, *OTHERS, **settings), REVIEW
    )
    fewer = {**settings, "null_pairs": max(null_pairs - 1, 0)}
    assert chosen[: max(null_pairs - 1, 0)] == mismatched_reviews(
        vectors_data(REVIEW, *others, **fewer), REVIEW
    )


@given(st.text("abc .", min_size=1))
def test_which_of_the_two_is_called_a_is_tossed_by_the_key(said: str) -> None:
    dataset = vectors_data(verdict="judge")
    for spec in asked(dataset, said):
        truth = dataset.review(spec.key.partition("~")[2].partition("#")[0])
        pair = (" ".join(said.split()), truth.conclusion)
        first, second = pair if requests.is_first(spec.key) else reversed(pair)
        lines = [f"{name}: {text}" for name, text in (("A", first), ("B", second))]
        assert shown(dataset, spec) == "\n".join(
            line for line in lines if not line.endswith(": ")
        )


def test_both_ways_to_call_the_two_occur() -> None:
    dataset = vectors_data(verdict="judge")
    tosses = [
        requests.is_first(spec.key)
        for said in ("It helps.", "It harms.", "It does nothing.")
        for spec in asked(dataset, said)
    ]
    assert {*tosses} == {True, False}


def test_another_conclusion_on_either_side_is_another_task() -> None:
    dataset = vectors_data(REVIEW, verdict="judge")
    changed = replace(REVIEW, conclusion="Walking harms.")
    specs = [
        *comparison_tasks(dataset, REVIEW, "It helps.", "m/x"),
        *comparison_tasks(dataset, changed, "It helps.", "m/x"),
        *comparison_tasks(dataset, REVIEW, "It harms.", "m/x"),
        *comparison_tasks(dataset, REVIEW, "It helps.", "m/y"),
    ]
    assert len({spec.key for spec in specs}) == 4


def test_vectors_are_asked_for_of_every_conclusion_once() -> None:
    dataset = vectors_data(verdict="embedding")
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
        dataset = vectors_data(verdict=verdict)
        assert planned_stages(dataset) == {"plan", "score", *stages}
        assert bool(asked(dataset)) == (len(stages) == 2)
    assert vectors_data(OTHERS[0]).verdict == "off"
    assert planned_stages(vectors_data(verdict="judge")) <= {
        stage.name for stage in STAGES
    }


def test_what_is_too_long_for_a_prompt_is_not_sent() -> None:
    for verdict in ("judge", "embedding"):
        dataset = vectors_data(verdict=verdict, max_prompt_tokens=200)
        assert {spec.skip for spec in asked(dataset, "word " * 300)} == {"too_long"}
        assert "too_long" not in {spec.skip for spec in truth_vectors(dataset)}


def test_the_baseline_answers_with_vectors_and_shared_words() -> None:
    dataset = vectors_data(verdict="embedding")
    (spec,) = asked(dataset)
    vectors = baseline(request(dataset, task(spec)))
    assert isinstance(vectors, Vectors)
    assert isinstance(parse_vector(vectors), tuple)
    judge = vectors_data(verdict="judge", null_pairs=0)
    (spec,) = asked(judge, "Walking may well help.")
    said = json.loads(str(baseline(request(judge, task(spec)))))
    # walking, help; well is one word more
    assert (said["similarity"], said["direction"]) == (66.7, "unclear")


def test_a_vector_is_one_of_some_length() -> None:
    for rows in ([], [[1.0], [2.0]], [[]], [[0.0, 0.0]], [[1.0, float("nan")]]):
        assert parse_vector(Vectors.of(rows)) == ParseFailure(reason="bad_vector")
    assert parse_vector(Vectors.of([[0.0, -1.5]])) == (0.0, -1.5)


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stocked(tmp_path_factory.mktemp("papers") / "papers.db")


WALKING = '{"queries": [{"label": "w", "all_of": [["walking"]], "none_of": []}]}'


def candidates(dataset: ReviewDataset, said: str = WALKING) -> list[TaskSpec]:
    """What follows a search plan."""
    (spec,) = plan(dataset)
    return list(follow_up(dataset, (answer(dataset, spec, said),)))


def concluded(
    dataset: ReviewDataset, scores: Sequence[float | str | None]
) -> tuple[str | None, list[int]]:
    """Skip and papers of the conclusion, after these scores of the candidates."""
    group = tuple(
        answer(
            dataset, spec, None if score is None else f'{{"score": {score}}}', number
        )
        for number, (spec, score) in enumerate(
            zip(candidates(dataset), scores, strict=True), start=1
        )
    )
    (spec,) = follow_up(dataset, group)
    assert spec.stage == "conclude"
    return spec.skip, documents_from_context(spec.context)


def test_a_plan_leads_to_candidates_best_first_and_these_to_a_conclusion(
    papers: Path,
) -> None:
    with data(papers) as dataset:
        assert [(s.stage, s.key, s.skip) for s in plan(dataset)] == [
            ("plan", "CD7", None)
        ]
        assert planned_stages(dataset) == {"plan", "score", "conclude"}
        found = candidates(dataset)
        assert [(s.stage, s.key, s.skip, s.group) for s in found] == [
            ("score", "CD7:3", None, "CD7"),
            ("score", "CD7:1", None, "CD7"),
            ("score", "CD7:2", None, "CD7"),
        ]
        # best first, and ties as they were found
        assert concluded(dataset, [3.0, 4, 3]) == (None, [1, 3, 2])
        assert concluded(dataset, [2.9, 4, "4/10"]) == (None, [1])


def test_whether_the_unscored_are_included_is_a_setting(papers: Path) -> None:
    with data(papers, unscored="include", threshold=4, conclude_papers=2) as dataset:
        assert concluded(dataset, [3, None, "true"]) == (None, [1, 2])
        assert concluded(dataset, [4, None, 5]) == (None, [2, 3])


def test_other_papers_make_another_conclusion(papers: Path) -> None:
    def key(scores: Sequence[float], threshold: float) -> str:
        with data(papers, threshold=threshold) as dataset:
            group = tuple(
                answer(dataset, spec, f'{{"score": {score}}}')
                for spec, score in zip(candidates(dataset), scores, strict=True)
            )
            (spec,) = follow_up(dataset, group)
            return spec.key

    assert key([5, 4, 2], 3) == key([5, 4, 2], 2.5) != key([5, 4, 2], 2)
    assert key([5, 4, 2], 4.5) != key([5, 4, 2], 3)


def test_a_paper_that_is_gone_is_in_no_conclusion(papers: Path) -> None:
    with data(papers, conclude_papers=2) as dataset:
        spec = conclusion(dataset, REVIEW, {99: 5.0, 1: 4.0, 98: 4.0, 2: 3.0, 3: 3.0})
        assert spec is not None
        assert documents_from_context(spec.context) == [1, 2]


@pytest.mark.parametrize(
    "said", ["I cannot.", "", '{"queries": [{"all_of": [["?"]]}]}']
)
def test_a_plan_of_no_use_is_replaced_by_the_fixed_one(papers: Path, said: str) -> None:
    with data(papers) as dataset:
        # both words of the population and of the intervention; then any of them
        found = [spec.key for spec in candidates(dataset, said)]
        assert sorted(found) == ["CD7:1", "CD7:2", "CD7:3"]
        assert found[0] == "CD7:2"
    with data(papers, queries=1) as dataset:
        assert [spec.key for spec in candidates(dataset, said)] == ["CD7:2"]


def test_what_cannot_be_asked_is_skipped_with_its_reason(papers: Path) -> None:
    nothing = '{"queries": [["flying"], {"all_of": [["flying"]]}]}'
    for said, settings, expected in (
        (nothing, {}, [("score", "no_candidates")]),
        (
            WALKING,
            {"max_prompt_tokens": 10},
            [("score", "too_long")] * 3 + [("conclude", "nothing_included")],
        ),
    ):
        with data(papers) as dataset:
            changed = replace(
                dataset, settings=dataset.settings.model_copy(update=settings)
            )
            (spec,) = plan(dataset)
            found = list(follow_up(changed, (answer(dataset, spec, said),)))
            assert [(each.stage, each.skip) for each in found] == expected
            assert [each.skip for each in plan(changed)] == [
                "too_long" if settings else None
            ]


def test_a_conclusion_needs_papers_and_one_of_the_review_to_compare(
    papers: Path,
) -> None:
    with data(papers) as dataset:
        assert concluded(dataset, [1, 1, None]) == ("nothing_included", [])
    silent = replace(REVIEW, id="CD8", conclusion="")
    with data(papers, reviews=(silent,)) as dataset:
        assert planned_stages(dataset) == {"plan", "score"}
        assert list(follow_up(dataset, _scored(dataset, silent.id))) == []
    with data(papers, reviews=(REVIEW, silent)) as dataset:
        (spec,) = follow_up(dataset, _scored(dataset, silent.id))
        assert spec.skip == "no_truth_conclusion"
    with data(papers, verdict="off") as dataset:
        assert planned_stages(dataset) == {"plan", "score"}
        assert list(follow_up(dataset, _scored(dataset, REVIEW.id))) == []


def _scored(dataset: ReviewDataset, review: str) -> tuple[Answer, ...]:
    spec = TaskSpec(stage="score", key=f"{review}:1")
    return (answer(dataset, spec, '{"score": 5}'),)


class Blank(PaperDatabase):
    """An index that knows words of papers that have none."""

    def paper(self, number: int) -> DatabasePaper | None:
        return DatabasePaper(id=number, pmid="12", title=" ")


def test_a_paper_without_any_text_is_not_asked_about(papers: Path) -> None:
    with data(papers) as known, closing(Blank(papers)) as database:
        skips = [spec.skip for spec in candidates(replace(known, database=database))]
        assert skips == ["no_text"] * 3 + ["nothing_included"]


SEEDS = 40


def test_simulated_plans_can_be_read_and_nearly_all_of_them_find_papers() -> None:
    dataset = inputs.load(inputs.with_sample(ReviewBenchmarkSettings()))
    assert dataset.database is not None
    found = 0
    with closing(dataset.database):
        for review in dataset.reviews:
            request = asking.plan(dataset, review)
            assert request.schema is not None
            schema = msgspec.json.decode(request.schema.json)
            for seed in range(SEEDS):
                reply = fitting(schema, chat_text(request), Chance(seed, review.id))
                plan = parse_plan(Reply(text=msgspec.json.encode(reply).decode()), 6)
                # a plan that cannot be read is replaced by the fixed one
                is_read = isinstance(plan, SearchPlan)
                found += is_read and bool(searched(dataset, review, plan).candidates)
    # 62 of 200 before queries were made of the question's words
    assert found >= 0.98 * SEEDS * len(dataset.reviews)
