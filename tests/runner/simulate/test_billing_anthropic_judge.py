"""Anthropic's own client reads what the simulator says, strictly."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import Any

import anthropic
import httpx2
import pytest
from anthropic.types.messages.batch_create_params import Request

from runner.simulate.billing import BatchAct, LedgerLine
from runner.simulate.options import SimulateOptions
from runner.simulate.server import Simulated, simulated

pytestmark = pytest.mark.asyncio

NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

KEYS: list[dict[str, Any]] = [
    {"api_key": "sk-ant-canary-0123456789"},
    {
        "api_key": "unused",
        "default_headers": {
            "Authorization": anthropic.Omit(),
            "X-Api-Key": "sk-ant-canary-0123456789",
        },
    },
]
"""The client of 2026 sends its key as `Authorization: Bearer`, older ones did as
`x-api-key`."""


@asynccontextmanager
async def stand(
    dialect: str = "anthropic", key: dict[str, Any] = KEYS[0], **options: Any
) -> AsyncIterator[tuple[anthropic.AsyncAnthropic, Simulated]]:
    settings = SimulateOptions(dialect=dialect, bill_price="3,15,0.3,3.75,6", **options)
    async with (
        simulated(settings) as endpoint,
        anthropic.AsyncAnthropic(
            base_url=endpoint.base_url.removesuffix("/v1"),
            max_retries=0,
            http_client=httpx2.AsyncClient(verify=NO_TLS, trust_env=False),
            _strict_response_validation=True,
            **key,
        ) as client,
    ):
        yield client, endpoint


def asking(text: str = "What of rs42?") -> dict[str, Any]:
    said = {"role": "user", "content": text}
    return {"model": "claude-x", "max_tokens": 200, "messages": [said]}


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("dialect", ["anthropic", "plain"])
async def test_a_message_and_its_usage(dialect: str, key: dict[str, Any]) -> None:
    async with stand(dialect, key) as (client, endpoint):
        message = await client.messages.create(**asking())
        (line,) = endpoint.ledger.lines
    (block,) = message.content
    assert isinstance(block, anthropic.types.TextBlock)
    assert "rs42" in block.text
    assert message.stop_reason == "end_turn"
    assert message.usage.input_tokens == line.tokens_in > 0
    assert message.usage.output_tokens == line.tokens_out > 0
    assert message.usage.service_tier == "standard"
    assert line.authorized
    if dialect == "anthropic":
        assert message._request_id == line.request_id
        assert message.model == line.served_model == "claude-x-20250929"


async def test_a_stream_adds_up_to_the_message() -> None:
    text = "What of rs9923231, CYP2C9*3 and HLA-B*58:01?"
    async with stand() as (client, endpoint):
        async with client.messages.stream(**asking(text)) as stream:
            pieces = [piece async for piece in stream.text_stream]
            message = await stream.get_final_message()
        (line,) = endpoint.ledger.lines
    (block,) = message.content
    assert isinstance(block, anthropic.types.TextBlock)
    assert len(pieces) > 1
    assert block.text == "".join(pieces)
    assert message.usage.output_tokens == line.tokens_out
    assert message.usage.input_tokens == line.tokens_in


SCHEMA = {
    "type": "object",
    "properties": {"gene": {"type": "string"}, "effects": {"enum": ["up", "down"]}},
    "required": ["gene", "effects"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_a_tool_that_must_be_used_gets_its_input(is_streamed: bool) -> None:
    tool = {"name": "finding", "input_schema": SCHEMA}
    asked = {
        **asking(),
        "tools": [tool],
        "tool_choice": {"type": "tool", "name": "finding"},
    }
    async with stand() as (client, _endpoint):
        if is_streamed:
            async with client.messages.stream(**asked) as stream:
                message: Any = await stream.get_final_message()
        else:
            message = await client.messages.create(**asked)
    (block,) = message.content
    assert block.type == "tool_use"
    assert set(block.input) == {"gene", "effects"}
    assert message.stop_reason == "tool_use"


async def test_a_format_is_kept_to() -> None:
    form = {"format": {"type": "json_schema", "schema": SCHEMA}}
    async with stand() as (client, _endpoint):
        message = await client.messages.create(**asking(), output_config=form)
    (block,) = message.content
    assert isinstance(block, anthropic.types.TextBlock)
    assert block.text.startswith('{"gene":')


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_thinking_comes_first_and_is_billed_as_output(is_streamed: bool) -> None:
    asked: dict[str, Any] = {
        **asking(),
        "max_tokens": 4000,
        "thinking": {"type": "enabled", "budget_tokens": 2000},
    }
    async with stand() as (client, endpoint):
        if is_streamed:
            async with client.messages.stream(**asked) as stream:
                message: Any = await stream.get_final_message()
        else:
            message = await client.messages.create(**asked)
        (line,) = endpoint.ledger.lines
    assert [block.type for block in message.content] == ["thinking", "text"]
    assert message.content[0].signature
    assert line.tokens_reasoning > 0
    assert message.usage.output_tokens == line.tokens_out > line.tokens_reasoning


def rule(usage: anthropic.types.Usage) -> Decimal:
    """Anthropic's price list, applied to what its client read."""
    created = usage.cache_creation
    assert created is not None
    return (
        usage.input_tokens * 3
        + usage.output_tokens * 15
        + (usage.cache_read_input_tokens or 0) * Decimal("0.3")
        + created.ephemeral_5m_input_tokens * Decimal("3.75")
        + created.ephemeral_1h_input_tokens * 6
    ) / Decimal(1_000_000)


@pytest.mark.parametrize("ttl", ["5m", "1h"])
async def test_reads_and_writes_of_the_cache_are_billed_beside_the_input(
    ttl: str,
) -> None:
    mark = {"type": "ephemeral", "ttl": ttl}
    lines: list[LedgerLine] = []
    async with stand(cache_least=10) as (client, endpoint):
        for number in range(20):
            part = {
                "type": "text",
                "text": f"The paper number {number} is about rs42." * 20,
                "cache_control": mark,
            }
            message = await client.messages.create(**asking(), system=[part])  # type: ignore[list-item]
            usage, line = message.usage, endpoint.ledger.lines[-1]
            assert rule(usage) == Decimal(line.cost_usd)
            assert line.tokens_in == usage.input_tokens + (
                usage.cache_read_input_tokens or 0
            ) + (usage.cache_creation_input_tokens or 0)
            lines.append(line)
        bill = endpoint.ledger.bill()
    assert bill.tokens_cached > 0
    assert bill.tokens_cache_write > 0
    hours = bill.tokens_cache_write if ttl == "1h" else 0
    assert bill.tokens_cache_write_1h == hours
    assert bill.cost_usd == bill.reported_usd == sum(Decimal(x.cost_usd) for x in lines)


def order(number: int, **params: Any) -> Request:
    asked: Any = {**asking(f"What of rs{number}?"), **params}
    return Request(custom_id=f"q{number}", params=asked)


@pytest.mark.parametrize("key", KEYS)
async def test_a_batch_is_answered_and_billed_at_half_the_price(
    key: dict[str, Any],
) -> None:
    async with stand(key=key) as (client, endpoint):
        created = await client.messages.batches.create(
            requests=[*map(order, range(4)), order(4, temperature=7)]
        )
        batch = await client.messages.batches.retrieve(created.id)
        assert [each.id async for each in client.messages.batches.list()] == [batch.id]
        results = {
            each.custom_id: each.result
            async for each in await client.messages.batches.results(created.id)
        }
        items = [
            each for each in endpoint.ledger.batch_lines if each.act is BatchAct.BILLED
        ]
    assert batch.processing_status == "ended"
    assert batch.request_counts.succeeded == len(items) == 4
    assert batch.request_counts.errored == 1
    assert results["q4"].type == "errored"
    for item in items:
        result = results[item.custom_id]
        assert result.type == "succeeded"
        usage = result.message.usage
        assert usage.service_tier == "batch"
        assert rule(usage) / 2 == Decimal(item.cost_usd) > 0


async def test_a_batch_is_cancelled() -> None:
    async with stand(batch_seconds=1000.0) as (client, _endpoint):
        created = await client.messages.batches.create(requests=[order(1)])
        cancelled = await client.messages.batches.cancel(created.id)
    assert cancelled.processing_status == "canceling"


async def test_a_prompt_that_is_refused_ends_so() -> None:
    async with stand(rate_refuse=1.0) as (client, _endpoint):
        message = await client.messages.create(**asking())
    assert message.stop_reason == "refusal"


async def test_an_output_that_is_cut_ends_so() -> None:
    asked = {**asking(), "max_tokens": 3}
    async with stand() as (client, endpoint):
        message = await client.messages.create(**asked)
        (line,) = endpoint.ledger.lines
    assert message.stop_reason == "max_tokens"
    assert message.usage.output_tokens == line.tokens_out <= 3


@pytest.mark.parametrize(
    ("options", "asked", "error", "words"),
    [
        ({"rate_429": 1.0}, {}, anthropic.RateLimitError, "rate limit"),
        ({"quota_usd": 0}, {}, anthropic.BadRequestError, "credit balance is too low"),
        ({"models": ("n",)}, {}, anthropic.NotFoundError, "model: claude-x"),
        ({}, {"messages": []}, anthropic.BadRequestError, "at least one message"),
        (
            {},
            {"extra_body": {"temperature": 1.5}},
            anthropic.BadRequestError,
            "range: 0..1",
        ),
        ({}, {"extra_body": {"seed": 1}}, anthropic.BadRequestError, "Extra inputs"),
        (
            {},
            {"thinking": {"type": "enabled", "budget_tokens": 1024}},
            anthropic.BadRequestError,
            "thinking.budget_tokens",
        ),
    ],
)
async def test_the_client_raises_the_error_that_is_meant(
    options: dict[str, Any],
    asked: dict[str, Any],
    error: type[anthropic.APIStatusError],
    words: str,
) -> None:
    async with stand(**options) as (client, endpoint):
        with pytest.raises(error, match=words) as raised:
            await client.messages.create(**{**asking(), **asked})
    assert isinstance(raised.value.body, dict)
    assert raised.value.body["type"] == "error"
    assert endpoint.ledger.bill().cost_usd == 0


async def test_server_errors_are_overloads_and_others() -> None:
    seen = set()
    async with stand(rate_5xx=1.0) as (client, _endpoint):
        for number in range(20):
            with pytest.raises(anthropic.InternalServerError) as raised:
                await client.messages.create(**asking(f"rs{number}"))
            seen.add((raised.value.status_code, type(raised.value).__name__))
    assert {status for status, _ in seen} == {500, 529}


async def test_a_request_without_a_key_is_turned_away() -> None:
    headers: Any = {"Authorization": anthropic.Omit()}
    async with stand() as (client, _endpoint):
        with pytest.raises(anthropic.AuthenticationError, match="x-api-key"):
            await client.messages.create(**asking(), extra_headers=headers)


@pytest.mark.parametrize(
    ("name", "value"), [("temperature", 0), ("top_p", 1), ("top_k", 5)]
)
async def test_new_models_refuse_how_they_sample(name: str, value: float) -> None:
    async with stand() as (client, _endpoint):
        new = {**asking(), "model": "claude-opus-4-8"}
        await client.messages.create(**new, extra_body={"temperature": 1})
        await client.messages.create(**asking(), extra_body={name: value})
        with pytest.raises(anthropic.BadRequestError, match="is deprecated for this"):
            await client.messages.create(**new, extra_body={name: value})


async def test_limits_come_in_headers_with_times() -> None:
    async with stand(rps=2.0, tpm=9000.0, limit_headers=True) as (client, _endpoint):
        raw = await client.messages.with_raw_response.create(**asking())
        headers = raw.headers
    assert headers["anthropic-ratelimit-requests-limit"] == "120"
    assert headers["anthropic-ratelimit-input-tokens-limit"] == "9000"
    assert headers["anthropic-ratelimit-tokens-reset"].endswith("Z")
