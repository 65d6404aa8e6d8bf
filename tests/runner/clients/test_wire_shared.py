"""tests.runner.clients.test_wire_shared"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.clients.wire import decode_reply
from runner.clients.wire_openai import OPENAI_CHAT, encode_chat, encode_reply
from runner.clients.wire_shared import CACHED_PARTS, Shape, Structure, skeleton
from runner.errors import MalformedReply
from runner.messages import ChatRequest, Message, Reply, Schema, TextPart, Usage

texts = st.text(st.characters(codec="utf-8"))
any_texts = st.text()  # half surrogates too
schemas = st.builds(
    Schema,
    name=st.from_regex(r"[a-z_]{1,8}", fullmatch=True),
    json=st.dictionaries(texts, st.integers() | texts).map(
        lambda value: json.dumps(value, sort_keys=True)
    ),
)
requests = st.builds(
    ChatRequest,
    messages=st.lists(
        st.builds(
            Message,
            role=st.sampled_from(["system", "user", "assistant"]),
            parts=st.lists(st.builds(TextPart, text=texts), min_size=1).map(tuple),
        ),
        min_size=1,
    ).map(tuple),
    max_tokens=st.integers(1, 10**6),
    temperature=st.none() | st.floats(0, 2),
    schema=st.none() | schemas,
)


@given(requests, st.sampled_from(Structure))
def test_a_chat_body_says_what_was_asked_and_nothing_else(
    request: ChatRequest, structure: Structure
) -> None:
    body = json.loads(encode_chat(request, "m", Shape(structure=structure)))
    assert body.pop("model") == "m"
    assert body.pop("max_tokens") == request.max_tokens
    assert body.pop("messages") == [
        {"role": message.role, "content": message.text} for message in request.messages
    ]
    assert body.pop("temperature", None) == request.temperature
    form = body.pop("response_format", None)
    if request.schema is None or structure is Structure.TEXT:
        assert form is None
    elif structure is Structure.OBJECT:
        assert form == {"type": "json_object"}
    else:
        assert form == {
            "type": "json_schema",
            "json_schema": {
                "name": request.schema.name,
                **({} if structure is Structure.LOOSE else {"strict": True}),
                "schema": json.loads(request.schema.json),
            },
        }
    assert body == {}


def test_temperature_is_left_out_where_the_endpoint_shall_choose() -> None:
    assert b"temperature" not in encode_chat(ask(temperature=None), "m", Shape())


def test_the_output_limit_goes_by_the_name_the_endpoint_knows() -> None:
    body = encode_chat(ask(), "m", Shape(limit="max_completion_tokens"))
    assert json.loads(body)["max_completion_tokens"] == 10
    assert b"max_tokens" not in body


@given(any_texts)
def test_half_a_surrogate_pair_becomes_a_question_mark(text: str) -> None:
    expected = text.encode(errors="replace").decode()
    body = json.loads(encode_chat(ask(text), "m", Shape()))
    assert body["messages"][0]["content"] == expected
    assert decode_reply(OPENAI_CHAT, encode_reply(text)).text == expected


def test_more_parts_than_the_cache_holds_are_encoded_all_the_same() -> None:
    parts = [f'part "{n}"\n' for n in range(3 * CACHED_PARTS)]
    body = json.loads(encode_chat(ask(*parts), "m", Shape()))
    assert body["messages"][0]["content"] == "".join(parts)


@given(requests)
def test_a_skeleton_holds_each_text_once_and_by_its_hash(request: ChatRequest) -> None:
    body, blobs, digest = skeleton(request, "m")
    stored = {blob.sha256.hex(): blob.data.decode() for blob in blobs}
    assert len(stored) == len(blobs)
    for name, text in stored.items():
        assert hashlib.sha256(text.encode()).hexdigest() == name
    kept = json.loads(body)
    assert [
        [stored[name] for name in message["parts"]] for message in kept["messages"]
    ] == [[part.text for part in message.parts] for message in request.messages]
    if request.schema is not None:
        assert stored[kept["schema"]["sha256"]] == request.schema.json
    assert digest == hashlib.sha256(body).hexdigest()


def test_a_long_text_is_not_repeated_in_the_skeleton() -> None:
    assert len(skeleton(ask("paper " * 10_000, "question?"), "m").body) < 400


@pytest.mark.parametrize(
    "other",
    [
        {"max_tokens": 11},
        {"temperature": None},
        {"temperature": 0.5},
        {"schema": Schema(name="s", json="{}")},
        {"messages": (Message(role="system", parts=(TextPart(text="text"),)),)},
        {"messages": (Message(role="user", parts=(TextPart(text="text "),)),)},
        {
            "messages": (
                Message(role="user", parts=(TextPart(text="te"), TextPart(text="xt"))),
            )
        },
    ],
)
def test_the_request_hash_tells_any_two_requests_apart(
    other: dict[str, object],
) -> None:
    request = ask("text")
    assert skeleton(request, "m") == skeleton(replace(request), "m")
    assert (
        skeleton(replace(request, **other), "m").sha256 != skeleton(request, "m").sha256
    )
    assert skeleton(request, "n").sha256 != skeleton(request, "m").sha256


def test_a_cache_hint_does_not_change_what_is_asked() -> None:
    hinted = ask()
    hinted = replace(
        hinted,
        messages=(Message(role="user", parts=(TextPart(text="text", cache=True),)),),
    )
    assert skeleton(hinted, "m").sha256 == skeleton(ask("text"), "m").sha256


@given(
    texts,
    st.sampled_from(["stop", "length", "content_filter", "refusal", "tool_calls"]),
    st.none()
    | st.builds(
        lambda rest, read, write, hour, out, thought, usd: Usage(
            tokens_in=rest + read + write + hour,
            tokens_out=out + thought,
            tokens_cached=read,
            tokens_cache_write=write + hour,
            tokens_cache_write_1h=hour,
            tokens_reasoning=thought,
            charged_usd=usd,
        ),
        *[st.integers(0, 10**6)] * 6,
        st.none() | st.floats(0, 10),
    ),
)
def test_a_reply_written_here_reads_back_the_same(
    text: str, finish_reason: str, usage: Usage | None
) -> None:
    body = encode_reply(text, finish_reason, usage)
    assert decode_reply(OPENAI_CHAT, body) == Reply(
        text=text, finish_reason=finish_reason, usage=usage
    )


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({"message": {"content": None}}, ("", "unknown")),
        ({"message": {}, "finish_reason": "length"}, ("", "length")),
        (
            {"message": {"content": None, "refusal": "No."}, "finish_reason": "stop"},
            ("No.", "refusal"),
        ),
        (
            {"message": {"content": "Yes", "refusal": None}, "finish_reason": "stop"},
            ("Yes", "stop"),
        ),
    ],
)
def test_what_endpoints_leave_out_is_filled_in(
    choice: dict[str, object], expected: tuple[str, str]
) -> None:
    reply = decode_reply(OPENAI_CHAT, json.dumps({"choices": [choice]}).encode())
    assert (reply.text, reply.finish_reason) == expected
    assert reply.usage is None


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("stop", "stop"),
        ("end_turn", "stop"),  # Anthropic
        ("max_tokens", "length"),
        ("STOP", "stop"),  # Gemini
        ("MAX_TOKENS", "length"),
        ("SAFETY", "content_filter"),
        ("RECITATION", "content_filter"),
        ("COMPLETE", "stop"),  # Cohere
        ("model_length", "length"),  # Mistral
        ("eos", "stop"),  # Together
        ("content_filter", "content_filter"),
        ("abort", "abort"),  # nothing that is known: as it is
        ("", "unknown"),
    ],
)
def test_the_end_of_a_reply_has_one_name_whoever_tells_of_it(
    said: str, meant: str
) -> None:
    choice = {"message": {"content": "a"}, "finish_reason": said}
    reply = decode_reply(OPENAI_CHAT, json.dumps({"choices": [choice]}).encode())
    assert reply.finish_reason == meant


@pytest.mark.parametrize("name", ["cache_creation_tokens", "cache_write_tokens"])
def test_tokens_written_to_a_cache_are_apart_from_those_read(name: str) -> None:
    body = {
        "choices": [{"message": {"content": "a"}}],
        "usage": {
            "prompt_tokens": 9,
            "completion_tokens": 2,
            "prompt_tokens_details": {"cached_tokens": 5, name: 3},
        },
    }
    assert decode_reply(OPENAI_CHAT, json.dumps(body).encode()).usage == Usage(
        tokens_in=9, tokens_out=2, tokens_cached=5, tokens_cache_write=3
    )


def test_cached_tokens_are_read_and_an_unknown_field_is_passed_over() -> None:
    body = {
        "choices": [{"message": {"content": "a", "audio": {}}, "logprobs": None}],
        "usage": {
            "prompt_tokens": 9,
            "completion_tokens": 2,
            "prompt_tokens_details": {"cached_tokens": 5, "audio_tokens": 0},
        },
    }
    usage = decode_reply(OPENAI_CHAT, json.dumps(body).encode()).usage
    assert usage == Usage(tokens_in=9, tokens_out=2, tokens_cached=5)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"plain words",
        b"null",
        b"[]",
        b"{}",
        b'{"choices":[]}',
        b'{"choices":[{}]}',
        b'{"choices":[{"message":{"content":7}}]}',
        b'{"choices":[{"message":{"content":"\xff"}}]}',
        b'{"choices":[{"message":{"content":"cut',
        b'{"error":{"message":"no"}}',
    ],
)
def test_a_body_of_another_form_is_malformed_and_kept(body: bytes) -> None:
    with pytest.raises(MalformedReply, match="not a chat completion") as raised:
        decode_reply(OPENAI_CHAT, body)
    assert raised.value.body == body


def ask(*parts: str, temperature: float | None = 0.0) -> ChatRequest:
    parts = parts or ("text",)
    return ChatRequest(
        messages=(
            Message(role="user", parts=tuple(TextPart(text=part) for part in parts)),
        ),
        max_tokens=10,
        temperature=temperature,
    )


def test_half_an_emoji_does_not_cost_the_answer() -> None:
    body = b'{"choices":[{"message":{"content":"a\\ud83d b\\ud83d\\ude00 \\\\ud83d"}}]}'
    assert decode_reply(OPENAI_CHAT, body).text == "a? b😀 \\ud83d"


@pytest.mark.parametrize("body", [b'{"x":' + b"[" * 100_000, b'{"x":"\\ud83d"' * 2])
def test_what_no_reader_can_follow_is_malformed(body: bytes) -> None:
    with pytest.raises(MalformedReply):
        decode_reply(OPENAI_CHAT, body)


@pytest.mark.parametrize("count", [-1, 10**10, 10**30])
def test_a_count_of_tokens_that_can_be_none_is_not_believed(count: int) -> None:
    usage = {"prompt_tokens": 1, "completion_tokens": count}
    body = json.dumps({"choices": [{"message": {"content": "a"}}], "usage": usage})
    reply = decode_reply(OPENAI_CHAT, body.encode())
    assert (reply.text, reply.usage) == ("a", None)
