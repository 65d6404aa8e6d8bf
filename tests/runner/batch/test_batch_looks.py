"""When batches are looked at, and what is made of looks that show too little."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from runner import errors as e
from runner.batch.batch import BatchStatus, ItemOutcome
from runner.batch.carrier import BACKOFF_FACTOR, LONGEST, BatchContext
from runner.clients.client import Received
from store.events import AttemptFailed, BatchEnded
from tests.runner.batch.batch_provider import Chances, FakeBatches, Provider
from tests.runner.batch.batch_run import TASKS, BatchRun

POLL_S = 60.0


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BatchRun:
    return BatchRun(
        tmp_path,
        Provider(random.Random(3)),
        monkeypatch,
        batch_requests=50,
        batch_poll_s=POLL_S,
    )


def _outcome(run: BatchRun) -> str:
    ended = run.process()
    assert ended is not None
    return ended.outcome


def test_looks_that_show_nothing_new_are_ever_farther_apart_up_to_a_limit(
    run: BatchRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    look, wait = FakeBatches.look, BatchContext.pause
    looks: list[int] = []
    pauses: list[float] = []

    async def slow(endpoint: FakeBatches, batch_id: str) -> BatchStatus:
        if batch_id != "batch-0":
            return await look(endpoint, batch_id)
        looks.append(len(pauses))
        if len(looks) < 30:
            return BatchStatus(status="in_progress", done=int(len(looks) >= 20))
        run.provider.there[batch_id].looks = 0
        return await look(endpoint, batch_id)

    async def pause(setting: BatchContext, seconds: float) -> None:
        if seconds >= POLL_S:  # calls are gathered for less
            pauses.append(seconds)
        await wait(setting, seconds)

    monkeypatch.setattr(FakeBatches, "poll", slow)
    monkeypatch.setattr(BatchContext, "pause", pause)
    assert _outcome(run) == "finished"
    assert looks == list(range(30)), "the first look comes at once"
    growing = [POLL_S * min(BACKOFF_FACTOR**n, LONGEST) for n in range(19)]
    assert pauses[:19] == growing
    assert pauses[19:22] == growing[:3], "something was new"


def test_a_provider_that_names_a_time_is_left_alone_for_so_long(
    run: BatchRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    look, moments = FakeBatches.look, list[float]()

    async def busy(endpoint: FakeBatches, batch_id: str) -> BatchStatus:
        moments.append(asyncio.get_running_loop().time())
        if len(moments) == 1:
            raise e.Overloaded("busy", status=529, retry_after_s=500.0)
        return await look(endpoint, batch_id)

    monkeypatch.setattr(FakeBatches, "poll", busy)
    assert _outcome(run) == "finished"
    assert moments[1] - moments[0] >= 500.0


def test_a_failure_whose_line_is_missing_makes_results_short_too(
    run: BatchRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, first = FakeBatches.results, set[str]()

    async def without_failures(
        endpoint: FakeBatches, batch_id: str, standing: BatchStatus
    ) -> AsyncGenerator[tuple[str, ItemOutcome]]:
        is_first = batch_id not in first
        first.add(batch_id)
        async for item, outcome in read(endpoint, batch_id, standing):
            if isinstance(outcome, Received) or not is_first:
                yield item, outcome

    monkeypatch.setattr(FakeBatches, "results", without_failures)
    run.provider.chances = Chances(fails=1.0)  # each item, once
    assert _outcome(run) == "finished"
    failed = [f for f in run.events("attempt_failed") if isinstance(f, AttemptFailed)]
    assert [f.error for f in failed] == ["ServerError"] * TASKS


def test_results_that_never_come_are_asked_again_once_all_is_settled(
    run: BatchRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.is_settled = True
    read, moments = FakeBatches.results, list[float]()

    async def gone(
        endpoint: FakeBatches, batch_id: str, standing: BatchStatus
    ) -> AsyncGenerator[tuple[str, ItemOutcome]]:
        if batch_id == "batch-0":
            moments.append(asyncio.get_running_loop().time())
            raise e.BadRequest("no such file", status=404)
        async for line in read(endpoint, batch_id, standing):
            yield line

    monkeypatch.setattr(FakeBatches, "results", gone)
    assert _outcome(run) == "finished"
    assert moments[-1] - moments[0] >= run.options.batch_settle_s - 1e-3
    assert len(moments) > 1
    failed = [f for f in run.events("attempt_failed") if isinstance(f, AttemptFailed)]
    assert [f.error for f in failed] == ["Expired"] * 3
    assert run.status().tasks.completed == TASKS


def test_a_batch_whose_end_is_known_and_that_is_gone_ends_once(
    run: BatchRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object) -> AsyncGenerator[tuple[str, ItemOutcome]]:
        for line in ():
            yield line
        raise e.AuthFailed("no", status=401)

    async def unknown(*_: object) -> BatchStatus:
        raise e.BadRequest("no such batch", status=404)

    with monkeypatch.context() as patch:
        patch.setattr(FakeBatches, "results", refuse)
        assert _outcome(run) == "endpoint"
    look = FakeBatches.look

    async def forgetful(endpoint: FakeBatches, batch_id: str) -> BatchStatus:
        return await (unknown() if batch_id == "batch-0" else look(endpoint, batch_id))

    monkeypatch.setattr(FakeBatches, "poll", forgetful)
    assert _outcome(run) == "finished"
    ended = [e.batch for e in run.events("batch_ended") if isinstance(e, BatchEnded)]
    assert len(ended) == len(set(ended))
    assert run.status().tasks.completed == TASKS


@pytest.mark.parametrize("whole", [e.ServerError("all of it", status=500), None])
def test_an_item_of_a_failed_batch_ends_with_its_own_fault_before_that_of_all(
    run: BatchRun,
    monkeypatch: pytest.MonkeyPatch,
    whole: e.AttemptError | None,
) -> None:
    run.is_settled = True
    look, read = FakeBatches.look, FakeBatches.results

    async def failing(endpoint: FakeBatches, batch_id: str) -> BatchStatus:
        if batch_id != "batch-0":
            return await look(endpoint, batch_id)
        faults = {0: e.Timeout("line 1")}
        return BatchStatus(status="failed", outcome="failed", faults=faults, rest=whole)

    async def none_of_the_first(
        endpoint: FakeBatches, batch_id: str, standing: BatchStatus
    ) -> AsyncGenerator[tuple[str, ItemOutcome]]:
        if standing.outcome != "failed":
            async for line in read(endpoint, batch_id, standing):
                yield line

    monkeypatch.setattr(FakeBatches, "poll", failing)
    monkeypatch.setattr(FakeBatches, "results", none_of_the_first)
    assert _outcome(run) == "finished"
    failed = [f for f in run.events("attempt_failed") if isinstance(f, AttemptFailed)]
    others = "Expired" if whole is None else "ServerError"
    assert sorted(f.error for f in failed) == sorted(["Timeout", others, others])
