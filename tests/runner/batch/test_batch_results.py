"""What comes of a batch short, or of others; and what goes into one."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import pytest

from runner.batch.batch import BatchBounds, BatchStatus, ItemOutcome
from runner.batch.carrier import MOST_READINGS
from runner.clients.client import Received
from runner.errors import BadRequest
from store.events import AttemptFailed
from tests.runner.batch.batch_provider import FakeBatches, Provider
from tests.runner.batch.batch_run import TASKS, BatchRun


@pytest.mark.parametrize("shorts", [MOST_READINGS - 1, MOST_READINGS])
def test_results_that_come_short_are_read_again_and_what_stays_missing_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shorts: int
) -> None:
    provider, read = Provider(random.Random(3)), FakeBatches.results
    readings: Counter[str] = Counter()

    async def short(
        endpoint: FakeBatches, batch_id: str, standing: BatchStatus
    ) -> AsyncGenerator[tuple[str, ItemOutcome]]:
        readings[batch_id] += 1
        if batch_id == "batch-0" and readings[batch_id] <= shorts:
            return
        async for line in read(endpoint, batch_id, standing):
            yield line

    monkeypatch.setattr(FakeBatches, "results", short)
    run = BatchRun(tmp_path, provider, monkeypatch)
    ended = run.process()
    assert ended is not None
    assert ended.outcome == "finished"
    assert readings["batch-0"] == MOST_READINGS
    lost = len(provider.there["batch-0"].fates) if shorts == MOST_READINGS else 0
    assert provider.bodies == TASKS + lost
    failed = [f for f in run.events("attempt_failed") if isinstance(f, AttemptFailed)]
    assert [(f.error, f.possible_usd) for f in failed] == [("Expired", 0.0)] * lost
    assert run.status().tasks.completed == TASKS
    assert any("what is missing is asked again" in t for t in run.told) is bool(lost)


def test_lines_of_what_expired_and_of_others_do_not_make_results_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider, read = Provider(random.Random(3)), FakeBatches.results
    create, readings = Provider.create, Counter[str]()
    halves: list[str] = []  #: one of whose two items is answered

    def expiring(self: Provider, key: str, items: Sequence[tuple[str, bytes]]) -> str:
        batch_id = create(self, key, items)
        batch = self.there[batch_id]
        if len(batch.fates) == 2 and not halves:
            halves.append(batch_id)
            expired = min(batch.fates)
            batch.fates[expired] = "expired"
            self.billed[batch.texts[expired]] -= 1
        return batch_id

    async def without_answers(
        endpoint: FakeBatches, batch_id: str, standing: BatchStatus
    ) -> AsyncGenerator[tuple[str, ItemOutcome]]:
        readings[batch_id] += 1
        async for item, outcome in read(endpoint, batch_id, standing):
            if readings[batch_id] > 1 or not isinstance(outcome, Received):
                yield item, outcome

    monkeypatch.setattr(Provider, "create", expiring)
    monkeypatch.setattr(FakeBatches, "results", without_answers)
    run = BatchRun(tmp_path, provider, monkeypatch)
    ended = run.process()
    assert ended is not None
    assert ended.outcome == "finished"
    assert halves
    assert set(provider.billed.values()) == {1}
    assert set(readings.values()) == {2}


def test_a_batch_holds_no_more_bytes_than_the_provider_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = Provider(random.Random(3))
    monkeypatch.setattr(FakeBatches, "bounds", BatchBounds(requests=1000, bytes=300))
    ended = BatchRun(tmp_path, provider, monkeypatch).process()
    assert ended is not None
    assert ended.outcome == "finished"
    assert [len(batch.fates) for batch in provider.there.values()] == [1] * TASKS


def test_the_item_that_a_batch_failed_by_fails_and_the_others_are_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = FakeBatches.look

    async def failing(endpoint: FakeBatches, batch_id: str) -> BatchStatus:
        if batch_id != "batch-0":
            return await look(endpoint, batch_id)
        faults = {0: BadRequest("line 1")}
        return BatchStatus(status="failed", outcome="failed", faults=faults)

    async def none(*_: object) -> AsyncGenerator[tuple[str, ItemOutcome]]:
        for line in ():
            yield line

    read = FakeBatches.results
    monkeypatch.setattr(FakeBatches, "poll", failing)
    monkeypatch.setattr(
        FakeBatches,
        "results",
        lambda self, batch_id, standing: (
            none() if standing.outcome == "failed" else read(self, batch_id, standing)
        ),
    )
    provider = Provider(random.Random(3))
    run = BatchRun(tmp_path, provider, monkeypatch)
    run.process()
    failed = [f for f in run.events("attempt_failed") if isinstance(f, AttemptFailed)]
    others = len(provider.there["batch-0"].fates) - 1
    errors = sorted(event.error for event in failed)
    assert errors == ["BadRequest", *["Expired"] * others]
    assert run.status().tasks.failed == 1
