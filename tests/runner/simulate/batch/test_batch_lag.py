"""A batch that the simulated endpoints show late is there, and worked on, meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.batch.batch import BatchEndpoint, BatchQuery
from runner.batch.client import open_endpoint
from runner.clients.wire_shared import Shape, Structure
from runner.errors import BadRequest, NotServed, UsageError
from runner.messages import ChatRequest, Message, TextPart
from runner.simulate.billing import BatchAct
from runner.simulate.options import SimulateOptions
from runner.simulate.server import running
from tests.ledgers import read_batch_ledger
from tests.store.memory_log import FakeClock
from tests.wire_forms import batches_at

ASKED = ChatRequest(
    messages=(Message(role="user", parts=(TextPart(text="Say 'hello'."),)),),
    max_tokens=9,
)
KEY = "siftlog-x-y"


async def _create(endpoint: BatchEndpoint) -> str:
    items = [(f"{KEY}-1-a", endpoint.encode(ASKED, Shape(structure=Structure.TEXT)))]
    return await endpoint.create(KEY, items, await endpoint.upload(KEY, items))


@pytest.mark.asyncio
@pytest.mark.parametrize("form", ["openai", "anthropic"])
async def test_a_new_batch_is_neither_listed_nor_known_by_its_id_for_a_while(
    form: str, tmp_path: Path
) -> None:
    clock, ledger = FakeClock(), tmp_path / "ledger.jsonl"
    options = SimulateOptions(batch_lag_seconds=30.0, ledger=ledger)
    async with running(options, clock) as url:
        endpoint = open_endpoint(f"{form}/m", batches_at(form, url))
        batch_id = await _create(endpoint)
        sought = BatchQuery(key=KEY, requests=1, prepared_us=clock.now_us())
        for _ in range(2):
            assert (await endpoint.find(sought)).id is None
            for ask in (endpoint.poll, endpoint.cancel):
                with pytest.raises((BadRequest, NotServed)) as unknown:
                    await ask(batch_id)
                assert unknown.value.status == 404
            clock.advance(29.9)
        clock.advance(0.2)
        assert (await endpoint.find(sought)).id == batch_id
        assert (await endpoint.poll(batch_id)).outcome == "completed"
        await endpoint.close()
    billed = [line for line in read_batch_ledger(ledger) if line.act is BatchAct.BILLED]
    assert len(billed) == 1


def test_a_lag_is_a_time() -> None:
    with pytest.raises(UsageError, match="--batch-lag-seconds are times"):
        SimulateOptions(batch_lag_seconds=-1.0)
