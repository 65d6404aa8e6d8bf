"""A list of batches is read page by page, as far back as the batch may stand."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web

from runner.batch.batch import BatchQuery
from runner.batch.client import open_endpoint
from runner.batch.openai import METADATA, SKEW_S
from tests.wire_forms import batches_at

pytestmark = pytest.mark.asyncio

SENT_S = 1_700_000_000.0
KEY = "siftlog-x-y"
PATHS = {"openai": "/v1/batches", "anthropic": "/v1/messages/batches"}
CURSORS = {"openai": "after", "anthropic": "after_id"}


def _batch(form: str, batch_id: str, created_s: float) -> dict[str, Any]:
    if form == "openai":
        key = KEY if batch_id == "ours" else "another"
        return {"id": batch_id, "created_at": created_s, "metadata": {METADATA: key}}
    return {
        "id": batch_id,
        "processing_status": "ended",
        "request_counts": {"succeeded": 1},
        "created_at": datetime.fromtimestamp(created_s, UTC).isoformat(),
    }


@asynccontextmanager
async def _listing(
    form: str, pages: Mapping[str, Sequence[tuple[str, float]]]
) -> AsyncIterator[tuple[str, list[str]]]:
    """A provider whose list has *pages*, by the id that each comes after."""
    asked: list[str] = []

    async def handle(request: web.BaseRequest) -> web.Response:
        if request.path.endswith("/results"):
            whose = KEY if "/ours/" in request.path else "siftlog-x-other"
            said = {"custom_id": f"{whose}-1-a", "result": {"type": "expired"}}
            return web.Response(text=json.dumps(said))
        assert request.path == PATHS[form]
        after = request.query.get(CURSORS[form], "")
        asked.append(after)
        page = pages[after]
        data = [_batch(form, each, created_s) for each, created_s in page]
        has_more = page[-1][0] in pages
        return web.Response(text=json.dumps({"data": data, "has_more": has_more}))

    server = web.ServerRunner(web.Server(handle))
    await server.setup()
    try:
        await web.TCPSite(server, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{server.addresses[0][1]}", asked
    finally:
        await server.cleanup()


async def _found(form: str, url: str) -> str | None:
    endpoint = open_endpoint(f"{form}/m", batches_at(form, url))
    sought = BatchQuery(key=KEY, requests=1, prepared_us=int(SENT_S * 1e6))
    found = await endpoint.find(sought)
    await endpoint.close()
    return found.id


@pytest.mark.parametrize("form", PATHS)
async def test_a_batch_on_a_later_page_is_found(form: str) -> None:
    behind_s = SENT_S - SKEW_S / 2
    pages = {
        "": [("a", SENT_S + 20), ("b", SENT_S + 10)],
        "b": [("c", SENT_S + 5), ("d", behind_s)],
        "d": [("e", behind_s - 1), ("ours", behind_s - 2)],
    }
    async with _listing(form, pages) as (url, asked):
        assert await _found(form, url) == "ours"
    assert asked == ["", "b", "d"]


@pytest.mark.parametrize("form", PATHS)
async def test_what_was_made_long_before_is_not_looked_through(form: str) -> None:
    long_ago_s = SENT_S - SKEW_S - 1
    pages = {
        "": [("a", SENT_S + 20), ("b", long_ago_s)],
        "b": [("c", long_ago_s - 1)],
    }
    async with _listing(form, pages) as (url, asked):
        assert await _found(form, url) is None
    assert asked == [""]


@pytest.mark.parametrize("form", PATHS)
async def test_the_last_page_is_the_end(form: str) -> None:
    async with _listing(form, {"": [("a", SENT_S)]}) as (url, asked):
        assert await _found(form, url) is None
    assert asked == [""]
