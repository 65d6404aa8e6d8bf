"""What a log says of the batches that earlier processes have left."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest

from runner.batch.batch import BatchCancellation, BatchQuery, BatchSearch
from runner.batch.client import PendingBatches, pending_batches
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
    assert "Batch doubtful of m may be open still" in said
    with open_reader(run.log) as reader:
        _, *recorded = events(reader, kinds=["batch_cancelled", "batch_ended"])
    assert [each.event for each in recorded] == [
        BatchCancelled(batch="there", by="me"),
        BatchEnded(batch="there", outcome="cancelled", requests=2),
    ]
