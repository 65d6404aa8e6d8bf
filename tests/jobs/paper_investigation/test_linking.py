"""Which questions belong to which variant: splitting, caps, merging, batches."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from jobs.paper_investigation import plan
from jobs.paper_investigation.data import InvestigationDataset, PaperQuestion
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
