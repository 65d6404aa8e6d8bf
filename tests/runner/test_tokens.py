"""Tokens at worst, which no request takes more of, and most likely."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.request import (
    ChatRequest,
    EmbedRequest,
    Message,
    Part,
    Request,
    RerankRequest,
    Schema,
)
from runner.tokens import (
    MESSAGE_TOKENS,
    USUAL_MESSAGE_TOKENS,
    prompt_tokens,
    text_tokens,
    worst_output,
    worst_prompt,
)

CHAT = ChatRequest(
    messages=(Message(role="user", parts=(Part(text="abc"), Part(text="äöü"))),),
    max_tokens=10,
)


@pytest.mark.parametrize(
    ("request_", "size", "pieces", "output"),
    [
        (CHAT, 9, 1, 10),
        (replace(CHAT, schema=Schema(name="s", json="{}")), 11, 1, 10),
        (EmbedRequest(texts=("abc", "äöü", "")), 9, 3, 0),
        (RerankRequest(query="abc", documents=("abc", "äöü")), 15, 2, 0),
        (EmbedRequest(texts=("\ud83d",)), 1, 1, 0),
    ],
)
def test_every_text_counts_as_often_as_it_is_read(
    request_: Request, size: int, pieces: int, output: int
) -> None:
    assert worst_prompt(request_) == size // 3 + 1 + MESSAGE_TOKENS * pieces
    assert worst_output(request_) == output


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
            Message(role="system", parts=(Part(text="one two"),)),
            Message(role="user", parts=(Part(text="three"), Part(text="four"))),
        ),
        max_tokens=10,
        schema=Schema(name="s", json='{"a":1}'),
    )
    assert prompt_tokens(asked) == 2 + 1 + 1 + 5 + 2 * USUAL_MESSAGE_TOKENS
    assert prompt_tokens(asked, len) == 7 + 5 + 4 + 7 + 2 * USUAL_MESSAGE_TOKENS
