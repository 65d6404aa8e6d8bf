"""What is in batches counts at its worst until it is known, wherever a batch stands.

What is asked has changed while a batch was about to be sent.
"""

from __future__ import annotations

import os
import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.clients.wire_shared import skeleton
from runner.engine.driver import Driver
from runner.job import Task
from runner.messages import ChatRequest, Message, TextPart
from store.control import Command, send_command
from store.events import AttemptAnswered, AttemptFailed, AttemptStarted
from tests.runner.batch.batch_provider import Chances, Provider
from tests.runner.batch.batch_run import MODEL, TASKS, BatchRun, Fuse
from tests.runner.toy_jobs import ToyJob, ToySettings

EACH = (10 * 0.5 + 5 * 1.0) / 1e6
"""Dollars that the provider bills an answer at."""
TINY = 1e-12
TROUBLED = Chances(lost=0.3, refused=0.1, broken=0.3, short=0.3, expires=0.2, fails=0.1)


def _billed(run: BatchRun) -> float:
    return EACH * sum(run.provider.billed.values())


def _counted(run: BatchRun) -> float:
    """What the budget holds against its cap, as the log knows it."""
    seen = run.status()
    return (seen.cost_usd or 0.0) + seen.possible_usd + seen.in_flight_usd


@settings(
    max_examples=60 if "SIFTLOG_PROVE" in os.environ else 3,
    deadline=None,
    database=None,
)
@given(
    seed=st.integers(0, 10**6),
    kills=st.lists(st.integers(3, 70), min_size=1, max_size=3),
    cap=st.floats(5e-5, 1e-3),
    is_labelled=st.booleans(),
)
def test_what_may_be_billed_is_counted_at_every_step_and_never_passes_the_cap(
    seed: int, kills: list[int], cap: float, *, is_labelled: bool
) -> None:
    provider = Provider(random.Random(seed), TROUBLED, is_labelled=is_labelled)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        run = BatchRun(Path(folder), provider, patch, budget=cap)
        for steps in (*kills, None):
            ended = run.process(Fuse(steps))
            assert _billed(run) <= _counted(run) + TINY
            assert _counted(run) <= cap + TINY
        assert ended is not None
        assert ended.outcome in {"finished", "budget"}
        assert run.status().in_flight_usd == 0.0


def _cancel_with_two_open(run: BatchRun) -> None:
    def watch(driver: Driver) -> None:
        del driver
        asked = Command(
            id="c", author="somebody", host="here", at_us=1, kind="cancel", payload={}
        )

        def when_sent() -> None:
            if len(run.provider.there) == 2 and not run.folder.control.exists():
                for batch in run.provider.there.values():
                    batch.looks = 10**9
                send_command(run.folder, asked)

        run.on_step = when_sent

    run.on_watch = watch


def test_what_is_cancelled_counts_as_what_it_had_reserved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = BatchRun(tmp_path, Provider(random.Random(3)), monkeypatch, budget=1.0)
    run.is_settled = True
    _cancel_with_two_open(run)
    ended = run.process()
    assert ended is not None
    assert ended.outcome == "cancelled"
    started = [
        s for s in run.events("attempt_started") if isinstance(s, AttemptStarted)
    ]
    assert started
    reserved = sum(start.worst_usd or 0.0 for start in started)
    seen = run.status()
    assert seen.possible_usd == pytest.approx(reserved)
    assert (seen.cost_usd or 0.0, seen.in_flight_usd) == (0.0, 0.0)
    assert _billed(run) <= seen.possible_usd


@pytest.mark.parametrize("earlier", ["1,2", None])
def test_a_call_that_goes_on_keeps_its_reservation_and_its_next_costs_as_today(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, earlier: str | None
) -> None:
    provider = Provider(random.Random(3))
    run = BatchRun(
        tmp_path,
        provider,
        monkeypatch,
        price=earlier,
        batch_requests=50,
        allow_unknown_price=True,
    )
    steps = 3
    while not provider.there:
        run.process(Fuse(steps))
        steps += 1
    (batch,) = provider.there.values()
    batch.fates = dict.fromkeys(batch.fates, "expired")
    today = run.options.model_copy(update={"price": (3.0, 4.0), "budget": 1.0})
    run.options = today
    reserved: list[int] = []

    def watch(driver: Driver) -> None:
        run.on_step = lambda: reserved.append(driver.statistics().budget.reserved_pico)

    run.on_watch = watch
    ended = run.process()
    assert ended is not None
    assert ended.outcome == "finished"
    started = [
        s for s in run.events("attempt_started") if isinstance(s, AttemptStarted)
    ]
    first = [s.worst_usd for s in started[: len(batch.fates)]]
    again = [s.worst_usd for s in started if s.attempt > 1]
    assert len(first) == len(again)
    assert all(again), "none is asked again as if it cost nothing"
    assert (None in first) is (earlier is None)
    if earlier is not None:
        assert max(filter(None, first)) < min(filter(None, again))
    held = again if earlier is None else first
    assert reserved[0] >= sum(round((usd or 0.0) * 1e12) for usd in held)


def _leave_prepared(run: BatchRun) -> None:
    """End a process between what it prepared and the provider."""
    steps = 3
    while not run.folder.log.exists() or not run.open().count:
        run.process(Fuse(steps))
        steps += 1
    assert not run.provider.there


def test_a_call_that_was_never_sent_is_not_sent_as_another_than_the_log_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = Provider(random.Random(3))
    run = BatchRun(tmp_path, provider, monkeypatch)
    _leave_prepared(run)

    def request(job: ToyJob, dataset: ToySettings, task: Task) -> ChatRequest:
        del job, dataset
        text = f"{task.stage} {task.key} please"
        return ChatRequest(
            messages=(Message(role="user", parts=(TextPart(text=text),)),),
            max_tokens=16,
        )

    monkeypatch.setattr(ToyJob, "request", request)
    run.accepts_changes = True
    ended = run.process()
    assert ended is not None
    assert ended.outcome == "finished"
    failed = [f for f in run.events("attempt_failed") if isinstance(f, AttemptFailed)]
    assert failed
    assert {f.error for f in failed} == {"Expired"}
    assert {f.possible_usd for f in failed} == {0.0}
    assert all("changed since" in (f.message or "") for f in failed)
    started = {
        (event.task, event.attempt): event.request_sha256
        for event in run.events("attempt_started")
        if isinstance(event, AttemptStarted)
    }
    answered = {
        started[event.task, event.attempt]
        for event in run.events("attempt_answered")
        if isinstance(event, AttemptAnswered)
    }
    asked = {
        skeleton(
            ChatRequest(
                messages=(Message(role="user", parts=(TextPart(text=text),)),),
                max_tokens=16,
            ),
            MODEL,
        ).sha256
        for text in provider.billed
    }
    assert answered == asked, "the log says of every answer what it is an answer to"
    assert len(provider.billed) == TASKS
    assert all(text.endswith("please") for text in provider.billed)
