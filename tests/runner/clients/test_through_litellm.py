from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from runner import errors as e
from runner.clients import (
    Call,
    ClientOptions,
    ModelClient,
    Received,
    Secret,
    Timeouts,
    open_client,
)
from runner.clients.litellm_library import library
from runner.clients.through_litellm import MEANINGS
from runner.reply import Reply, Usage
from runner.request import ChatRequest, Message, Part, Schema
from runner.task import Task
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
from tests.wire_server import Said, WireServer, saying

pytestmark = pytest.mark.asyncio

KEY = "sk-canary/0123456789"
SCHEMA = {
    "type": "object",
    "properties": {"variants": {"type": "array", "items": {"type": "string"}}},
    "required": ["variants"],
    "additionalProperties": False,
}
REQUEST = ChatRequest(
    messages=(
        Message(role="system", parts=(Part(text="Be brief."),)),
        Message(
            role="user",
            parts=(Part(text="A paper. ", cache=True), Part(text="Which variants?")),
        ),
    ),
    max_tokens=10,
)


def call(request: ChatRequest = REQUEST) -> Call:
    task = Task(number=1, stage="extract", key="PMC1", model="m", replicate=1)
    return Call(task=task, request=request)


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key or address of the machine's, and none left behind."""
    kept = {n: v for n, v in os.environ.items() if "_API_" not in n}
    monkeypatch.setattr(os, "environ", kept)


@asynccontextmanager
async def talking(
    provider: Provider, *replies: Said, **options: object
) -> AsyncIterator[tuple[WireServer, ModelClient]]:
    """A provider on loopback that says *replies*, and the client for it."""
    async with saying(*replies) as wire:
        environment = {f"{provider.variables}_API_BASE": wire.url}
        values = {"api_key": Secret(KEY), "environment": environment} | options
        os.environ.pop(f"{provider.variables}_API_BASE", None)
        client = open_client(provider.model, ClientOptions(**values))  # type: ignore[arg-type]
        try:
            yield wire, client
        finally:
            await client.close()


async def ask(provider: Provider, *replies: Said, **options: object) -> Received:
    async with talking(provider, *replies, **options) as (_, client):
        return await client.call(call())


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
    parts = tuple(Part(text=f"{n}.", cache=True) for n in range(6))
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
@pytest.mark.parametrize(
    ("status", "message", "expected"),
    [
        (429, "slow down", e.RateLimited),
        (401, "no such key", e.AuthFailed),
        (403, "not allowed", e.AuthFailed),
        (400, "bad field", e.BadRequest),
        (404, "no such model", e.BadRequest),
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
    said = Said(body=body, status=status, headers={"retry-after": "50"})
    async with talking(provider, said) as (wire, client):
        # nobody waits out the 50 s in here: that is the engine's part
        async with asyncio.timeout(25):
            with pytest.raises(e.AttemptError) as raised:
                await client.call(call())
    error = raised.value
    assert type(error) is expected
    assert (error.status, error.retry_after_s) == (status, 50.0)
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
    assert len(wire.heard) == 1


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


async def test_no_answer_comes_from_a_cache_and_no_task_is_left() -> None:
    replies = [Said(body=ANTHROPIC.reply(text)) for text in ("a", "b")]
    async with talking(ANTHROPIC, *replies) as (_, client):
        texts = [(await client.call(call())).reply.text for _ in replies]
    assert texts == ["a", "b"]
    left = {task.get_coro().__qualname__ for task in asyncio.all_tasks()}
    assert not {name for name in left if "ogging" in name and "Worker" in name}


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
