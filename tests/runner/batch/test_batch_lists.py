"""A provider shows its batches late, or for a moment not, or does not tell yet."""

from __future__ import annotations

import inspect
import random
from collections import Counter
from pathlib import Path

import pytest

from runner.batch.batch import BatchQuery, BatchSearch
from runner.errors import BadRequest
from store.events import BatchCreated, BatchEnded
from tests.runner.batch.batch_provider import Chances, FakeBatches, Provider, There
from tests.runner.batch.batch_run import TASKS, BatchRun


def test_a_batch_that_the_list_shows_late_is_found_and_not_sent_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    silences = [BatchSearch()] * 2 + [BatchSearch(is_settled=False)] * 20
    provider, find = Provider(random.Random(3), Chances(lost=1.0)), FakeBatches.find
    silent: dict[str, list[BatchSearch]] = {}
    others: set[str] = set()

    async def late(endpoint: FakeBatches, sought: BatchQuery) -> BatchSearch:
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


@pytest.mark.parametrize(
    ("is_labelled", "lag_s", "settle_s"),
    [(True, 119.0, 120.0), (False, 119.0, 120.0), (True, 0.0, 0.0)],
)
def test_what_is_shown_within_the_settling_time_is_not_sent_again(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    lag_s: float,
    settle_s: float,
    *,
    is_labelled: bool,
) -> None:
    provider = Provider(random.Random(3), Chances(lost=0.5), is_labelled=is_labelled)
    provider.lag_s = lag_s
    run = BatchRun(
        tmp_path, provider, monkeypatch, batch_settle_s=settle_s, batch_poll_s=7.0
    )
    ended = run.process()
    assert ended is not None
    assert ended.outcome == "finished"
    assert set(provider.billed.values()) == {1}
    assert run.status().tasks.completed == TASKS
    said = [told for told in run.told if "may lag behind" in told]
    assert bool(said) is (settle_s > 0)


@pytest.mark.parametrize("step", ["poll", "results"])
def test_a_batch_that_is_unknown_for_a_moment_is_not_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    provider, blinks = Provider(random.Random(3)), Counter[tuple[str, str]]()
    find = Provider.find

    def blinking(self: Provider, batch_id: str) -> There:
        asked = inspect.stack()[1].function
        blinks[asked, batch_id] += 1
        if asked == step and blinks[asked, batch_id] % 2:
            raise BadRequest("no such batch", status=404)
        return find(self, batch_id)

    monkeypatch.setattr(Provider, "find", blinking)
    run = BatchRun(tmp_path, provider, monkeypatch)
    ended = run.process()
    assert ended is not None
    assert ended.outcome == "finished"
    assert blinks[step, "batch-0"] > 1
    assert set(provider.billed.values()) == {1}
    assert run.status().attempts.failed == 0
