"""A provider's list of batches lags behind, or does not tell yet."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from runner.batch.endpoint import Search, Sought
from store.batches import BatchCreated, BatchEnded
from tests.runner.batch.batch_provider import Chances, FakeBatches, Provider
from tests.runner.batch.batch_run import TASKS, BatchRun


@pytest.mark.parametrize(
    "silences",
    [[Search()], [Search(is_settled=False)] * 20],
    ids=["lags behind", "does not tell yet"],
)
def test_a_batch_that_the_list_shows_late_is_found_and_not_sent_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, silences: list[Search]
) -> None:
    provider, find = Provider(random.Random(3), Chances(lost=1.0)), FakeBatches.find
    silent: dict[str, list[Search]] = {}
    others: set[str] = set()

    async def late(endpoint: FakeBatches, sought: Sought) -> Search:
        others.update(sought.others)
        left = silent.setdefault(sought.key, list(silences))
        return left.pop() if left else await find(endpoint, sought)

    monkeypatch.setattr(FakeBatches, "find", late)
    run = BatchRun(tmp_path, provider, monkeypatch)
    ended = run.process()
    assert ended is not None
    assert ended.outcome == "finished"
    assert provider.bodies == TASKS
    assert set(provider.billed.values()) == {1}
    created = [c for c in run.events("batch_created") if isinstance(c, BatchCreated)]
    assert {event.found for event in created} == {True}
    assert others, "what is known to be another's is not looked at"
    ends = [e for e in run.events("batch_ended") if isinstance(e, BatchEnded)]
    assert {event.outcome for event in ends} == {"completed"}
