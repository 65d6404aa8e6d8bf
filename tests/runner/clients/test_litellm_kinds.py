"""Embeddings and rankings through litellm, and forms that providers refuse."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from runner import errors as e
from runner.clients import ClientOptions, ModelClient, Secret, open_client
from runner.messages import (
    ChatRequest,
    EmbedRequest,
    Message,
    RankedDocument,
    Ranking,
    Request,
    RerankRequest,
    Schema,
    TextPart,
    Usage,
    Vectors,
)
from tests.runner.clients.litellm_provider import KEY, call
from tests.wire_forms import (
    ANTHROPIC,
    DEEPSEEK,
    GEMINI,
    TOKENS_IN,
    Provider,
    cohere_ranking,
    gemini_vectors,
    jina_ranking,
    openai_vectors,
)
from tests.wire_server import Said, WireServer, saying

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("bare_environment")]

TEXTS = EmbedRequest(texts=("a", "b"))
DOCUMENTS = RerankRequest(query="q", documents=("a", "b"), top_n=2)
ROWS = ([0.5, 1.0], [0.25, 2.0])
BEST_FIRST = (RankedDocument(index=1, score=0.75), RankedDocument(index=0, score=0.25))


@asynccontextmanager
async def talking(
    model: str, variable: str, *replies: Said
) -> AsyncIterator[tuple[WireServer, ModelClient]]:
    async with saying(*replies) as wire:
        options = ClientOptions(
            api_key=Secret(KEY), environment={f"{variable}_API_BASE": wire.url}
        )
        client = open_client(model, options)
        try:
            yield wire, client
        finally:
            await client.close()


NVIDIA_EMBED = ("nvidia_nim/some-embedder", "NVIDIA_NIM")
GEMINI_EMBED = ("gemini/gemini-embedding-001", "GEMINI")
COHERE_RERANK = ("cohere/rerank-v3.5", "COHERE")
JINA_RERANK = ("jina_ai/jina-reranker-v2", "JINA_AI")


@pytest.mark.parametrize(
    ("request_", "body"),
    [
        (TEXTS, {"input": ["a", "b"], "input_type": "passage"}),
        (
            EmbedRequest(texts=("a", "b"), purpose="query", dimensions=2),
            {"input": ["a", "b"], "input_type": "query", "dimensions": 2},
        ),
    ],
)
async def test_vectors_in_openais_form_are_stored_as_they_came(
    request_: EmbedRequest, body: dict[str, object]
) -> None:
    said = Said(body=openai_vectors(*ROWS))
    async with talking(*NVIDIA_EMBED, said) as (wire, client):
        received = await client.call(call(request_))
    (heard,) = wire.heard
    assert heard.path == "/embeddings"
    assert heard.body == {"model": "some-embedder", **body}
    usage = Usage(tokens_in=TOKENS_IN, tokens_out=0)
    assert received.reply == Vectors.of(ROWS, usage)
    assert json.loads(received.body) == said.body


@pytest.mark.parametrize(
    ("request_", "extra"),
    [
        (TEXTS, {}),
        (
            EmbedRequest(texts=("a", "b"), purpose="query", dimensions=2),
            {"taskType": "RETRIEVAL_QUERY", "outputDimensionality": 2},
        ),
    ],
)
async def test_vectors_in_geminis_form_are_read_and_stored_with_what_came(
    request_: EmbedRequest, extra: dict[str, object]
) -> None:
    said = Said(body=gemini_vectors(*ROWS))
    async with talking(*GEMINI_EMBED, said) as (wire, client):
        received = await client.call(call(request_))
    (heard,) = wire.heard
    assert heard.path == "/models/gemini-embedding-001:batchEmbedContents"
    model = "models/gemini-embedding-001"
    assert heard.body == {
        "requests": [
            {"model": model, "content": {"parts": [{"text": text}]}, **extra}
            for text in request_.texts
        ]
    }
    assert received.reply.packed == Vectors.of(ROWS).packed
    assert json.loads(received.body)["received"] == said.body


@pytest.mark.parametrize(
    ("model", "path", "said", "usage"),
    [
        (COHERE_RERANK, "/v2/rerank", cohere_ranking(0.25, 0.75), None),
        (
            JINA_RERANK,
            "/v1/rerank",
            jina_ranking(0.25, 0.75),
            Usage(tokens_in=TOKENS_IN, tokens_out=0),
        ),
    ],
)
async def test_documents_are_ranked_and_the_scores_stored_as_they_came(
    model: tuple[str, str], path: str, said: object, usage: Usage | None
) -> None:
    async with talking(*model, Said(body=said)) as (wire, client):
        received = await client.call(call(DOCUMENTS))
    (heard,) = wire.heard
    assert heard.path == path
    assert heard.headers["authorization"] == f"Bearer {KEY}"
    assert heard.body == {
        "model": model[0].partition("/")[2],
        "query": "q",
        "documents": ["a", "b"],
        "top_n": 2,
        "return_documents": False,
    }
    assert received.reply == Ranking(results=BEST_FIRST, usage=usage)
    assert json.loads(received.body) == said


async def test_scores_in_another_form_are_read_and_stored_with_what_came() -> None:
    said = {
        "object": "list",
        "data": cohere_ranking(0.25, 0.75)["results"],
        "model": "m",
        "usage": {"total_tokens": TOKENS_IN},
    }
    async with talking("voyage/rerank-2", "VOYAGE", Said(body=said)) as (_, client):
        received = await client.call(call(DOCUMENTS))
    usage = Usage(tokens_in=TOKENS_IN, tokens_out=0)
    assert received.reply == Ranking(results=BEST_FIRST, usage=usage)
    assert json.loads(received.body)["received"] == said


@pytest.mark.parametrize(
    ("model", "request_"),
    [(NVIDIA_EMBED, TEXTS), (GEMINI_EMBED, TEXTS), (COHERE_RERANK, DOCUMENTS)],
)
@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (Said(body=b"{}", status=429), e.RateLimited),
        (Said(body=b"{}", status=401), e.AuthFailed),
        (Said(body=b"{}", status=500), e.ServerError),
        (Said(body=b"<html>"), e.MalformedReply),
        (Said(body=b"{}"), e.MalformedReply),
        (Said(body=b"", resets=True), e.ConnectionLost),
    ],
)
async def test_a_failure_means_the_same_for_every_kind_and_is_sent_once(
    model: tuple[str, str],
    request_: Request,
    said: Said,
    expected: type[e.AttemptError],
) -> None:
    async with talking(*model, said) as (wire, client):
        with pytest.raises(expected):
            await client.call(call(request_))
        assert client.statistics().failed == 1
    assert len(wire.heard) == 1


async def test_a_provider_without_that_kind_says_so() -> None:
    async with talking("anthropic/claude-sonnet-4-5", "ANTHROPIC", Said(body={})) as (
        wire,
        client,
    ):
        with pytest.raises(e.NotServed, match="anthropic"):
            await client.call(call(TEXTS))
        with pytest.raises(e.NotServed, match="anthropic"):
            await client.call(call(DOCUMENTS))
    assert wire.heard == []


@pytest.mark.parametrize("provider", [ANTHROPIC, GEMINI, DEEPSEEK], ids=repr)
async def test_a_schema_that_a_provider_refuses_is_left_for_a_plainer_form(
    provider: Provider,
) -> None:
    chat = ChatRequest(
        messages=(Message(role="user", parts=(TextPart(text="Answer in JSON."),)),),
        max_tokens=10,
        schema=Schema(
            name="letter",
            json='{"type":"object","properties":{"letter":{"type":"string"}}}',
        ),
    )
    refused = Said(body=provider.refuse("json_schema is not supported"), status=400)
    good = Said(body=provider.reply("{}"))
    async with talking(provider.model, provider.variables, refused, refused, good) as (
        wire,
        client,
    ):
        for _ in range(2):
            with pytest.raises(e.FormRefused):
                await client.call(call(chat))
        assert (await client.call(call(chat))).reply.text == "{}"
    asked = [json.dumps(heard.body) for heard in wire.heard]
    assert ["letter" in body for body in asked] == [True, False, False]
    assert "json_object" not in asked[2]


async def test_what_anthropic_wrote_to_its_cache_is_apart_from_what_it_read() -> None:
    said = ANTHROPIC.reply("a")
    said["usage"] = {
        "input_tokens": 5,
        "cache_read_input_tokens": 7,
        "cache_creation_input_tokens": 11,
        "output_tokens": 3,
    }
    chat = ChatRequest(
        messages=(Message(role="user", parts=(TextPart(text="What?"),)),), max_tokens=10
    )
    async with talking(ANTHROPIC.model, "ANTHROPIC", Said(body=said)) as (_, client):
        received = await client.call(call(chat))
    assert received.reply.usage == Usage(
        tokens_in=23, tokens_out=3, tokens_cached=7, tokens_cache_write=11
    )
