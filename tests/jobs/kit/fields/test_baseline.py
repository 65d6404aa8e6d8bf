"""The offline baseline: values near the words of a question, or null."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jobs.kit.chat import data_block
from jobs.kit.fields.baseline import baseline
from jobs.kit.fields.prompts import field_lines
from jobs.kit.fields.spec import FieldSpec
from runner.messages import ChatRequest, Message, TextPart

TEXT = """Trial of a new drug

In this cohort study, 1,204 patients from 3 towns were enrolled in 2014. A dose was
5 mg of the drug. The trial was not blinded."""


def answer(**keys: Any) -> Any:
    lines = "\n".join(field_lines({"x": FieldSpec.model_validate(keys)}))
    system = Message(role="system", parts=(TextPart(text=lines),))
    user = Message(role="user", parts=(TextPart(text=data_block("text", TEXT)),))
    return json.loads(baseline(ChatRequest(messages=(system, user), max_tokens=9)))["x"]


@pytest.mark.parametrize(
    ("ask", "keys", "expected"),
    [
        ("How many patients were enrolled?", {"type": "integer"}, 1204),
        ("When were patients enrolled?", {"type": "date"}, "2014"),
        ("Was the trial blinded?", {"type": "boolean"}, False),
        ("Design?", {"type": "one-of", "options": ["RCT", "case report"]}, None),
        ("Which study?", {"type": "one-of", "options": ["RCT", "cohort"]}, "cohort"),
        ("Which adverse events?", {"type": "list"}, []),
        ("Which hormone?", {"type": "string"}, None),
    ],
)
def test_a_value_is_near_the_words_of_its_question(
    ask: str, keys: dict[str, Any], expected: object
) -> None:
    assert answer(ask=ask, **keys) == expected


def test_a_quote_is_the_sentence_and_a_unit_is_the_asked_one() -> None:
    dose = answer(ask="Which dose?", type="number", unit="mg", quote=True)
    assert dose["value"] == 5.0
    assert dose["unit"] == "mg"
    assert dose["quote"] in TEXT
    assert "5 mg" in dose["quote"]


def test_parts_of_objects_are_answered() -> None:
    parts = {"n": {"ask": "Number of patients", "type": "integer"}}
    group = answer(ask="Which patients?", type="list of objects", fields=parts)
    assert group == [{"n": 1204}]


@pytest.mark.parametrize(
    ("value", "quote", "verdict"),
    [
        (5.0, "A dose was 5 mg.", "supported"),
        (0.5, "A dose was 0.5 mg.", "supported"),
        (7.0, "A dose was 5 mg.", "not_supported"),
    ],
)
def test_a_number_is_checked_as_texts_write_it(
    value: float, quote: str, verdict: str
) -> None:
    line = json.dumps({"field": "x", "value": value, "quote": [quote]})
    parts = (TextPart(text=data_block("values", line)),)
    messages = (Message(role="system", parts=()), Message(role="user", parts=parts))
    checked = json.loads(baseline(ChatRequest(messages=messages, max_tokens=9)))
    assert checked["x"]["verdict"] == verdict
