"""Anthropic's form: what is asked, with its marks for the cache, and what is read.

What holds for every form, and for requests of every kind.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.clients.usage import MOST_TOKENS
from runner.clients.wire import (
    ANTHROPIC_MESSAGES,
    FORMS,
    MOST_BREAKPOINTS,
    OPENAI_EMBEDDINGS,
    decode_reply,
    encode_answer,
    encode_messages,
)
from runner.clients.wire import RERANK as RERANK_FORM
from runner.clients.wire_openai import OPENAI_CHAT
from runner.clients.wire_shared import Shape, Structure, skeleton
from runner.errors import MalformedReply
from runner.messages import (
    AnyReply,
    ChatRequest,
    EmbedRequest,
    Message,
    RankedDocument,
    Ranking,
    Reply,
    Request,
    RerankRequest,
    Schema,
    TextPart,
    Usage,
    Vectors,
)


def _body(**changed: object) -> bytes:
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "hm"},
            {"type": "text", "text": "yes"},
            {"type": "text", "text": "!"},
        ],
        "stop_reason": "end_turn",
        "usage": {
            "input_tokens": 10,
            "output_tokens": 5,
            "cache_read_input_tokens": 100,
            "cache_creation_input_tokens": 20,
        },
    }
    return json.dumps({**message, **changed}).encode()


def test_a_request_has_its_system_text_apart_and_marks_where_parts_may_be_cached() -> (
    None
):
    request = ChatRequest(
        messages=(
            Message(role="system", parts=(TextPart(text='Say "yes".'),)),
            Message(
                role="user",
                parts=(
                    TextPart(text="A paper. ", cache=True),
                    TextPart(text="A question?"),
                ),
            ),
        ),
        max_tokens=64,
        schema=Schema(name="s", json="{}"),
    )
    assert json.loads(
        encode_messages(request, "claude", Shape(structure=Structure.TEXT))
    ) == {
        "model": "claude",
        "max_tokens": 64,
        "temperature": 0.0,
        "system": [{"type": "text", "text": 'Say "yes".'}],
        "messages": [
            {
                "role": "user",
                "content": [
                    {
                        "type": "text",
                        "text": "A paper. ",
                        "cache_control": {"type": "ephemeral"},
                    },
                    {"type": "text", "text": "A question?"},
                ],
            }
        ],
    }


def test_no_more_parts_are_marked_than_are_taken_and_those_are_the_last() -> None:
    parts = tuple(TextPart(text=str(n), cache=True) for n in range(6))
    request = ChatRequest(
        messages=(Message(role="user", parts=parts),), max_tokens=1, temperature=None
    )
    body = json.loads(encode_messages(request, "claude", Shape()))
    blocks = body["messages"][0]["content"]
    marked = [block["text"] for block in blocks if "cache_control" in block]
    assert marked == ["2", "3", "4", "5"]
    assert len(marked) == MOST_BREAKPOINTS
    assert "temperature" not in body


def test_what_a_cache_took_part_in_counts_as_prompt() -> None:
    reply = decode_reply(ANTHROPIC_MESSAGES, _body())
    assert reply.text == "yes!"
    assert reply.finish_reason == "stop"
    assert reply.usage == Usage(
        tokens_in=130, tokens_out=5, tokens_cached=100, tokens_cache_write=20
    )


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("max_tokens", "length"),
        ("stop_sequence", "stop"),
        ("refusal", "refusal"),
        ("pause_turn", "pause_turn"),
        (None, "unknown"),
    ],
)
def test_the_end_of_a_reply_has_one_name_whoever_says_it(
    said: str | None, reason: str
) -> None:
    reply = decode_reply(ANTHROPIC_MESSAGES, _body(stop_reason=said, usage=None))
    assert reply.finish_reason == reason
    assert reply.usage is None


@pytest.mark.parametrize("body", [b"", b"{}", b'{"content": 7}', b"[" * 100_000])
def test_what_is_no_message_is_told_so(body: bytes) -> None:
    with pytest.raises(MalformedReply, match="not a message"):
        decode_reply(ANTHROPIC_MESSAGES, body)


SCHEMA = Schema(name="verdict", json='{"type":"object"}')


@pytest.mark.parametrize(
    ("structure", "form"),
    [
        (
            Structure.SCHEMA,
            {
                "output_config": {
                    "format": {"type": "json_schema", "schema": {"type": "object"}}
                }
            },
        ),
        (
            Structure.OBJECT,
            {
                "tools": [{"name": "verdict", "input_schema": {"type": "object"}}],
                "tool_choice": {"type": "tool", "name": "verdict"},
            },
        ),
        (Structure.TEXT, {}),
    ],
)
def test_a_schema_is_put_as_a_format_as_a_tool_or_not_at_all(
    structure: Structure, form: dict[str, object]
) -> None:
    said = (Message(role="user", parts=(TextPart(text="x"),)),)
    request = ChatRequest(messages=said, max_tokens=9, schema=SCHEMA)
    body = json.loads(encode_messages(request, "claude", Shape(structure=structure)))
    plain = replace(request, schema=None)
    without = json.loads(encode_messages(plain, "claude", Shape(structure=structure)))
    assert body == {**without, **form}


def test_the_input_of_a_tool_is_what_was_said() -> None:
    body = {
        "content": [
            {"type": "text", "text": "I use the tool."},
            {"type": "tool_use", "id": "t", "name": "verdict", "input": {"a": [1]}},
        ],
        "stop_reason": "tool_use",
    }
    reply = decode_reply(ANTHROPIC_MESSAGES, json.dumps(body).encode())
    assert isinstance(reply, Reply)
    assert json.loads(reply.text) == {"a": [1]}
    assert reply.finish_reason == "stop"


texts = st.text(st.characters(codec="utf-8"))
usages = st.none() | st.builds(
    Usage, tokens_in=st.integers(0, 10**7), tokens_out=st.just(0)
)
replies = (
    st.builds(Reply, text=texts, usage=usages)
    | st.builds(
        Vectors.of, st.lists(st.lists(st.floats(width=32, allow_nan=False))), usages
    )
    | st.builds(
        Ranking,
        results=st.lists(
            st.builds(
                RankedDocument,
                index=st.integers(0, 99),
                score=st.floats(allow_nan=False, allow_infinity=False),
            )
        ).map(tuple),
        usage=usages,
    )
)


@given(replies)
def test_a_reply_of_any_kind_that_is_written_here_reads_back_the_same(
    reply: AnyReply,
) -> None:
    form, body = encode_answer(reply)
    assert decode_reply(form, body) == reply


@given(st.binary() | texts.map(str.encode))
def test_no_body_raises_anything_but_a_malformed_reply(body: bytes) -> None:
    for form in FORMS:
        try:
            decode_reply(form, body)
        except MalformedReply as error:
            assert error.body == body  # noqa: PT017 - most bodies fail, some may not


def test_an_unknown_form_says_what_to_do() -> None:
    with pytest.raises(MalformedReply, match="upgrade"):
        decode_reply("carrier.pigeon", b"{}")


EMBED = EmbedRequest(texts=("a", "b", "a"))
RERANK = RerankRequest(query="q", documents=("a", "b"))
CHAT = ChatRequest(
    messages=(Message(role="user", parts=(TextPart(text="a"), TextPart(text="b"))),),
    max_tokens=10,
    schema=Schema(name="s", json="{}"),
)


@pytest.mark.parametrize(
    "request_",
    [
        CHAT,
        EMBED,
        replace(EMBED, texts=("a", "b")),
        replace(EMBED, texts=("b", "a", "a")),
        replace(EMBED, dimensions=8),
        replace(EMBED, purpose="query"),
        RERANK,
        replace(RERANK, query="a"),
        replace(RERANK, documents=("b", "a")),
        replace(RERANK, top_n=1),
    ],
)
def test_the_hash_of_a_request_is_its_own_among_all_kinds(request_: Request) -> None:
    others = [CHAT, EMBED, RERANK]
    mine = skeleton(request_, "m")
    assert mine == skeleton(replace(request_), "m")
    assert mine.sha256 != skeleton(request_, "n").sha256
    for other in others:
        assert (skeleton(other, "m").sha256 == mine.sha256) == (other == request_)


@pytest.mark.parametrize("request_", [EMBED, RERANK])
def test_a_skeleton_of_texts_holds_each_once_and_by_its_hash(
    request_: EmbedRequest | RerankRequest,
) -> None:
    body, blobs, _ = skeleton(request_, "m")
    stored = {blob.sha256.hex(): blob.data.decode() for blob in blobs}
    assert len(stored) == len(blobs)
    for name, text in stored.items():
        assert hashlib.sha256(text.encode()).hexdigest() == name
    kept = json.loads(body)
    named = kept.get("texts") or [kept["query"], *kept["documents"]]
    asked = (
        request_.texts
        if isinstance(request_, EmbedRequest)
        else (request_.query, *request_.documents)
    )
    assert tuple(stored[name] for name in named) == asked


def test_the_hash_of_a_chat_is_what_it_was_when_chats_were_all_there_was() -> None:
    # a resumed run compares it with what an older siftlog stored
    assert skeleton(CHAT, "m").sha256 == (
        "c022949135e64c24d4c7806bb5a1f4c8ba605a2cca5251cca195d73be5f932a6"
    )


@pytest.mark.parametrize(
    ("form", "body"),
    [
        (OPENAI_CHAT, '{"choices":[{"message":{"content":"a"}}],"usage":%s}'),
        (OPENAI_EMBEDDINGS, '{"data":[],"usage":%s}'),
        (RERANK_FORM, '{"results":[],"usage":%s}'),
    ],
)
@pytest.mark.parametrize("count", [-1, MOST_TOKENS + 1])
def test_counts_of_tokens_that_can_be_none_are_unknown(
    form: str, body: str, count: int
) -> None:
    said = json.dumps({"prompt_tokens": count, "total_tokens": count})
    assert decode_reply(form, (body % said).encode()).usage is None


@pytest.mark.parametrize("form", sorted(FORMS))
def test_brackets_in_brackets_without_end_are_no_reply(form: str) -> None:
    with pytest.raises(MalformedReply):
        decode_reply(form, b'{"x":' + b"[" * 100_000)


def test_half_an_emoji_is_no_reason_to_lose_what_was_paid_for() -> None:
    body = (
        rb'{"choices":[{"message":{"content":"cut \ud83d"},"finish_reason":"length"}]}'
    )
    assert decode_reply(OPENAI_CHAT, body) == Reply(
        text="cut ?", finish_reason="length"
    )


@pytest.mark.parametrize("form", sorted(FORMS))
def test_a_web_page_in_place_of_a_reply_points_to_the_base_url(form: str) -> None:
    page = b"<!DOCTYPE html><html><head><title>Welcome\x1b!</title></head></html>"
    with pytest.raises(MalformedReply) as raised:
        decode_reply(form, page)
    assert str(raised.value).startswith("The endpoint answered with a web page, 'Wel")
    assert str(raised.value).endswith("(check the base URL).")
    assert "\x1b" not in str(raised.value)
