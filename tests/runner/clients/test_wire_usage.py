"""Every way to count tokens, and every end of a reply, of which endpoints are known."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.clients.usage import MOST_TOKENS, usage_in
from runner.clients.wire import (
    ANTHROPIC_MESSAGES,
    FORMS,
    OPENAI_EMBEDDINGS,
    RERANK,
    decode_reply,
)
from runner.clients.wire_openai import OPENAI_CHAT
from runner.errors import MalformedReply
from runner.messages import Reply, Usage
from store.served_by import ServedBy, served_in, with_headers


def chat(message: Any, usage: Any = None, **rest: Any) -> Reply:
    choice = {"message": message, **rest.pop("choice", {"finish_reason": "stop"})}
    body = {"choices": [choice], "usage": usage, **rest}
    reply = decode_reply(OPENAI_CHAT, json.dumps(body).encode())
    assert isinstance(reply, Reply)
    return reply


OPENAI = {
    "prompt_tokens": 100,
    "completion_tokens": 80,
    "total_tokens": 180,
    "prompt_tokens_details": {"cached_tokens": 40, "audio_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 60},
}
BESIDE = {
    "prompt_tokens": 100,
    "completion_tokens": 20,
    "total_tokens": 180,
    "completion_tokens_details": {"reasoning_tokens": 60},
}
DEEPSEEK = {
    "prompt_tokens": 100,
    "completion_tokens": 9,
    "total_tokens": 109,
    "prompt_cache_hit_tokens": 70,
    "prompt_cache_miss_tokens": 30,
}
ANTHROPIC = {
    "input_tokens": 10,
    "output_tokens": 9,
    "cache_read_input_tokens": 70,
    "cache_creation_input_tokens": 50,
    "cache_creation": {
        "ephemeral_5m_input_tokens": 20,
        "ephemeral_1h_input_tokens": 30,
    },
}


@pytest.mark.parametrize(
    ("counted", "expected"),
    [
        (
            OPENAI,
            Usage(tokens_in=100, tokens_out=80, tokens_cached=40, tokens_reasoning=60),
        ),
        # xAI and Gemini: the total asks for the reasoning, and may be all that does
        (
            BESIDE,
            Usage(
                tokens_in=100,
                tokens_out=80,
                tokens_reasoning=60,
                exceeds_completion=True,
            ),
        ),
        (
            {**BESIDE, "completion_tokens": 0, "total_tokens": 160},
            Usage(
                tokens_in=100,
                tokens_out=60,
                tokens_reasoning=60,
                exceeds_completion=True,
            ),
        ),
        (
            {**BESIDE, "completion_tokens": 0, "total_tokens": None},
            Usage(
                tokens_in=100,
                tokens_out=60,
                tokens_reasoning=60,
                exceeds_completion=True,
            ),
        ),
        (
            {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 180},
            Usage(tokens_in=100, tokens_out=80, exceeds_completion=True),
        ),
        (
            {"prompt_tokens": 100, "total_tokens": 180},
            Usage(tokens_in=100, tokens_out=80),
        ),
        # a total below its parts: the larger counts, and it is noted
        (
            {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 110},
            Usage(tokens_in=100, tokens_out=20, is_doubtful=True),
        ),
        (DEEPSEEK, Usage(tokens_in=100, tokens_out=9, tokens_cached=70)),
        (
            {**DEEPSEEK, "prompt_tokens": None, "total_tokens": None},
            Usage(tokens_in=100, tokens_out=9, tokens_cached=70),
        ),
        (
            ANTHROPIC,
            Usage(
                tokens_in=130,
                tokens_out=9,
                tokens_cached=70,
                tokens_cache_write=50,
                tokens_cache_write_1h=30,
            ),
        ),
        # what a gateway adds up leaves the cache out
        (
            {**ANTHROPIC, "total_tokens": 19},
            Usage(
                tokens_in=130,
                tokens_out=9,
                tokens_cached=70,
                tokens_cache_write=50,
                tokens_cache_write_1h=30,
            ),
        ),
        # litellm, of Anthropic: in OpenAI's words, with Anthropic's beside them
        (
            {
                "prompt_tokens": 130,
                "completion_tokens": 9,
                "total_tokens": 139,
                "cache_read_input_tokens": 70,
                "cache_creation_input_tokens": 50,
                "prompt_tokens_details": {
                    "cached_tokens": 70,
                    "cache_creation_token_details": {"ephemeral_1h_input_tokens": 30},
                },
            },
            Usage(
                tokens_in=130,
                tokens_out=9,
                tokens_cached=70,
                tokens_cache_write=50,
                tokens_cache_write_1h=30,
            ),
        ),
        # the Responses API
        (
            {
                "input_tokens": 100,
                "input_tokens_details": {"cached_tokens": 40},
                "output_tokens": 80,
                "output_tokens_details": {"reasoning_tokens": 60},
                "total_tokens": 180,
            },
            Usage(tokens_in=100, tokens_out=80, tokens_cached=40, tokens_reasoning=60),
        ),
        # OpenRouter
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 2,
                "total_tokens": 11,
                "cost": 0.0125,
                "prompt_tokens_details": {"cached_tokens": 5, "cache_write_tokens": 3},
            },
            Usage(
                tokens_in=9,
                tokens_out=2,
                tokens_cached=5,
                tokens_cache_write=3,
                charged_usd=0.0125,
            ),
        ),
        # numbers of any type
        (
            {"prompt_tokens": 100.0, "completion_tokens": "12"},
            Usage(tokens_in=100, tokens_out=12),
        ),
        (
            {"prompt_tokens": "7.5", "completion_tokens": 0},
            Usage(tokens_in=8, tokens_out=0),
        ),
        # a prompt of fewer tokens than were read of it
        (
            {
                "prompt_tokens": 3,
                "completion_tokens": 2,
                "prompt_tokens_details": {"cached_tokens": 5},
            },
            Usage(tokens_in=5, tokens_out=2, tokens_cached=5),
        ),
        ({}, None),
        (None, None),
        ([], None),
        ("12", None),
        ({"total_tokens": 12}, None),
        ({"prompt_tokens": 12}, None),
        ({"completion_tokens": 12, "total_tokens": 20}, None),
        ({"prompt_tokens": None, "completion_tokens": None}, None),
        ({"prompt_tokens": True, "completion_tokens": 1}, None),
        ({"prompt_tokens": "many", "completion_tokens": 1}, None),
        ({"prompt_tokens": -1, "completion_tokens": 1}, None),
        ({"prompt_tokens": 1, "completion_tokens": MOST_TOKENS + 1}, None),
    ],
)
def test_tokens_are_billed_as_the_form_counts_them(
    counted: Any, expected: Usage | None
) -> None:
    assert usage_in(counted) == expected
    assert chat({"content": "yes"}, counted).usage == expected
    assert chat({"content": "yes"}, counted).text == "yes"


@pytest.mark.parametrize(
    ("counted", "tokens"),
    [
        ({"prompt_tokens": 5, "total_tokens": 5}, 5),
        ({"total_tokens": "5"}, 5),
        ({"prompt_tokens": 5.0}, 5),
        ({"input_tokens": 5}, 5),
        ({}, None),
        (None, None),
        ({"prompt_tokens": None}, None),
    ],
)
def test_vectors_and_scores_have_input_alone(counted: Any, tokens: int | None) -> None:
    expected = None if tokens is None else Usage(tokens_in=tokens, tokens_out=0)
    for form, body in (
        (OPENAI_EMBEDDINGS, {"data": [{"index": 0, "embedding": [1.0]}]}),
        (RERANK, {"results": [{"index": 0, "relevance_score": 1.0}]}),
    ):
        said = json.dumps({**body, "usage": counted}).encode()
        assert decode_reply(form, said).usage == expected


@pytest.mark.parametrize(
    ("message", "end", "expected"),
    [
        ({"content": "a"}, None, ("a", "", "unknown")),
        ({"content": "a"}, 1, ("a", "", "unknown")),
        ({"content": "a"}, {"reason": "stop"}, ("a", "", "unknown")),
        ({"content": "a"}, "eos", ("a", "", "stop")),
        ({"content": "a"}, "error", ("a", "", "error")),
        ({"content": ""}, "length", ("", "", "length")),
        ({"content": [{"type": "text", "text": "a"}]}, "stop", ("a", "", "stop")),
        (
            {"content": [{"type": "text", "text": "a"}, "b", {"type": "image"}, 7]},
            "stop",
            ("ab", "", "stop"),
        ),
        (
            {"content": [{"type": "thinking", "thinking": "hm"}, {"text": "a"}]},
            "stop",
            ("a", "hm", "stop"),
        ),
        (
            {"content": [{"type": "reasoning", "text": "hm"}, {"text": "a"}]},
            "stop",
            ("a", "hm", "stop"),
        ),
        ({"content": {"type": "text", "text": "a"}}, "stop", ("a", "", "stop")),
        ({"content": None, "refusal": "No."}, "stop", ("No.", "", "refusal")),
        ({"content": "", "refusal": "No."}, "stop", ("No.", "", "refusal")),
        ({"content": None, "reasoning_content": "hm"}, "length", ("", "hm", "length")),
        ({"content": None, "reasoning": "hm"}, "stop", ("", "hm", "stop")),
        (
            {"content": "a", "reasoning_content": "hm"},
            "stop",
            ("a", "hm", "stop"),
        ),
        ({"content": "<think>\nhm\n</think>\n\na"}, "stop", ("a", "hm", "stop")),
        ({"content": "hm\n</think>\na"}, "stop", ("a", "hm", "stop")),
        ({"content": "<think>hm"}, "length", ("", "hm", "length")),
        ({"content": "a <think> b"}, "stop", ("a <think> b", "", "stop")),
        ({"content": None, "tool_calls": []}, "tool_calls", ("", "", "tool_calls")),
    ],
)
def test_whatever_can_be_read_is_an_answer(
    message: Any, end: Any, expected: tuple[str, str, str]
) -> None:
    reply = chat(message, {}, choice={"finish_reason": end})
    assert (reply.text, reply.reasoning, reply.finish_reason) == expected
    assert reply.usage is None


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "no", "type": "server_error", "code": 500}},
        {"error": "no"},
        {"detail": [{"msg": "no"}]},
        {"message": "no"},
        {"object": "error", "message": "no"},
        {"choices": [{"error": {"code": 502}, "message": {"content": ""}}]},
        {"choices": None, "error": {"message": "no"}},
        {"choices": [None]},
    ],
)
def test_an_error_that_comes_with_status_200_is_a_failure(body: Any) -> None:
    with pytest.raises(MalformedReply):
        decode_reply(OPENAI_CHAT, json.dumps(body).encode())


def test_an_anthropic_message_may_have_thoughts_and_a_text_for_content() -> None:
    blocks = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}]
    for content in (blocks, "a"):
        body = json.dumps({"content": content, "usage": ANTHROPIC, "stop_reason": 7})
        reply = decode_reply(ANTHROPIC_MESSAGES, body.encode())
        assert isinstance(reply, Reply)
        assert (reply.text, reply.finish_reason) == ("a", "unknown")
        assert reply.usage is not None
        assert reply.usage.tokens_in == 130


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
fields = st.sampled_from(
    [
        *OPENAI,
        *ANTHROPIC,
        *DEEPSEEK,
        "cost",
        "cached_tokens",
        "reasoning_tokens",
        "ephemeral_1h_input_tokens",
    ]
)
counts = anything | st.integers(0, 10**6)
usages = anything | st.dictionaries(
    fields, counts | st.dictionaries(fields, counts, max_size=3), max_size=6
)


@given(usages, st.booleans())
def test_no_usage_raises_and_none_has_a_part_larger_than_the_whole(
    counted: Any, has_output: bool
) -> None:
    usage = usage_in(counted, has_output=has_output)
    if usage is not None:
        assert 0 <= usage.tokens_cached + usage.tokens_cache_write <= usage.tokens_in
        assert 0 <= usage.tokens_cache_write_1h <= usage.tokens_cache_write
        assert 0 <= usage.tokens_reasoning <= usage.tokens_out
        assert max(usage.tokens_in, usage.tokens_out) <= MOST_TOKENS


@given(
    text=st.text(st.characters(codec="utf-8", exclude_characters="<>"), min_size=1),
    usage=usages,
    end=anything,
    around=st.dictionaries(
        st.sampled_from(["id", "model", "provider", "service_tier", "created", "x"])
        | st.just("system_fingerprint"),
        anything,
    ),
)
def test_a_body_with_readable_content_decodes(
    text: str, usage: Any, end: Any, around: dict[str, Any]
) -> None:
    reply = chat({"content": text}, usage, choice={"finish_reason": end}, **around)
    assert reply.text == text


@given(
    st.dictionaries(
        st.sampled_from(["choices", "content", "data", "results", "usage", "received"]),
        anything | st.lists(st.dictionaries(st.just("message"), anything), max_size=2),
    )
)
def test_any_other_body_is_a_reply_or_malformed(fields: dict[str, Any]) -> None:
    for form in FORMS:
        with suppress(MalformedReply):
            decode_reply(form, json.dumps(fields).encode())


def test_what_served_an_answer_is_read_from_its_body() -> None:
    served = chat(
        {"content": "a"},
        id="gen-1",
        model="m-2026-01-01",
        system_fingerprint="fp_1",
        provider="Somebody",
        service_tier="flex",
    ).served
    assert served == ServedBy(
        model="m-2026-01-01",
        fingerprint="fp_1",
        provider="Somebody",
        tier="flex",
        request_id="gen-1",
    )
    assert chat({"content": "a"}).served is None
    assert chat({"content": "a"}, model=7, id="", provider=[]).served is None


def test_a_tier_stands_in_the_usage_and_an_original_inside_what_was_made_of_it() -> (
    None
):
    body = {
        "content": "a",
        "model": "claude",
        "usage": {"service_tier": "priority"},
    }
    reply = decode_reply(ANTHROPIC_MESSAGES, json.dumps(body).encode())
    assert reply.served == ServedBy(model="claude", tier="priority")
    inner = {"model": "m-dated", "provider": "P", "id": "1"}
    assert chat({"content": "a"}, model="m", received=inner).served == ServedBy(
        model="m-dated", provider="P", request_id="1"
    )


def test_an_older_log_shows_it_by_its_bodies_and_headers() -> None:
    headers = {"x-request-id": "r-1", "x-ms-region": "Sweden Central", "cf-ray": "c"}
    body = served_in({"model": "m", "id": "x"})
    assert with_headers(body, headers) == ServedBy(
        model="m", region="Sweden Central", request_id="r-1"
    )
    assert with_headers(None, {"cf-ray": "c"}) == ServedBy(request_id="c")
    assert with_headers(None, {}) is None
