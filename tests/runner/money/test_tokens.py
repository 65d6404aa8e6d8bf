"""No request takes more tokens than the bound that is reserved for it."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
import tiktoken

from runner.messages import (
    ChatRequest,
    EmbedRequest,
    Message,
    Request,
    RerankRequest,
    Schema,
    TextPart,
    Usage,
)
from runner.money.prices import ENOUGH_REPLIES, bounds_of
from runner.money.tokens import (
    LARGEST_OUTPUT,
    LEAST_LEARNED,
    MESSAGE_TOKENS,
    VOCABULARIES,
    TokenBounds,
    counter_of,
    tokenizer_of,
    usual_prompt,
    worst_output,
    worst_prompt,
)
from runner.options import options_from

CHAT = ChatRequest(
    messages=(
        Message(role="user", parts=(TextPart(text="abc"), TextPart(text="äöü"))),
    ),
    max_tokens=10,
)


@pytest.mark.parametrize(
    ("request_", "size", "pieces", "output"),
    [
        (CHAT, 9, 1, 10),  # three letters of two bytes
        (replace(CHAT, schema=Schema(name="s", json="{}")), 11, 1, 10),
        (EmbedRequest(texts=("abc", "äöü", "")), 9, 3, 0),
        (RerankRequest(query="abc", documents=("abc", "äöü")), 15, 2, 0),
        (EmbedRequest(texts=("\ud83d",)), 1, 1, 0),
    ],
)
def test_every_text_counts_as_often_as_it_is_read(
    request_: Request, size: int, pieces: int, output: int
) -> None:
    assert worst_prompt(request_) == size + 1 + MESSAGE_TOKENS * pieces
    assert usual_prompt(request_) == size // 3 + 1 + MESSAGE_TOKENS * pieces
    assert worst_output(request_) == output


def budgeted(model: str, base_url: str | None = None, **known: int) -> TokenBounds:
    options = options_from({"model": [model], "base_url": base_url, "budget": 1.0})
    return bounds_of(model, options, **known)


def bounds(model: str, base_url: str | None = None) -> TokenBounds:
    return bounds_of(model, options_from({"model": [model], "base_url": base_url}))


@pytest.mark.parametrize(
    ("model", "base_url", "most"),
    [
        ("openai/gpt-4o-mini", None, None),
        ("anthropic/claude-sonnet-4-5", None, None),
        ("gemini/gemini-2.5-flash", None, None),  # asked in its own form
        ("gemini/gemini-2.5-flash", "http://127.0.0.1:1", 65_536),
        ("google/gemini-of-tomorrow", "http://127.0.0.1:1", LARGEST_OUTPUT),
        ("openrouter/x-ai/grok-of-tomorrow", None, LARGEST_OUTPUT),
        ("my-model", "http://127.0.0.1:1", None),
        ("baseline/lexical", None, None),
    ],
)
def test_a_limit_that_does_not_bound_reasoning_is_replaced_by_the_models_maximum(
    model: str, base_url: str | None, most: int | None
) -> None:
    known = bounds(model, base_url)
    assert known.most_output == most
    assert known.worst(CHAT)[1] == max(10, most or 0)


def test_a_reply_longer_than_its_bound_raises_that_of_the_others() -> None:
    known = TokenBounds()
    assert not known.learn(10, Usage(tokens_in=1, tokens_out=10))
    assert not known.learn(10, None)
    assert not known.learn(0, Usage(tokens_in=1, tokens_out=99))
    assert known.worst(CHAT)[1] == 10
    assert known.learn(10, Usage(tokens_in=1, tokens_out=11))
    assert known.worst(CHAT)[1] == LEAST_LEARNED
    assert known.learn(LEAST_LEARNED, Usage(tokens_in=1, tokens_out=20_000))
    assert known.worst(CHAT)[1] == 80_000
    assert known.learn(80_000, Usage(tokens_in=1, tokens_out=200_000))
    assert known.worst(CHAT)[1] == 200_000


def test_reasoning_beside_the_completion_teaches_within_the_limit() -> None:
    known = TokenBounds()
    short = Usage(
        tokens_in=1, tokens_out=9, tokens_reasoning=6, exceeds_completion=True
    )
    assert known.learn(10, short)
    assert known.worst(CHAT)[1] == LEAST_LEARNED
    assert not known.learn(LEAST_LEARNED, short)  # known by now
    named = TokenBounds(most_output=65_536)
    assert not named.learn(65_536, short)
    assert named.worst(CHAT)[1] == 65_536


SILENT = Usage(tokens_in=1, tokens_out=9)


@pytest.mark.parametrize("usage", [SILENT, replace(SILENT, tokens_reasoning=6), None])
def test_a_limit_is_trusted_once_a_reply_that_is_no_refusal_has_come(
    usage: Usage | None,
) -> None:
    known = budgeted("my-model", "http://127.0.0.1:1")
    for _ in range(2):
        assert known.worst(CHAT)[1] == LEAST_LEARNED
        assert "16,384 tokens of output" in known.reservation_reason(CHAT)
        assert not known.learn(LEAST_LEARNED, usage, is_refusal=True)
    assert known.learn(LEAST_LEARNED, usage)
    assert known.worst(CHAT)[1] == CHAT.limit
    assert known.reservation_reason(CHAT) == ""


def test_only_a_budget_at_an_address_of_the_users_own_needs_proof() -> None:
    assert not budgeted("openai/gpt-4o-mini").is_unproven
    assert not bounds("my-model", "http://127.0.0.1:1").is_unproven
    assert not budgeted("grok-4", "http://127.0.0.1:1").is_unproven  # known by its name
    assert not budgeted(
        "my-model", "http://127.0.0.1:1", replies=ENOUGH_REPLIES
    ).is_unproven
    assert budgeted("my-model", "http://127.0.0.1:1", replies=1).is_unproven


def test_what_was_learned_holds_in_the_next_process() -> None:
    known = budgeted("my-model", "http://127.0.0.1:1", learned=20_000)
    assert not known.is_unproven
    assert known.worst(CHAT)[1] == 20_000
    assert "20,000 tokens are reserved" in known.reservation_reason(CHAT)


def test_a_short_reply_does_not_lower_what_is_known_of_a_model() -> None:
    known = budgeted("gemini/gemini-2.5-flash", "http://127.0.0.1:1", learned=20_000)
    assert known.worst(CHAT)[1] == 65_536


def test_a_request_without_a_limit_reserves_what_a_reply_may_have() -> None:
    assert bounds("my-model").worst(CHAT, 4_096)[1] == 4_096
    assert bounds("my-model").worst(CHAT, None)[1] == CHAT.limit


@pytest.mark.parametrize(
    ("model", "base_url", "is_known"),
    [
        ("openai/gpt-4o-mini", None, True),
        ("gpt-4o", None, True),
        ("azure/gpt-5-mini", None, True),
        ("openai/text-embedding-3-small", None, True),
        ("openai/gpt-4o-mini", "http://127.0.0.1:1", False),  # any name will do there
        ("anthropic/claude-sonnet-4-5", None, False),
        ("openrouter/openai/gpt-4o", None, False),
        ("openai/of-tomorrow", None, False),
    ],
)
def test_a_tokenizer_counts_where_the_models_own_is_here(
    model: str, base_url: str | None, is_known: bool
) -> None:
    text = "The melting point of the alloy was measured three times. " * 20
    count = bounds(model, base_url).count(text)
    assert (count < len(text) / 3) == is_known
    assert is_known or count == len(text)


TEXTS = (
    "CC(=O)Oc1ccccc1C(=O)O.C1=CC=C(C=C1)C[C@@H](C(=O)O)N",
    "0.1234\t17.00\t3.1e-7\n",
    "Half a pair: \ud83d, and whole ones: 😀漢字 äöü",
    "",
    "a" * 3000,
)


@pytest.mark.parametrize("name", sorted(VOCABULARIES))
def test_a_text_has_no_more_tokens_than_its_bound_and_its_bound_no_more_than_bytes(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(*find_spec("litellm").submodule_search_locations)
    shipped = folder / "litellm_core_utils" / "tokenizers"
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(shipped))
    encoding = tiktoken.get_encoding(name)
    count = counter_of(name)
    assert count is not None
    for text in TEXTS:
        tokens = len(encoding.encode_ordinary(text))
        assert tokens <= count(text) <= max(len(text.encode(errors="replace")), tokens)
        assert count(text) <= tokens * 17 / 16 + 1.5


def test_counting_opens_no_socket_and_a_missing_vocabulary_means_bytes(
    tmp_path: Path,
) -> None:
    code = (
        "import sys\n"
        "opened = []\n"
        "sys.addaudithook(lambda name, args: name.startswith('socket.')"
        " and opened.append(name))\n"
        "from runner.money.tokens import tokenizer_of\n"
        "print(tokenizer_of('openai/gpt-4o')('some words'), opened,"
        " 'litellm' in sys.modules)\n"
    )
    environment = {**os.environ, "TIKTOKEN_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    assert done.stdout.split(maxsplit=1) == ["3", "[] False\n"]
    assert not list(tmp_path.iterdir())
    assert counter_of("r50k_base") is None
    assert tokenizer_of("davinci") is None
