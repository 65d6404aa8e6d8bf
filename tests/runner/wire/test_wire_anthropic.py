"""Anthropic's form: what is asked, with its marks for the cache, and what is read."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from runner.clients.wire import (
    ANTHROPIC_MESSAGES,
    MOST_BREAKPOINTS,
    decode_reply,
    encode_messages,
)
from runner.clients.wire_shared import Shape, Structure
from runner.errors import MalformedReply
from runner.messages import ChatRequest, Message, Reply, Schema, TextPart, Usage


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
