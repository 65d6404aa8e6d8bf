"""Which questions belong to which variant: splitting, caps, merging, batches.

The plan: first stage, follow-ups, batches, skips; always the same.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.paper_investigation import plan
from jobs.paper_investigation.data import (
    CHARS_PER_TOKEN,
    InvestigationDataset,
    PaperQuestion,
)
from jobs.paper_investigation.inputs import load, with_sample
from jobs.paper_investigation.parsing import VariantList
from jobs.paper_investigation.plan import follow_up, plan_tasks
from jobs.paper_investigation.prompts import batch_of
from jobs.paper_investigation.settings import InvestigationSettings
from runner.job import Answer, Task, TaskSpec
from runner.messages import ParseFailure, Reply
from tests.jobs.paper_investigation.small_datasets import choice, dataset, study

TRUTH = ["CYP2C9*2", "CYP2C9*3", "rs1"]


def paper(*questions: PaperQuestion, **settings: Any) -> InvestigationDataset:
    return dataset({"PMC1": TRUTH}, questions, **settings)


def keys(questions: tuple[PaperQuestion, ...]) -> list[str]:
    return [question.key for question in questions]


def test_a_joined_question_belongs_to_each_of_its_parts_and_is_asked_once() -> None:
    data = paper(choice("PMC1", "CYP2C9 *2, cyp2c9*3", "7"))
    links = plan.linked_questions(data, "PMC1", ("cyp2c9*2", "cyp2c9*3"))
    assert {v: keys(group) for v, group in links.items()} == {
        "cyp2c9*2": ["mcq_drug:7"],
        "cyp2c9*3": ["mcq_drug:7"],
    }
    assert keys(plan.variant_questions(data, "PMC1", ("cyp2c9*2", "cyp2c9*3"))) == [
        "mcq_drug:7"
    ]


def test_a_part_named_twice_links_once() -> None:
    data = paper(choice("PMC1", "rs1, RS1", "7"))
    assert keys(plan.linked_questions(data, "PMC1", ("rs1",))["rs1"]) == ["mcq_drug:7"]


def test_one_recalled_part_is_enough_to_ask() -> None:
    data = paper(choice("PMC1", "CYP2C9*2, CYP2C9*3", "7"))
    assert keys(plan.variant_questions(data, "PMC1", ("cyp2c9*3",))) == ["mcq_drug:7"]


def test_under_whole_a_joined_field_is_a_variant_that_nobody_recalls() -> None:
    data = paper(
        choice("PMC1", "CYP2C9*2, CYP2C9*3", "7"),
        choice("PMC1", "CYP2C9*2", "8"),
        variant_link="whole",
    )
    truth = tuple(plan.truth_variants(data, "PMC1"))
    assert keys(plan.variant_questions(data, "PMC1", truth)) == ["mcq_drug:8"]


def test_a_modified_variant_question_belongs_to_the_swapped_in_variant() -> None:
    data = paper(study("PMC1", "rs1", "5", question_type="modified_variant"))
    assert not plan.variant_questions(data, "PMC1", ("cyp2c9*2",))
    assert keys(plan.variant_questions(data, "PMC1", ("rs1",))) == ["study_param:5"]


def test_recalled_variants_stand_in_truth_order_once() -> None:
    data = dataset({"PMC1": ["rs2", "RS1", "rs1", "CYP2C9∗2"]})
    predicted = {"cyp2c9*2", "rs1", "rs9"}
    assert plan.recalled_variants(data, "PMC1", predicted) == ("rs1", "cyp2c9*2")
    assert plan.truth_variants(data, "PMC1")["rs1"] == "RS1"
    assert plan.recalled_variants(data, "PMC9", predicted) == ()


def test_the_cap_counts_for_each_variant_before_merging() -> None:
    data = paper(
        study("PMC1", "rs1", "1"),
        choice("PMC1", "rs1", "2", pipeline="mcq_phenotype"),
        choice("PMC1", "rs1, CYP2C9*2", "3", pipeline="mcq_variant"),
        choice("PMC1", "CYP2C9*2", "4", pipeline="mcq_variant"),
        choice("PMC1", "rs1", "5", pipeline="mcq_variant"),
        max_questions_per_variant=2,
    )
    links = plan.linked_questions(data, "PMC1", ("rs1", "cyp2c9*2"))
    assert keys(links["rs1"]) == ["mcq_variant:3", "mcq_variant:5"]
    assert keys(links["cyp2c9*2"]) == ["mcq_variant:3", "mcq_variant:4"]
    # three of five: each variant's first two, in pipeline order, then file order
    assert keys(plan.variant_questions(data, "PMC1", ("rs1", "cyp2c9*2"))) == [
        "mcq_variant:3",
        "mcq_variant:4",
        "mcq_variant:5",
    ]


def test_a_variant_without_questions_keeps_its_place() -> None:
    data = paper(choice("PMC1", "rs1", "2"))
    assert list(plan.linked_questions(data, "PMC1", ("cyp2c9*2", "rs1"))) == [
        "cyp2c9*2",
        "rs1",
    ]


def test_a_joined_question_goes_to_the_batch_of_the_first_variant_that_names_it() -> (
    None
):
    data = paper(
        choice("PMC1", "CYP2C9*3, CYP2C9*2", "1"),
        choice("PMC1", "CYP2C9*3", "2"),
        choice("PMC1", "CYP2C9*2", "3"),
    )
    links = plan.linked_questions(data, "PMC1", ("cyp2c9*2", "cyp2c9*3"))
    cut = plan.batches(links, 20)
    assert [keys(batch) for batch in cut] == [
        ["mcq_drug:1", "mcq_drug:3"],
        ["mcq_drug:2"],
    ]


FIELDS = st.lists(st.sampled_from([*TRUTH, "rs9", ""]), min_size=1, max_size=4)
PIPELINE = st.sampled_from(["mcq_variant", "mcq_drug", "study_param"])


@st.composite
def papers(draw: st.DrawFn) -> tuple[InvestigationDataset, tuple[str, ...]]:
    """A paper with any questions, and any of its variants."""
    fields = draw(st.lists(st.tuples(FIELDS, PIPELINE), max_size=12))
    questions = (
        choice("PMC1", ", ".join(field), str(number), pipeline=pipeline)
        for number, (field, pipeline) in enumerate(fields)
    )
    data = paper(
        *questions,
        max_questions_per_variant=draw(st.integers(0, 4)),
        variant_link=draw(st.sampled_from(["split", "whole"])),
    )
    names = tuple(plan.truth_variants(data, "PMC1"))
    chosen = draw(st.lists(st.sampled_from(names), unique=True))
    return data, tuple(name for name in names if name in chosen)


@given(made=papers())
def test_what_is_asked_is_what_is_linked_each_once_in_file_order(
    made: tuple[InvestigationDataset, tuple[str, ...]],
) -> None:
    data, variants = made
    links = plan.linked_questions(data, "PMC1", variants)
    asked = plan.variant_questions(data, "PMC1", variants)
    everything = keys(data.questions.get("PMC1", ()))
    linked = {key for group in links.values() for key in keys(group)}
    assert keys(asked) == [key for key in everything if key in linked]
    for variant, group in links.items():
        assert all(variant in plan.question_variants(q, data.settings) for q in group)


@given(made=papers(), size=st.integers(1, 5))
def test_batches_hold_every_asked_question_once_and_none_is_too_long(
    made: tuple[InvestigationDataset, tuple[str, ...]], size: int
) -> None:
    data, variants = made
    cut = plan.batches(plan.linked_questions(data, "PMC1", variants), size)
    held = [key for batch in cut for key in keys(batch)]
    assert sorted(held) == sorted(keys(plan.variant_questions(data, "PMC1", variants)))
    assert all(1 <= len(batch) <= size for batch in cut)


@given(made=papers())
def test_recalling_more_never_asks_less(
    made: tuple[InvestigationDataset, tuple[str, ...]],
) -> None:
    data, variants = made
    fewer = set(keys(plan.variant_questions(data, "PMC1", variants[:-1])))
    assert fewer <= set(keys(plan.variant_questions(data, "PMC1", variants)))


QUESTIONS = (
    choice("PMC1", "rs2", "1", pipeline="mcq_variant"),
    choice("PMC1", "rs1, rs2", "1"),
    choice("PMC1", "rs1", "2"),
    study("PMC1", "rs3", "1"),
    choice("PMC2", "rs9", "7"),
)
BENCH = {"PMC2": ["rs9"], "PMC1": ["rs2", "rs1", "rs3"], "PMC3": ["rs5"]}


def data(**settings: Any) -> InvestigationDataset:
    return dataset(BENCH, QUESTIONS, **settings)


def extraction(pmcid: str, *variants: str) -> tuple[Answer, ...]:
    task = Task(number=1, stage="extract", key=pmcid, model="m", replicate=1)
    listed = VariantList(entries=variants, dropped=0, rule="array")
    return (Answer(task=task, reply=Reply(text=""), parsed=listed),)


def up_keys(specs: Any) -> list[str]:
    return [spec.key for spec in specs]


def test_extractions_follow_the_bench() -> None:
    specs = list(plan_tasks(data()))
    assert up_keys(specs) == ["PMC2", "PMC1", "PMC3"]
    assert {spec.stage for spec in specs} == {"extract"}
    assert {spec.skip for spec in specs} == {None}


def test_the_plan_is_lazy() -> None:
    class Untouchable:
        def __contains__(self, pmcid: str) -> bool:
            assert pmcid == "PMC2"
            return True

    made = data()
    object.__setattr__(made, "papers", Untouchable())
    assert next(plan_tasks(made)).key == "PMC2"


def test_a_paper_without_text_is_skipped_with_its_reason() -> None:
    specs = list(plan_tasks(dataset(BENCH, texts={"PMC1": "text", "PMC2": " \n"})))
    assert [(spec.key, spec.skip) for spec in specs] == [
        ("PMC2", "no_paper_text"),
        ("PMC1", None),
        ("PMC3", "no_paper_text"),
    ]


def test_a_paper_longer_than_the_known_context_is_skipped() -> None:
    texts = {"PMC1": "x" * 100 * CHARS_PER_TOKEN, "PMC2": "x" * 101 * CHARS_PER_TOKEN}
    limits: dict[str, Any] = {"context_tokens": 110, "max_tokens_extract": 10}
    bench = {"PMC1": ["rs1"], "PMC2": ["rs2"]}
    specs = list(plan_tasks(dataset(bench, texts=texts, **limits)))
    assert [spec.skip for spec in specs] == [None, "paper_too_long"]
    cut = plan_tasks(dataset(bench, texts=texts, max_chars=50, **limits))
    assert [spec.skip for spec in cut] == [None, None]


def test_recalled_variants_bring_their_questions_in_pipeline_order() -> None:
    specs = list(follow_up(data(), extraction("PMC1", "RS1", "rs3", "rs77")))
    assert specs == [
        TaskSpec(stage="question", key="PMC1/mcq_drug:1"),
        TaskSpec(stage="question", key="PMC1/mcq_drug:2"),
        TaskSpec(stage="question", key="PMC1/study_param:1"),
    ]


def test_a_joined_question_is_asked_once_however_many_parts_are_recalled() -> None:
    one = up_keys(follow_up(data(), extraction("PMC1", "rs1")))
    both = up_keys(follow_up(data(), extraction("PMC1", "rs1", "rs2")))
    assert one.count("PMC1/mcq_drug:1") == both.count("PMC1/mcq_drug:1") == 1
    # a part that is recalled later, after a change of the parser, renames nothing
    assert set(one) < set(both)


def test_nothing_follows_what_was_not_read_or_not_answered() -> None:
    (answer,) = extraction("PMC1")
    failed = Answer(task=answer.task, error="Timeout")
    skipped = Answer(task=answer.task, skip="no_paper_text")
    unread = Answer(
        task=answer.task, reply=Reply(text="?"), parsed=ParseFailure(reason="no_list")
    )
    for each in (failed, skipped, unread):
        assert not list(follow_up(data(), (each,)))


def test_nothing_follows_an_empty_list_or_a_paper_outside_the_bench() -> None:
    assert not list(follow_up(data(), extraction("PMC1")))
    assert not list(follow_up(data(), extraction("PMC8", "rs1")))


@pytest.mark.parametrize("mode", ["extract", "questions"])
def test_only_an_investigation_has_follow_ups(mode: str) -> None:
    assert not list(follow_up(data(mode=mode), extraction("PMC1", "rs1")))


def test_ask_all_also_asks_about_what_was_missed() -> None:
    specs = follow_up(data(ask="all"), extraction("PMC1", "rs3"))
    assert up_keys(specs) == [
        "PMC1/mcq_variant:1",
        "PMC1/mcq_drug:1",
        "PMC1/mcq_drug:2",
        "PMC1/study_param:1",
    ]


def test_a_batch_is_named_by_its_first_question_and_knows_its_members() -> None:
    made = data(batch_questions=True, batch_size=2)
    specs = list(follow_up(made, extraction("PMC1", "rs1", "rs2", "rs3")))
    assert up_keys(specs) == [
        "PMC1/b/mcq_variant:1",
        "PMC1/b/mcq_drug:2",
        "PMC1/b/study_param:1",
    ]
    members = [
        [
            question.key
            for question in batch_of(
                made,
                Task(
                    number=1,
                    stage=spec.stage,
                    key=spec.key,
                    model="m",
                    replicate=1,
                    context=spec.context,
                ),
            )
        ]
        for spec in specs
    ]
    assert members == [
        ["mcq_variant:1", "mcq_drug:1"],
        ["mcq_drug:2"],
        ["study_param:1"],
    ]


def test_asking_about_all_leaves_the_batches_of_recalled_variants_alone() -> None:
    recalled = list(follow_up(data(batch_questions=True), extraction("PMC1", "rs1")))
    everything = follow_up(
        data(batch_questions=True, ask="all"), extraction("PMC1", "rs1")
    )
    assert list(everything)[: len(recalled)] == recalled


def test_in_mode_questions_all_are_asked_whatever_the_cap() -> None:
    specs = list(plan_tasks(data(mode="questions", max_questions_per_variant=1)))
    assert up_keys(specs) == [
        "PMC2/mcq_drug:7",
        "PMC1/mcq_variant:1",
        "PMC1/mcq_drug:1",
        "PMC1/mcq_drug:2",
        "PMC1/study_param:1",
    ]


def test_in_mode_questions_a_missing_text_skips_each_question() -> None:
    made = dataset(BENCH, QUESTIONS, {"PMC1": "text"}, mode="questions")
    skipped = {spec.key: spec.skip for spec in plan_tasks(made)}
    assert skipped["PMC2/mcq_drug:7"] == "no_paper_text"
    assert skipped["PMC1/mcq_drug:1"] is None


def test_a_closed_book_question_needs_no_text() -> None:
    made = dataset(BENCH, QUESTIONS, {}, mode="questions", closed_book=True)
    assert {spec.skip for spec in plan_tasks(made)} == {None}


def test_closed_book_does_nothing_for_an_investigation() -> None:
    made = dataset(BENCH, QUESTIONS, {}, closed_book=True)
    assert {spec.skip for spec in plan_tasks(made)} == {"no_paper_text"}


def test_papers_outside_the_bench_come_after_it_in_mode_questions() -> None:
    made = dataset(
        {"PMC2": ["rs9"]}, QUESTIONS, {"PMC1": "x", "PMC2": "x"}, mode="questions"
    )
    assert up_keys(plan_tasks(made))[0] == "PMC2/mcq_drug:7"


@pytest.mark.parametrize("link", ["split", "whole"])
def test_in_mode_questions_batches_hold_every_question_once(link: str) -> None:
    made = data(mode="questions", batch_questions=True, batch_size=2, variant_link=link)
    asked = []
    for spec in plan_tasks(made):
        task = Task(
            number=1,
            stage=spec.stage,
            key=spec.key,
            model="m",
            replicate=1,
            context=spec.context,
        )
        batch = batch_of(made, task)
        assert len(batch) <= 2
        asked += [f"{question.pmcid}/{question.key}" for question in batch]
    assert sorted(asked) == sorted(f"{q.pmcid}/{q.key}" for q in QUESTIONS)


def test_the_same_data_gives_the_same_plan_with_every_key_once() -> None:
    for settings in itertools.product(
        ("investigate", "extract", "questions"), (False, True)
    ):
        mode, batched = settings
        given = with_sample(
            InvestigationSettings.model_validate(
                {"mode": mode, "batch_questions": batched}
            )
        )
        first, second = (list(plan_tasks(load(given))) for _ in range(2))
        assert first == second
        assert len(set(up_keys(first))) == len(first)
