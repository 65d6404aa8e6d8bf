"""OpenAI's batches of requests in the Responses form."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web

from runner.batch.batch import ItemOutcome
from runner.batch.client import open_endpoint
from runner.clients.client import ClientOptions, Received
from runner.clients.wire_openai import OPENAI_CHAT, OPENAI_RESPONSES, encode_reply
from runner.clients.wire_shared import Shape
from runner.errors import ServerError
from runner.messages import ChatRequest, Message, TextPart
from tests.wire_forms import openai_response, response_message, response_text

pytestmark = pytest.mark.asyncio

REQUEST = ChatRequest(
    messages=(Message(role="user", parts=(TextPart(text="Say 'hello'."),)),),
    max_tokens=16,
)
ERROR = {"code": "server_error", "message": "try again"}
BODIES: dict[str, Any] = {
    "siftlog-x-1": openai_response(response_message(response_text("hello"))),
    "siftlog-x-2": openai_response(status="failed", error=ERROR, usage=None),
    # a batch that an earlier process made in the other form
    "siftlog-x-3": json.loads(encode_reply("hello")),
}


@dataclass
class Provider:
    """Answers any batch at once, with `BODIES`."""

    uploaded: bytes = b""
    created: dict[str, Any] = field(default_factory=dict)
    url: str = ""

    async def upload(self, request: web.Request) -> web.Response:
        self.uploaded = await request.read()
        return web.json_response({"id": "file-1"})

    async def create(self, request: web.Request) -> web.Response:
        self.created = await request.json()
        return web.json_response({"id": "batch-1"})

    async def look(self, _request: web.Request) -> web.Response:
        batch = {"id": "batch-1", "status": "completed", "output_file_id": "file-2"}
        return web.json_response(batch)

    async def content(self, _request: web.Request) -> web.Response:
        lines = [
            {"custom_id": name, "response": {"status_code": 200, "body": body}}
            for name, body in BODIES.items()
        ]
        return web.Response(text="".join(json.dumps(line) + "\n" for line in lines))


@asynccontextmanager
async def serving() -> AsyncIterator[Provider]:
    provider = Provider()
    app = web.Application()
    app.router.add_post("/v1/files", provider.upload)
    app.router.add_post("/v1/batches", provider.create)
    app.router.add_get("/v1/batches/batch-1", provider.look)
    app.router.add_get("/v1/files/file-2/content", provider.content)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    provider.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield provider
    finally:
        await runner.cleanup()


async def test_a_batch_is_made_of_responses_and_read_by_what_each_answer_is() -> None:
    async with serving() as provider:
        options = ClientOptions(base_url=provider.url, api="responses")
        endpoint = open_endpoint("openai/m", options)
        body = endpoint.encode(REQUEST, Shape())
        items = [(name, body) for name in BODIES]
        file = await endpoint.upload("siftlog-x", items)
        batch_id = await endpoint.create("siftlog-x", items, file)
        standing = await endpoint.poll(batch_id)
        found: dict[str, ItemOutcome] = {
            item: outcome
            async for item, outcome in endpoint.results(batch_id, standing)
        }
        await endpoint.close()
    assert provider.created["endpoint"] == "/v1/responses"
    assert b'"url":"/v1/responses"' in provider.uploaded
    assert b'"max_output_tokens":16' in provider.uploaded
    answered, failed, other = found.values()
    assert isinstance(answered, Received)
    assert (answered.form, answered.reply.text) == (OPENAI_RESPONSES, "hello")
    assert isinstance(failed, ServerError)
    assert failed.status == 200
    assert isinstance(other, Received)
    assert (other.form, other.reply.text) == (OPENAI_CHAT, "hello")
