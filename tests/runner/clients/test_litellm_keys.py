"""Keys and addresses of providers behind litellm: named, kept apart, never shown."""

from __future__ import annotations

import pytest

from runner import errors as e
from runner.clients import ClientOptions, Secret, open_client
from tests.runner.clients.litellm_provider import KEY, ask, call, talking
from tests.wire_forms import ANTHROPIC, DEEPSEEK, PROVIDERS, Provider
from tests.wire_server import Said, saying

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
