"""A provider on loopback, and the client that reaches it through litellm."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from runner.clients import (
    Call,
    ClientOptions,
    ModelClient,
    Received,
    Secret,
    open_client,
)
from runner.job import Task
from runner.messages import ChatRequest, Message, Request, TextPart
from tests.wire_forms import Provider
from tests.wire_server import Said, WireServer, saying

KEY = "sk-canary/0123456789"


SCHEMA = {
    "type": "object",
    "properties": {"variants": {"type": "array", "items": {"type": "string"}}},
    "required": ["variants"],
    "additionalProperties": False,
}


REQUEST = ChatRequest(
    messages=(
        Message(role="system", parts=(TextPart(text="Be brief."),)),
        Message(
            role="user",
            parts=(
                TextPart(text="A paper. ", cache=True),
                TextPart(text="Which variants?"),
            ),
        ),
    ),
    max_tokens=10,
)


def call(request: Request = REQUEST) -> Call:
    task = Task(number=1, stage="extract", key="PMC1", model="m", replicate=1)
    return Call(task=task, request=request)


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
