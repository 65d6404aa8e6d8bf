"""What goes wrong behind litellm is one of our errors, asked once."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.kit.inputs.pdf import page_images
from runner import errors as e
from runner.clients import Timeouts
from runner.clients.litellm_client import MEANINGS, library
from runner.messages import Message, Reply, Schema, TextPart, Usage
from tests.pdf_pages import pdf
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


@pytest.mark.parametrize("provider", PROVIDERS, ids=repr)
@pytest.mark.parametrize(
    ("status", "message", "expected"),
    [
        (429, "slow down", e.RateLimited),
        (401, "no such key", e.AuthFailed),
        (403, "not allowed", e.AuthFailed),
        (400, "bad field", e.BadRequest),
        (404, "no such model", e.NotServed),
        (422, "bad value", e.BadRequest),
        (400, "prompt is too long: 2 tokens > 1 maximum", e.ContextTooLong),
        (500, "oh", e.ServerError),
        (502, "oh", e.ServerError),
        (503, "busy", e.Overloaded),
        (529, "overloaded", e.Overloaded),
        (302, "elsewhere", e.BadRequest),
    ],
)
async def test_a_refusal_is_one_of_our_errors_and_asked_once(
    provider: Provider, status: int, message: str, expected: type[e.AttemptError]
) -> None:
    body = provider.refuse(message)
    said = Said(body=body, status=status, headers={"retry-after": "3000"})
    async with talking(provider, said) as (wire, client):
        # nobody waits out the 3000 s in here: that is the engine's part
        async with asyncio.timeout(100):
            with pytest.raises(e.AttemptError) as raised:
                await client.call(call())
    error = raised.value
    assert type(error) is expected
    assert (error.status, error.retry_after_s) == (status, 3000.0)
    assert json.loads(error.body or b"") == body
    assert message in str(error)
    assert wire.url in str(error)
    assert len(wire.heard) == 1


@pytest.mark.parametrize(
    ("provider", "message", "expected"),
    [
        (GEMINI, "API key not valid. Please pass a valid API key.", e.AuthFailed),
        (
            GEMINI,
            "The input token count (9) exceeds the maximum number of tokens allowed",
            e.ContextTooLong,
        ),
        (ANTHROPIC, "prompt: length 9 exceeds context window", e.ContextTooLong),
    ],
)
async def test_what_only_litellm_knows_of_a_providers_words_counts(
    provider: Provider, message: str, expected: type[e.AttemptError]
) -> None:
    with pytest.raises(e.AttemptError) as raised:
        await ask(provider, Said(body=provider.refuse(message), status=400))
    assert type(raised.value) is expected


async def test_what_litellm_will_not_even_send_is_a_bad_request() -> None:
    async with talking(ANTHROPIC, Said(body=ANTHROPIC.reply())) as (wire, client):
        with pytest.raises(
            e.BadRequest, match="anthropic/claude-sonnet-4-5: "
        ) as raised:
            await client.call(call(replace(REQUEST, messages=())))
    assert not wire.heard
    assert raised.value.status is None


async def test_every_exception_that_litellm_raises_for_a_call_has_a_meaning() -> None:
    kinds = [
        kind
        for kind in vars(library().exceptions).values()
        if isinstance(kind, type)
        and issubclass(kind, library().exceptions.openai.APIError)
    ]
    assert len(kinds) > 15
    for kind in kinds:
        assert any(base.__name__ in MEANINGS for base in kind.__mro__), kind


@pytest.mark.parametrize("provider", PROVIDERS, ids=repr)
@pytest.mark.parametrize("body", [b"<html>", b"", b"[]", b"{}", b'{"choices": []}'])
async def test_a_body_that_is_not_of_the_form_is_malformed_and_kept(
    provider: Provider, body: bytes
) -> None:
    with pytest.raises(e.MalformedReply) as raised:
        await ask(provider, Said(body=body))
    assert (raised.value.status, raised.value.body) == (200, body)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 500


@pytest.mark.parametrize("provider", PROVIDERS, ids=repr)
async def test_a_lost_connection_is_not_asked_again_behind_our_back(
    provider: Provider,
) -> None:
    said = Said(body=b"", resets=True), Said(body=provider.reply())
    async with talking(provider, *said) as (wire, client):
        with pytest.raises(e.ConnectionLost, match="connection broke"):
            await client.call(call())
        assert len(wire.heard) == 1
        assert (await client.call(call())).reply.text == "rs1"


@pytest.mark.parametrize("provider", PROVIDERS, ids=repr)
@pytest.mark.parametrize(
    ("timeouts", "words"),
    [
        (Timeouts(silence_s=0.05), "no byte in time"),
        (Timeouts(total_s=0.05), "not whole in time"),
    ],
)
async def test_silence_and_slowness_are_timeouts_that_say_which(
    provider: Provider, timeouts: Timeouts, words: str
) -> None:
    async with talking(provider, Said(body=b"", hangs=True), timeouts=timeouts) as (
        wire,
        client,
    ):
        with pytest.raises(e.Timeout, match=words):
            await client.call(call())
    # on a machine that stands still it is over before anything was sent
    assert len(wire.heard) <= 1


async def test_a_reply_longer_than_allowed_is_cut_off() -> None:
    with pytest.raises(e.MalformedReply, match="more than 100 bytes"):
        await ask(ANTHROPIC, Said(body=b"x" * 1000), max_reply_bytes=100)


async def test_a_call_cancelled_from_outside_stays_cancelled_and_counts_as_none() -> (
    None
):
    async with talking(GEMINI, Said(body=b"", hangs=True)) as (_, client):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await client.call(call())
        figures = client.statistics()
    assert (figures.in_flight, figures.answered, figures.failed) == (0, 0, 0)


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


@pytest.mark.parametrize("provider", [ANTHROPIC, GEMINI], ids=repr)
async def test_an_image_reaches_the_provider_through_litellm(
    provider: Provider, tmp_path: Path
) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(pdf(["There were 40 plots."]))
    (page,) = page_images(path, dpi=30)
    asked = call()
    message = Message(role="user", parts=(TextPart(text="How many plots?"), page))
    asked = replace(asked, request=replace(asked.request, messages=(message,)))
    async with talking(provider, Said(body=provider.reply())) as (wire, client):
        await client.call(asked)
    body = json.dumps(wire.heard[0].body)
    assert page.base64 in body
    assert "image/png" in body
