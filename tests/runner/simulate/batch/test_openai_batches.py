"""The batch endpoints as OpenAI's own client library sees them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import openai
import pytest

from runner.simulate.ledger import BatchAct, BatchLine, read_batch_ledger
from runner.simulate.options import SimulateOptions
from runner.simulate.server import running
from store.testing import FakeClock

pytestmark = pytest.mark.asyncio

CHAT = "/v1/chat/completions"


class Stand:
    """A server, OpenAI's client for it, and what the server wrote down."""

    def __init__(
        self, client: openai.AsyncOpenAI, clock: FakeClock, ledger: Path
    ) -> None:
        self.client = client
        self.clock = clock
        self._ledger = ledger

    def ledger(self, act: BatchAct) -> list[BatchLine]:
        return [line for line in read_batch_ledger(self._ledger) if line.act is act]

    async def upload(self, *lines: dict[str, Any] | bytes) -> str:
        content = b"\n".join(
            line if isinstance(line, bytes) else json.dumps(line).encode()
            for line in lines
        )
        file = await self.client.files.create(
            file=("asked.jsonl", content), purpose="batch"
        )
        return file.id

    async def create(self, *lines: dict[str, Any] | bytes) -> openai.types.Batch:
        return await self.client.batches.create(
            input_file_id=await self.upload(*lines),
            endpoint=CHAT,
            completion_window="24h",
            metadata={"siftlog_run": "a"},
        )

    async def look(self, batch_id: str) -> openai.types.Batch:
        return await self.client.batches.retrieve(batch_id)

    async def lines(self, file_id: str | None) -> list[dict[str, Any]]:
        assert file_id is not None
        content = await self.client.files.content(file_id)
        return [json.loads(line) for line in content.text.splitlines()]


@asynccontextmanager
async def stand(folder: Path, **values: Any) -> AsyncIterator[Stand]:
    clock = FakeClock()
    ledger = folder / "ledger.jsonl"
    async with running(SimulateOptions(ledger=ledger, **values), clock) as base_url:
        client = openai.AsyncOpenAI(base_url=base_url, api_key="k", max_retries=0)
        async with client:
            yield Stand(client, clock, ledger)


def line(custom_id: str, **changed: object) -> dict[str, Any]:
    said = {"role": "user", "content": f"What of {custom_id} and rs42?"}
    asked = {
        "custom_id": custom_id,
        "method": "POST",
        "url": CHAT,
        "body": {"model": "x", "messages": [said]},
    }
    return asked | changed


async def test_a_batch_without_delay_is_done_at_once_and_billed_once(
    tmp_path: Path,
) -> None:
    async with stand(tmp_path) as server:
        created = await server.create(*(line(f"q{n}") for n in range(5)))
        batch = await server.look(created.id)
        lines = await server.lines(batch.output_file_id)
        billed = server.ledger(BatchAct.BILLED)
        (stored,) = (await server.client.files.list(purpose="batch")).data
    assert (created.status, created.model, created.metadata) == (
        "validating",
        "x",
        {"siftlog_run": "a"},
    )
    assert batch.status == "completed"
    assert batch.error_file_id is None
    assert batch.request_counts is not None
    assert batch.request_counts.to_dict() == {"total": 5, "completed": 5, "failed": 0}
    assert sorted(each["custom_id"] for each in lines) == [f"q{n}" for n in range(5)]
    for each in lines:
        assert each["error"] is None
        assert each["response"]["status_code"] == 200
        assert each["response"]["body"]["choices"][0]["message"]["content"]
    assert batch.usage is not None
    assert batch.usage.input_tokens == sum(one.tokens_in for one in billed)
    assert [one.custom_id for one in billed] == [each["custom_id"] for each in lines]
    assert all(one.half_price and one.tokens_out > 0 for one in billed)
    assert (stored.id, stored.filename) == (batch.input_file_id, "asked.jsonl")
