from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from runner import errors as e
from runner.messages import Message, Reply, Schema, TextPart, Usage
from tests.runner.clients.litellm_provider import (
    KEY,
    REQUEST,
    SCHEMA,
    ask,
    call,
    talking,
)
from tests.wire_forms import (
    ANTHROPIC,
    DEEPSEEK,
    GEMINI,
    NVIDIA,
    PROVIDERS,
    TOKENS_CACHED,
    TOKENS_IN,
    TOKENS_OUT,
    Provider,
)
from tests.wire_server import Said

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("bare_environment")]


@pytest.mark.parametrize(
    ("provider", "reason"),
    [
        (provider, reason)
        for provider in PROVIDERS
        for reason in ("stop", "length", "content_filter")
        if (provider, reason) != (GEMINI, "content_filter")  # see below
    ],
)
async def test_an_answer_has_text_reason_and_tokens_with_the_cached_ones_apart(
    provider: Provider, reason: str
) -> None:
    said = Said(body=provider.reply("rs1 é\n", reason))
    received = await ask(provider, said)
    assert received.reply == Reply(
        text="rs1 é\n",
        finish_reason=reason,
        usage=Usage(
            tokens_in=TOKENS_IN, tokens_out=TOKENS_OUT, tokens_cached=TOKENS_CACHED
        ),
    )
    assert received.status == 200


@pytest.mark.parametrize("provider", PROVIDERS, ids=repr)
async def test_the_reply_as_it_came_lies_in_what_is_stored(provider: Provider) -> None:
    received = await ask(provider, Said(body=provider.reply()))
    assert json.loads(received.body)["received"] == provider.reply()


async def test_what_geminis_filter_stopped_is_an_answer_and_its_text_is_stored() -> (
    None
):
    stopped = GEMINI.reply("rs1", "content_filter")
    received = await ask(GEMINI, Said(body=stopped))
    assert received.reply.finish_reason == "content_filter"
    usage = received.reply.usage
    assert usage is not None
    assert (usage.tokens_in, usage.tokens_out) == (TOKENS_IN, TOKENS_OUT)
    assert received.reply.text == ""  # litellm takes it out
    assert json.loads(received.body)["received"] == stopped


async def test_a_prompt_that_gemini_blocks_is_an_answer_with_its_tokens() -> None:
    blocked = {
        "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
        "usageMetadata": {"promptTokenCount": 5, "totalTokenCount": 5},
    }
    received = await ask(GEMINI, Said(body=blocked))
    assert received.reply == Reply(
        text="", finish_reason="content_filter", usage=Usage(tokens_in=5, tokens_out=0)
    )


@pytest.mark.parametrize("provider", PROVIDERS, ids=repr)
async def test_the_headers_that_matter_are_kept(provider: Provider) -> None:
    headers = {"x-ratelimit-remaining-requests": "7", "request-id": "r", "date": "now"}
    received = await ask(provider, Said(body=provider.reply(), headers=headers))
    assert received.headers == {
        "request-id": "r",
        "x-ratelimit-remaining-requests": "7",
    }


@pytest.mark.parametrize("provider", PROVIDERS, ids=repr)
async def test_a_request_goes_once_to_the_place_of_its_form_with_the_key_in_a_header(
    provider: Provider,
) -> None:
    async with talking(provider, Said(body=provider.reply())) as (wire, client):
        await client.call(call())
    (heard,) = wire.heard
    assert heard.path == provider.path
    assert [name for name, value in heard.headers.items() if KEY in value]
    for text in ("Be brief.", "A paper. ", "Which variants?"):
        assert text in json.dumps(heard.body)


async def test_only_claude_is_told_where_its_prompt_cache_may_end() -> None:
    async with talking(ANTHROPIC, Said(body=ANTHROPIC.reply())) as (wire, client):
        await client.call(call())
    (message,) = wire.heard[0].body["messages"]
    assert message["content"] == [
        {
            "type": "text",
            "text": "A paper. ",
            "cache_control": {"type": "ephemeral"},
        },
        {"type": "text", "text": "Which variants?"},
    ]
    for other in (GEMINI, DEEPSEEK, NVIDIA):
        async with talking(other, Said(body=other.reply())) as (wire, client):
            await client.call(call())
        assert "cache_control" not in json.dumps(wire.heard[0].body)


async def test_no_more_breakpoints_are_set_than_anthropic_takes_the_last_ones() -> None:
    parts = tuple(TextPart(text=f"{n}.", cache=True) for n in range(6))
    request = replace(REQUEST, messages=(Message(role="user", parts=parts),))
    async with talking(ANTHROPIC, Said(body=ANTHROPIC.reply())) as (wire, client):
        await client.call(call(request))
    (message,) = wire.heard[0].body["messages"]
    marked = [block["text"] for block in message["content"] if "cache_control" in block]
    assert marked == ["2.", "3.", "4.", "5."]


@pytest.mark.parametrize(
    ("provider", "structured", "is_sent"),
    [
        (ANTHROPIC, True, True),
        (GEMINI, True, True),
        (DEEPSEEK, True, True),
        (ANTHROPIC, False, False),
        (GEMINI, False, False),
        (NVIDIA, True, False),  # litellm does not know the model
    ],
)
async def test_a_schema_goes_where_litellm_says_the_model_takes_it(
    provider: Provider, *, structured: bool, is_sent: bool
) -> None:
    schema = Schema(name="answer", json=json.dumps(SCHEMA))
    said = Said(body=provider.reply('{"variants": []}'))
    async with talking(provider, said, structured=structured) as (wire, client):
        received = await client.call(call(replace(REQUEST, schema=schema)))
    assert ('"variants"' in json.dumps(wire.heard[0].body)) is is_sent
    assert json.loads(received.reply.text) == {"variants": []}


async def test_a_temperature_that_is_left_to_the_endpoint_is_not_sent() -> None:
    said = Said(body=DEEPSEEK.reply())
    async with talking(DEEPSEEK, said) as (wire, client):
        await client.call(call())
        await client.call(call(replace(REQUEST, temperature=None)))
    first, second = (heard.body for heard in wire.heard)
    assert first.get("temperature") == 0.0
    assert "temperature" not in second


@pytest.mark.parametrize("provider", PROVIDERS, ids=repr)
async def test_calls_at_the_same_time_do_not_meet(provider: Provider) -> None:
    replies = [Said(body=provider.reply(f"rs{n}")) for n in range(8)]
    bad = Said(body=provider.refuse("oh"), status=500)
    async with talking(provider, *replies, bad) as (wire, client):
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(client.call(call())) for _ in replies]
        with pytest.raises(e.ServerError):
            await client.call(call())
        figures = client.statistics()
    texts = {task.result().reply.text for task in tasks}
    assert texts == {f"rs{n}" for n in range(8)}
    assert (figures.answered, figures.failed, figures.in_flight) == (8, 1, 0)
    assert figures.bytes_received > 0
    assert figures.bytes_sent == sum(
        int(heard.headers["content-length"]) for heard in wire.heard
    )


async def test_no_answer_comes_from_a_cache_and_no_task_is_left() -> None:
    replies = [Said(body=ANTHROPIC.reply(text)) for text in ("a", "b")]
    async with talking(ANTHROPIC, *replies) as (_, client):
        texts = [(await client.call(call())).reply.text for _ in replies]
    assert texts == ["a", "b"]
    left = {task.get_coro().__qualname__ for task in asyncio.all_tasks()}
    assert not {name for name in left if "ogging" in name and "Worker" in name}
