"""Clients send what an endpoint takes, once it has refused something else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from runner import errors as e
from runner.clients import Call, ClientOptions, ModelClient, open_client
from runner.job import Task
from runner.messages import (
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
from tests.wire_forms import DEEPSEEK, TOKENS_IN, jina_ranking, openai_vectors
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
            with pytest.raises(e.FormRefused, match="plainer form"):
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
