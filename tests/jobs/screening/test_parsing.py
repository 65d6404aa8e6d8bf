"""What a reply says that a review asks for.

What a reply says of a record: the rules in order, and that none ever raises.
"""

from __future__ import annotations

import json
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.screening.data import REASON_CODES, Criteria, Decision, ScreeningJudgement
from jobs.screening.parsing import WORDS, parse_criteria, parse_screen, probability
from runner.messages import ParseFailure, Reply

WHOLE = {
    "question": "Does walking\nhelp?",
    "pico": {"population": " adults ", "comparison": "", "setting": "any"},
    "inclusion": ["trials", "", 3],
    "exclusion": "surveys",
}


def test_the_last_object_with_any_of_the_fields_counts() -> None:
    text = f'{{"inclusion": ["draft"]}} and then {json.dumps(WHOLE)} {{"note": 1}}'
    assert parse_criteria(Reply(text=text)) == Criteria(
        question="Does walking help?",
        pico={"population": "adults"},
        inclusion=("trials", "3"),
        exclusion=("surveys",),
    )


@pytest.mark.parametrize(
    ("text", "finish_reason", "reason"),
    [
        ("", "stop", "empty"),
        ("", "length", "truncated"),
        ("I cannot.", "content_filter", "refusal"),
        ('{"question": "What', "length", "truncated"),
        ("Trials of walking.", "stop", "no_criteria"),
        ('{"question": null, "pico": [], "inclusion": {}}', "stop", "no_criteria"),
    ],
)
def test_what_says_nothing_is_a_failure_with_its_reason(
    text: str, finish_reason: str, reason: str
) -> None:
    found = parse_criteria(Reply(text=text, finish_reason=finish_reason))
    assert isinstance(found, ParseFailure)
    assert found.reason == reason


VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from([*WHOLE, "x"]), VALUES))
def test_no_object_makes_the_parser_raise(value: dict[str, object]) -> None:
    found = parse_criteria(Reply(text=json.dumps(value)))
    if isinstance(found, Criteria):
        assert not found.is_empty
        repr(found).encode()


OBJECT = '{"decision": "include", "p_include": 0.8, "reason_code": "meets_criteria"}'


def read(text: str, finish_reason: str = "stop") -> str:
    """The decision and the rule, or the reason of the failure."""
    found = parse_screen(Reply(text=text, finish_reason=finish_reason))
    if isinstance(found, ParseFailure):
        return found.reason
    return f"{found.decision} by {found.rule}"


def judged(text: str) -> ScreeningJudgement:
    found = parse_screen(Reply(text=text))
    assert isinstance(found, ScreeningJudgement)
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (OBJECT, "include by json"),
        (f"\ufeff\n{OBJECT}\n", "include by json"),
        (f"```json\n{OBJECT}\n```", "include by json"),
        (f"My view: {OBJECT} Good luck.", "include by json"),
        ('The {"decision":"Include"} would be mine.', "include by json"),
        ('[{"decision": "no"}]', "exclude by json"),
        ('{"answer": {"decision": "maybe"}}', "unclear by json"),
        ('{"decision": " Cannot  tell. "}', "unclear by json"),
        ('{"decision": true}', "include by json"),
        ('{"decision": 0}', "exclude by json"),
        ('{"decision": "perhaps"}', "bad_decision"),
        ('{"decision": null}', "bad_decision"),
        ('{"decision": ["include"]}', "bad_decision"),
        (f'{OBJECT} {{"decision": "exclude"}}', "ambiguous"),
        (f'{OBJECT} {{"decision": "dunno"}}', "ambiguous"),
        # an object in a string is text, and one inside another is its part
        ('{"decision": "yes", "was": {"decision": "no"}}', "include by json"),
        ('{"decision": "yes", "reason": "not {\\"decision\\": 0}"}', "include by json"),
        ("The population fits.\n**Final decision:** Include", "include by line"),
        ("Verdict is exclude", "exclude by line"),
        ("answer = unsure\nDecision - no", "exclude by line"),
        ("Decision: cannot tell", "unclear by line"),
        ("Decision: 1", "include by line"),
        ("Decision:  \t include", "include by line"),
        ("Answer: 0.85", "no_decision"),
        ("answer: 1% sure", "no_decision"),
        ("exclude", "exclude by word"),
        ("(include)", "include by word"),
        ("I cannot tell.", "unclear by word"),
        ("1", "include by word"),
        ("I would not include this.", "no_decision"),
        ("I wouldn\u2019t include it", "no_decision"),
        ("I cannot include it", "no_decision"),
        ("Include or exclude?", "no_decision"),
        ("Decision: include/exclude/unclear", "no_decision"),
        ("Your answer is yes or no.", "no_decision"),
        ("There are 1 or 0 reasons.", "no_decision"),
        # what is missing is no verdict, though it may go with one
        ("There is no abstract.", "no_decision"),
        ("No abstract, but relevant.", "no_decision"),
        ("Exclude: no control group.", "exclude by word"),
        ("No, these are children.", "exclude by word"),
        (f"Of the excluded studies, {'many were small, ' * 20}", "no_decision"),
        ("", "empty"),
        (" \n", "empty"),
    ],
)
def test_the_first_rule_that_applies_decides(text: str, expected: str) -> None:
    assert read(text) == expected


def test_how_a_reply_ended_names_its_failure() -> None:
    assert read(OBJECT, "refusal") == read("", "content_filter") == "refusal"
    assert read("", "length") == "truncated"
    assert read('{"p_include": 0.', "length") == "truncated"
    # what was said before the cut still counts, but not what it may have cut short
    assert read(OBJECT, "length") == "include by json"
    assert read("Decision: exclude\nBecause", "length") == "exclude by line"
    for cut in ("I would include it only", "Include", '{"decision": "include", "p_'):
        assert read(cut, "length") == "truncated"


def test_the_last_of_objects_that_agree_counts() -> None:
    found = judged(f'{OBJECT} {{"decision": "yes", "p_include": 0.9}}')
    assert found.p_include == 0.9


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("0.85", 0.85),
        ('"85%"', 0.85),
        ('"85 %"', 0.85),
        ('"0,9"', 0.9),
        ("85", 0.85),
        ("1", 1.0),
        ("1.0", 1.0),
        ('"1%"', 0.01),
        ("1e-3", 0.001),
        ("0", 0.0),
        ("100", 1.0),
        ("101", None),
        ("-0.1", None),
        ("true", None),
        ("NaN", None),
        ("Infinity", None),
        ("1e999", None),
        ('"high"', None),
        ("[0.5]", None),
    ],
)
def test_a_probability_is_read_as_it_was_meant_or_counted(
    written: str, expected: float | None
) -> None:
    found = judged(
        f'{{"decision": "unclear", "p_include": {written}, "reason_code": "other"}}'
    )
    assert found.p_include == expected
    assert found.issues == (() if expected is not None else ("bad_confidence",))


def test_odd_fields_are_kept_and_counted() -> None:
    found = judged('{"decision": "exclude", "p_include": 0.9, "reason_code": "x"}')
    assert (found.decision, found.p_include, found.reason_code) == (
        "exclude",
        0.9,
        "other",
    )
    assert found.issues == ("inconsistent", "bad_reason_code")
    assert judged('{"decision": "include", "p_include": 0.5}').issues == (
        "bad_reason_code",
    )
    long = judged(json.dumps({"decision": "no", "reason": "\ud83d" + "x" * 400}))
    assert long.reason == "?" + "x" * 400
    assert judged('{"decision": "no", "reason": 3}').reason == "3"


FRAGMENTS = st.sampled_from(
    [
        *WORDS,
        '{"decision":',
        '"p_include":',
        "}",
        "{",
        '"',
        ",",
        "NaN",
        "[",
        "not",
        ":",
        "decision",
        "answer is ",
        "\n",
        "```",
        "�",
        "\\",
        "-1",
        "5%",
        " ",
    ]
)


@given(st.one_of(st.text(), st.lists(FRAGMENTS).map("".join)), st.booleans())
def test_no_reply_makes_the_parser_raise(text: str, is_cut: bool) -> None:
    finish_reason = "length" if is_cut else "stop"
    found = parse_screen(Reply(text=text, finish_reason=finish_reason))
    if isinstance(found, ScreeningJudgement):
        assert found.decision in get_args(Decision)
        assert found.reason_code in REASON_CODES
        assert found.p_include is None or 0 <= found.p_include <= 1
        found.reason.encode()


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists))
def test_any_value_is_a_probability_or_none(value: object) -> None:
    assert parse_screen(Reply(text=json.dumps({"decision": value})))
    found = probability(value)
    assert found is None or 0 <= found <= 1
