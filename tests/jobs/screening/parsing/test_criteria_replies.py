"""What a reply says that a review asks for."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.screening.data import Criteria
from jobs.screening.parsing import parse_criteria
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
