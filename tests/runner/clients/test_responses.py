"""The direct client in the Responses form."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from runner import errors as e
from runner.clients import Call, ClientOptions, Received, Secret, open_client
from runner.clients.http_client import endpoint_url
from runner.clients.wire_openai import OPENAI_RESPONSES
from runner.job import Task
from runner.messages import (
    ChatRequest,
    EmbedRequest,
    Message,
    Parameters,
    Schema,
    TextPart,
)
from runner.money.prices import api_of, lacks_chat
from runner.options import RunOptions, options_from
from tests.wire_forms import openai_response, response_message, response_text
from tests.wire_server import Said, WireServer, saying

KEY = "sk-canary/0123456789"
CALL = Call(
    task=Task(number=1, stage="extract", key="PMC1", model="openai/x", replicate=1),
    request=ChatRequest(
        messages=(
            Message(role="system", parts=(TextPart(text="Be brief."),)),
            Message(role="user", parts=(TextPart(text="Which variants?"),)),
        ),
        max_tokens=16,
        temperature=None,
        schema=Schema(name="s", json='{"type":"object"}'),
    ),
)
GOOD = Said(body=openai_response(response_message(response_text("rs1"))))


async def ask(server: WireServer, call: Call = CALL) -> Received:
    options = ClientOptions(base_url=server.url, api_key=Secret(KEY), api="responses")
    client = open_client("openai/x", options)
    try:
        return await client.call(call)
    finally:
        await client.close()


@pytest.mark.asyncio
async def test_a_chat_goes_to_responses_with_the_key_and_the_strict_schema() -> None:
    async with saying(GOOD) as server:
        received = await ask(server)
    (heard,) = server.heard
    assert heard.path == "/v1/responses"
    assert heard.headers["authorization"] == f"Bearer {KEY}"
    assert heard.body == {
        "model": "x",
        "instructions": "Be brief.",
        "input": [{"role": "user", "content": "Which variants?"}],
        "max_output_tokens": 16,
        "store": False,
        "text": {
            "format": {
                "type": "json_schema",
                "name": "s",
                "strict": True,
                "schema": {"type": "object"},
            }
        },
    }
    assert received.form == OPENAI_RESPONSES
    assert received.reply.text == "rs1"
    assert received.body == json.dumps(GOOD.body).encode()


@pytest.mark.asyncio
async def test_a_refused_schema_is_left_for_a_plainer_form() -> None:
    message = "Invalid parameter: 'text.format' of type 'json_schema' is not supported"
    refused = Said(body={"error": {"message": message}}, status=400)
    async with saying(refused, GOOD) as server:
        options = ClientOptions(base_url=server.url, api="responses")
        client = open_client("openai/x", options)
        with pytest.raises(e.FormRefused):
            await client.call(CALL)
        await client.call(CALL)
        await client.close()
    assert server.heard[1].body["text"] == {"format": {"type": "json_object"}}


@pytest.mark.asyncio
async def test_vectors_are_asked_for_where_they_always_were() -> None:
    vectors = {"data": [{"index": 0, "embedding": [1.0]}]}
    call = replace(CALL, request=EmbedRequest(texts=("a",)))
    async with saying(Said(body=vectors)) as server:
        await ask(server, call)
    assert server.heard[0].path == "/v1/embeddings"


@pytest.mark.asyncio
async def test_a_failed_response_fails_its_attempt_with_status_200() -> None:
    error = {"code": "rate_limit_exceeded", "message": "slow down"}
    failed = openai_response(status="failed", error=error, usage=None)
    async with saying(Said(body=failed)) as server:
        with pytest.raises(e.RateLimited, match="slow down") as caught:
            await ask(server)
    assert caught.value.status == 200


def test_an_address_may_be_given_with_the_path_of_the_form() -> None:
    assert endpoint_url("http://h/v1/responses") == "http://h/v1"


def options(model: str, **values: Any) -> RunOptions:
    return options_from({"model": model, **values})


@pytest.mark.parametrize(
    ("model", "values", "api"),
    [
        ("openai/gpt-5-pro", {}, "responses"),
        ("openai/o3-pro", {}, "responses"),
        ("openai/gpt-5-mini", {}, "chat"),
        ("openai/gpt-4o-mini", {}, "chat"),
        ("some/model", {"base_url": "http://h"}, "chat"),
        ("gpt-5-codex", {"base_url": "http://h"}, "responses"),
        ("openai/gpt-5-pro", {"api": "chat"}, "chat"),
        ("some/model", {"base_url": "http://h", "api": "responses"}, "responses"),
        ("baseline/lexical", {"api": "responses"}, "chat"),
        ("openai/x", {"models": {"openai/x": {"api": "responses"}}}, "responses"),
        (
            "openai/x",
            {"api": "responses", "models": {"openai/x": {"api": "chat"}}},
            "chat",
        ),
    ],
)
def test_the_form_is_the_models_own_then_the_runs_then_the_tables(
    model: str, values: dict[str, Any], api: str
) -> None:
    assert api_of(model, options(model, **values)) == api


def test_responses_are_not_to_be_had_through_litellm() -> None:
    model = "anthropic/claude-sonnet-4-5"
    assert api_of(model, options(model)) == "chat"
    with pytest.raises(e.UsageError, match="--base-url"):
        api_of(model, options(model, api="responses"))


def test_the_table_lists_models_of_both_kinds() -> None:
    assert lacks_chat("gpt-5-codex")
    assert not lacks_chat("gpt-5")
    assert not lacks_chat("no such model")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("param", "field"),
    [
        ("temperature", "temperature"),
        ("reasoning.effort", "reasoning"),
        ("instructions", "instructions"),
        ("text.format", "text"),
    ],
)
async def test_a_refused_parameter_is_left_by_its_name_in_this_form(
    param: str, field: str
) -> None:
    error = {
        "message": f"Unsupported parameter: '{param}' is not supported with this model",
        "type": "invalid_request_error",
        "param": param,
        "code": "unsupported_parameter",
    }
    request = replace(
        CALL.request, temperature=0.0, parameters=Parameters(reasoning_effort="low")
    )
    call = replace(CALL, request=request)
    async with saying(Said(body={"error": error}, status=400), GOOD) as server:
        client = open_client(
            "openai/x", ClientOptions(base_url=server.url, api="responses")
        )
        with pytest.raises(e.FormRefused):
            await client.call(call)
        await client.call(call)
        await client.close()
    first, second = (heard.body for heard in server.heard)
    assert field in first
    assert second.get(field) != first[field]
