"""Clients send what an endpoint takes, once it has refused something else.

The direct client in the Responses form.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from runner import errors as e
from runner.clients import (
    Call,
    ClientOptions,
    ModelClient,
    Received,
    Secret,
    open_client,
)
from runner.clients.http_client import endpoint_url
from runner.clients.wire_openai import OPENAI_RESPONSES
from runner.job import Task
from runner.messages import (
    ChatRequest,
    EmbedRequest,
    Message,
    Parameters,
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
from runner.money.prices import api_of, lacks_chat
from runner.options import RunOptions, options_from
from tests.wire_forms import (
    DEEPSEEK,
    TOKENS_IN,
    jina_ranking,
    openai_response,
    openai_vectors,
    response_message,
    response_text,
)
from tests.wire_server import Said, WireServer, saying

SCHEMA = Schema(name="letter", json='{"type":"object"}')
CHAT = ChatRequest(
    messages=(Message(role="user", parts=(TextPart(text="Answer in JSON."),)),),
    max_tokens=10,
    schema=SCHEMA,
)
EMBED = EmbedRequest(texts=("a", "b"), dimensions=2)
RERANK = RerankRequest(query="q", documents=("a", "b"), top_n=2)
GOOD = Said(body=DEEPSEEK.reply("{}"))


def lacks(form: str, status: int = 400) -> Said:
    message = f"response_format type {form} is unavailable now"
    return Said(body=DEEPSEEK.refuse(message), status=status)


def call(request: Request) -> Call:
    task = Task(number=1, stage="s", key="k", model="openai/x", replicate=1)
    return Call(task=task, request=request)


@asynccontextmanager
async def talking(
    *replies: Said, **options: object
) -> AsyncIterator[tuple[WireServer, ModelClient]]:
    async with saying(*replies) as wire:
        client = open_client("openai/x", ClientOptions(base_url=wire.url, **options))
        try:
            yield wire, client
        finally:
            await client.close()


def forms(wire: WireServer) -> list[str | None]:
    return [heard.body.get("response_format", {}).get("type") for heard in wire.heard]


@pytest.mark.asyncio
async def test_a_schema_gives_way_to_an_object_and_that_to_the_prompt_for_good() -> (
    None
):
    replies = (lacks("json_schema"), lacks("json_object"), GOOD)
    async with talking(*replies) as (wire, client):
        for _ in range(2):
            with pytest.raises(e.FormRefused, match="simpler form"):
                await client.call(call(CHAT))
        for _ in range(2):
            assert (await client.call(call(CHAT))).reply.text == "{}"
    assert forms(wire) == ["json_schema", "json_object", None, None]


@pytest.mark.asyncio
async def test_a_form_that_is_taken_is_kept() -> None:
    async with talking(lacks("json_schema"), GOOD) as (wire, client):
        with pytest.raises(e.FormRefused):
            await client.call(call(CHAT))
        for _ in range(2):
            await client.call(call(CHAT))
    assert forms(wire) == ["json_schema", "json_object", "json_object"]


@pytest.mark.asyncio
async def test_calls_in_flight_at_the_refusal_step_down_once_together() -> None:
    async def ask(client: ModelClient) -> None:
        with pytest.raises(e.FormRefused):
            await client.call(call(CHAT))

    async with talking(*[lacks("json_schema")] * 5, GOOD) as (wire, client):
        async with asyncio.TaskGroup() as group:
            for _ in range(5):
                group.create_task(ask(client))
        await client.call(call(CHAT))
    assert forms(wire) == ["json_schema"] * 5 + ["json_object"]


@pytest.mark.asyncio
@pytest.mark.parametrize("options", [{"structured": False}, {}])
async def test_a_complaint_about_a_form_that_was_not_asked_for_is_a_bad_request(
    options: dict[str, bool],
) -> None:
    plain = ChatRequest(messages=CHAT.messages, max_tokens=10)
    asked = CHAT if options else plain
    async with talking(lacks("json_schema"), GOOD, **options) as (wire, client):
        with pytest.raises(e.BadRequest, match="unavailable now") as raised:
            await client.call(call(asked))
        await client.call(call(CHAT))
    assert raised.value.status == 400
    assert raised.value.body
    assert forms(wire) == [None, None if options else "json_schema"]


@pytest.mark.asyncio
async def test_vectors_are_asked_for_in_base64_until_that_is_refused() -> None:
    no_base64 = DEEPSEEK.refuse("Unsupported parameter: encoding_format")
    good = Said(body=openai_vectors([0.5, 1.0], [0.25, 2.0]))
    async with talking(Said(body=no_base64, status=422), good) as (wire, client):
        with pytest.raises(e.FormRefused):
            await client.call(call(EMBED))
        received = await client.call(call(EMBED))
    assert [heard.path for heard in wire.heard] == ["/v1/embeddings"] * 2
    body = {"model": "x", "input": ["a", "b"], "dimensions": 2}
    assert [heard.body for heard in wire.heard] == [
        {**body, "encoding_format": "base64"},
        body,
    ]
    assert received.reply == Vectors.of(
        [[0.5, 1.0], [0.25, 2.0]], Usage(tokens_in=TOKENS_IN, tokens_out=0)
    )
    assert received.body == json.dumps(good.body).encode()


@pytest.mark.asyncio
async def test_documents_are_ranked_at_the_endpoints_own_place() -> None:
    async with talking(Said(body=jina_ranking(0.25, 0.75))) as (wire, client):
        received = await client.call(call(RERANK))
    (heard,) = wire.heard
    assert heard.path == "/v1/rerank"
    assert heard.body == {
        "model": "x",
        "query": "q",
        "documents": ["a", "b"],
        "top_n": 2,
    }
    assert received.reply == Ranking(
        results=(
            RankedDocument(index=1, score=0.75),
            RankedDocument(index=0, score=0.25),
        ),
        usage=Usage(tokens_in=TOKENS_IN, tokens_out=0),
    )


@pytest.mark.asyncio
@pytest.mark.parametrize("request_", [EMBED, RERANK])
async def test_a_reply_of_another_kind_is_malformed(request_: Request) -> None:
    async with talking(GOOD) as (_, client):
        with pytest.raises(e.MalformedReply) as raised:
            await client.call(call(request_))
    assert raised.value.status == 200


@pytest.mark.asyncio
async def test_a_base_url_may_end_in_the_path_of_any_kind() -> None:
    async with saying(Said(body=DEEPSEEK.reply("a"))) as wire:
        for path in ("/v1/embeddings", "/v1/rerank", "/v1/chat/completions", "/v1/"):
            options = ClientOptions(base_url=wire.url + path)
            client = open_client("openai/x", options)
            assert (await client.call(call(CHAT))).reply == Reply(
                text="a",
                usage=Usage(tokens_in=14, tokens_out=3, tokens_cached=7),
            )
            await client.close()
    assert {heard.path for heard in wire.heard} == {"/v1/chat/completions"}


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
RESPONSES_GOOD = Said(body=openai_response(response_message(response_text("rs1"))))


async def ask(server: WireServer, call: Call = CALL) -> Received:
    options = ClientOptions(base_url=server.url, api_key=Secret(KEY), api="responses")
    client = open_client("openai/x", options)
    try:
        return await client.call(call)
    finally:
        await client.close()


@pytest.mark.asyncio
async def test_a_chat_goes_to_responses_with_the_key_and_the_strict_schema() -> None:
    async with saying(RESPONSES_GOOD) as server:
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
    assert received.body == json.dumps(RESPONSES_GOOD.body).encode()


@pytest.mark.asyncio
async def test_a_refused_schema_is_left_for_a_plainer_form() -> None:
    message = "Invalid parameter: 'text.format' of type 'json_schema' is not supported"
    refused = Said(body={"error": {"message": message}}, status=400)
    async with saying(refused, RESPONSES_GOOD) as server:
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
    async with saying(
        Said(body={"error": error}, status=400), RESPONSES_GOOD
    ) as server:
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
