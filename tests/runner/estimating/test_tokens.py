"""Tokens by letters, digits and marks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.messages import ChatRequest, Message, Schema, TextPart
from runner.money.tokens import USUAL_MESSAGE_TOKENS, prompt_tokens, text_tokens

texts = st.text(max_size=200)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("dose", 1),
        ("pharmacogenomics", 3),
        ("rs9923231", 4),
        ("p = 0.03", 5),
        ('{"a":1}', 5),
        ("薬物", 2),
        ("a\n\n  b", 2),
    ],
)
def test_words_numbers_and_marks_are_cut_as_tokenizers_do(
    text: str, tokens: int
) -> None:
    assert text_tokens(text) == tokens


@given(texts)
def test_no_character_is_more_than_a_token_and_no_token_longer_than_seven(
    text: str,
) -> None:
    seen = len("".join(text.split()))
    assert seen / 7 <= text_tokens(text) <= seen


@given(texts, texts)
def test_what_stands_apart_is_counted_apart(one: str, other: str) -> None:
    assert text_tokens(f"{one}\n{other}") == text_tokens(one) + text_tokens(other)


def test_a_prompt_is_its_parts_its_schema_and_its_messages() -> None:
    asked = ChatRequest(
        messages=(
            Message(role="system", parts=(TextPart(text="one two"),)),
            Message(role="user", parts=(TextPart(text="three"), TextPart(text="four"))),
        ),
        max_tokens=10,
        schema=Schema(name="s", json='{"a":1}'),
    )
    assert prompt_tokens(asked) == 2 + 1 + 1 + 5 + 2 * USUAL_MESSAGE_TOKENS
    assert prompt_tokens(asked, len) == 7 + 5 + 4 + 7 + 2 * USUAL_MESSAGE_TOKENS
