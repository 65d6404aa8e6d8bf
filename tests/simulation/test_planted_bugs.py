"""Bugs planted on purpose: each is found within the seeds that every change runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from runner import errors as e
from runner.clients.client import Call, Received
from runner.engine.attempts import Attempts
from runner.engine.driver import Driver
from runner.engine.scheduler import Scheduler, SchedulerStep
from runner.limits.limiter import Limiter
from runner.money.budget import Budget
from tests.simulation.broken import Broken
from tests.simulation.provider import SimulatedClient
from tests.simulation.scenario import scenario_of
from tests.simulation.world import World
from tests.store.memory_log import MemoryLog

SEEDS = 300


def _first_broken() -> str:
    """The invariant that the first seed to fail violates."""
    for seed in range(SEEDS):
        try:
            World(scenario_of(seed)).run()
        except Broken as error:
            return error.invariant
    raise AssertionError(f"{SEEDS} seeds did not find it")


def test_a_completion_forgotten_at_resume_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    in_flight = MemoryLog.in_flight

    async def and_unread(self: MemoryLog) -> list[tuple[int, int]]:
        unread = await self.unread_answers(after=0, limit=100)
        return sorted(
            [*await in_flight(self), *((row.task, row.attempts) for row in unread)]
        )

    monkeypatch.setattr(MemoryLog, "in_flight", and_unread)
    assert _first_broken() == "no answer is forgotten"


def test_a_client_that_sends_again_by_itself_is_found_as_a_double_send(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    call = SimulatedClient.call

    async def stubborn(self: SimulatedClient, one: Call) -> Received:
        try:
            return await call(self, one)
        except e.ConnectionLost:
            return await call(self, one)

    monkeypatch.setattr(SimulatedClient, "call", stubborn)
    assert _first_broken() == "an answered attempt is never sent again"


@pytest.mark.parametrize("error", [e.Timeout, e.MalformedReply, e.ContextTooLong])
def test_a_slot_that_one_class_of_failure_keeps_is_found(
    monkeypatch: pytest.MonkeyPatch, error: type[e.AttemptError]
) -> None:
    failed = Limiter.failed

    def keep(self: Limiter, *args: Any, **asked: float) -> None:
        failed(self, *args, **asked)
        if any(isinstance(arg, error) for arg in args):
            self._in_flight += 1

    monkeypatch.setattr(Limiter, "failed", keep)
    # where every slot is kept, the run hangs before it can end
    assert _first_broken() in {"reservations return to zero", "nothing waits for ever"}


def test_money_that_one_kind_of_failure_keeps_reserved_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settle = Budget.settle

    def keep(
        self: Budget, worst_pico: int, cost_pico: int | None, *, reserved_pico: int
    ) -> None:
        settle(self, worst_pico, cost_pico, reserved_pico=reserved_pico)
        if cost_pico is None:
            self._reserved += reserved_pico

    monkeypatch.setattr(Budget, "settle", keep)
    assert _first_broken() == "reservations return to zero"


def test_money_that_a_resume_forgets_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    init = Budget.__init__

    def forgetful(self: Budget, cap_pico: int | None = None, **_: int) -> None:
        init(self, cap_pico)

    monkeypatch.setattr(Budget, "__init__", forgetful)
    assert _first_broken() in {
        "spending never passes the cap",
        "the folded state equals the live state",
    }


def test_a_retry_that_nobody_is_woken_for_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    step = Scheduler.step

    def forgetful(self: Scheduler, now: float) -> SchedulerStep:
        return replace(step(self, now), wake_at=None)

    monkeypatch.setattr(Scheduler, "step", forgetful)
    assert _first_broken() == "nothing waits for ever"


def test_a_freed_slot_that_nobody_is_told_of_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    init = Attempts.__init__

    def deaf(self: Attempts, *groups: Any, **others: Any) -> None:
        init(self, *groups, **{**others, "wake": lambda: None})

    monkeypatch.setattr(Attempts, "__init__", deaf)
    assert _first_broken() == "nothing waits for ever"


def test_a_reopening_that_nobody_is_told_of_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Driver, "reopened", lambda self: self._scheduler.reopened())
    assert _first_broken() == "nothing waits for ever"
