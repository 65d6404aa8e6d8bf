"""What goes wrong behind litellm is one of our errors, asked once."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from runner import errors as e
from runner.clients import Timeouts
from runner.clients.litellm_client import MEANINGS, library
from tests.runner.clients.litellm_provider import REQUEST, ask, call, talking
from tests.wire_forms import ANTHROPIC, GEMINI, PROVIDERS, Provider
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
