from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from runner.clients import ClientOptions
from runner.clients.client import ClientTally, Keyring
from runner.clients.http_client import HttpSender
from runner.clients.litellm_client import LiteLLMExchange
from runner.errors import ConnectionLost
from tests.wire_server import Said, WireServer, saying

pytestmark = pytest.mark.asyncio


@asynccontextmanager
async def exchanging(
    *replies: Said,
) -> AsyncIterator[tuple[WireServer, LiteLLMExchange]]:
    async with saying(*replies) as wire:
        sender = HttpSender(wire.url, ClientOptions(), Keyring())
        yield wire, LiteLLMExchange(lambda _url: sender, ClientTally())
        await sender.close()


def post(wire: WireServer, path: str = "/ask") -> httpx.Request:
    return httpx.Request("POST", wire.url + path, json={"question": 1})


async def test_a_request_made_again_gets_the_first_reply_and_is_not_sent() -> None:
    said = Said(body={"n": 1}, status=422), Said(body={"n": 2})
    async with exchanging(*said) as (wire, exchange):
        first = await exchange.send(post(wire))
        second = await exchange.send(post(wire))
    assert [reply.json() for reply in (first, second)] == [{"n": 1}, {"n": 1}]
    assert [reply.status_code for reply in (first, second)] == [422, 422]
    assert len(wire.heard) == 1
    assert exchange.status == 422


async def test_a_failure_is_a_reply_to_the_library_and_an_error_to_us() -> None:
    async with exchanging(Said(body=b"", resets=True)) as (wire, exchange):
        shown = [await exchange.send(post(wire)) for _ in range(2)]
    assert [reply.status_code for reply in shown] == [502, 502]
    assert isinstance(exchange.failure, ConnectionLost)
    assert exchange.status is None
    assert len(wire.heard) == 1


async def test_asking_how_far_a_job_is_may_go_on_and_the_last_reply_is_kept() -> None:
    said = [Said(body={"n": n}) for n in range(3)]
    async with exchanging(*said) as (wire, exchange):
        await exchange.send(post(wire, "/jobs"))
        for _ in range(2):
            await exchange.send(httpx.Request("GET", wire.url + "/jobs/1?key=k"))
    assert [heard.path for heard in wire.heard] == [
        "/jobs",
        "/jobs/1?key=k",
        "/jobs/1?key=k",
    ]
    assert exchange.body == b'{"n": 2}'
    assert exchange.endpoint == f"{wire.url}/jobs/1"


async def test_no_library_is_told_to_try_again_or_led_elsewhere() -> None:
    headers = {"location": "/there", "retry-after": "7", "x-request-id": "r"}
    said = Said(body={}, status=302, headers=headers)
    async with exchanging(said) as (wire, exchange):
        shown = await exchange.send(post(wire))
    assert shown.headers["x-should-retry"] == "false"
    assert not shown.has_redirect_location
    assert exchange.headers == {"retry-after": "7", "x-request-id": "r"}
