"""Both forms over a wire: what is sent is answered, and what goes wrong is told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from runner.batch.anthropic import AnthropicBatches
from runner.batch.batch import BatchEndpoint, BatchQuery, BatchStatus, ItemOutcome
from runner.batch.client import open_endpoint
from runner.batch.openai import OpenAIBatches
from runner.clients.client import ClientOptions, Received, Secret
from runner.clients.wire import ANTHROPIC_MESSAGES
from runner.clients.wire_openai import OPENAI_CHAT
from runner.clients.wire_shared import Shape, Structure
from runner.engine.attempt_events import answered_event
from runner.errors import (
    AttemptError,
    AuthFailed,
    BadRequest,
    ContextTooLong,
    Expired,
    FormRefused,
    MalformedReply,
    NotServed,
    RateLimited,
    UsageError,
)
from runner.messages import ChatRequest, Message, Reply, Schema, TextPart
from runner.simulate.options import SimulateOptions
from runner.simulate.server import running
from store.events import AttemptAnswered
from tests.replacing import replace
from tests.store.memory_log import FakeClock
from tests.wire_forms import batches_at

pytestmark = pytest.mark.asyncio

REQUEST = ChatRequest(
    messages=(
        Message(role="system", parts=(TextPart(text="Be brief."),)),
        Message(role="user", parts=(TextPart(text="Say 'hello'."),)),
    ),
    max_tokens=16,
)
KEY = Secret("a-key-that-will-do")
FORMS = {"openai": OPENAI_CHAT, "anthropic": ANTHROPIC_MESSAGES}


SCHEMAS = {
    "strict": '{"additionalProperties":false,"properties":{"n":{"type":"integer"}},'
    '"required":["n"],"type":"object"}',
    "bounded": '{"additionalProperties":false,"properties":{"n":{"minimum":0,'
    '"type":"integer"}},"required":["n"],"type":"object"}',
}


@asynccontextmanager
async def _served(form: str, **options: float) -> AsyncIterator[BatchEndpoint]:
    async with running(SimulateOptions(**options)) as url:
        endpoint = open_endpoint(f"{form}/m", batches_at(form, url))
        yield endpoint
        await endpoint.close()


async def _create(endpoint: BatchEndpoint, *ids: str, key: str = "siftlog-x-y") -> str:
    body = endpoint.encode(REQUEST, Shape())
    items = [(f"{key}-{item}", body) for item in ids]
    file = await endpoint.upload(key, items)
    return await endpoint.create(key, items, file)


async def _ended(endpoint: BatchEndpoint, batch_id: str) -> BatchStatus:
    for _ in range(5000):
        standing = await endpoint.poll(batch_id)
        if standing.outcome is not None:
            return standing
        await asyncio.sleep(0.01)
    pytest.fail("the batch does not end")


async def _results(endpoint: BatchEndpoint, batch_id: str) -> dict[str, ItemOutcome]:
    standing = await _ended(endpoint, batch_id)
    return {item: told async for item, told in endpoint.results(batch_id, standing)}


@pytest.mark.parametrize("form", FORMS)
async def test_what_is_sent_is_answered_under_its_ids(form: str) -> None:
    async with _served(form) as endpoint:
        batch_id = await _create(endpoint, "1-a", "2-b", "3-c")
        standing = await _ended(endpoint, batch_id)
        assert (standing.outcome, standing.done, standing.failed) == ("completed", 3, 0)
        found = await _results(endpoint, batch_id)
    assert set(found) == {f"siftlog-x-y-{item}" for item in ("1-a", "2-b", "3-c")}
    for told in found.values():
        assert isinstance(told, Received)
        assert told.form == FORMS[form]
        assert told.reply.text
        assert told.reply.usage is not None


@pytest.mark.parametrize(
    ("form", "schema", "structure", "is_taken"),
    [
        ("openai", "strict", Structure.SCHEMA, True),
        ("anthropic", "strict", Structure.SCHEMA, True),
        ("anthropic", "bounded", Structure.SCHEMA, False),
        ("anthropic", "bounded", Structure.OBJECT, True),
    ],
)
async def test_a_reply_has_the_form_that_was_asked_for_or_that_form_is_refused(
    form: str, schema: str, structure: Structure, *, is_taken: bool
) -> None:
    wanted = Schema(name="count", json=SCHEMAS[schema])
    async with _served(form) as endpoint:
        body = endpoint.encode(
            replace(REQUEST, schema=wanted), Shape(structure=structure)
        )
        items = [("siftlog-x-y-1-a", body)]
        file = await endpoint.upload("siftlog-x-y", items)
        batch_id = await endpoint.create("siftlog-x-y", items, file)
        (told,) = (await _results(endpoint, batch_id)).values()
    if not is_taken:
        assert isinstance(told, FormRefused)
        return
    assert isinstance(told, Received)
    assert isinstance(told.reply, Reply)
    assert isinstance(json.loads(told.reply.text)["n"], int)
    assert told.reply.finish_reason == "stop"


@pytest.mark.parametrize("form", FORMS)
async def test_a_batch_is_found_again_by_whoever_knows_its_key(form: str) -> None:
    async with _served(form) as endpoint:
        batch_id = await _create(endpoint, "1-a", "2-b")
        other = await _create(endpoint, "1-a", "2-b", key="siftlog-x-yet-another")
        for each in (batch_id, other):
            await _ended(endpoint, each)
        sought = BatchQuery(key="siftlog-x-y", requests=2, prepared_us=0)
        assert (await endpoint.find(sought)).id == batch_id
        unknown = BatchQuery(key="siftlog-x-z", requests=2, prepared_us=0)
        nothing = await endpoint.find(unknown)
        assert (nothing.id, nothing.is_settled) == (None, True)
        assert other != batch_id


async def test_a_batch_without_a_key_is_doubtful_until_it_has_ended() -> None:
    async with _served("anthropic", batch_seconds=3600) as endpoint:
        batch_id = await _create(endpoint, "1-a", "2-b")
        for requests, others, is_settled in (
            (2, (), False),
            (3, (), True),
            (2, (batch_id,), True),
        ):
            found = await endpoint.find(
                BatchQuery(key="k", requests=requests, prepared_us=0, others=others)
            )
            assert (found.id, found.is_settled) == (None, is_settled)


@pytest.mark.parametrize("form", FORMS)
async def test_items_that_fail_or_expire_are_told_apart_from_answers(form: str) -> None:
    async with _served(
        form, batch_error_rate=0.4, batch_expire_rate=0.3, batch_seconds=0.2
    ) as endpoint:
        batch_id = await _create(endpoint, *(f"{n}-a" for n in range(40)))
        standing = await _ended(endpoint, batch_id)
        told = list((await _results(endpoint, batch_id)).values())
    answers = [each for each in told if isinstance(each, Received)]
    expired = [each for each in told if isinstance(each, Expired)]
    failed = [
        each
        for each in told
        if isinstance(each, AttemptError) and not isinstance(each, Expired)
    ]
    assert len(told) == 40
    assert min(len(answers), len(expired), len(failed)) > 0
    assert (standing.done, standing.failed) == (len(answers), len(failed))
    assert standing.outcome == "expired"
    assert all(each.status is not None for each in failed)


@pytest.mark.parametrize("form", FORMS)
async def test_a_cancelled_batch_ends(form: str) -> None:
    clock = FakeClock()
    async with running(SimulateOptions(batch_seconds=3600), clock) as url:
        endpoint = open_endpoint(f"{form}/m", batches_at(form, url))
        batch_id = await _create(endpoint, "1-a")
        await endpoint.cancel(batch_id)
        standing = await endpoint.poll(batch_id)
        assert standing.status in {"cancelling", "canceling"}
        assert standing.outcome is None
        clock.advance(3600)
        standing = await endpoint.poll(batch_id)
        assert standing.outcome == "cancelled"
        assert (standing.done, standing.failed) == (0, 0)
        (told,) = (await _results(endpoint, batch_id)).values()
        assert isinstance(told, Expired)
        with pytest.raises(NotServed) as missing:
            await endpoint.poll("no-such-batch")
        await endpoint.close()
    assert missing.value.status == 404


# -- what a provider may say ---------------------------------------------------


@asynccontextmanager
async def _saying(answers: dict[str, object]) -> AsyncIterator[str]:
    """A server that says what stands at a path; what is no text, as JSON."""

    async def handle(request: web.BaseRequest) -> web.Response:
        said = answers[request.path]
        text = said if isinstance(said, str) else json.dumps(said)
        return web.Response(text=text)

    server = web.ServerRunner(web.Server(handle))
    await server.setup()
    try:
        await web.TCPSite(server, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{server.addresses[0][1]}"
    finally:
        await server.cleanup()


def _lines(*lines: dict[str, object]) -> str:
    return "\n".join(map(json.dumps, lines)) + "\n\n"


async def _read(
    endpoint: BatchEndpoint, files: Sequence[str] = ()
) -> list[tuple[str, ItemOutcome]]:
    standing = BatchStatus(status="", files=tuple(files))
    try:
        return [each async for each in endpoint.results("b", standing)]
    finally:
        await endpoint.close()


async def test_lines_of_openais_results_mean_what_single_replies_mean() -> None:
    too_long = {"message": "too long", "code": "context_length_exceeded"}
    said = _lines(
        {
            "custom_id": "a",
            "response": {"status_code": 400, "body": {"error": too_long}},
        },
        {"custom_id": "b", "response": None, "error": {"code": "batch_expired"}},
        {"custom_id": "c", "response": {"status_code": 200, "body": {"no": "chat"}}},
        *(
            {
                "custom_id": item,
                "response": {"status_code": 200, "request_id": request, "body": CHAT},
            }
            for item, request in (("d", "req_7"), ("e", 7))
        ),
    )
    async with _saying({"/v1/files/f/content": said}) as url:
        endpoint = OpenAIBatches("m", ClientOptions(base_url=url))
        found = dict(await _read(endpoint, ["f"]))
    assert [type(found[item]) for item in "abc"] == [
        ContextTooLong,
        Expired,
        MalformedReply,
    ]
    named = answered_by(found["d"])
    assert named.served is not None
    assert (named.served.request_id, named.served.model) == ("req_7", "m-2026")
    unnamed = answered_by(found["e"]).served  # not worth an answer
    assert unnamed is not None
    assert unnamed.request_id == "chatcmpl-1"


def answered_by(found: ItemOutcome) -> AttemptAnswered:
    assert isinstance(found, Received)
    return answered_event(found, task=1, attempt=1, latency_ms=None, cost_usd=None)


CHAT = {
    "id": "chatcmpl-1",
    "model": "m-2026",
    "choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}],
}


async def test_lines_of_anthropics_results_mean_what_single_replies_mean() -> None:
    def failed(kind: str) -> dict[str, object]:
        error = {"type": "error", "error": {"type": kind, "message": "no"}}
        return {"type": "errored", "error": error}

    said = _lines(
        {"custom_id": "a", "result": failed("rate_limit_error")},
        {"custom_id": "b", "result": failed("authentication_error")},
        {"custom_id": "c", "result": failed("invalid_request_error")},
        {"custom_id": "d", "result": {"type": "expired"}},
        {"custom_id": "e", "result": {"type": "canceled"}},
    )
    async with _saying({"/v1/messages/batches/b/results": said}) as url:
        endpoint = AnthropicBatches("m", ClientOptions(base_url=url))
        found = dict(await _read(endpoint))
    assert [type(found[item]) for item in "abcde"] == [
        RateLimited,
        AuthFailed,
        BadRequest,
        Expired,
        Expired,
    ]


async def test_results_that_are_no_lines_are_no_results() -> None:
    async with _saying({"/v1/files/f/content": '{"custom_id": "a", "resp'}) as url:
        endpoint = OpenAIBatches("m", ClientOptions(base_url=url))
        with pytest.raises(MalformedReply, match="cannot be read"):
            await _read(endpoint, ["f"])


@pytest.mark.parametrize(
    ("errors", "kinds"),
    [
        ([{"code": "invalid_json_line", "line": 2}], {1: BadRequest}),
        ([{"code": "token_limit_exceeded", "message": "wait"}], {None: RateLimited}),
        ([{"code": "model_not_found"}], {None: NotServed}),
        ([], {None: BadRequest}),
    ],
)
async def test_a_batch_that_failed_says_what_was_wrong_with_which_item(
    errors: list[dict[str, object]], kinds: dict[int | None, type[AttemptError]]
) -> None:
    batch = {"id": "b", "status": "failed", "errors": {"data": errors}}
    async with _saying({"/v1/batches/b": batch}) as url:
        endpoint = OpenAIBatches("m", ClientOptions(base_url=url))
        standing = await endpoint.poll("b")
        await endpoint.close()
    told = {n: type(fault) for n, fault in standing.faults.items()}
    whole = {} if standing.rest is None else {None: type(standing.rest)}
    assert {**told, **whole} == kinds
    assert standing.outcome == "failed"


async def test_a_provider_without_batches_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(UsageError, match="gemini/x has no batch API"):
        open_endpoint("gemini/x", ClientOptions())
    with pytest.raises(UsageError, match="ANTHROPIC_API_KEY"):
        open_endpoint("anthropic/x", ClientOptions())
