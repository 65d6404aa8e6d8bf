"""Anthropic's Message Batches over plain HTTP; its client library is not at hand."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from runner.simulate.ledger import BatchAct, read_batch_ledger
from runner.simulate.options import SimulateOptions
from runner.simulate.server import running
from store.testing import FakeClock

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
