"""Results that come short, come twice, or are somebody else's."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from runner.batch.carrier import MOST_READINGS
from runner.batch.endpoint import ItemOutcome, Standing
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
        endpoint: FakeBatches, batch_id: str, standing: Standing
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
