"""OpenAI's Responses form, with its own library's types as the judge."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import Response
from openai.types.responses.response_create_params import (
    ResponseCreateParamsNonStreaming,
)
from pydantic import TypeAdapter

from runner import errors as e
from runner.clients.wire import decode_reply
from runner.clients.wire_openai import OPENAI_RESPONSES, encode_responses
from runner.clients.wire_shared import Shape, Structure
from runner.messages import ChatRequest, Message, Parameters, Reply, Schema, TextPart
from tests.runner.clients.test_wire_shared import requests
from tests.wire_forms import (
    REASONING_ITEM,
    TOKENS_CACHED,
    TOKENS_IN,
    TOKENS_OUT,
    TOKENS_REASONING,
    openai_response,
    response_message,
    response_text,
)

judge: TypeAdapter[Any] = TypeAdapter(ResponseCreateParamsNonStreaming)
ANSWER = response_message(response_text("rs1"))


def decoded(response: object) -> Reply:
    reply = decode_reply(OPENAI_RESPONSES, json.dumps(response).encode())
    return cast("Reply", reply)


def judged(*output: dict[str, Any], **fields: Any) -> Reply:
    """What is decoded of a response that OpenAI's own library accepts."""
    response = openai_response(*output, **fields)
    Response.model_validate(response)
    return decoded(response)


@given(requests, st.sampled_from(Structure))
def test_a_request_is_one_that_openais_library_would_send(
    request: ChatRequest, structure: Structure
) -> None:
    body = json.loads(encode_responses(request, "m", Shape(structure=structure)))
    judge.validate_python(body)
    assert set(body) <= set(ResponseCreateParamsNonStreaming.__annotations__)
    system = [m.text for m in request.messages if m.role == "system"]
    assert body.get("instructions") == ("\n\n".join(system) if system else None)
    assert body["input"] == [
        {"role": message.role, "content": message.text}
        for message in request.messages
        if message.role != "system"
    ]
    assert body["max_output_tokens"] == request.max_tokens
    assert body.get("temperature") == request.temperature
    form = body.get("text", {}).get("format")
    if request.schema is None or structure is Structure.TEXT:
        assert form is None
    elif structure is Structure.OBJECT:
        assert form == {"type": "json_object"}
    else:
        is_strict = structure is Structure.SCHEMA
        assert form == {
            "type": "json_schema",
            "name": request.schema.name,
            "schema": json.loads(request.schema.json),
            **({"strict": True} if is_strict else {}),
        }


ASKED = ChatRequest(
    messages=(
        Message(role="system", parts=(TextPart(text="Be brief."),)),
        Message(role="user", parts=(TextPart(text="Which?"),)),
    ),
    max_tokens=16,
    schema=Schema(name="s", json="{}"),
)


def test_parameters_have_the_names_of_this_form() -> None:
    extra = '{"reasoning":{"summary":"auto"},"text":{"verbosity":"low"}}'
    parameters = Parameters(
        top_p=0.5, reasoning_effort="low", service_tier="flex", extra_body=extra
    )
    asked = replace(ASKED, parameters=parameters)
    body = json.loads(encode_responses(asked, "m"))
    judge.validate_python(body)
    assert body["reasoning"] == {"effort": "low", "summary": "auto"}
    assert set(body["text"]) == {"format", "verbosity"}
    assert (body["top_p"], body["service_tier"]) == (0.5, "flex")


def test_what_an_endpoint_does_not_take_is_left_out_of_this_form_too() -> None:
    shape = Shape(system="developer", omitted=frozenset({"temperature"}), limit=None)
    body = json.loads(encode_responses(ASKED, "m", shape))
    assert {"temperature", "instructions", "max_output_tokens"}.isdisjoint(body)
    assert body["input"][0] == {"role": "developer", "content": "Be brief."}
    body = json.loads(encode_responses(ASKED, "m", Shape(system="user")))
    assert body["input"] == [{"role": "user", "content": "Be brief.\n\nWhich?"}]


def test_no_prompt_is_left_with_the_provider() -> None:
    body = json.loads(encode_responses(ASKED, "m"))
    assert body["store"] is False


def test_a_reply_is_the_text_of_its_messages_with_what_was_counted() -> None:
    parts = response_message(response_text("rs"), response_text("1"))
    reply = judged(REASONING_ITEM, parts)
    assert (reply.text, reply.finish_reason) == ("rs1", "stop")
    assert reply.reasoning == REASONING_ITEM["summary"][0]["text"]
    assert reply.usage is not None
    assert reply.usage.tokens_in == TOKENS_IN
    assert reply.usage.tokens_out == TOKENS_OUT
    assert reply.usage.tokens_cached == TOKENS_CACHED
    assert reply.usage.tokens_reasoning == TOKENS_REASONING
    assert reply.served is not None
    assert reply.served.model == "gpt-5-pro-2025-10-06"
    assert reply.served.tier == "default"


def test_a_comment_before_the_final_answer_is_no_part_of_it() -> None:
    comment = response_message(response_text("Let me look."), phase="commentary")
    answer = response_message(response_text("rs1"), phase="final_answer")
    assert judged(comment, answer).text == "rs1"
    assert judged(comment).text == "Let me look."


@pytest.mark.parametrize(
    ("reason", "finish_reason"),
    [("max_output_tokens", "length"), ("content_filter", "content_filter")],
)
def test_an_incomplete_response_is_an_answer_that_says_why(
    reason: str, finish_reason: str
) -> None:
    details = {"reason": reason}
    cut = judged(ANSWER, status="incomplete", incomplete_details=details)
    assert (cut.text, cut.finish_reason) == ("rs1", finish_reason)
    # the reasoning alone took all the room
    empty = judged(REASONING_ITEM, status="incomplete", incomplete_details=details)
    assert (empty.text, empty.finish_reason) == ("", finish_reason)
    assert empty.usage is not None


def test_a_refusal_is_kept_in_its_own_words() -> None:
    refusal = {"type": "refusal", "refusal": "I cannot say."}
    reply = judged(response_message(refusal))
    assert (reply.text, reply.finish_reason) == ("I cannot say.", "refusal")


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("server_error", e.ServerError),
        ("rate_limit_exceeded", e.RateLimited),
        ("invalid_prompt", e.ContentFiltered),
        ("data_residency_mismatch", e.BadRequest),
        ("vector_store_timeout", e.ServerError),
    ],
)
def test_a_failed_response_is_a_failed_attempt_by_its_code(
    code: str, kind: type[e.AttemptError]
) -> None:
    error = {"code": code, "message": "it  did\nnot work"}
    with pytest.raises(kind, match=f"{code} it did not work") as caught:
        judged(status="failed", error=error, usage=None)
    assert type(caught.value) is kind
    assert caught.value.body


def test_what_a_failed_response_has_said_or_counted_is_kept() -> None:
    error = {"code": "server_error", "message": "broke off"}
    said = judged(ANSWER, status="failed", error=error, usage=None)
    assert (said.text, said.finish_reason, said.usage) == ("rs1", "error", None)
    billed = judged(status="failed", error=error)
    assert (billed.text, billed.finish_reason) == ("", "error")
    assert billed.usage is not None


@pytest.mark.parametrize(
    "changes",
    [
        {"usage": None},
        {"usage": {}},
        {"usage": []},
        {"usage": {"input_tokens": None, "output_tokens": {}}},
        {"usage": {"input_tokens": 1, "output_tokens": 1, "input_tokens_details": 7}},
        {"status": None},
        {"status": 7},
        {"status": "incomplete", "incomplete_details": None},
        {"status": "incomplete", "incomplete_details": {"reason": 3}},
        {"model": None, "service_tier": 4},
        {"output": [None, 3, ANSWER, {"type": "message", "content": 4}]},
        {"output": [{"type": "message", "content": "rs1"}]},
        {
            "output": [
                {"type": "message", "content": ["", {"text": None}, ANSWER]},
                ANSWER,
            ]
        },
    ],
)
def test_whatever_has_a_readable_text_is_an_answer(changes: dict[str, Any]) -> None:
    assert decoded({**openai_response(ANSWER), **changes}).text == "rs1"


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"7", b'{"output": 3}', b"{}", b'{"choices": []}', b"\xff", b"[" * 9],
)
def test_what_is_no_response_is_malformed(body: bytes) -> None:
    with pytest.raises(e.MalformedReply):
        decode_reply(OPENAI_RESPONSES, body)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


FIELDS = (
    "output",
    "usage",
    "status",
    "error",
    "model",
    "incomplete_details",
    "service_tier",
)


@given(
    st.fixed_dictionaries({}, optional=dict.fromkeys(FIELDS, json_values)),
)
def test_no_json_makes_the_decoder_fail_in_another_way(body: dict[str, Any]) -> None:
    for part in (body, openai_response(ANSWER) | body):
        with contextlib.suppress(e.AttemptError):
            assert isinstance(decoded(part), Reply)
