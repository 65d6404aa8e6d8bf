"""OpenAI's own client reads what the simulator says, strictly."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import openai
import pytest
from openai.types.chat import ChatCompletionUserMessageParam
from pydantic import BaseModel

from runner.simulate.billing import BatchAct
from runner.simulate.options import SimulateOptions
from runner.simulate.server import Simulated, simulated

pytestmark = pytest.mark.asyncio

NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
BATCHED = ("plain", "openai", "azure", "gemini-openai", "groq", "litellm-proxy")


def asking(text: str = "What of rs42?") -> list[ChatCompletionUserMessageParam]:
    return [{"role": "user", "content": text}]


@asynccontextmanager
async def stand(
    dialect: str = "openai", *, strict: bool = True, **options: Any
) -> AsyncIterator[tuple[openai.AsyncOpenAI, Simulated]]:
    settings = SimulateOptions(dialect=dialect, bill_price="1,8,0.1", **options)
    async with (
        simulated(settings) as endpoint,
        openai.AsyncOpenAI(
            base_url=endpoint.base_url,
            api_key="sk-canary-0123456789",
            max_retries=0,
            http_client=httpx.AsyncClient(verify=NO_TLS, trust_env=False),
            _strict_response_validation=strict,
        ) as client,
    ):
        yield client, endpoint


@pytest.mark.parametrize("dialect", ["plain", "openai", "openai-reasoning", "azure"])
async def test_a_chat_and_its_usage(dialect: str) -> None:
    async with stand(dialect) as (client, endpoint):
        reply = await client.chat.completions.create(model="m", messages=asking())
        (line,) = endpoint.ledger.lines
    assert "rs42" in str(reply.choices[0].message.content)
    assert reply.choices[0].finish_reason == "stop"
    assert reply.usage is not None
    assert reply.usage.prompt_tokens == line.tokens_in > 0
    assert reply.usage.completion_tokens == line.tokens_out > 0
    assert reply.usage.total_tokens == line.tokens_in + line.tokens_out
    assert reply.model == line.served_model
    assert reply.system_fingerprint == line.fingerprint
    assert reply._request_id == (None if dialect == "plain" else line.request_id)


async def test_a_stream_comes_in_chunks_and_its_usage_last() -> None:
    async with stand() as (client, endpoint):
        stream = await client.chat.completions.create(
            model="m",
            messages=asking("What of rs9923231, CYP2C9*3 and HLA-B*58:01?"),
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = [chunk async for chunk in stream]
        (line,) = endpoint.ledger.lines
    texts = [choice.delta.content or "" for each in chunks for choice in each.choices]
    assert sum(map(bool, texts)) > 1
    assert "".join(texts).startswith("The text speaks of ")
    ends = [choice.finish_reason for each in chunks for choice in each.choices]
    assert [end for end in ends if end] == ["stop"]
    usage = chunks[-1].usage
    assert usage is not None
    assert (usage.prompt_tokens, usage.completion_tokens) == (
        line.tokens_in,
        line.tokens_out,
    )
    assert line.tells_usage


async def test_a_stream_without_that_option_tells_no_usage() -> None:
    async with stand() as (client, endpoint):
        stream = await client.chat.completions.create(
            model="m", messages=asking(), stream=True
        )
        chunks = [chunk async for chunk in stream]
        (line,) = endpoint.ledger.lines
    assert all(chunk.usage is None for chunk in chunks)
    assert not line.tells_usage
    assert endpoint.ledger.bill().reported_usd == 0 < endpoint.ledger.bill().cost_usd


class Finding(BaseModel):
    gene: str
    effects: list[str]
    is_significant: bool


async def test_structured_output_is_parsed_by_the_client() -> None:
    async with stand() as (client, _endpoint):
        chat = await client.chat.completions.parse(
            model="m", messages=asking(), response_format=Finding
        )
        response = await client.responses.parse(
            model="m", input="What of rs42?", text_format=Finding
        )
    assert isinstance(chat.choices[0].message.parsed, Finding)
    assert isinstance(response.output_parsed, Finding)


async def test_as_many_answers_come_as_were_asked_for() -> None:
    async with stand() as (client, endpoint):
        long = asking("What of rs1, rs2, rs3, rs4, rs5, rs6 and rs7?")
        reply = await client.chat.completions.create(model="m", messages=long, n=3)
        (line,) = endpoint.ledger.lines
    assert [choice.index for choice in reply.choices] == [0, 1, 2]
    assert len({choice.message.content for choice in reply.choices}) > 1
    assert reply.usage is not None
    assert reply.usage.completion_tokens == line.tokens_out


@pytest.mark.parametrize("job", [None, "screening", "paper-investigation"])
async def test_embeddings_are_the_same_each_time(job: str | None) -> None:
    # the strict client checks vectors before it unpacks them
    async with stand(strict=False, job=job) as (client, _endpoint):
        packed = await client.embeddings.create(model="e", input=["rs42", "rs43"])
        again = await client.embeddings.create(
            model="e", input=["rs42", "rs43"], encoding_format="float"
        )
    assert [each.index for each in packed.data] == [0, 1]
    for first, second in zip(packed.data, again.data, strict=True):
        assert first.embedding == pytest.approx(second.embedding)
    assert packed.data[0].embedding != packed.data[1].embedding
    assert packed.usage.prompt_tokens > 0


async def test_models_are_listed_and_one_is_looked_up() -> None:
    async with stand(models=("m", "n")) as (client, _endpoint):
        names = [model.id async for model in client.models.list()]
        assert (await client.models.retrieve("n")).id == "n"
        with pytest.raises(openai.NotFoundError, match="does not exist"):
            await client.models.retrieve("x")
    assert names == ["m", "n"]


def line(number: int, url: str = "/v1/chat/completions") -> bytes:
    text = f"What of rs{number}?"
    bodies: dict[str, dict[str, Any]] = {
        "/v1/chat/completions": {"messages": asking(text)},
        "/v1/embeddings": {"input": text},
        "/v1/responses": {"input": text},
    }
    order = {"custom_id": f"q{number}", "method": "POST", "url": url}
    return json.dumps({**order, "body": {"model": "m", **bodies[url]}}).encode()


@pytest.mark.parametrize("dialect", BATCHED)
async def test_a_file_is_kept_and_a_batch_of_it_is_answered_and_billed(
    dialect: str,
) -> None:
    async with stand(dialect, strict=dialect != "gemini-openai") as (client, endpoint):
        content = b"\n".join(line(number) for number in range(5))
        file = await client.files.create(file=("in.jsonl", content), purpose="batch")
        assert (await client.files.retrieve(file.id)).bytes == len(content)
        assert [each.id async for each in client.files.list()] == [file.id]
        assert (await client.files.content(file.id)).content == content
        created = await client.batches.create(
            input_file_id=file.id,
            endpoint="/v1/chat/completions",
            completion_window="24h",
        )
        batch = await client.batches.retrieve(created.id)
        assert [each.id async for each in client.batches.list()] == [batch.id]
        assert batch.status == "completed"
        assert batch.output_file_id is not None
        output = (await client.files.content(batch.output_file_id)).text
        assert (await client.files.delete(file.id)).deleted
        items = [
            each for each in endpoint.ledger.batch_lines if each.act is BatchAct.BILLED
        ]
        bill = endpoint.ledger.bill()
    results = {each["custom_id"]: each for each in map(json.loads, output.splitlines())}
    assert set(results) == {f"q{number}" for number in range(5)}
    for item in items:
        body = results[item.custom_id]["response"]["body"]
        assert body["usage"]["prompt_tokens"] == item.tokens_in
        assert item.tier == "batch"
    assert bill.cost_usd == bill.reported_usd > 0


@pytest.mark.parametrize("url", ["/v1/embeddings", "/v1/responses"])
async def test_batches_are_for_other_endpoints_too(url: Any) -> None:
    async with stand() as (client, _endpoint):
        content = b"\n".join(line(number, url) for number in range(3))
        file = await client.files.create(file=("in", content), purpose="batch")
        created = await client.batches.create(
            input_file_id=file.id, endpoint=url, completion_window="24h"
        )
        batch = await client.batches.retrieve(created.id)
        assert batch.request_counts is not None
        assert batch.request_counts.completed == 3


async def test_a_batch_is_cancelled() -> None:
    async with stand(batch_seconds=1000.0) as (client, _endpoint):
        file = await client.files.create(file=("in", line(1)), purpose="batch")
        created = await client.batches.create(
            input_file_id=file.id,
            endpoint="/v1/chat/completions",
            completion_window="24h",
        )
        assert (await client.batches.cancel(created.id)).status == "cancelling"


async def test_an_item_whose_parameters_are_refused_fails_alone() -> None:
    async with stand("openai-reasoning") as (client, endpoint):
        cold = json.loads(line(2))
        cold["body"]["temperature"] = 0.0
        content = line(1) + b"\n" + json.dumps(cold).encode()
        file = await client.files.create(file=("in", content), purpose="batch")
        created = await client.batches.create(
            input_file_id=file.id,
            endpoint="/v1/chat/completions",
            completion_window="24h",
        )
        batch = await client.batches.retrieve(created.id)
        assert batch.error_file_id is not None
        errors = (await client.files.content(batch.error_file_id)).text
        assert endpoint.ledger.bill().billed == 1
    assert "'temperature' does not support 0.0" in errors


async def test_a_response_that_reasoning_uses_up_is_incomplete() -> None:
    async with stand("responses") as (client, endpoint):
        long = "What of rs42?"
        whole = await client.responses.create(model="m", input=long)
        cut = await client.responses.create(model="m", input=long, max_output_tokens=16)
        events = [
            each.type
            async for each in await client.responses.create(
                model="m", input=long, stream=True
            )
        ]
        lines = endpoint.ledger.lines
    assert whole.status == "completed"
    assert "rs42" in whole.output_text
    assert cut.usage is not None
    assert cut.usage.output_tokens == lines[1].tokens_out <= 16
    if cut.usage.output_tokens_details.reasoning_tokens == 16:
        assert cut.output_text == ""
    assert cut.status == "incomplete"
    assert cut.incomplete_details is not None
    assert cut.incomplete_details.reason == "max_output_tokens"
    assert events[0] == "response.created"
    assert events[-1] == "response.completed"
    assert "response.output_text.delta" in events


async def test_a_cap_that_reasoning_uses_up_leaves_nothing_to_say() -> None:
    async with stand("openai-reasoning") as (client, endpoint):
        for number in range(20):
            await client.chat.completions.create(
                model="m", messages=asking(f"rs{number}?"), max_completion_tokens=8
            )
        lines = endpoint.ledger.lines
    spent = [line for line in lines if line.tokens_reasoning == 8]
    assert len(spent) > 5
    assert {line.finish for line in spent} == {"length"}
    assert all(line.tokens_out <= 8 for line in lines)


ERRORS: list[
    tuple[str, dict[str, Any], dict[str, Any], type[openai.APIStatusError], str]
]
ERRORS = [
    ("openai", {"rate_429": 1.0}, {}, openai.RateLimitError, "Rate limit reached"),
    ("openai", {"rate_5xx": 1.0}, {}, openai.InternalServerError, "Sorry about that"),
    ("openai", {"quota_usd": 0}, {}, openai.RateLimitError, "current quota"),
    ("openai", {"models": ("n",)}, {}, openai.NotFoundError, "`m` does not exist"),
    ("openai", {}, {"messages": []}, openai.BadRequestError, "empty array"),
    ("openai", {}, {"model": ""}, openai.BadRequestError, "provide a model"),
    (
        "openai-reasoning",
        {},
        {"temperature": 0.0},
        openai.BadRequestError,
        "'temperature' does not support 0.0 with this model",
    ),
    (
        "openai-reasoning",
        {},
        {"max_tokens": 9},
        openai.BadRequestError,
        "Use 'max_completion_tokens' instead",
    ),
    ("azure", {"rate_refuse": 1.0}, {}, openai.BadRequestError, "content_filter"),
    ("azure", {"rate_429": 1.0}, {}, openai.RateLimitError, "call rate limit"),
    ("anthropic", {"rate_5xx": 1.0}, {}, openai.InternalServerError, "overloaded"),
    ("gemini-openai", {"rate_429": 1.0}, {}, openai.RateLimitError, "RetryInfo"),
    ("xai", {}, {"stop": "x"}, openai.BadRequestError, "not supported on this model"),
    ("xai", {"models": ("n",)}, {}, openai.NotFoundError, "team does not have"),
    (
        "deepseek",
        {},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "a"}}},
        openai.BadRequestError,
        "response_format",
    ),
    (
        "mistral",
        {},
        {"max_completion_tokens": 9},
        openai.UnprocessableEntityError,
        "extra_forbidden",
    ),
    ("groq", {}, {"n": 2}, openai.BadRequestError, "at most 1"),
    ("openrouter", {"quota_usd": 0}, {}, openai.APIStatusError, "Insufficient credits"),
    ("openrouter", {"rate_5xx": 1.0}, {}, openai.InternalServerError, ""),
    ("vllm", {"models": ("n",)}, {}, openai.NotFoundError, "does not exist"),
    ("ollama", {"models": ("n",)}, {}, openai.NotFoundError, "'m' not found"),
    ("tgi", {}, {"temperature": 0.0}, openai.UnprocessableEntityError, "positive"),
    ("litellm-proxy", {"quota_usd": 0}, {}, openai.BadRequestError, "budget_exceeded"),
    ("responses", {}, {}, openai.NotFoundError, "only supported in v1/responses"),
]


@pytest.mark.parametrize(("dialect", "options", "asked", "error", "words"), ERRORS)
async def test_the_client_raises_the_error_that_is_meant(
    dialect: str,
    options: dict[str, Any],
    asked: dict[str, Any],
    error: type[openai.APIStatusError],
    words: str,
) -> None:
    values = {"model": "m", "messages": asking(), **asked}
    async with stand(dialect, **options) as (client, endpoint):
        with pytest.raises(error) as raised:
            await client.chat.completions.create(**values)
    assert words in raised.value.response.text or words in str(raised.value)
    assert endpoint.ledger.bill().cost_usd == 0


SYSTEM = {"role": "system", "content": "You read papers."}


@pytest.mark.parametrize(
    ("dialect", "status"),
    [("vllm", 400), ("llamacpp", 500), ("tgi", 422), ("gemini-openai", 400)],
)
async def test_a_template_without_a_system_role_refuses_it(
    dialect: str, status: int
) -> None:
    messages: Any = [SYSTEM, *asking()]
    async with stand(dialect, strict=False) as (client, _endpoint):
        with pytest.raises(openai.APIStatusError) as raised:
            await client.chat.completions.create(model="gemma-3", messages=messages)
        await client.chat.completions.create(model="gemma-3", messages=asking())
        await client.chat.completions.create(model="qwen-3", messages=messages)
    assert raised.value.status_code == status


@pytest.mark.parametrize(("dialect", "status"), [("llamacpp", 500), ("groq", 400)])
async def test_an_output_that_ends_inside_its_json_is_an_error_of_its_content(
    dialect: str, status: int
) -> None:
    schema: Any = {
        "type": "json_schema",
        "json_schema": {"name": "f", "schema": Finding.model_json_schema()},
    }
    async with stand(dialect, strict=False) as (client, endpoint):
        with pytest.raises(openai.APIStatusError) as raised:
            await client.chat.completions.create(
                model="m", messages=asking(), response_format=schema, max_tokens=2
            )
        assert endpoint.ledger.bill().cost_usd == 0
        await client.chat.completions.create(
            model="m", messages=asking(), response_format=schema
        )
    assert raised.value.status_code == status


async def test_a_key_is_asked_for_where_the_provider_asks_for_one() -> None:
    keyless: Any = {"Authorization": openai.Omit()}
    async with stand() as (client, _endpoint):
        with pytest.raises(openai.AuthenticationError):
            await client.chat.completions.create(
                model="m", messages=asking(), extra_headers=keyless
            )
