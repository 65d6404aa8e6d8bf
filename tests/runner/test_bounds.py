"""No request takes more tokens than the bound that is reserved for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from runner.bounds import MESSAGE_TOKENS, USUAL_TOKEN, worst_output, worst_prompt
from runner.request import (
    ChatRequest,
    EmbedRequest,
    Message,
    Part,
    Request,
    RerankRequest,
    Schema,
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
    assert worst_prompt(request_) == size // 2 + 1 + MESSAGE_TOKENS * pieces
    usual = size // 3 + 1 + MESSAGE_TOKENS * pieces
    assert worst_prompt(request_, USUAL_TOKEN) == usual
    assert worst_output(request_) == output
