"""Objects are found wherever they stand in a reply, and never made up."""

from __future__ import annotations

import json
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from runner.engine.attempt_events import reask_messages
from runner.messages import ParseFailure, Reply
from runner.structured import read_object, schema_of


class Sentence(BaseModel):
    n: int
    relevance: int = Field(ge=0, le=100)


class Assessment(BaseModel):
    probability: int
    sentences: list[Sentence]
    note: str | None = None


GOOD = {"probability": 70, "sentences": [{"n": 1, "relevance": 80}], "note": None}
TEXT = json.dumps(GOOD)
ASSESSED = Assessment.model_validate(GOOD)


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        f"\ufeff  {TEXT}\n",
        f"```json\n{json.dumps(GOOD, indent=2)}\n```",
        f"Here you are: {TEXT} I hope {{this}} helps.",
        f"With {{braces}} and {{'quotes'}} before: {TEXT}",
        f'{{"other": 1}} then {TEXT}',
        f'{{"probability": "high", "sentences": []}} no: {TEXT}',
    ],
)
def test_the_first_object_of_the_form_is_found_in_fences_and_prose(text: str) -> None:
    assert read_object(Reply(text=text), Assessment) == ASSESSED


@given(st.integers(0, len(TEXT) - 1), st.sampled_from(["", "Here: ", "```json\n"]))
def test_a_cut_reply_is_never_repaired_wherever_it_was_cut(
    length: int, before: str
) -> None:
    cut = Reply(text=before + TEXT[:length], finish_reason="length")
    assert read_object(cut, Assessment) == ParseFailure(reason="truncated")
    # nor is a part of it taken for the whole
    assert read_object(cut, Sentence) == ParseFailure(reason="truncated")


def test_a_reply_that_was_cut_after_its_object_is_whole_enough() -> None:
    cut = Reply(text=f"{TEXT}\nThis is beca", finish_reason="length")
    assert read_object(cut, Assessment) == ASSESSED


@pytest.mark.parametrize(
    ("text", "reason", "words"),
    [
        ("  ", "empty_reply", ""),
        ("I cannot say.", "no_json", ""),
        (
            '{"probability": 70,\n "sentences": [{"n": 1, "rel',
            "no_json",
            "line 2, column",
        ),
        ('{"probability": 70 "sentences": []}', "no_json", "line 1, column 20"),
        ('{"sentences": []}', "schema_mismatch", "probability: Field required"),
        (
            '{"probability": 70, "sentences": [{"n": 1, "relevance": 800}]}',
            "schema_mismatch",
            "sentences.0.relevance: Input should be less than or equal to 100",
        ),
        ("{}", "schema_mismatch", "probability: Field required (and 1 more)"),
        ("[" * 5000 + "{" * 5000, "no_json", "line 1"),
        ('{"a":' * 50_000, "no_json", "too deep"),
    ],
)
def test_what_cannot_be_read_says_why_and_where(
    text: str, reason: str, words: str
) -> None:
    failure = read_object(Reply(text=text), Assessment)
    assert isinstance(failure, ParseFailure)
    assert failure.reason == reason
    assert (failure.detail or "").startswith(words)
    assert bool(failure.detail) is bool(words)


@given(st.text() | st.text('{}[]":,0123456789 \n'), st.sampled_from(["stop", "length"]))
def test_no_text_raises(text: str, finish_reason: str) -> None:
    read = read_object(Reply(text=text, finish_reason=finish_reason), Assessment)
    assert isinstance(read, ParseFailure | Assessment)


def test_a_model_that_is_asked_again_is_told_where_its_reply_was_wrong() -> None:
    reply = Reply(text='{"probability": 70, "sentences": [{"n": "x"}]}')
    failure = read_object(reply, Assessment)
    assert isinstance(failure, ParseFailure)
    mine, asked = reask_messages(reply, failure)
    assert (mine.role, mine.text) == ("assistant", reply.text)
    assert "(schema mismatch: sentences.0.n: Input should be a valid integer" in (
        asked.text
    )


def test_the_schema_is_one_that_strict_modes_take() -> None:
    class Form(BaseModel):
        title: str = "none"  # a field of that name is no annotation
        kind: Literal["a", "b"]
        inner: list[Sentence] = []
        default: int | None = None

    schema = schema_of(Form, "form")
    assert schema.name == "form"
    found = json.loads(schema.json)
    assert found["required"] == ["title", "kind", "inner", "default"]
    assert found["additionalProperties"] is False
    assert found["properties"]["title"] == {"type": "string"}
    assert found["$defs"]["Sentence"]["required"] == ["n", "relevance"]
    assert found["$defs"]["Sentence"]["additionalProperties"] is False
