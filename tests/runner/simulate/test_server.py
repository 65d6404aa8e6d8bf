from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest

from runner import errors as e
from runner.clients import Call, ClientOptions, ModelClient, Secret, open_client
from runner.clients.wire_openai import encode_chat
from runner.clients.wire_shared import Shape
from runner.job import Job, Task
from runner.messages import ChatRequest, Message, Schema, TextPart
from runner.simulate import server as module
from runner.simulate.billing import LedgerLine
from runner.simulate.model import SimulatedModel
from runner.simulate.options import RequestOutcome, SimulateOptions
from runner.simulate.replies import deliver
from runner.simulate.requests import chat_text, read_request
from runner.simulate.server import running
from tests.ledgers import read_ledger

pytestmark = pytest.mark.asyncio

LETTER = Schema(
    name="letter",
    json='{"properties":{"answer":{"enum":["a","b","c","d"]}},"required":["answer"],'
    '"type":"object"}',
)


def call(key: str, schema: Schema | None = None) -> Call:
    return Call(
        task=Task(number=1, stage="s", key=key, model="openai/x", replicate=1),
        request=ChatRequest(
            messages=(
                Message(role="system", parts=(TextPart(text="You read papers."),)),
                Message(
                    role="user", parts=(TextPart(text=f"What of {key} and rs42?"),)
                ),
            ),
            max_tokens=10,
            schema=schema,
        ),
    )


def digest(call: Call) -> str:
    body = encode_chat(call.request, "x", Shape())
    return hashlib.sha256(body).hexdigest()


@dataclass
class Stand:
    """A simulated endpoint, a client for it, and what it wrote down."""

    base_url: str
    client: ModelClient
    path: Path

    def ledger(self) -> list[LedgerLine]:
        return read_ledger(self.path)

    async def outcomes(self, *keys: str) -> list[str]:
        """What asking for each key came to, all of them at once."""

        async def ask(key: str) -> str:
            try:
                return (await self.client.call(call(key))).reply.text
            except e.AttemptError as error:
                return type(error).__name__

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(ask(key)) for key in keys]
        return [task.result() for task in tasks]


@asynccontextmanager
async def stand(folder: Path, **values: object) -> AsyncIterator[Stand]:
    options = replace(SimulateOptions(ledger=folder / "ledger.jsonl"), **values)
    assert options.ledger is not None
    async with running(options) as base_url:
        key = Secret("sk-canary-0123456789")
        client = open_client("openai/x", ClientOptions(base_url=base_url, api_key=key))
        yield Stand(base_url, client, options.ledger)
        await client.close()


async def test_an_answer_and_its_line_in_the_ledger(tmp_path: Path) -> None:
    async with stand(tmp_path) as server:
        received = await server.client.call(call("PMC1"))
        (line,) = server.ledger()
    assert received.reply.text.startswith("The text speaks of ")
    assert received.reply.finish_reason == "stop"
    assert received.reply.usage is not None
    assert received.reply.usage.tokens_in > 0
    assert (line.n, line.model, line.seen, line.status) == (1, "x", 0, 200)
    assert line.outcome is RequestOutcome.ANSWERED
    assert line.request == digest(call("PMC1"))
    assert line.authorized
    assert line.finished_ms >= line.received_ms > 1_700_000_000_000
    assert "canary" not in server.path.read_text()


async def test_what_a_reply_says_depends_on_seed_and_request_alone(
    tmp_path: Path,
) -> None:
    keys = [f"PMC{n}" for n in range(40)]
    said = []
    for n, values in enumerate(
        [{"seed": 1}, {"seed": 1, "jitter_ms": 5.0}, {"seed": 2}]
    ):
        async with stand(tmp_path, ledger=tmp_path / f"{n}", **values) as server:
            said.append(await server.outcomes(*keys))
    assert said[0] == said[1]
    assert said[0] != said[2]


async def test_a_schema_is_kept_to(tmp_path: Path) -> None:
    async with stand(tmp_path) as server:
        letters = Counter(
            [
                json.loads((await server.client.call(call(f"{n}", LETTER))).reply.text)[
                    "answer"
                ]
                for n in range(40)
            ]
        )
    assert set(letters) == {"a", "b", "c", "d"}


@pytest.mark.parametrize(
    ("fault", "error", "outcome"),
    [
        ("rate_429", {"RateLimited"}, RequestOutcome.RATE_LIMITED),
        ("rate_5xx", {"ServerError", "Overloaded"}, RequestOutcome.SERVER_ERROR),
        ("rate_malformed", {"MalformedReply"}, RequestOutcome.MALFORMED),
        ("rate_drop", {"ConnectionLost"}, RequestOutcome.DROPPED),
    ],
)
async def test_each_fault_reaches_the_client_as_what_it_is(
    fault: str, error: set[str], outcome: RequestOutcome, tmp_path: Path
) -> None:
    keys = [f"PMC{n}" for n in range(30)]
    async with stand(tmp_path, **{fault: 1.0}) as server:
        assert set(await server.outcomes(*keys)) == error
        assert {line.outcome for line in server.ledger()} == {outcome}
        assert len(server.ledger()) == len(keys)


async def test_a_storm_leaves_the_books_of_both_sides_equal(tmp_path: Path) -> None:
    keys = [f"PMC{n}" for n in range(200)]
    rates = {"rate_429": 0.2, "rate_5xx": 0.1, "rate_malformed": 0.1, "rate_drop": 0.1}
    async with stand(tmp_path, seed=3, jitter_ms=5.0, **rates) as server:
        said = await server.outcomes(*keys)
        ledger = server.ledger()
    kinds = Counter(text if text.isalpha() else "answered" for text in said)
    booked = Counter(line.outcome for line in ledger)
    assert [line.n for line in ledger] == list(range(1, 201))
    assert kinds["answered"] == booked[RequestOutcome.ANSWERED] > 60
    assert kinds["RateLimited"] == booked[RequestOutcome.RATE_LIMITED] > 10
    assert kinds["MalformedReply"] == booked[RequestOutcome.MALFORMED] > 5
    assert kinds["ConnectionLost"] == booked[RequestOutcome.DROPPED] > 5
    assert (
        kinds["ServerError"] + kinds["Overloaded"]
        == booked[RequestOutcome.SERVER_ERROR]
        > 5
    )


async def test_a_429_says_how_long_to_wait(tmp_path: Path) -> None:
    async with stand(tmp_path, rate_429=1.0) as server:
        with pytest.raises(e.RateLimited) as raised:
            await server.client.call(call("PMC1"))
    assert raised.value.retry_after_s == 0.1


async def test_a_limit_refuses_what_is_above_it_and_tells_it(tmp_path: Path) -> None:
    async with stand(tmp_path, rps=5.0, limit_headers=True) as server:
        said = await server.outcomes(*[f"PMC{n}" for n in range(10)])
        booked = Counter(line.outcome for line in server.ledger())
    assert said.count("RateLimited") in {4, 5}
    assert booked[RequestOutcome.RATE_LIMITED] == said.count("RateLimited")


async def test_limit_headers_come_with_answers(tmp_path: Path) -> None:
    async with stand(tmp_path, rps=5.0, tpm=6000.0, limit_headers=True) as server:
        headers = (await server.client.call(call("PMC1"))).headers
    assert headers is not None
    assert headers["x-ratelimit-limit-requests"] == "300"
    assert headers["x-ratelimit-remaining-requests"] == "4"
    assert headers["x-ratelimit-limit-tokens"] == "6000"


@pytest.mark.parametrize(
    ("values", "outcome"),
    [
        ({"rate_hang": 1.0}, RequestOutcome.HANG),
        ({"latency_ms": 60_000.0}, RequestOutcome.GONE),
    ],
)
async def test_a_client_that_gives_up_waiting_is_not_booked_as_answered(
    values: dict[str, float],
    outcome: RequestOutcome,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arrived = asyncio.Event()

    async def noticing(*request: Any) -> None:
        arrived.set()
        await deliver(*request)

    monkeypatch.setattr(module, "deliver", noticing)
    async with stand(tmp_path, **values) as server:
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(server.client.call(call("PMC1")))
            await arrived.wait()
            # what hangs is booked as soon as it does
            while outcome is RequestOutcome.HANG and not server.ledger():  # noqa: ASYNC110 - a file tells no event
                await asyncio.sleep(0)
            asking.cancel()
        await server.client.close()
    (line,) = server.ledger()
    assert line.outcome is outcome


async def test_a_client_that_leaves_in_the_middle_of_a_reply_is_booked_as_gone(
    tmp_path: Path,
) -> None:
    async with stand(tmp_path) as server:
        long = replace(
            call("PMC1").request,
            schema=Schema(
                name="long",
                json='{"type":"string","minLength":30000000}',
            ),
        )
        body = encode_chat(long, "x", Shape())
        port = int(server.base_url.split(":")[2].split("/")[0])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = f"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: {len(body)}"
        writer.write(head.encode() + b"\r\nhost: x\r\n\r\n" + body)
        assert b"200 OK" in await reader.readuntil(b"\r\n")
        (line,) = server.ledger()
        assert line.outcome is RequestOutcome.ANSWERED
        writer.transport.abort()
    (line,) = server.ledger()
    assert line.outcome is RequestOutcome.GONE


@pytest.mark.parametrize("body", [b"", b"{}", b'{"model":"x","messages":7}', b"\xff"])
async def test_what_is_no_request_is_refused_and_booked(
    body: bytes, tmp_path: Path
) -> None:
    with pytest.raises(e.BadRequest, match="not a chat completion request"):
        read_request(body)
    async with stand(tmp_path) as server:
        port = int(server.base_url.split(":")[2].split("/")[0])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = f"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: {len(body)}"
        writer.write(head.encode() + b"\r\nhost: x\r\n\r\n" + body)
        assert b"400 Bad Request" in await reader.readuntil(b"\r\n")
        writer.close()
        (line,) = server.ledger()
    assert (line.outcome, line.status) == (RequestOutcome.REFUSED, 400)
    assert not line.authorized


class Lexical:
    def baseline(self, request: ChatRequest) -> str:
        return f"baseline of {request.messages[-1].text}"


async def test_a_jobs_baseline_answers_and_each_model_spoils_its_own_share() -> None:
    model = SimulatedModel(0, cast("Job", Lexical()))
    shares = {}
    for name in ("x", "y", "z"):
        said = []
        for n in range(400):
            body = encode_chat(call(f"PMC{n}").request, name, Shape())
            asked = read_request(body)
            said.append(model.answer(asked, hashlib.sha256(body).hexdigest()))
        kept = [text.startswith("baseline of What of PMC") for text in said]
        shares[name] = kept.count(False) / len(kept)
    assert all(0 <= share < 0.5 for share in shares.values())
    assert len(set(shares.values())) == 3


async def test_requests_read_back_as_they_were_written() -> None:
    request = call("PMC1", LETTER).request
    asked = read_request(encode_chat(request, "x", Shape()))
    assert asked.model == "x"
    assert asked.request == request
    assert "What of PMC1" in chat_text(asked.request)


async def test_a_ledger_is_never_written_over(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_text("mine")
    with pytest.raises(e.UsageError, match="exists already"):
        async with running(SimulateOptions(ledger=path)):
            pass
    assert path.read_text() == "mine"


async def test_a_port_that_is_taken_says_so() -> None:
    async with running(SimulateOptions()) as base_url:
        port = int(base_url.split(":")[2].split("/")[0])
        with pytest.raises(e.UsageError, match="choose another with --port"):
            async with running(SimulateOptions(port=port)):
                pass


async def test_a_server_that_stops_does_not_wait_for_those_it_keeps_hanging(
    tmp_path: Path,
) -> None:
    async def ask(client: ModelClient) -> None:
        with pytest.raises(e.ConnectionLost):
            await client.call(call("PMC1"))

    async with asyncio.TaskGroup() as group, asyncio.timeout(60):
        async with stand(tmp_path, rate_hang=1.0) as server:
            patient = open_client("openai/x", ClientOptions(base_url=server.base_url))
            task = group.create_task(ask(patient))
            while not server.ledger():  # noqa: ASYNC110 - a file tells no event
                await asyncio.sleep(0)
        await task
        await patient.close()
