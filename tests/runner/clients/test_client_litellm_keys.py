"""Keys and addresses of providers behind litellm: named, kept apart, never shown.

Embeddings and rankings through litellm, and forms that providers refuse.
"""

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
from tests.runner.clients.litellm_provider import KEY, ask, call, talking
from tests.wire_forms import (
    ANTHROPIC,
    DEEPSEEK,
    GEMINI,
    PROVIDERS,
    TOKENS_IN,
    Provider,
    cohere_ranking,
    gemini_vectors,
    jina_ranking,
    openai_vectors,
)
from tests.wire_server import Said, WireServer, saying

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("bare_environment")]


async def test_two_clients_keep_their_keys_and_connections_apart() -> None:
    said = Said(body=DEEPSEEK.reply())
    async with talking(DEEPSEEK, said) as (wire, client):
        async with talking(ANTHROPIC, Said(body=ANTHROPIC.reply())) as (_, other):
            await other.call(call())
        second = open_client(
            DEEPSEEK.model, ClientOptions(api_key=Secret("another-key-0123"))
        )
        await client.call(call())
        await second.call(call())
        await second.close()
        await client.call(call())
    keys = [heard.headers["authorization"] for heard in wire.heard]
    assert keys == [f"Bearer {KEY}", "Bearer another-key-0123", f"Bearer {KEY}"]


@pytest.mark.parametrize("provider", PROVIDERS, ids=repr)
@pytest.mark.parametrize("status", [200, 400, 401, 429, 500])
@pytest.mark.parametrize("is_named", [True, False])
async def test_a_key_that_a_provider_echoes_gets_no_further(
    provider: Provider,
    status: int,
    *,
    is_named: bool,
    capfd: pytest.CaptureFixture[str],
) -> None:
    echo = Said(
        body=provider.refuse(f"wrong key {KEY}"),
        status=status,
        headers={"x-request-id": KEY},
    )
    async with saying(echo) as wire:
        base = {f"{provider.variables}_API_BASE": wire.url}
        options = (
            ClientOptions(api_key=Secret(KEY), environment=base)
            if is_named
            else ClientOptions(
                environment={**base, f"{provider.variables}_API_KEY": KEY}
            )
        )
        assert KEY not in repr(options)
        client = open_client(provider.model, options)
        with pytest.raises(e.AttemptError) as raised:
            await client.call(call())
        await client.close()
    assert any(KEY in value for value in wire.heard[0].headers.values())
    assert KEY.encode() not in (raised.value.body or b"")
    error: BaseException | None = raised.value
    while error is not None:
        assert KEY not in f"{error!s} {error!r} {vars(error)}"
        error = error.__cause__
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("provider", PROVIDERS, ids=repr)
async def test_a_key_in_an_answer_is_masked_in_body_text_and_headers(
    provider: Provider,
) -> None:
    said = Said(body=provider.reply(f"it is {KEY}"), headers={"x-request-id": KEY})
    received = await ask(provider, said)
    assert received.reply.text == "it is ***"
    assert KEY not in f"{received!r}"


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("anthropic/claude-sonnet-4-5", "needs ANTHROPIC_API_KEY in the environment"),
        ("gemini/gemini-2.5-flash", "GOOGLE_API_KEY or GEMINI_API_KEY"),
        ("azure/x", "AZURE_API_BASE and AZURE_API_VERSION and AZURE_API_KEY"),
        ("nowhere/x", "--base-url"),
        ("anthropic/", "--base-url"),
        ("some-model", "--base-url"),
    ],
)
async def test_a_provider_that_is_unknown_or_lacks_its_key_is_named_at_the_start(
    model: str, words: str
) -> None:
    with pytest.raises(e.UsageError, match=words):
        open_client(model, ClientOptions())


async def test_a_key_of_another_name_does_not_replace_an_address() -> None:
    with pytest.raises(
        e.UsageError, match="needs AZURE_API_BASE and AZURE_API_VERSION"
    ):
        open_client("azure/x", ClientOptions(api_key=Secret(KEY)))


async def test_a_server_on_this_machine_needs_neither_key_nor_address() -> None:
    client = open_client("ollama/x", ClientOptions())
    await client.close()


TEXTS = EmbedRequest(texts=("a", "b"))
DOCUMENTS = RerankRequest(query="q", documents=("a", "b"), top_n=2)
ROWS = ([0.5, 1.0], [0.25, 2.0])
BEST_FIRST = (RankedDocument(index=1, score=0.75), RankedDocument(index=0, score=0.25))


@asynccontextmanager
async def kinds_talking(
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
    async with kinds_talking(*NVIDIA_EMBED, said) as (wire, client):
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
    async with kinds_talking(*GEMINI_EMBED, said) as (wire, client):
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
    async with kinds_talking(*model, Said(body=said)) as (wire, client):
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
    async with kinds_talking("voyage/rerank-2", "VOYAGE", Said(body=said)) as (
        _,
        client,
    ):
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
    async with kinds_talking(*model, said) as (wire, client):
        with pytest.raises(expected):
            await client.call(call(request_))
        assert client.statistics().failed == 1
    assert len(wire.heard) == 1


async def test_a_provider_without_that_kind_says_so() -> None:
    async with kinds_talking(
        "anthropic/claude-sonnet-4-5", "ANTHROPIC", Said(body={})
    ) as (
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
    async with kinds_talking(
        provider.model, provider.variables, refused, refused, good
    ) as (
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
    async with kinds_talking(ANTHROPIC.model, "ANTHROPIC", Said(body=said)) as (
        _,
        client,
    ):
        received = await client.call(call(chat))
    assert received.reply.usage == Usage(
        tokens_in=23, tokens_out=3, tokens_cached=7, tokens_cache_write=11
    )
