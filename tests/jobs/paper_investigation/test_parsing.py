"""tests.jobs.paper_investigation.test_parsing

One row a quirk: what the default rules make of it, and what the profile does.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal, TypeAlias

import pytest

from jobs.paper_investigation.parsing import Letter, StudyAnswer, VariantList
from jobs.paper_investigation.rule_sets import (
    p_value_right,
    parse_batch,
    parse_letter,
    parse_list,
    parse_study,
)
from jobs.paper_investigation.settings import Rules
from jobs.paper_investigation.variants import distinct
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
    "text",
    [
        "0. a\n1. b\n2. c\n3. d\n17. a",
        """[{"n": 1, "answer": "b"}, {"n": 2, "answer": "c"},
            {"n": 9, "answer": "a"}]""",
        "1. b\n2. c",
    ],
)
def test_numbers_that_no_question_has_take_nothing(text: str) -> None:
    assert read(text, ["mcq", "mcq"]) == ["b", "c"]


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


LETTERS_OPTIONS = ("warfarin", "a statin", "vitamin D.", "None of the options")


def letters_read(
    text: str, options: tuple[str, str, str, str] | None = LETTERS_OPTIONS
) -> str | None:
    result = parse_letter(Reply(text=text), "robust", options)
    return result.letter if isinstance(result, Letter) else None


def rule(text: str) -> str:
    result = parse_letter(Reply(text=text), "robust", LETTERS_OPTIONS)
    assert isinstance(result, Letter), result
    return result.rule


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("c", "whole"),
        (" C. ", "whole"),
        ("[c]:", "whole"),
        ("__(C)__", "whole"),
        ("`c`", "whole"),
        ("```\nc\n```", "whole"),
        ("```text\nc)\n```", "whole"),
        ("The study says so.\n\n**c)**\n", "last_line"),
        ("d\n\nWait, the table says otherwise.\n\nc", "last_line"),
        ("Answer: (c) vitamin D, as shown there", "stated"),
        ("I first thought the answer was b. The answer is C, by Table 2.", "stated"),
        ("Options a and b fail; the correct choice = c among them", "stated"),
        ("Answer:\n\nc) vitamin D by the results of the trial", "stated"),
        ("Answer: a combination is possible, but the answer is c here", "stated"),
        ("c\nbecause Table 2 of the paper shows it for carriers", "first_line"),
        ("c) vitamin D was the drug that the authors examined", "lead"),
        ("[c] vitamin D was the drug that the authors examined", "lead"),
        ("C - vitamin D was the drug that the authors examined", "lead"),
        ("C – vitamin D was the drug that the authors examined", "lead"),
        ("c because vitamin D was the drug that they examined", "lead"),
        ("c is what the results of the randomised trial say", "lead"),
        ("c (vitamin D (cholecalciferol), not listed otherwise).", "lead"),
        ("c [vitamin D, as examined in the third experiment]\nDone.", "lead"),
        ("I would pick c", "only_letter"),
        ("Vitamin D.", "only_letter"),
        ('{"answer": "c"}', "json.whole"),
        ('So:\n{"answer": "(C)", "why": {"answer": "b"}}', "json.whole"),
        ('{"answer": "b"} no, {"answer": "c"}', "json.whole"),
        ('{"result": {"answer": "c) vitamin D"}}', "json.lead"),
    ],
)
def test_each_rule_reads_its_form(text: str, name: str) -> None:
    expected = "d" if text == "Vitamin D." else "c"
    assert letters_read(text) == expected
    assert rule(text) == name


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("None of the options", "d"),
        ("none of the OPTIONS.", "d"),
        ("_a statin_", "b"),
        ("Warfarin", "a"),
    ],
)
def test_the_text_of_an_option_stands_for_its_letter(text: str, letter: str) -> None:
    assert letters_read(text) == letter
    assert rule(text) == "option_text"
    assert letters_read(text, options=None) is None


def test_a_text_that_two_options_share_picks_neither() -> None:
    assert letters_read("warfarin", ("warfarin", "Warfarin.", "x", "y")) is None


def test_an_option_whose_text_is_a_letter_does_not_change_what_the_letter_means() -> (
    None
):
    assert letters_read("a", ("b", "a", "c", "d")) == "a"


@pytest.mark.parametrize(
    "text",
    [
        "The answer is a combination",
        "The answer is a combination of many things that the paper says",
        "It is a deletion",
        "A variant",
        "None",
        "Not in the paper",
        "HLA-B",
        "c-reactive protein",
        "a, d",
        "a or b",
        "B and C",
        "A (significant) association (in carriers) was found there",
        "abcd",
        "e",
        '{"answer": null}',
        '{"answer": "", "note": "b"}',
        "An answer cannot be given from this text, nor a choice made",
    ],
)
def test_prose_that_picks_nothing_is_not_read_as_a_letter(text: str) -> None:
    assert parse_letter(Reply(text=text), "robust", None) == ParseFailure(
        reason="no_letter"
    )


@pytest.mark.parametrize(
    "text",
    [
        "The answer is (a) warfarin by all that is known",
        "The answer is a, warfarin, by all that is known",
        "The answer is A",
        "The answer is a because carriers bled more often",
        "The answer is A since carriers bled more often",
        "The answer is a warfarin-treated carrier by Table 2",
        "The answer is A (warfarin) by all that is known",
        "My final choice is A!",
    ],
)
def test_an_a_that_is_shown_to_be_chosen_is_a_letter(text: str) -> None:
    assert letters_read(text) == "a"


def test_a_heading_over_the_options_is_no_choice() -> None:
    text = "Consider each option:\na) too old\nb) too new\nc) not there\nd) maybe"
    assert letters_read(text) is None


def test_without_a_letter_the_reason_says_what_came() -> None:
    def reason(text: str, finish_reason: str, rules: Rules) -> str:
        reply = Reply(text=text, finish_reason=finish_reason)
        result = parse_letter(reply, rules, None)
        assert isinstance(result, ParseFailure)
        return result.reason

    for rules in ("robust", "clinpgx-qa"):
        assert reason("who knows", "stop", rules) == "no_letter"
        assert reason("  ", "stop", rules) == "empty_reply"
        assert reason("Let me think about", "length", rules) == "truncated"
        assert reason("", "length", rules) == "truncated"


@pytest.mark.parametrize(
    ("text", "letter", "name"),
    [
        (" B\n", "b", "whole"),
        ("d. none", "d", "lead"),
        ("c)", "c", "lead"),
        ("it is b or a here", "a", "between_blanks"),
        ("see c", "c", "between_blanks"),
    ],
)
def test_the_profile_reads_letters_its_own_way(
    text: str, letter: str, name: str
) -> None:
    assert parse_letter(Reply(text=text), "clinpgx-qa", LETTERS_OPTIONS) == Letter(
        letter=letter, rule=name
    )


BOTH: tuple[Rules, Rules] = ("robust", "clinpgx-qa")
Entries: TypeAlias = tuple[str, ...] | None


@pytest.mark.parametrize(
    ("text", "letters"),
    [
        ("a) and b) are ruled out by the text.\nAnswer: B", ("b", "a")),
        ("a, d", (None, "d")),
        ("The answer is a combination of b and c", (None, "a")),
        ("**B**", ("b", None)),
        ("(c)", ("c", None)),
        ("c (None of the options)", ("c", "c")),
        ("A (significant) association was found in the paper", (None, "a")),
        ('```json\n{"answer": "C"}\n```', ("c", None)),
        ("a or b", (None, "a")),
        ("The answer is A.", ("a", None)),
        ("option a is correct", ("a", "a")),
        ("Option d", ("d", "d")),
    ],
)
def test_letters_are_read_as_stated(
    text: str, letters: tuple[str | None, str | None]
) -> None:
    for rules, expected in zip(BOTH, letters, strict=True):
        read = parse_letter(Reply(text=text), rules, None)
        letter = read.letter if isinstance(read, Letter) else None
        assert letter == expected, rules


@pytest.mark.parametrize(
    ("expected", "answer", "verdicts"),
    [
        ("< 0.001", "p < 0.001", (True, False)),
        ("< 0.001", "0.001", (False, False)),
        ("< 0.001", "<.001>", (True, True)),
        ("< 0.001", "< 0.00096", (True, True)),
        ("= 0.03", "< 0.03", (False, True)),
        ("= 0.03", "0,03", (True, False)),
        ("= 0.05", "p=0.9 (n=0.05)", (False, True)),
        ("= 0.04", "0.042", (True, True)),
        ("= 0.04", "0.0421", (False, True)),
        ("= 1e-5", "10^-5", (True, False)),
        ("= 0.02", "HR 2.1, p = 0.02", (True, True)),
        ("<= 0.05", "0.05", (True, True)),
        ("> 0.05", "> 0.001", (False, False)),
        ("NS", "n.s.", (True, False)),
        ("= 0.05", "≤ 0.05", (False, True)),
    ],
)
def test_p_values_are_judged_as_stated(
    expected: str, answer: str, verdicts: tuple[bool, bool]
) -> None:
    for rules, verdict in zip(BOTH, verdicts, strict=True):
        assert p_value_right(expected, answer, rules, 0.05) is verdict, rules


@pytest.mark.parametrize(
    ("text", "lists"),
    [
        ("As in [1], none.", (None, ("1",))),
        ('{"variants": []}', ((), ())),
        ('see [12]\n["RS1", "rs1 "]', (("RS1", "rs1 "), None)),
        ('["rs1"', (None, None)),
    ],
)
def test_lists_are_read_as_stated(text: str, lists: tuple[Entries, Entries]) -> None:
    for rules, expected in zip(BOTH, lists, strict=True):
        read = parse_list(Reply(text=text), rules)
        assert isinstance(read, VariantList | ParseFailure)
        entries = read.entries if isinstance(read, VariantList) else None
        assert entries == expected, rules


def test_two_spellings_in_a_list_are_one_variant() -> None:
    read = parse_list(Reply(text='see [12]\n["RS1", "rs1 "]'), "robust")
    assert isinstance(read, VariantList)
    assert distinct(read.entries, "fold") == {"rs1": "RS1"}
