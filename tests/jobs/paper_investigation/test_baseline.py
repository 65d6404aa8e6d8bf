"""baseline/lexical: what it finds, the forms it answers in, and that it is honest."""

from __future__ import annotations

import inspect
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.paper_investigation.baseline import (
    ChoicePrompt,
    StudyPrompt,
    baseline,
    choose,
    find_study,
    find_variants,
    index,
)
from jobs.paper_investigation.data import PaperQuestion
from jobs.paper_investigation.parsing import Letter, StudyAnswer, VariantList
from jobs.paper_investigation.prompts import batch_context, request
from jobs.paper_investigation.rule_sets import (
    parse_batch,
    parse_letter,
    parse_list,
    parse_study,
)
from jobs.paper_investigation.settings import Rules
from runner.job import Task
from runner.messages import ChatRequest, Reply
from tests.jobs.paper_investigation.small_datasets import choice, dataset, study

PAPER = """\
# CYP2C9 and the dose of warfarin

## Abstract

Carriers of CYP2C9 *2/*3 needed a lower dose of warfarin (p < 0.001). rs9923231 was \
studied, too.

## Introduction

Earlier work on rs7294 is not repeated. Aspirin was not given.

## Results

CYP2D6 poor metabolisers did not differ; a poor metaboliser of CYP2D6 is rare. The \
CYP2D6 poor metabolizer phenotype had no effect on heparin (p = 0.4).
Patients with B*15:02 had a rash from digoxin, p = 3 × 10⁻⁵.
HLA‑B*15:02 was rare.

| Variant | Drug | P value |
| --- | --- | --- |
| rs2108622 | warfarin | 0.031 |
| rs4149056 | digoxin | > 0.05 |

## References

1. A trial of rs1057910 and rs1057910.
"""


def asked(stage: str, *questions: PaperQuestion, **settings: Any) -> ChatRequest:
    """A request about the paper above."""
    data = dataset({"PMC1": ["rs1"]}, questions, {"PMC1": PAPER}, **settings)
    key = "PMC1" if stage == "extract" else f"PMC1/{questions[0].key}"
    context = batch_context(questions) if stage == "batch" else None
    return request(
        data,
        Task(number=1, stage=stage, key=key, model="m", replicate=1, context=context),
    )


def test_variants_of_every_kind_are_found_in_order_of_first_sight() -> None:
    assert find_variants(index(PAPER)) == (
        "CYP2C9*2",
        "CYP2C9*3",
        "rs9923231",
        "CYP2D6 poor metabolizer",
        "HLA-B*15:02",
        "rs2108622",
        "rs4149056",
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("rs12 and rs123", ("rs123",)),
        ("CYP2C19 genotypes *1/*17 and *2", ("CYP2C19*1", "CYP2C19*17", "CYP2C19*2")),
        ("*CYP2C19* *2 in italics", ("CYP2C19*2",)),
        (r"TPMT\*3A and DPYD\*2A", ("TPMT*3A", "DPYD*2A")),
        ("CYP2C9∗3 and CYP2D6*2xN", ("CYP2C9*3", "CYP2D6*2xN")),
        ("A*31:01, HLA-DRB1*07:01", ("HLA-A*31:01", "HLA-DRB1*07:01")),
        ("NAT2 slow acetylators", ("NAT2 slow acetylator",)),
        ("CYP2D6 ultra-rapid metaboliser", ("CYP2D6 ultrarapid metabolizer",)),
        ("a share of *2 without a gene, 5*3 = 15", ()),
        ("significant* at p < 0.05**", ()),
    ],
)
def test_names_are_spelt_the_standard_way(text: str, found: tuple[str, ...]) -> None:
    assert find_variants(index(f"# {text}")) == found


@pytest.mark.parametrize(
    ("sentence", "options", "letter"),
    [
        (
            "Carriers of CYP2C9*2 needed a lower dose of ______.",
            ("digoxin", "warfarin", "heparin", "aspirin"),
            "b",
        ),
        (
            "Patients with ______ had a rash from digoxin.",
            ("rs9923231", "CYP2C9*2", "rs4149056", "HLA-B*15:02"),
            "d",
        ),
        (
            "Carriers needed less ______.",
            ("phenytoin", "None of the options", "codeine", "lithium"),
            "b",
        ),
        (
            "Carriers needed less ______.",
            ("phenytoin", "None of the options", "warfarin", "lithium"),
            "c",
        ),
        ("Nothing known ______.", ("xa", "xb", "xc", "xd"), "a"),
    ],
)
def test_the_option_beside_the_sentences_words_is_chosen(
    sentence: str, options: tuple[str, ...], letter: str
) -> None:
    assert (
        choose(index(PAPER), ChoicePrompt(sentence=sentence, options=options)) == letter
    )


@pytest.mark.parametrize(
    ("variant", "drug", "answer"),
    [
        ("CYP2C9*3", "warfarin", ("< 0.001", "yes")),
        ("cyp2c9 *2, CYP2C9*8", "warfarin", ("< 0.001", "yes")),
        ("HLA-B*15:02", "digoxin", ("= 3 x 10-5", "yes")),
        ("rs2108622", "warfarin", ("= 0.031", "yes")),
        ("rs4149056", "digoxin", ("> 0.05", "no")),
        ("CYP2D6 poor metabolizer", "heparin", ("= 0.4", "no")),
        ("CYP2C9*3", "phenytoin", ("not found", "not found")),
        ("rs1057910", "warfarin", ("not found", "not found")),
        ("rs9923231", "", ("not found", "not found")),
        ("rs2108622", "", ("= 0.031", "yes")),
    ],
)
def test_the_nearest_p_value_of_the_association_is_reported(
    variant: str, drug: str, answer: tuple[str, str]
) -> None:
    question = StudyPrompt(fields={"Variant": variant, "Drug": drug})
    assert find_study(index(PAPER), question) == answer


@pytest.mark.parametrize(
    ("structured", "rules"),
    # the old rules know no object around a list or a letter
    [("auto", "robust"), ("off", "robust"), ("off", "clinpgx-qa")],
)
def test_its_replies_are_read_by_both_rule_sets(structured: str, rules: Rules) -> None:
    mcq, parameters = choice("PMC1", "rs1", "1"), study("PMC1", "CYP2C9*3", "1")
    listed = parse_list(
        Reply(text=baseline(asked("extract", structured=structured))), rules
    )
    assert isinstance(listed, VariantList)
    assert listed.entries == find_variants(index(PAPER))
    letter = baseline(asked("question", mcq, structured=structured))
    read = parse_letter(Reply(text=letter), rules, mcq.options)
    assert isinstance(read, Letter)
    assert read.letter == "b"
    found = baseline(asked("question", parameters, structured=structured))
    answer = parse_study(Reply(text=found), rules)
    assert isinstance(answer, StudyAnswer)
    assert (answer.p_value, answer.significance) == ("< 0.001", "yes")


@pytest.mark.parametrize("structured", ["auto", "off"])
def test_a_batch_is_answered_like_its_questions_alone(structured: str) -> None:
    questions = (choice("PMC1", "rs1", "1"), study("PMC1", "CYP2C9*3", "1"))
    text = baseline(asked("batch", *questions, structured=structured))
    letter, answer = parse_batch(
        Reply(text=text),
        ("mcq", "study"),
        letter_rules="robust",
        p_rules="robust",
        options=(questions[0].options, None),
    )
    assert isinstance(letter, Letter)
    assert isinstance(answer, StudyAnswer)
    assert letter.letter == "b"
    assert (answer.p_value, answer.significance) == ("< 0.001", "yes")


def test_the_schemas_form_is_kept() -> None:
    assert json.loads(baseline(asked("extract"))).keys() == {"variants"}
    mcq = choice("PMC1", "rs1", "1")
    assert baseline(asked("question", mcq)) == '{"answer": "b"}'
    assert baseline(asked("question", mcq, structured="off")) == "b"
    assert json.loads(baseline(asked("batch", mcq)))["answers"][0]["n"] == 1
    assert baseline(asked("batch", mcq, structured="off")) == "1. b"


def test_a_closed_book_question_is_answered_without_a_paper() -> None:
    data = dataset(
        {"PMC1": ["rs1"]},
        [choice("PMC1", "rs1", "1"), study("PMC1", "rs1", "2")],
        {},
        mode="questions",
        closed_book=True,
    )
    replies = [
        baseline(
            request(
                data,
                Task(number=1, stage="question", key=key, model="m", replicate=1),
            )
        )
        for key in ("PMC1/mcq_drug:1", "PMC1/study_param:2")
    ]
    assert replies[0] == '{"answer": "a"}'
    assert json.loads(replies[1])["p_value"] == "not found"


def test_it_sees_the_request_and_nothing_else() -> None:
    assert list(inspect.signature(baseline).parameters) == ["request"]


@given(text=st.text(), sentence=st.text(min_size=1).filter(str.split))
def test_it_answers_whatever_the_paper_and_the_question_hold(
    text: str, sentence: str
) -> None:
    question = choice("PMC1", "rs1", "1", sentence=sentence)
    data = dataset({"PMC1": ["rs1"]}, [question], {"PMC1": f"x {text}"})
    task = Task(
        number=1, stage="question", key="PMC1/mcq_drug:1", model="m", replicate=1
    )
    reply = baseline(request(data, task))
    assert reply == baseline(request(data, task))
    assert json.loads(reply)["answer"] in "abcd"


def test_a_paper_of_one_very_long_line_is_read() -> None:
    text = "CYP2C9*2 lowers the dose of warfarin (p = 0.02). " * 8_000
    assert len(text) > 380_000
    paper = index(text)
    assert find_variants(paper) == ("CYP2C9*2",)
    question = StudyPrompt(fields={"Variant": "CYP2C9*2", "Drug": "warfarin"})
    assert find_study(paper, question) == ("= 0.02", "yes")
