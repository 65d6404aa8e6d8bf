"""The batch endpoints as OpenAI's own client library sees them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from runner.simulate.billing import BatchAct, BatchLine
from runner.simulate.options import SimulateOptions
from runner.simulate.server import running
from tests.ledgers import read_batch_ledger
from tests.store.memory_log import FakeClock

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


async def test_a_batch_takes_its_time_by_the_clock_of_the_server(
    tmp_path: Path,
) -> None:
    async with stand(tmp_path, batch_seconds=1000.0) as server:
        created = await server.create(*(line(f"q{n}") for n in range(20)))
        seen = [created]
        for _ in range(50):
            server.clock.advance(20)
            seen.append(await server.look(created.id))
        before = len(server.ledger(BatchAct.BILLED))
    phases = list(dict.fromkeys(batch.status for batch in seen))
    assert phases == ["validating", "in_progress", "finalizing", "completed"]
    done = [batch.request_counts.completed for batch in seen if batch.request_counts]
    assert done == sorted(done)
    assert len(set(done)) > 5
    for batch in seen:
        assert (batch.output_file_id is None) is (batch.status != "completed")
    last = seen[-1]
    assert last.completed_at is not None
    assert 500 <= last.completed_at - last.created_at <= 1000
    assert (last.expires_at or 0) - last.created_at == 24 * 3600
    assert before == 20


async def test_items_fail_and_expire_by_seed_and_only_the_others_are_billed(
    tmp_path: Path,
) -> None:
    rates = {"batch_error_rate": 0.3, "batch_expire_rate": 0.2}
    async with stand(tmp_path, **rates) as server:
        asked = [line(f"q{n}") for n in range(60)]
        batch = await server.look((await server.create(*asked)).id)
        answered = await server.lines(batch.output_file_id)
        failed = await server.lines(batch.error_file_id)
        billed = [each.custom_id for each in server.ledger(BatchAct.BILLED)]
        again = await server.look((await server.create(*asked)).id)
    assert batch.status == "expired"
    assert batch.expired_at is not None
    assert sorted(billed) == sorted(each["custom_id"] for each in answered)
    ids = {each["custom_id"] for each in (*answered, *failed)}
    assert len(ids) == len(answered) + len(failed) == 60
    expired = [each for each in failed if each["response"] is None]
    errored = [each for each in failed if each["error"] is None]
    assert {each["error"]["code"] for each in expired} == {"batch_expired"}
    assert {each["response"]["status_code"] for each in errored} <= {429, 500, 529}
    assert len(expired) + len(errored) == len(failed)
    assert 5 < len(expired) < 25
    assert 8 < len(errored) < 30
    # another time the same requests meet another fate
    assert batch.request_counts is not None
    assert again.request_counts is not None
    assert again.request_counts != batch.request_counts


async def test_an_item_that_is_no_request_fails_for_good(tmp_path: Path) -> None:
    async with stand(tmp_path) as server:
        bad = {"model": "x", "messages": "none"}
        batch = await server.look((await server.create(line("q1", body=bad))).id)
        (failed,) = await server.lines(batch.error_file_id)
    assert (batch.status, batch.output_file_id) == ("completed", None)
    assert failed["response"]["status_code"] == 400
    error = failed["response"]["body"]["error"]
    assert error["type"] == "invalid_request_error"
    assert "not a chat completion request" in error["message"]


async def test_a_cancelled_batch_gives_out_what_was_done(tmp_path: Path) -> None:
    async with stand(tmp_path, batch_seconds=1000.0) as server:
        created = await server.create(*(line(f"q{n}") for n in range(20)))
        server.clock.advance(300)
        cancelling = await server.client.batches.cancel(created.id)
        server.clock.advance(100)
        batch = await server.look(created.id)
        answered = await server.lines(batch.output_file_id)
        rest = await server.lines(batch.error_file_id)
        billed = [each.custom_id for each in server.ledger(BatchAct.BILLED)]
        with pytest.raises(openai.ConflictError, match="that is cancelled"):
            await server.client.batches.cancel(created.id)
        (noted,) = server.ledger(BatchAct.CANCELLED)
    assert cancelling.status == "cancelling"
    assert batch.status == "cancelled"
    assert {each["error"]["code"] for each in rest} == {"batch_cancelled"}
    assert billed == [each["custom_id"] for each in answered]
    assert len(answered) > 2
    assert len(answered) + len(rest) == 20
    assert (noted.id, noted.requests) == (created.id, 20)


@pytest.mark.parametrize(
    ("lines", "code", "number"),
    [
        ([], "empty_file", None),
        ([b"", b"  "], "empty_file", None),
        ([line("q1"), b"", b"{no"], "invalid_json_line", 3),
        ([line("q1", body={})], "invalid_json_line", 1),
        ([line("q1"), line("q1")], "duplicate_custom_id", 2),
        ([line("")], "invalid_custom_id", 1),
        ([line("q" * 65)], "invalid_custom_id", 1),
        ([line("q1", method="GET")], "invalid_method", 1),
        ([line("q1", url="/v1/embeddings")], "url_mismatch", 1),
        ([line("q1"), line("q2", body={"model": "y"})], "model_mismatch", 2),
        ([b"{}\n" * 50_001], "too_many_tasks", None),
    ],
)
async def test_a_file_that_is_no_batch_shows_in_the_batch(
    lines: list[dict[str, Any] | bytes], code: str, number: int | None, tmp_path: Path
) -> None:
    async with stand(tmp_path) as server:
        created = await server.create(*lines)
        batch = await server.look(created.id)
        assert server.ledger(BatchAct.BILLED) == []
    assert (created.status, batch.status) == ("validating", "failed")
    assert batch.errors is not None
    assert batch.errors.data is not None
    (error,) = batch.errors.data
    assert (error.code, error.line) == (code, number)
    assert batch.output_file_id is batch.error_file_id is None


async def test_a_batch_fails_while_too_much_waits_in_others(tmp_path: Path) -> None:
    async with stand(tmp_path, batch_seconds=1000.0, batch_queue=3) as server:
        first = await server.create(line("q1"), line("q2"))
        second = await server.create(line("q3"), line("q4"))
        server.clock.advance(1000)
        third = await server.create(line("q3"), line("q4"))
        server.clock.advance(1000)
        ended = [await server.look(each.id) for each in (first, second, third)]
    assert [each.status for each in ended] == ["completed", "failed", "completed"]
    assert ended[1].errors is not None
    assert ended[1].errors.data is not None
    assert [each.code for each in ended[1].errors.data] == ["token_limit_exceeded"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"endpoint": "/v1/completions"}, "endpoint"),
        ({"completion_window": "1h"}, "24h"),
        ({"input_file_id": "file-none"}, "no file"),
        ({"metadata": {"long": "v" * 513}}, "Metadata"),
        ({"metadata": {f"k{n}": "" for n in range(17)}}, "Metadata"),
        ({"metadata": {"k": 1}}, "not as it should be"),
    ],
)
async def test_a_batch_that_cannot_be_is_turned_away(
    changed: dict[str, Any], said: str, tmp_path: Path
) -> None:
    async with stand(tmp_path) as server:
        wanted: dict[str, Any] = {
            "input_file_id": await server.upload(line("q1")),
            "endpoint": CHAT,
            "completion_window": "24h",
        }
        with pytest.raises(openai.APIStatusError, match=said) as caught:
            await server.client.batches.create(**(wanted | changed))
        assert server.ledger(BatchAct.CREATED) == []
    assert caught.value.status_code == (404 if "file" in said else 400)
    assert caught.value.type == "invalid_request_error"


async def test_batches_are_listed_page_by_page_the_last_one_first(
    tmp_path: Path,
) -> None:
    async with stand(tmp_path) as server:
        created = [(await server.create(line("q1"))).id for _ in range(5)]
        page = await server.client.batches.list(limit=2)
        assert (page.has_more, len(page.data)) == (True, 2)
        listed = [batch.id async for batch in server.client.batches.list(limit=2)]
        with pytest.raises(openai.BadRequestError, match="1 to 100"):
            await server.client.batches.list(limit=101)
        with pytest.raises(openai.BadRequestError, match="cursor"):
            await server.client.batches.list(after="batch_none")
    assert listed == created[::-1]
    assert len(set(created)) == 5


async def test_large_files_are_taken(tmp_path: Path) -> None:
    async with stand(tmp_path) as server:
        content = b"x" * 3_000_000
        file_id = await server.upload(content)
        assert (await server.client.files.content(file_id)).content == content


async def test_files_are_kept_until_they_are_deleted(tmp_path: Path) -> None:
    async with stand(tmp_path) as server:
        file_id = await server.upload(line("q1"))
        batch = await server.look((await server.create(line("q2"))).id)
        kept = await server.client.files.retrieve(file_id)
        outputs = await server.client.files.list(purpose="batch_output")
        with pytest.raises(openai.BadRequestError, match="not for batches"):
            await server.client.batches.create(
                input_file_id=outputs.data[0].id,
                endpoint=CHAT,
                completion_window="24h",
            )
        assert (await server.client.files.delete(file_id)).deleted
        with pytest.raises(openai.NotFoundError):
            await server.client.files.content(file_id)
        with pytest.raises(openai.BadRequestError):
            await server.client.files.create(file=b"x", purpose="assistants")
        assert len(server.ledger(BatchAct.UPLOADED)) == 2
    assert kept.bytes == len(json.dumps(line("q1")))
    assert [file.id for file in outputs.data] == [batch.output_file_id]


async def test_texts_are_embedded_in_batches_too(tmp_path: Path) -> None:
    asked = line(
        "q1", url="/v1/embeddings", body={"model": "x", "input": ["a b", "b c"]}
    )
    async with stand(tmp_path) as server:
        created = await server.client.batches.create(
            input_file_id=await server.upload(asked),
            endpoint="/v1/embeddings",
            completion_window="24h",
        )
        batch = await server.look(created.id)
        (found,) = await server.lines(batch.output_file_id)
    assert [each["index"] for each in found["response"]["body"]["data"]] == [0, 1]


async def test_an_answer_is_that_of_a_single_call(tmp_path: Path) -> None:
    asked = line("q1")
    async with stand(tmp_path) as server, httpx.AsyncClient(trust_env=False) as http:
        address = f"{server.client.base_url}chat/completions"
        single = await http.post(address, content=json.dumps(asked["body"]))
        batch = await server.look((await server.create(asked)).id)
        (found,) = await server.lines(batch.output_file_id)
    assert found["response"]["body"] == single.json()
