"""A provider shows its batches late, or for a moment not, or does not tell yet.

When batches are looked at, and what is made of looks that show too little. What comes
of a batch short, or of others; and what goes into one.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import pytest

from runner import errors as e
from runner.batch.batch import (
    BatchBounds,
    BatchQuery,
    BatchSearch,
    BatchStatus,
    ItemOutcome,
)
from runner.batch.carrier import BACKOFF_FACTOR, LONGEST, MOST_READINGS, BatchContext
from runner.clients.client import Received
from runner.errors import BadRequest
from store.events import AttemptFailed, BatchCreated, BatchEnded
from tests.runner.batch.batch_provider import Chances, FakeBatches, Provider, There
from tests.runner.batch.batch_run import ROUNDING_S, TASKS, BatchRun


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
        asked = sys._getframe(1).f_code.co_name
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
    look, wait = FakeBatches.poll, BatchContext.pause
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
    look, moments = FakeBatches.poll, list[float]()

    async def busy(endpoint: FakeBatches, batch_id: str) -> BatchStatus:
        moments.append(asyncio.get_running_loop().time())
        if len(moments) == 1:
            raise e.Overloaded("busy", status=529, retry_after_s=500.0)
        return await look(endpoint, batch_id)

    monkeypatch.setattr(FakeBatches, "poll", busy)
    assert _outcome(run) == "finished"
    assert moments[1] - moments[0] >= 500.0 - ROUNDING_S


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
    assert moments[-1] - moments[0] >= run.options.batch_settle_s - ROUNDING_S
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
    look = FakeBatches.poll

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
    look, read = FakeBatches.poll, FakeBatches.results

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
    assert any("missing requests are sent again" in t for t in run.told) is bool(lost)


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
    look = FakeBatches.poll

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
