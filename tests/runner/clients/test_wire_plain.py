"""The quick decoder of usual chat completions equals the one of all forms."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from runner.clients.wire_openai import decode_any_chat, decode_chat
from runner.errors import MalformedReply

TEXTS = st.one_of(
    st.text(max_size=8),
    st.sampled_from(["", "<think>so</think>yes", "<think>", "a</think>b", "\ud83d"]),
)
ODD = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXTS)
ANY = st.recursive(
    ODD,
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(TEXTS, inner, max_size=2)
    ),
    max_leaves=4,
)
PART = st.fixed_dictionaries(
    {}, optional={"type": st.sampled_from(["text", "thinking", 3]), "text": ANY}
)
MESSAGE = st.fixed_dictionaries(
    {},
    optional={
        "content": st.one_of(TEXTS, TEXTS, ANY, st.lists(PART, max_size=2)),
        "role": ODD,
        "refusal": st.one_of(st.none(), TEXTS, ODD),
        "reasoning": st.one_of(TEXTS, ODD),
        "reasoning_content": st.one_of(TEXTS, ODD),
        "tool_calls": ANY,
        "extra": ANY,
    },
)
CHOICE = st.fixed_dictionaries(
    {},
    optional={
        "message": st.one_of(MESSAGE, MESSAGE, ANY),
        "finish_reason": st.one_of(st.sampled_from(["stop", "Length", "", "eos"]), ODD),
        "index": ODD,
        "logprobs": ANY,
        "error": ANY,
        "text": ODD,
    },
)
COUNTS = st.fixed_dictionaries(
    {},
    optional={
        "prompt_tokens": st.one_of(st.integers(0, 9), ODD),
        "completion_tokens": st.one_of(st.integers(0, 9), ODD),
        "service_tier": ODD,
    },
)
BODIES = st.fixed_dictionaries(
    {"choices": st.one_of(st.lists(CHOICE, max_size=2), ANY)},
    optional={
        "usage": st.one_of(COUNTS, ANY),
        "received": st.one_of(st.none(), st.fixed_dictionaries({"model": ODD})),
        **dict.fromkeys(
            ("model", "id", "system_fingerprint", "provider", "service_tier", "other"),
            st.one_of(TEXTS, ODD),
        ),
    },
)


def outcome(decode: Any, body: bytes) -> object:
    try:
        reply = decode(body)
    except MalformedReply:
        return MalformedReply
    return reply, reply.served


@given(body=BODIES, is_escaped=st.booleans())
def test_a_quick_reply_is_that_of_the_general_decoder(
    body: dict[str, Any], *, is_escaped: bool
) -> None:
    text = json.dumps(body, ensure_ascii=is_escaped)
    data = text.encode("utf-8", "surrogatepass")
    assert outcome(decode_chat, data) == outcome(decode_any_chat, data)
