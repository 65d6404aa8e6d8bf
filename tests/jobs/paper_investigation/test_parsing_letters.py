from __future__ import annotations

import pytest

from jobs.paper_investigation.parsing import Letter
from jobs.paper_investigation.rule_sets import parse_letter
from jobs.paper_investigation.settings import Rules
from runner.messages import ParseFailure, Reply

OPTIONS = ("warfarin", "a statin", "vitamin D.", "None of the options")


def read(text: str, options: tuple[str, str, str, str] | None = OPTIONS) -> str | None:
    result = parse_letter(Reply(text=text), "robust", options)
    return result.letter if isinstance(result, Letter) else None


def rule(text: str) -> str:
    result = parse_letter(Reply(text=text), "robust", OPTIONS)
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
    assert read(text) == expected
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
    assert read(text) == letter
    assert rule(text) == "option_text"
    assert read(text, options=None) is None


def test_a_text_that_two_options_share_picks_neither() -> None:
    assert read("warfarin", ("warfarin", "Warfarin.", "x", "y")) is None


def test_an_option_whose_text_is_a_letter_does_not_change_what_the_letter_means() -> (
    None
):
    assert read("a", ("b", "a", "c", "d")) == "a"


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
    assert read(text) == "a"


def test_a_heading_over_the_options_is_no_choice() -> None:
    text = "Consider each option:\na) too old\nb) too new\nc) not there\nd) maybe"
    assert read(text) is None


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
    assert parse_letter(Reply(text=text), "clinpgx-qa", OPTIONS) == Letter(
        letter=letter, rule=name
    )
