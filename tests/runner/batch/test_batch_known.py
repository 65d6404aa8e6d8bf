"""What a log says of the batches that earlier processes have left.

A list of batches is read page by page, as far back as the batch may stand. OpenAI's
batches of requests in the Responses form.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from runner.batch.batch import BatchCancellation, BatchQuery, BatchSearch, ItemOutcome
from runner.batch.client import PendingBatches, open_endpoint, pending_batches
from runner.batch.openai import METADATA, SKEW_S
from runner.clients.client import ClientOptions, Received
from runner.clients.wire_openai import OPENAI_CHAT, OPENAI_RESPONSES, encode_reply
from runner.clients.wire_shared import Shape
from runner.errors import ServerError
from runner.messages import ChatRequest, Message, TextPart
from store.clock import SystemClock
from store.database import open_reader
from store.events import (
    AttemptStarted,
    BatchCancelled,
    BatchCreated,
    BatchEnded,
    BatchItem,
    BatchPrepared,
    Entry,
    Event,
    batch_bytes,
)
from store.log.sqlite import SqliteLog
from store.read.tasks import events
from store.runs import RunFolder
from tests.runner.batch.batch_provider import FakeBatches
from tests.store.logs import create
from tests.wire_forms import (
    batches_at,
    openai_response,
    response_message,
    response_text,
)

pytestmark = pytest.mark.asyncio


def _prepared(key: str, *tasks: int, model: str = "m") -> Entry:
    event = BatchPrepared(batch=key, model=model, form="openai", requests=len(tasks))
    items = [BatchItem(task, 1, f"{key}-{task}-x") for task in tasks]
    return Entry(event=event, payload=batch_bytes(items))


def _created(key: str) -> Event:
    return BatchCreated(batch=key, id=f"id-of-{key}")


def _ended(key: str, outcome: str) -> Event:
    return BatchEnded(batch=key, outcome=outcome, requests=1)


async def _log(folder: Path, *entries: Entry | Event) -> RunFolder:
    run = RunFolder(folder / "r")
    run.path.mkdir()
    async with await create(run.log) as log:
        await log.append(*entries)
    return run


def _left(run: RunFolder, tasks: Collection[int]) -> PendingBatches:
    starts = [
        AttemptStarted(task=task, attempt=1, request_sha256="0" * 64, batched=True)
        for task in tasks
    ]
    with open_reader(run.log) as reader:
        return pending_batches(reader, starts)


async def test_an_attempt_waits_in_the_last_batch_that_may_have_it(
    tmp_path: Path,
) -> None:
    run = await _log(
        tmp_path,
        _prepared("done", 9),
        _created("done"),
        _ended("done", "completed"),
        _prepared("again", 1, 2),
        _prepared("never", 3, 4, 5),
        _ended("never", "missing"),
        _prepared("there", 2, 3),
        _created("there"),
        # under the key that it had, for all of it is sent as it was
        _ended("again", "missing"),
        _prepared("again", 1, 2),
        _prepared("other", 8, model="n"),
    )
    left = _left(run, [1, 2, 3, 4, 8])
    assert [(each.key, each.id, sorted(each.open)) for each in left.of("m")] == [
        ("again", None, [(1, 1), (2, 1)]),
        ("there", "id-of-there", [(3, 1)]),
    ]
    assert [each.key for each in left.of("n")] == ["other"]
    # in no batch that came to be: of 4, nothing was sent
    assert left.ids == {"id-of-done", "id-of-there"}
    (items,) = (each.items for each in left.of("m") if each.key == "there")
    assert [item.id for item in items] == ["there-2-x", "there-3-x"]


class _Silent(FakeBatches):
    """Does not say yet which batch is whose."""

    def __init__(self) -> None:
        self.cancelled: list[str] = []
        self.sought: list[BatchQuery] = []

    async def find(self, sought: BatchQuery) -> BatchSearch:
        self.sought.append(sought)
        return BatchSearch(is_settled=False)

    async def cancel(self, batch_id: str) -> None:
        self.cancelled.append(batch_id)


async def test_only_what_is_open_is_cancelled_and_what_is_not_found_is_told_of(
    tmp_path: Path,
) -> None:
    run = await _log(
        tmp_path,
        _prepared("done", 9),
        _created("done"),
        _ended("done", "completed"),
        _prepared("there", 2, 3),
        _created("there"),
        _prepared("doubtful", 1),
    )
    endpoint, told = _Silent(), list[str]()
    async with await SqliteLog.open(
        run.log, clock=SystemClock(), owner="somebody"
    ) as log:
        cancelling = BatchCancellation(
            folder=run,
            log=log,
            clock=SystemClock(),
            endpoints={"m": endpoint},
            settle_s=0.0,
            notify=told.append,
        )
        await cancelling.cancel("me")
    assert endpoint.cancelled == ["id-of-there"]
    (sought,) = endpoint.sought
    assert (sought.key, set(sought.others)) == (
        "doubtful",
        {"id-of-done", "id-of-there"},
    )
    (said,) = told
    assert "Batch doubtful of m may still be open" in said
    with open_reader(run.log) as reader:
        _, *recorded = events(reader, kinds=["batch_cancelled", "batch_ended"])
    assert [each.event for each in recorded] == [
        BatchCancelled(batch="there", by="me"),
        BatchEnded(batch="there", outcome="cancelled", requests=2),
    ]


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
