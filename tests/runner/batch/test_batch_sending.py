"""How a batch is sent: again where nothing came of it, and only there."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import pytest

from runner import errors as e
from runner.batch.batch import BatchSearch, BatchStatus, ItemOutcome
from runner.batch.client import MOST_MISSES
from runner.clients.wire_shared import Shape, Structure
from runner.engine.driver import Driver
from runner.job import Task
from runner.messages import ChatRequest, Schema
from store.events import AttemptFailed
from tests.runner.batch.batch_provider import FakeBatches, Provider
from tests.runner.batch.batch_run import TASKS, BatchRun
from tests.runner.toy_jobs import ToyJob, ToySettings

Items = Sequence[tuple[str, bytes]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BatchRun:
    return BatchRun(tmp_path, Provider(random.Random(3)), monkeypatch)


def _outcome(run: BatchRun) -> str:
    ended = run.process()
    assert ended is not None
    return ended.outcome


@pytest.mark.parametrize(
    "refusal",
    [
        e.RateLimited("later", status=429),
        e.ConnectionLost("no route", was_sent=False),
    ],
    ids=["too much waits", "never left"],
)
def test_what_was_surely_not_taken_is_sent_again_and_not_looked_for(
    run: BatchRun, monkeypatch: pytest.MonkeyPatch, refusal: e.AttemptError
) -> None:
    create, refused, sought = FakeBatches.create, 0, 0

    async def refusing(
        endpoint: FakeBatches, key: str, items: Items, file: str | None
    ) -> str:
        nonlocal refused
        # more often than any call is tried that is refused so
        if refused < (40 if isinstance(refusal, e.RateLimited) else 2):
            refused += 1
            raise refusal
        return await create(endpoint, key, items, file)

    async def find(*_: object) -> BatchSearch:
        nonlocal sought
        sought += 1
        return BatchSearch()

    monkeypatch.setattr(FakeBatches, "create", refusing)
    monkeypatch.setattr(FakeBatches, "find", find)
    assert _outcome(run) == "finished"
    assert sought == 0
    assert run.provider.bodies == TASKS
    assert run.status().attempts.failed == 0


def test_batches_that_never_come_to_be_are_counted_in_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create, lost = FakeBatches.create, Counter[bytes]()

    async def losing(
        endpoint: FakeBatches, key: str, items: Items, file: str | None
    ) -> str:
        stage = items[0][1].partition(b" ")[0]
        lost[stage] += 1
        if lost[stage] <= 2:
            raise e.ServerError("broken", status=500)
        return await create(endpoint, key, items, file)

    monkeypatch.setattr(FakeBatches, "create", losing)
    provider = Provider(random.Random(3))
    run = BatchRun(tmp_path, provider, monkeypatch, batch_requests=50)
    assert _outcome(run) == "finished"
    assert sum(min(2, times) for times in lost.values()) > MOST_MISSES
    assert run.status().attempts.failed == 0
    assert set(provider.billed.values()) == {1}


def test_calls_are_sent_again_so_many_times_and_then_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> str:
        raise e.ServerError("broken", status=500)

    monkeypatch.setattr(FakeBatches, "create", fail)
    provider = Provider(random.Random(3))
    run = BatchRun(tmp_path, provider, monkeypatch, batch_requests=50)
    run.process()
    kinds = [type(event) for event in run.events("batch_prepared", "attempt_failed")]
    assert kinds.index(AttemptFailed) == MOST_MISSES + 1


def test_no_batch_is_told_of_that_is_over(run: BatchRun) -> None:
    drivers: list[Driver] = []
    seen: list[int] = []

    def look() -> None:
        seen.append(drivers[0].statistics().batches)

    run.on_watch, run.on_step = drivers.append, look
    assert _outcome(run) == "finished"
    assert max(seen) > 0
    assert drivers[0].statistics().batches == 0


def test_a_form_that_is_refused_is_left_for_the_next_one(
    run: BatchRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask, encode, read = ToyJob.request, FakeBatches.encode, FakeBatches.results
    asked: list[Structure] = []

    def request(job: ToyJob, dataset: ToySettings, task: Task) -> ChatRequest:
        plain = ask(job, dataset, task)
        schema = Schema(name="words", json='{"type": "object"}')
        return ChatRequest(
            messages=plain.messages, max_tokens=plain.max_tokens, schema=schema
        )

    def encoded(endpoint: FakeBatches, request: ChatRequest, shape: Shape) -> bytes:
        asked.append(shape.structure)
        return encode(endpoint, request, shape)

    async def refusing(
        endpoint: FakeBatches, batch_id: str, standing: BatchStatus
    ) -> AsyncGenerator[tuple[str, ItemOutcome]]:
        is_first = batch_id == "batch-0"
        async for item, outcome in read(endpoint, batch_id, standing):
            yield item, e.FormRefused("no schema", status=400) if is_first else outcome

    monkeypatch.setattr(ToyJob, "request", request)
    monkeypatch.setattr(FakeBatches, "encode", encoded)
    monkeypatch.setattr(FakeBatches, "results", refusing)
    assert _outcome(run) == "finished"
    assert asked[0] is Structure.SCHEMA
    assert asked[-1] is Structure.OBJECT
    assert Structure.TEXT not in asked
    assert run.status().tasks.completed == TASKS
