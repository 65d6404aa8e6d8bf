"""Runs the scheduler's decisions; the only module of the engine that owns tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

from runner.engine.answer_cache import AnswerLookup
from runner.engine.attempts import Attempts
from runner.engine.background import run_alongside
from runner.engine.config import EngineConfig
from runner.engine.model_queue import QueuedTask, TaskPageRequest
from runner.limits.limiter import Limits
from runner.money.budget import WHOLE, BudgetStatistics
from store.errors import LogBehind, StoreError
from store.events import LimitObserved
from store.read.status import Pause
from store.read.usage import dollars
from store.task import Scope, is_within, pico, usd


def budget_message(work: QueuedTask, budget: BudgetStatistics) -> str:
    """Describe the cost so far and the task that exceeds the budget.

    Args:
        work: The task that does not fit.
        budget: The run's money.
    """
    cap_pico = budget.cap_pico or 0
    cap = dollars(usd(cap_pico))
    label = "budget" if budget.share == WHOLE else "shard's share of the budget"
    spent = f"{dollars(usd(budget.spent_pico))} spent"
    if budget.possible_pico:
        possible = dollars(usd(budget.possible_pico))
        spent += f", up to {possible} more for calls whose reply or usage never came"
    next_call = f"call of {work.model} may cost {dollars(usd(work.worst_pico))}"
    reason = f"; {work.worst_reason}" if work.worst_reason else ""
    if work.worst_pico > cap_pico:
        return (
            f"The {label} of {cap} is too small: a single {next_call} ({spent}){reason}"
        )
    return f"The {label} of {cap} is reached: {spent}; the next {next_call}{reason}"


HEARTBEAT_S = 1.0
PAGE = 500
"""Tasks taken over from an earlier process at a time."""
Outcome: TypeAlias = Literal[
    "finished", "drained", "endpoint", "futility", "budget", "held", "job"
]
"""Reason why the loop ends. `futility`: a model's replies were useless; `job`: its code
raised where no task could fail for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverStatistics:
    """Counts of this process."""

    started: int  #: attempts
    answered: int
    cached: int  #: tasks that the response cache answered, none of them an attempt here
    adopted: int  #: tasks answered by the run's other logs, without attempts here
    forked: int  #: tasks whose answers were adopted from the parent run
    failed: int  #: attempts
    tasks_ended: int
    tasks_failed: int
    in_flight: int
    waiting: int  #: tasks whose next attempt is due later
    batches: int  #: batches that hold calls in flight
    budget: BudgetStatistics  #: of the whole run, earlier processes included
    pauses: tuple[Pause, ...]


class Driver:
    """Runs a plan to its end, or to a point from which it can be resumed."""

    def __init__(self, config: EngineConfig) -> None:
        services, endpoints = config.services, config.endpoints
        self._log = services.log
        self._clock = services.clock
        self._scheduler = services.scheduler
        self._planner = services.planner
        self._drains = config.drain
        self._takeover = config.takeover
        self.shares_budget = config.shared.has_budget
        self._wakeups = config.shared.wakeups
        self._clients = endpoints.clients
        self._wake = self._wakeups.register()
        self._attempts = Attempts(
            services,
            endpoints,
            config.costs,
            config.retries,
            cache=config.sources.cache,
            wake=self._wakeups.wake_all,
        )
        self._hits = AnswerLookup(
            services, endpoints, config.sources, reask=config.retries.reask
        )
        self._pauses: dict[Scope, Pause] = {}
        self._drain_until: float | None = None
        self._stopping = False
        self._fatal: Exception | None = None
        self._observed: tuple[LimitObserved, ...] = ()  #: the last ones recorded
        #: the task that the budget had no room for when the loop ended
        self._unaffordable: QueuedTask | None = None

    # -- from outside ----------------------------------------------------------

    def drain(self) -> None:
        """Start nothing more; calls in flight get the grace time."""
        if self._drain_until is None:
            self._drain_until = self._clock.monotonic() + self._drains.grace_s
            self._scheduler.drain()
            self._drains.leaving.set()
            self._wake.set()

    def stop(self) -> None:
        """Stop at once; calls in flight become unknown."""
        self.drain()
        self._stopping = True
        self._wake.set()

    @property
    def is_stopping(self) -> bool:
        """Whether an immediate stop was requested."""
        return self._stopping

    def pause(self, pause: Pause) -> None:
        """Start nothing in the scope of *pause*; calls in flight finish."""
        self._pauses[pause.scope] = pause
        self._scheduler.pause(*pause.scope)
        # tasks behind the paused ones may now be next
        self._wake.set()

    def lift(self, stage: str | None, model: str | None) -> tuple[Pause, ...]:
        """Lift every pause of that stage, that model, or both; or each there is."""
        scope = stage, model
        lifted = [p for p in self._pauses.values() if is_within(p.scope, scope)]
        for pause in lifted:
            del self._pauses[pause.scope]
        self._scheduler.lift(*scope)
        self._wake.set()
        return tuple(lifted)

    def in_flight(self, model: str | None = None) -> int:
        """Return the calls in flight of a model; None: of all."""
        queues = self._scheduler.statistics()
        return sum(q.in_flight for q in queues if model in {None, q.model})

    def limits(self, model: str) -> Limits:
        """Return the user's limits of a model."""
        return self._scheduler.limits(model)

    def set_limits(self, model: str, limits: Limits) -> None:
        """Apply new limits set by the user."""
        self._scheduler.set_limits(model, limits, self._clock.monotonic())
        self._wakeups.wake_all()

    @property
    def has_budget(self) -> bool:
        """Return whether there is a budget."""
        return self._scheduler.budget.statistics().cap_pico is not None

    def add_budget(self, usd: float) -> None:
        """Raise the budget by *usd* dollars; only if there is one."""
        self._scheduler.budget.add(pico(usd))
        self._wake.set()

    @property
    def stopped(self) -> str | None:
        """Return why an endpoint is stopped, if nothing else is left to do."""
        return self._scheduler.stopped

    @property
    def futile(self) -> str | None:
        """Return why models were stopped for their replies, if nothing else is left."""
        return self._scheduler.futile

    @property
    def stuck(self) -> str | None:
        """Return what the plan lacks because the job's code raised."""
        return self._planner.stuck

    @property
    def broke(self) -> str | None:
        """Return why the budget stops the run, if nothing else is left to do."""
        if self._unaffordable is None:
            return None
        return budget_message(self._unaffordable, self._scheduler.budget.statistics())

    def reopened(self) -> None:
        """Notify the scheduler that final tasks were reopened."""
        self._scheduler.reopened()
        self._wake.set()

    def recheck(self) -> None:
        """Wake the loop: lent limits or money may let waiting calls start."""
        self._wake.set()

    # -- the loop --------------------------------------------------------------

    async def run(self) -> Outcome:
        """Run until nothing is left to do; raise the error that stopped the loop."""
        try:
            async with (
                run_alongside(self.guard(self._send_heartbeats)),
                asyncio.TaskGroup() as calls,
            ):
                plan = calls.create_task(self.guard(self._plan))
                await self._dispatch(calls, plan)
        finally:
            self._scheduler.leave()
            self._wakeups.unregister(self._wake)
            self._wakeups.wake_all()
        if self._fatal is not None:
            raise self._fatal
        if self._drain_until is not None:
            return "drained"
        if self._scheduler.stopped is not None:
            return "endpoint"
        if self._scheduler.futile is not None:
            return "futility"
        if self._unaffordable is not None:
            return "budget"
        if self._scheduler.held:
            return "held"
        return "finished" if self._planner.stuck is None else "job"

    async def _dispatch(
        self, calls: asyncio.TaskGroup, plan: asyncio.Task[None]
    ) -> None:
        running: set[asyncio.Task[None]] = set()

        async def run(attempt: Callable[[], Coroutine[Any, Any, None]]) -> None:
            # a callback of the task would cost a further turn of the loop per call
            try:
                await self.guard(attempt)
            finally:
                running.difference_update({asyncio.current_task()})

        def send(attempt: Callable[[], Coroutine[Any, Any, None]]) -> None:
            running.add(calls.create_task(run(attempt)))

        await self._go_on(send)
        while True:
            self._wake.clear()
            step = self._scheduler.step(self._clock.monotonic())
            for load in step.load:
                calls.create_task(self.guard(partial(self._load, load)))
            for work in step.start:
                send(partial(self._attempts.perform, work))
            if step.start or step.yields:
                # other runs at the endpoint may have waited for this turn
                self._wakeups.wake_all(by=self._wake)
            if self._must_stop():
                for task in (plan, *running):
                    task.cancel()
                return
            if self._has_ended(plan, running):
                # now: another run may reserve part of a shared budget a moment later
                self._unaffordable = self._scheduler.unaffordable
                plan.cancel()
                return
            await self._nap(step.wake_at)

    async def _go_on(
        self, send: Callable[[Callable[[], Coroutine[Any, Any, None]]], None]
    ) -> None:
        """Resume waiting for calls that earlier processes sent in batches."""
        for first in range(0, len(self._takeover.carried), PAGE):
            page = {
                start.task: start
                for start in self._takeover.carried[first : first + PAGE]
            }
            for row in await self._log.tasks(sorted(page)):
                started = page[row.task]
                work = await self._attempts.admit(row)
                worst = started.worst_usd
                reserved = None if worst is None else pico(worst)
                self._scheduler.go_on(work, reserved, self._clock.monotonic())
                send(partial(self._attempts.go_on, started))

    def _has_ended(
        self, plan: asyncio.Task[None], running: set[asyncio.Task[None]]
    ) -> bool:
        """Return whether there is nothing left to wait for."""
        if self._drain_until is not None:
            # checks the calls, not the scheduler: a call that raised never settles its
            # task
            return not running
        return self._scheduler.is_idle and (plan.done() or self._scheduler.is_out)

    def _must_stop(self) -> bool:
        return self._stopping or (
            self._drain_until is not None
            and self._clock.monotonic() >= self._drain_until
        )

    async def _nap(self, wake_at: float | None) -> None:
        """Sleep until something happens, or until *wake_at*."""
        if self._drain_until is not None:
            wake_at = min(wake_at or self._drain_until, self._drain_until)
        if wake_at is None:
            await self._wake.wait()
            return
        delay = wake_at - self._clock.monotonic()
        try:
            async with asyncio.timeout(max(0.0, delay)):
                await self._wake.wait()
        except TimeoutError:
            return

    async def guard(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run *work* alongside the calls; on an error, calls in flight finish first.

        `run` raises the first error of guarded work.
        """
        try:
            await work()
        except Exception as error:  # noqa: BLE001 - kept, and raised by `run`
            if self._fatal is None:
                self._fatal = error
            self.drain()
            if isinstance(error, StoreError):
                # nothing can be recorded now, so nothing may be sent or awaited
                self.stop()
        finally:
            self._wake.set()

    async def _send_heartbeats(self) -> None:
        """Record a heartbeat and the current limits once a second."""
        while True:
            await self._log.heartbeat()
            before = self._observed
            if self.observe_limits() != before:
                try:
                    self._log.append_nowait(*self._observed)
                except LogBehind:  # not fatal: it is recorded a second later
                    self._observed = before
            await self._clock.sleep_until(self._clock.monotonic() + HEARTBEAT_S)

    def observe_limits(self) -> tuple[LimitObserved, ...]:
        """Return pauses and ceilings for the log, which the caller appends.

        Calls in flight change constantly and are left out.
        """
        now = self._clock.monotonic()
        observed = []
        for model_queue in self._scheduler.statistics():
            until = model_queue.limiter.paused_until
            paused = until is not None and until > now
            observed.append(
                LimitObserved(
                    model=model_queue.model,
                    concurrency=model_queue.limiter.concurrency,
                    in_flight=0,
                    rpm=model_queue.limiter.rpm,
                    tpm=model_queue.limiter.tpm,
                    paused_until_us=self._in_tenths(until - now)
                    if paused and until is not None
                    else None,
                    ceiling=model_queue.limiter.ceiling,
                )
            )
        self._observed = tuple(observed)
        return self._observed

    def _in_tenths(self, seconds: float) -> int:
        """Return the wall clock in *seconds* from now, in us, to a tenth of a second.

        With a finer value a constant pause would seem to change at every observation.
        """
        return round((self._clock.now_us() / 1e6 + seconds) * 10) * 100_000

    # -- planning and loading --------------------------------------------------

    async def _plan(self) -> None:
        async for stage, model in self._planner.grow():
            self._scheduler.planned(stage, model)
            self._wake.set()

    async def _load(self, load: TaskPageRequest) -> None:
        rows = await self._log.open_tasks(
            load.stage, load.model, after=load.after, limit=load.limit
        )
        # before any await: a known task may end meanwhile
        if any(self._attempts.is_ending(row.task) for row in rows):
            self._scheduler.passed_over(load.model)
        fresh = [row for row in rows if not self._attempts.holds(row.task)]
        free = [row for row in fresh if not row.is_held or self._takeover.frees_held]
        taken = await self._hits.take(free)
        now_us = 0
        if any(row.not_before_us is not None for row in free):
            now_us = await self._log_now_us()
        # in this order: the time of the read must not advance retries
        now = self._clock.monotonic()
        works: list[tuple[QueuedTask, float]] = []
        for row in free:
            if row.task in taken:
                continue
            work = await self._attempts.admit(row)
            due = float("-inf")
            if row.not_before_us is not None:
                due = now + max(0.0, (row.not_before_us - now_us) / 1e6)
            works.append((work, due))
        self._scheduler.loaded(
            load,
            works,
            last=rows[-1].task if rows else None,
            held=len(fresh) - len(free),
            others=len(rows) - len(fresh) + len(taken),
        )

    async def _log_now_us(self) -> int:
        """Return the current time of the log, which does not go back with the clock.

        A wait is measured from an event of the log; measured by a clock that was set
        back since, it would last longer by that amount.
        """
        last = await self._log.last_seq()
        recorded = await self._log.events(after=last - 1, limit=1)
        return max(self._clock.now_us(), *(event.ts_us for event in recorded))

    def statistics(self) -> DriverStatistics:
        """Return the driver's counts."""
        model_queues = self._scheduler.statistics()
        return DriverStatistics(
            started=self._attempts.counts["started"],
            answered=self._attempts.counts["answered"],
            failed=self._attempts.counts["failed"],
            cached=self._hits.cached,
            forked=self._hits.forked,
            adopted=self._hits.adopted,
            tasks_ended=self._attempts.counts["tasks_ended"]
            + self._hits.cached
            + self._hits.reused
            + self._hits.adopted
            + self._hits.forked,
            tasks_failed=self._attempts.counts["tasks_failed"],
            in_flight=self.in_flight(),
            waiting=sum(model_queue.waiting for model_queue in model_queues),
            batches=sum(
                client.statistics().batches for client in self._clients.values()
            ),
            budget=self._scheduler.budget.statistics(),
            pauses=tuple(self._pauses.values()),
        )
