"""Runs by batches: what they cost, how they are left, and what providers may do."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from runner import errors as e
from runner.batch.batch import BatchCancellation, BatchStatus, run_tag
from runner.cli.status import status_json
from runner.cli.status_page import status_page
from runner.engine.driver import Driver
from runner.errors import UsageError
from runner.money.tokens import LEAST_LEARNED
from store.clock import SystemClock
from store.control import Command, send_command
from store.database import open_reader
from store.events import (
    AttemptAnswered,
    AttemptFailed,
    AttemptStarted,
    BatchCancelled,
    BatchCreated,
    BatchEnded,
    BatchPolled,
    BatchPrepared,
)
from store.log.sqlite import SqliteLog
from store.read.course import course
from store.read.live import live_status
from store.read.status import liveness, status
from tests.replacing import replace
from tests.runner.batch.batch_provider import Chances, FakeBatches, Provider
from tests.runner.batch.batch_run import MODEL, ROUNDING_S, TASKS, BatchRun, Fuse


@pytest.fixture
def provider() -> Provider:
    return Provider(random.Random(3))


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, provider: Provider
) -> BatchRun:
    return BatchRun(tmp_path, provider, monkeypatch)


def _outcome(run: BatchRun) -> tuple[str, str]:
    ended = run.process()
    assert ended is not None
    return ended.outcome, ended.reason or ""


def _events(run: BatchRun, kind: str, of: type) -> list[Any]:
    found = run.events(kind)
    assert all(isinstance(event, of) for event in found)
    return found


async def _refuse(*_: object) -> Any:
    raise e.AuthFailed("no.", status=401)


async def _refuse_lines(*_: object) -> AsyncGenerator[Any]:
    yield await _refuse()


def _never(provider: Provider) -> None:
    """No batch ends any more."""
    for batch in provider.there.values():
        batch.looks = 10**9


def test_a_run_says_what_happened_to_its_batches(run: BatchRun) -> None:
    assert _outcome(run)[0] == "finished"
    prepared = _events(run, "batch_prepared", BatchPrepared)
    created = _events(run, "batch_created", BatchCreated)
    ended = _events(run, "batch_ended", BatchEnded)
    polled = _events(run, "batch_polled", BatchPolled)
    keys = [event.batch for event in prepared]
    assert len(keys) == len(set(keys))
    assert all(key.startswith(f"{run_tag('r1')}-") for key in keys)
    assert Counter(keys) == Counter(event.batch for event in created)
    assert Counter(keys) == Counter(event.batch for event in ended)
    assert sum(event.requests for event in prepared) == TASKS
    assert all(event.requests <= 2 for event in prepared)
    assert {event.outcome for event in ended} == {"completed"}
    # a look that shows nothing new leaves no event
    assert len(polled) <= len(keys)
    started = _events(run, "attempt_started", AttemptStarted)
    assert all(event.batched for event in started)
    answered = _events(run, "attempt_answered", AttemptAnswered)
    assert {event.latency_ms for event in answered} == {None}


def _leave_two_open(run: BatchRun, provider: Provider) -> str:
    """Drain as soon as the provider has two batches; the sentence it ends with."""

    def watch(driver: Driver) -> None:
        def drain() -> None:
            if len(provider.there) == 2:
                _never(provider)
                driver.drain()

        run.on_step = drain

    run.on_watch = watch
    outcome, why = _outcome(run)
    assert outcome == "drained"
    run.on_watch, run.on_step = (lambda _driver: None), (lambda: None)
    return why


def test_a_drained_run_leaves_its_batches_to_a_later_process(
    run: BatchRun, provider: Provider
) -> None:
    run.is_settled = True
    why = _leave_two_open(run, provider)
    assert "3 requests stay in 2 open batches" in why
    assert "given up" not in why
    seen = run.status()
    assert (seen.batches.count, seen.batches.requests) == (2, 3)
    assert seen.attempts.unknown == 0
    for batch in provider.there.values():
        batch.looks = 0
    assert _outcome(run)[0] == "finished"
    assert set(provider.billed.values()) == {1}
    assert run.status().attempts.started == TASKS
    assert run.open().count == 0


def test_the_first_batch_of_a_model_that_is_not_known_holds_one_request(
    run: BatchRun, provider: Provider
) -> None:
    assert _outcome(run)[0] == "finished"
    first, *others = (len(batch.fates) for batch in provider.there.values())
    assert first == 1
    assert others[0] == 2  # and those after it are full
    assert sum(others) == TASKS - 1


def test_a_run_with_open_batches_goes_on_with_batches_or_not_at_all(
    run: BatchRun, provider: Provider
) -> None:
    _leave_two_open(run, provider)
    run.options = run.options.model_copy(update={"batch": False})
    with pytest.raises(UsageError, match="siftlog resume r1 --batch"):
        run.process()


def test_a_cancelled_run_has_its_batches_cancelled(
    run: BatchRun, provider: Provider
) -> None:
    def cancel(driver: Driver) -> None:
        del driver
        asked = Command(
            id="c", author="somebody", host="here", at_us=1, kind="cancel", payload={}
        )

        def when_sent() -> None:
            if len(provider.there) == 2 and not run.folder.control.exists():
                _never(provider)
                send_command(run.folder, asked)

        run.on_step = when_sent

    run.is_settled = True
    run.on_watch = cancel
    assert _outcome(run)[0] == "cancelled"
    assert all(batch.is_cancelled for batch in provider.there.values())
    (first, second) = _events(run, "batch_cancelled", BatchCancelled)
    assert first.by == second.by == "somebody"
    assert run.open().count == 0
    seen = run.status()
    assert seen.tasks.skipped == seen.tasks.planned
    assert seen.possible_usd > 0, "what a provider had answered by then is billed"


@pytest.mark.parametrize("is_there", [True, False])
def test_a_batch_that_nobody_was_told_of_is_looked_for_before_it_is_cancelled(
    run: BatchRun, provider: Provider, *, is_there: bool
) -> None:
    steps = 3
    while not run.folder.log.exists() or not run.open().count:
        run.process(Fuse(steps))
        steps += 1
    (prepared,) = _events(run, "batch_prepared", BatchPrepared)[:1]
    assert not provider.there

    async def cancel() -> None:
        if is_there:
            provider.create(prepared.batch, [("a", b'"read i0"')])
        async with await SqliteLog.open(
            run.folder.log, clock=SystemClock(), owner="somebody"
        ) as log:
            cancelling = BatchCancellation(
                folder=run.folder,
                log=log,
                clock=SystemClock(),
                endpoints={MODEL: FakeBatches(provider)},
                settle_s=0.0,
                notify=run.told.append,
            )
            await cancelling.cancel("me")

    asyncio.run(cancel())
    ended = _events(run, "batch_ended", BatchEnded)
    assert ended[0].outcome == ("cancelled" if is_there else "missing")
    assert all(batch.is_cancelled for batch in provider.there.values())
    assert (run.open().count, run.told) == (0, [])


def test_a_run_whose_batches_are_open_is_not_stalled_and_has_no_eta(
    run: BatchRun, provider: Provider
) -> None:
    run.is_settled = True
    _leave_two_open(run, provider)
    with open_reader(run.folder.log) as reader:
        seen = status(reader)
        later_us = seen.signs.phase_us + 5 * 3_600_000_000
        signs = replace(seen.signs, phase="run_resumed", heartbeat_us=later_us)
        assert liveness(signs, later_us, is_alive=True) == "live"
        assert liveness(replace(signs, batches=0), later_us, is_alive=True) == "stalled"
        shown = live_status(reader, later_us, is_held=False)
        past = course(reader)
    assert shown.forecast is None
    page = status_page(shown, past)
    assert "2 open: 3 requests wait, the oldest batch for 5 h" in page
    assert status_json(shown)["batches"]["requests"] == 3


def test_what_expires_is_asked_again_by_the_next_batch_and_nothing_else(
    run: BatchRun, provider: Provider
) -> None:
    provider.chances = Chances(expires=1.0)  # each item, once
    assert _outcome(run)[0] == "finished"
    failed = _events(run, "attempt_failed", AttemptFailed)
    assert [event.error for event in failed] == ["Expired"] * TASKS
    assert sum(event.possible_usd for event in failed) == 0
    assert provider.bodies == TASKS + len(failed)
    assert set(provider.billed.values()) == {1}


def test_a_budget_is_kept_at_half_the_price(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, provider: Provider
) -> None:
    each = (10 * 0.5 + 5 * 1.0) / 1e6
    unproven = LEAST_LEARNED * 1.0 / 1e6
    run = BatchRun(tmp_path, provider, monkeypatch, budget=unproven + each * TASKS * 20)
    assert _outcome(run)[0] == "finished"
    assert run.status().cost_usd == pytest.approx(each * TASKS)
    first, *others = _events(run, "attempt_started", AttemptStarted)
    assert unproven < first.worst_usd < unproven + 1e-4  # it went alone
    assert len(others) == TASKS - 1
    assert all(event.worst_usd < 1e-4 for event in others)


def test_a_budget_that_is_used_up_ends_the_run_with_nothing_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, provider: Provider
) -> None:
    monkeypatch.setattr("runner.money.tokens.LEAST_LEARNED", 1)  # the limit is trusted
    run = BatchRun(tmp_path, provider, monkeypatch, budget=1e-4)
    assert _outcome(run)[0] == "budget"
    assert run.open().count == 0
    cost = run.status().cost_usd
    assert cost is not None
    assert 0 < cost <= 1e-4


def test_a_batch_that_the_provider_knows_no_more_is_asked_again(
    run: BatchRun, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = FakeBatches.poll

    async def forgetful(endpoint: FakeBatches, batch_id: str) -> BatchStatus:
        if batch_id == "batch-0":
            asked_at.append(asyncio.get_running_loop().time())
            raise e.BadRequest("no such batch", status=404)
        return await look(endpoint, batch_id)

    asked_at: list[float] = []
    monkeypatch.setattr(FakeBatches, "poll", forgetful)
    assert _outcome(run)[0] == "finished"
    assert asked_at[-1] - asked_at[0] >= run.options.batch_settle_s - ROUNDING_S
    assert any("no longer has batch batch-0" in said for said in run.told)
    assert run.status().tasks.completed == TASKS
    assert provider.bodies == TASKS + len(provider.there["batch-0"].fates)


def test_a_full_queue_is_waited_for_however_long_that_takes(
    run: BatchRun, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    look, turned_away = FakeBatches.poll, set()

    async def full(endpoint: FakeBatches, batch_id: str) -> BatchStatus:
        if len(turned_away | {batch_id}) <= 9:
            turned_away.add(batch_id)
            for text in provider.there[batch_id].texts.values():
                provider.billed[text] = 0
            rest = e.RateLimited("token_limit_exceeded")
            return BatchStatus(status="failed", outcome="failed", rest=rest)
        return await look(endpoint, batch_id)

    monkeypatch.setattr(FakeBatches, "poll", full)
    assert _outcome(run)[0] == "finished"
    assert run.status().attempts.failed == 0
    assert run.status().tasks.completed == TASKS
    assert set(provider.billed.values()) == {1}


def test_a_provider_that_is_away_is_told_of_once_and_waited_for(
    run: BatchRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = FakeBatches.poll
    looks = 0

    async def away(endpoint: FakeBatches, batch_id: str) -> BatchStatus:
        nonlocal looks
        looks += 1
        if looks < 50:
            raise e.ServerError("away", status=502)
        return await look(endpoint, batch_id)

    monkeypatch.setattr(FakeBatches, "poll", away)
    assert _outcome(run)[0] == "finished"
    assert 0 < sum("away; trying again" in said for said in run.told) <= 4
    assert run.status().attempts.failed == 0


@pytest.mark.parametrize(
    ("step", "refuse"),
    [("poll", _refuse), ("results", _refuse_lines), ("find", _refuse)],
)
def test_a_key_that_is_refused_ends_the_run_and_leaves_its_batches_open(
    run: BatchRun,
    provider: Provider,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    refuse: object,
) -> None:
    provider.chances = Chances(lost=float(step == "find"))
    with monkeypatch.context() as patch:
        patch.setattr(FakeBatches, step, refuse)
        outcome, why = _outcome(run)
    assert outcome == "endpoint"
    assert "refused the key: no; fix it, then " in why
    seen = run.status()
    # one whose results are still to be read has ended
    assert (seen.batches.count > 0) is ("open batches" in why) is (step != "results")
    assert (seen.attempts.failed, seen.attempts.unknown) == (0, 0)
    provider.chances = Chances()
    assert _outcome(run)[0] == "finished"
    assert set(provider.billed.values()) == {1}
    assert run.status().attempts.started == TASKS
    ended = Counter(event.batch for event in _events(run, "batch_ended", BatchEnded))
    assert set(ended.values()) == {1}


def test_a_batch_that_is_refused_fails_its_calls_as_single_ones_would(
    run: BatchRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeBatches, "create", _refuse)
    outcome, why = _outcome(run)
    assert outcome == "endpoint"
    assert "refused the key" in why
    assert run.open().count == 0
    seen = run.status()
    assert (seen.tasks.failed, seen.possible_usd) == (0, 0.0)


def test_creations_that_never_work_end_as_calls_do(
    run: BatchRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> str:
        raise e.ServerError("broken", status=500)

    monkeypatch.setattr(FakeBatches, "create", fail)
    outcome, why = _outcome(run)
    assert outcome == "endpoint"
    assert "no batch could be made in 6 tries; the last one: broken" in why
    assert run.open().count == 0
    assert run.provider.bodies == 0


def test_batches_are_refused_where_no_model_has_any(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, provider: Provider
) -> None:
    run = BatchRun(tmp_path, provider, monkeypatch, model="baseline/lexical")
    with pytest.raises(UsageError, match="No model of this run has a batch API"):
        run.process()
    assert not run.folder.log.exists()
