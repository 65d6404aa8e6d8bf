"""Anthropic's Message Batches over plain HTTP, down to what no client shows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from runner.simulate.billing import BatchAct
from runner.simulate.options import SimulateOptions
from runner.simulate.server import running
from tests.ledgers import read_batch_ledger
from tests.store.memory_log import FakeClock

pytestmark = pytest.mark.asyncio

HEADERS = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
BATCHES = "/messages/batches"


@asynccontextmanager
async def stand(
    folder: Path, **values: Any
) -> AsyncIterator[tuple[httpx.AsyncClient, FakeClock]]:
    clock = FakeClock()
    options = SimulateOptions(ledger=folder / "ledger.jsonl", **values)
    async with (
        running(options, clock) as base_url,
        httpx.AsyncClient(base_url=base_url, headers=HEADERS, trust_env=False) as http,
    ):
        yield http, clock


def request(custom_id: str, **params: object) -> dict[str, Any]:
    said = {"role": "user", "content": f"What of {custom_id} and rs42?"}
    usual = {"model": "claude-x", "max_tokens": 9, "messages": [said]}
    return {"custom_id": custom_id, "params": usual | params}


async def create(http: httpx.AsyncClient, *requests: dict[str, Any]) -> dict[str, Any]:
    reply = await http.post(BATCHES, json={"requests": requests})
    assert reply.status_code == 200, reply.text
    return dict(reply.json())


async def results(http: httpx.AsyncClient, batch: dict[str, Any]) -> dict[str, Any]:
    """What each item came to, by its custom id."""
    reply = await http.get(batch["results_url"])
    lines = [json.loads(line) for line in reply.text.splitlines()]
    assert len({line["custom_id"] for line in lines}) == len(lines)
    return {line["custom_id"]: line["result"] for line in lines}


async def test_a_batch_goes_in_and_its_results_come_out(tmp_path: Path) -> None:
    async with stand(tmp_path) as (http, _clock):
        created = await create(http, *(request(f"q{n}") for n in range(4)))
        batch = (await http.get(f"{BATCHES}/{created['id']}")).json()
        found = await results(http, batch)
    assert (created["processing_status"], created["results_url"]) == (
        "in_progress",
        None,
    )
    assert created["request_counts"]["processing"] == 4
    assert created["created_at"] == "2026-01-01T00:00:00.000000Z"
    assert created["expires_at"] == "2026-01-02T00:00:00.000000Z"
    assert batch["processing_status"] == "ended"
    assert batch["request_counts"] == {
        "processing": 0,
        "succeeded": 4,
        "errored": 0,
        "expired": 0,
        "canceled": 0,
    }
    assert set(found) == {"q0", "q1", "q2", "q3"}
    message = found["q0"]["message"]
    assert (message["type"], message["role"]) == ("message", "assistant")
    assert message["stop_reason"] == "end_turn"
    (block,) = message["content"]
    assert block["type"] == "text"
    assert block["text"].startswith("The text speaks of ")
    billed = [
        line
        for line in read_batch_ledger(tmp_path / "ledger.jsonl")
        if line.act is BatchAct.BILLED
    ]
    assert sorted(line.custom_id for line in billed) == sorted(found)
    for line in billed:
        usage = found[line.custom_id]["message"]["usage"]
        assert usage["input_tokens"] == line.tokens_in
        assert usage["output_tokens"] == line.tokens_out


async def test_no_item_counts_as_done_before_the_batch_has_ended(
    tmp_path: Path,
) -> None:
    rates = {"batch_error_rate": 0.3, "batch_expire_rate": 0.2}
    async with stand(tmp_path, batch_seconds=1000.0, **rates) as (http, clock):
        created = await create(http, *(request(f"q{n}") for n in range(60)))
        address = f"{BATCHES}/{created['id']}"
        clock.advance(400)
        half = (await http.get(address)).json()
        early = await http.get(f"{address}/results")
        clock.advance(600)
        batch = (await http.get(address)).json()
        found = await results(http, batch)
    assert half["processing_status"] == "in_progress"
    assert half["request_counts"]["processing"] == 60
    assert early.status_code == 400
    assert early.json()["error"]["type"] == "invalid_request_error"
    assert batch["processing_status"] == "ended"
    kinds = Counter(result["type"] for result in found.values())
    assert set(kinds) == {"succeeded", "errored", "expired"}
    assert batch["request_counts"] == {"processing": 0, "canceled": 0, **kinds}
    errors = [result["error"] for result in found.values() if "error" in result]
    assert {error["type"] for error in errors} == {"error"}
    assert {error["error"]["type"] for error in errors} <= {
        "api_error",
        "rate_limit_error",
        "overloaded_error",
    }


async def test_a_cancelled_batch_ends_with_what_was_done(tmp_path: Path) -> None:
    async with stand(tmp_path, batch_seconds=1000.0) as (http, clock):
        created = await create(http, *(request(f"q{n}") for n in range(20)))
        address = f"{BATCHES}/{created['id']}"
        clock.advance(300)
        canceling = (await http.post(f"{address}/cancel")).json()
        clock.advance(100)
        batch = (await http.get(address)).json()
        found = await results(http, batch)
        late = await http.post(f"{address}/cancel")
    assert canceling["processing_status"] == "canceling"
    assert canceling["cancel_initiated_at"] == "2026-01-01T00:05:00.000000Z"
    assert batch["processing_status"] == "ended"
    kinds = Counter(result["type"] for result in found.values())
    assert set(kinds) == {"succeeded", "canceled"}
    assert kinds.total() == 20
    assert late.status_code == 409


@pytest.mark.parametrize(
    ("requests", "said"),
    [
        ([], "1 to 100000"),
        ([request("")], "requests.0.custom_id"),
        ([request("q" * 65)], "requests.0.custom_id"),
        ([request("q1"), request("a b")], "requests.1.custom_id"),
        ([request("q1"), request("q1")], "q1 comes twice"),
        ([{"custom_id": "q1"}], "not as it should be"),
    ],
)
async def test_a_batch_that_cannot_be_is_turned_away(
    requests: list[dict[str, Any]], said: str, tmp_path: Path
) -> None:
    async with stand(tmp_path) as (http, _clock):
        reply = await http.post(BATCHES, json={"requests": requests})
    assert reply.status_code == 400
    assert reply.json()["type"] == "error"
    assert reply.json()["error"]["type"] == "invalid_request_error"
    assert said in reply.json()["error"]["message"]
    assert read_batch_ledger(tmp_path / "ledger.jsonl") == []


async def test_a_batch_is_refused_while_too_much_waits_in_others(
    tmp_path: Path,
) -> None:
    async with stand(tmp_path, batch_seconds=1000.0, batch_queue=1) as (http, clock):
        await create(http, request("q1"))
        reply = await http.post(BATCHES, json={"requests": [request("q2")]})
        assert reply.status_code == 429
        assert reply.json()["error"]["type"] == "rate_limit_error"
        clock.advance(1000)
        await create(http, request("q2"))


@pytest.mark.parametrize(
    ("missing", "status", "kind"),
    [
        ("x-api-key", 401, "authentication_error"),
        ("anthropic-version", 400, "invalid_request_error"),
    ],
)
async def test_the_headers_of_every_request_are_required(
    missing: str, status: int, kind: str, tmp_path: Path
) -> None:
    async with stand(tmp_path) as (http, _clock):
        del http.headers[missing]
        reply = await http.get(BATCHES)
    assert reply.status_code == status
    assert reply.json()["error"]["type"] == kind
    assert missing in reply.json()["error"]["message"]


async def test_an_unknown_batch_or_path_is_not_found(tmp_path: Path) -> None:
    async with stand(tmp_path) as (http, _clock):
        for path in ("none", "none/results", "none/what"):
            reply = await http.get(f"{BATCHES}/{path}")
            assert reply.status_code == 404
            assert reply.json()["error"]["type"] == "not_found_error"


async def test_batches_are_listed_from_either_side(tmp_path: Path) -> None:
    async with stand(tmp_path) as (http, _clock):
        created = [(await create(http, request("q1")))["id"] for _ in range(5)]
        newest = created[::-1]

        async def ids(**query: str | int) -> tuple[list[str], bool]:
            body = (await http.get(BATCHES, params=query)).json()
            found = [batch["id"] for batch in body["data"]]
            assert (body["first_id"], body["last_id"]) == (found[0], found[-1])
            return found, body["has_more"]

        assert await ids() == (newest, False)
        assert await ids(limit=2) == (newest[:2], True)
        assert await ids(limit=2, after_id=newest[1]) == (newest[2:4], True)
        assert await ids(limit=2, after_id=newest[3]) == (newest[4:], False)
        assert await ids(limit=2, before_id=newest[3]) == (newest[1:3], True)
        assert await ids(limit=2, before_id=newest[2]) == (newest[:2], False)


async def test_params_that_are_no_message_fail_for_good(tmp_path: Path) -> None:
    async with stand(tmp_path) as (http, _clock):
        created = await create(
            http,
            request("good"),
            request("none", messages=[]),
            request("tool", tools=[], tool_choice={"type": "tool", "name": "t"}),
            {"custom_id": "empty", "params": {}},
        )
        batch = (await http.get(f"{BATCHES}/{created['id']}")).json()
        found = await results(http, batch)
    assert found.pop("good")["type"] == "succeeded"
    for result in found.values():
        assert result["error"]["error"]["type"] == "invalid_request_error"
    assert "at least one message" in found["none"]["error"]["error"]["message"]


async def test_an_answer_has_the_form_that_was_asked_for(tmp_path: Path) -> None:
    schema = {
        "type": "object",
        "properties": {"answer": {"enum": ["a", "b"]}},
        "required": ["answer"],
        "additionalProperties": False,
    }
    async with stand(tmp_path) as (http, _clock):
        created = await create(
            http,
            request(
                "schema",
                system=[{"type": "text", "text": "You read papers."}],
                output_config={"format": {"type": "json_schema", "schema": schema}},
            ),
            request(
                "tool",
                tools=[{"name": "say", "input_schema": schema}],
                tool_choice={"type": "tool", "name": "say"},
            ),
        )
        batch = (await http.get(f"{BATCHES}/{created['id']}")).json()
        found = await results(http, batch)
    (text,) = found["schema"]["message"]["content"]
    assert json.loads(text["text"])["answer"] in {"a", "b"}
    (tool,) = found["tool"]["message"]["content"]
    assert (tool["type"], tool["name"]) == ("tool_use", "say")
    assert tool["input"]["answer"] in {"a", "b"}
    assert found["tool"]["message"]["stop_reason"] == "tool_use"


@pytest.mark.parametrize(
    ("schema", "complaint"),
    [
        ({"type": "object", "properties": {}}, "'additionalProperties' must be set"),
        ({"type": "array", "items": {"type": "object"}}, "must be set to false"),
        ({"anyOf": [{"type": "integer", "minimum": 0}]}, "property 'minimum'"),
    ],
)
async def test_a_form_that_no_output_may_have_is_an_error_of_its_item(
    tmp_path: Path, schema: dict[str, Any], complaint: str
) -> None:
    async with stand(tmp_path) as (http, _clock):
        asked = {"format": {"type": "json_schema", "schema": schema}}
        tool = {"name": "say", "input_schema": schema}
        created = await create(
            http,
            request("format", output_config=asked),
            request("tool", tools=[tool], tool_choice={"type": "tool", "name": "say"}),
        )
        batch = (await http.get(f"{BATCHES}/{created['id']}")).json()
        found = await results(http, batch)
    assert found["format"]["type"] == "errored"
    assert complaint in found["format"]["error"]["error"]["message"]
    assert found["tool"]["type"] == "succeeded"
