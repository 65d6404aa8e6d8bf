from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal

import pytest

from jobs.paper_investigation.parsing import Letter, StudyAnswer
from jobs.paper_investigation.rule_sets import (
    parse_batch,
    parse_letter,
    parse_study,
    stray_answers,
)
from jobs.paper_investigation.settings import Rules
from runner.messages import ParseFailure, Reply

OPTIONS = ("warfarin", "statin", "vitamin D", "None of the options")


def read(
    text: str,
    kinds: Sequence[Literal["mcq", "study"]],
    rules: Rules = "robust",
    finish_reason: str = "stop",
) -> list[str]:
    """What each question got: the letter, the p-value, or the reason in brackets."""
    answers = parse_batch(
        Reply(text=text, finish_reason=finish_reason),
        kinds,
        letter_rules=rules,
        p_rules=rules,
        options=[OPTIONS if kind == "mcq" else None for kind in kinds],
    )
    return [_shown(answer) for answer in answers]


def _shown(answer: Letter | StudyAnswer | ParseFailure) -> str:
    match answer:
        case Letter(letter=letter):
            return letter
        case StudyAnswer(p_value=p_value):
            return p_value
        case ParseFailure(reason=reason):
            return f"({reason})"


STUDY = '{"p_value": "0.03", "significance": "yes"}'


@pytest.mark.parametrize(
    "text",
    [
        f"1. b\n2. {STUDY}\n3. d",
        f"Here you are:\n\n1) b\n2) {STUDY}\n3) D)",
        f"1: b\n2: {STUDY}\n3: None of the options",
        f"**1.** b\n**2.** {STUDY}\n**3.** d",
        '1. b\n2. {\n  "p_value": "0.03",\n  "significance": "yes"\n}\n3. d',
        f"3. d\n1. a\n2. {STUDY}\n1. b",
        f"1. b, since 2) is no option here: the answer is b.\n2. {STUDY}\n3. d",
        """{"answers": [{"n": 1, "answer": "b"},
                        {"n": "2", "p_value": 0.03, "significance": true},
                        {"n": 3, "answer": "(d)"}]}""",
        """[{"n": 3, "answer": "d"},
            {"n": 2, "p_value": "0.03", "significance": "no"},
            {"n": 1, "answer": "c"},
            {"n": 1, "answer": "b"}]""",
    ],
)
def test_each_question_gets_the_answer_of_its_number(text: str) -> None:
    assert read(text, ["mcq", "study", "mcq"]) == ["b", "0.03", "d"]


def test_a_number_without_an_answer_is_missing_and_not_filled_by_another() -> None:
    assert read("2. b", ["mcq", "mcq", "mcq"]) == [
        "(missing_in_batch)",
        "b",
        "(missing_in_batch)",
    ]
    assert read("b", ["mcq"]) == ["(missing_in_batch)"]


@pytest.mark.parametrize(
    ("text", "stray"),
    [
        ("0. a\n1. b\n2. c\n3. d\n17. a", 3),
        (
            """[{"n": 1, "answer": "b"}, {"n": 2, "answer": "c"},
                {"n": 9, "answer": "a"}]""",
            1,
        ),
        ("1. b\n2. c", 0),
    ],
)
def test_numbers_that_no_question_has_are_counted_and_take_nothing(
    text: str, stray: int
) -> None:
    assert read(text, ["mcq", "mcq"]) == ["b", "c"]
    assert stray_answers(Reply(text=text), 2, "robust") == stray


def test_a_decimal_at_the_start_of_a_line_is_no_number_of_a_question() -> None:
    assert read("1. the p-value is\n2.5 x 10^-8\nb\n2. c", ["mcq", "mcq"]) == ["b", "c"]


def test_a_sample_size_in_a_study_answer_is_no_number_of_a_question() -> None:
    study = '{"p_value": "0.03", "significance": "yes", "n": 120}'
    assert read(f"1. {study}\n2. c", ["study", "mcq"]) == ["0.03", "c"]


def test_of_a_cut_reply_what_is_whole_is_read_and_the_rest_is_truncated() -> None:
    cut = '1. b\n2. {"p_value": "0.0'
    assert read(cut, ["mcq", "study", "mcq"], finish_reason="length") == [
        "b",
        "(truncated)",
        "(truncated)",
    ]
    cut = '{"answers": [{"n": 1, "answer": "b"}, {"n": 2, "ans'
    assert read(cut, ["mcq", "mcq"], finish_reason="length") == ["b", "(truncated)"]


def test_a_block_that_was_not_cut_is_unreadable_on_its_own_account() -> None:
    cut = "1. who knows\n2. b\n3. Let me"
    assert read(cut, ["mcq", "mcq", "mcq"], finish_reason="length") == [
        "(no_letter)",
        "b",
        "(truncated)",
    ]


def test_an_empty_reply_leaves_every_question_without_an_answer() -> None:
    for rules in ("robust", "clinpgx-qa"):
        assert read("", ["mcq", "study"], rules) == ["(empty_reply)"] * 2


def test_a_number_too_long_for_python_is_no_number_of_a_question() -> None:
    digits = "9" * 5000
    for text in (f"{digits}. b", f'{{"n": {digits}, "answer": "b"}}'):
        for rules in ("robust", "clinpgx-qa"):
            assert read(text, ["mcq"], rules) == ["(missing_in_batch)"]


def test_the_profile_reads_one_line_a_question() -> None:
    text = f"1. a\n2) {STUDY}\n3: d\n1. b\n9. c"
    assert read(text, ["mcq", "study", "mcq"], "clinpgx-qa") == [
        "b",
        "0.03",
        "(missing_in_batch)",
    ]
    assert read('1. {\n"p_value": "1"}', ["study"], "clinpgx-qa") == ["(no_object)"]
    assert stray_answers(Reply(text=text), 3, "clinpgx-qa") == 1


def test_each_kind_is_split_by_its_own_rules() -> None:
    answers = parse_batch(
        Reply(text=f"1: (b)\n2. {STUDY}"),
        ["mcq", "study"],
        letter_rules="robust",
        p_rules="clinpgx-qa",
        options=[None, None],
    )
    assert [_shown(answer) for answer in answers] == ["b", "0.03"]
    assert isinstance(answers[1], StudyAnswer)
    assert answers[1].rule == "first_object"


def test_a_batch_says_what_the_same_answers_say_alone() -> None:
    texts = ["b", "(c)", "d (None of the options)", STUDY, "who knows"]
    kinds: list[Literal["mcq", "study"]] = ["mcq", "mcq", "mcq", "study", "mcq"]
    alone = [
        parse_study(Reply(text=text), "robust")
        if kind == "study"
        else parse_letter(Reply(text=text), "robust", OPTIONS)
        for text, kind in zip(texts, kinds, strict=True)
    ]
    together = parse_batch(
        Reply(text="\n".join(f"{n}. {text}" for n, text in enumerate(texts, 1))),
        kinds,
        letter_rules="robust",
        p_rules="robust",
        options=[OPTIONS] * len(kinds),
    )
    assert list(together) == alone
    objects = [{"n": n, "answer": text} for n, text in enumerate(texts, 1)]
    objects[3] = {"n": 4, **json.loads(STUDY)}
    by_number = read(json.dumps({"answers": objects}), kinds)
    assert by_number == [_shown(answer) for answer in alone]
