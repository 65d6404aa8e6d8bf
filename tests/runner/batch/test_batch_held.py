"""What a batch keeps in memory while it is waited for, and what it goes by."""

from __future__ import annotations

import random
from pathlib import Path
from weakref import ReferenceType, ref

import pytest

from runner.batch.batch import Batch, BatchStage, BatchStatus
from runner.clients.client import CallLeft
from runner.clients.wire_shared import Shape
from runner.errors import Expired
from runner.job import Task
from runner.messages import ChatRequest
from store.events import BatchItem
from tests.runner.batch.batch_provider import FakeBatches, Provider
from tests.runner.batch.batch_run import BatchRun
from tests.runner.toy_jobs import ToyJob, ToySettings


class _Seen(ChatRequest):
    """A request that can be watched."""


class _Mark:
    """What can be watched of a body, for bytes cannot."""


class _Body(bytes):
    """A body that something of it tells of."""

    mark: _Mark


def test_what_was_sent_is_not_held_while_it_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask, encode, look = ToyJob.request, FakeBatches.encode, FakeBatches.look
    texts: list[ReferenceType[_Seen]] = []
    bodies: list[ReferenceType[_Mark]] = []
    held: list[tuple[int, int]] = []

    def request(job: ToyJob, dataset: ToySettings, task: Task) -> ChatRequest:
        plain = ask(job, dataset, task)
        made = _Seen(messages=plain.messages, max_tokens=plain.max_tokens)
        texts.append(ref(made))
        return made

    def encoded(endpoint: FakeBatches, request: ChatRequest, shape: Shape) -> bytes:
        body = _Body(encode(endpoint, request, shape))
        body.mark = _Mark()
        bodies.append(ref(body.mark))
        return body

    async def count(endpoint: FakeBatches, batch_id: str) -> BatchStatus:
        alive = [sum(each() is not None for each in many) for many in (texts, bodies)]
        held.append((alive[0], alive[1]))
        return await look(endpoint, batch_id)

    monkeypatch.setattr(ToyJob, "request", request)
    monkeypatch.setattr(FakeBatches, "encode", encoded)
    monkeypatch.setattr(FakeBatches, "poll", count)
    ended = BatchRun(tmp_path, Provider(random.Random(3)), monkeypatch).process()
    assert ended is not None
    assert ended.outcome == "finished"
    assert texts
    assert bodies
    assert min(held) == (0, 0)


@pytest.mark.asyncio
async def test_a_batch_of_an_earlier_process_goes_by_the_ids_that_the_log_has() -> None:
    items = [BatchItem(3, 1, "an-id"), BatchItem(5, 2, "another"), BatchItem(4, 1, "x")]
    batch = Batch(BatchStage.OPEN)
    told = batch.take_up(items, [(3, 1), (4, 1), (9, 1)])
    assert (batch.ids, batch.requests) == (["an-id", "another", "x"], 3)
    assert batch.unresolved == [(0, "an-id"), (2, "x")]
    outcome = Expired("no")
    batch.resolve("another", outcome)  # nobody waits for it
    batch.resolve("x", outcome)
    batch.resolve("x", CallLeft())  # some providers say a thing twice
    batch.resolve_rest(CallLeft())
    assert told[4, 1].result() is outcome
    assert isinstance(told[3, 1].result(), CallLeft)
