"""What replies about names are read as, and those about quotes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.property_extraction.parsing import (
    ParsedChoice,
    ParsedQuotes,
    ParsedVerdict,
    letter,
    parse_choice,
    parse_requote,
    parse_verdict,
)
from runner.messages import ParseFailure, Reply

TARGETS = ("Tc onset", "Tc zero", "B")


@pytest.mark.parametrize(
    ("text", "is_match"),
    [
        ('{"is_match": true, "reason": "same"}', True),
        ('{"is_match": "false", "reason": "same"}', False),
        ('{"is_match": "Yes.", "reason": "same"}', True),
        ('I say ```json\n{"is_match": "NO", "reason": "same"}\n``` and no more', False),
        ('{"is_match": true} {"is_match": "true", "reason": "same"}', True),
    ],
)
def test_a_verdict_is_a_truth_value_or_its_word(text: str, is_match: bool) -> None:
    assert parse_verdict(Reply(text=text)) == ParsedVerdict(
        is_match=is_match, reason="same"
    )


@pytest.mark.parametrize(
    ("text", "is_match"), [("Yes, they are.", True), ("**False**", False)]
)
def test_a_word_alone_is_a_verdict_too(text: str, is_match: bool) -> None:
    assert parse_verdict(Reply(text=text)) == ParsedVerdict(is_match=is_match)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("true and false", "ambiguous"),
        ('{"is_match": true} or {"is_match": false}', "ambiguous"),
        ('{"is_match": true} or {"is_match": "perhaps"}', "ambiguous"),
        ('{"is_match": "perhaps"}', "bad_verdict"),
        ('{"is_match": 1}', "bad_verdict"),
        ('{"is_match": null}', "bad_verdict"),
        ("There is no difference between them.", "no_verdict"),
        ("It is not true that they are one.", "no_verdict"),
        ("This isn\u2019t false.", "no_verdict"),
        ("The two are alike.", "no_verdict"),
    ],
)
def test_a_reply_that_says_both_or_nothing_is_a_failure_and_never_a_no(
    text: str, reason: str
) -> None:
    found = parse_verdict(Reply(text=text))
    assert isinstance(found, ParseFailure)
    assert found.reason == reason


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ('{"target": "A", "reason": "r"}', 0),
        ('{"target": "(b)", "reason": "r"}', 1),
        ('{"target": "Tc zero", "reason": "r"}', 1),
        # a letter before a name that is one
        ('{"target": "B", "reason": "r"}', 1),
        ('{"target": "none", "reason": "r"}', None),
        ('{"target": null, "reason": "r"}', None),
    ],
)
def test_a_choice_is_a_letter_a_name_or_none(text: str, target: int | None) -> None:
    assert parse_choice(Reply(text=text), TARGETS) == ParsedChoice(
        target=target, reason="r"
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"target": "D"}', "bad_target"),
        ('{"target": ""}', "bad_target"),
        ('{"target": "A"} {"target": "B"}', "ambiguous"),
        ('{"answer": "A"}', "no_target"),
        ("Either A or B.", "no_target"),
    ],
)
def test_a_choice_of_two_or_of_nothing_offered_is_a_failure(
    text: str, reason: str
) -> None:
    found = parse_choice(Reply(text=text), TARGETS)
    assert isinstance(found, ParseFailure)
    assert found.reason == reason


def test_letters_go_on_after_z() -> None:
    assert [letter(place) for place in (0, 25, 26, 27, 52, 702)] == [
        *("A", "Z", "AA", "AB", "BA", "AAA")
    ]


def test_rows_get_quotes_or_are_withdrawn_and_the_first_entry_counts() -> None:
    text = json.dumps(
        {
            "rows": [
                {"id": 1, "quote": "at 3 K", "withdraw": False},
                {"id": "2", "quote": None, "withdraw": "true"},
                {"id": 1, "quote": "other", "withdraw": True},
                {"id": 3, "quote": "", "withdraw": "no"},
                {"id": None, "quote": "lost"},
                "text",
            ]
        }
    )
    found = ParsedQuotes(quotes={1: "at 3 K"}, withdrawn=frozenset({2}))
    assert parse_requote(Reply(text=text)) == found
    assert parse_requote(Reply(text=text[9:-1].replace(', "text"', ""))) == found


@pytest.mark.parametrize(
    ("text", "reason"),
    [("", "empty"), ("none", "no_rows"), ('{"rows": 3}', "no_rows")],
)
def test_a_reply_without_rows_is_a_failure(text: str, reason: str) -> None:
    found = parse_requote(Reply(text=text))
    assert isinstance(found, ParseFailure)
    assert found.reason == reason


@given(st.text(max_size=60) | st.lists(st.text(max_size=5)).map(json.dumps))
def test_no_reply_about_names_or_quotes_raises(text: str) -> None:
    for finish in ("stop", "length"):
        reply = Reply(text=text, finish_reason=finish)
        assert parse_verdict(reply) is not None
        assert parse_choice(reply, TARGETS) is not None
        assert parse_requote(reply) is not None
