"""Decides which task is sent next: the sans-IO core of the engine.

The scheduler owns no task, socket, clock or database. It receives events (`loaded`,
`received`, `failed`, `settled`, `planned`, ...) with their time, and `step(now)`
returns actions: tasks to start, pages of open tasks to fetch, and when to call it
again. One driver performs them (`runner/engine/driver.py`).

Rules:

1. Memory is bounded: per model and stage at most `window` tasks are loaded, whatever
   the run's size; the rest waits in the log.
2. Later stages go first, so papers are finished early and prompt caches stay warm. A
   retry that has been due for a minute goes before them, the oldest first: it starts
   after those that were due before it.
3. Models at one endpoint take turns by weight; one that could not use its turns, for
   lack of tasks or slots, does not make up for them later. Between two starts of a
   model that could always start, one of w times its weight starts at most 1 + w times.
4. A slot is held from the start of an attempt until its outcome is known; the task
   stays *unsettled* until that outcome is durable, and new starts wait while too many
   are unsettled, so a slow disk slows the calls instead of filling memory.
5. A task whose worst case exceeds the remaining budget blocks its model's later ones:
   within a model no smaller task overtakes it. Other models continue; their calls use
   the same budget, so this ends.
6. Several runs of one process may share endpoints and a budget: the turns of rule 3 go
   over the models of all of them. A scheduler whose turn it is not `yields`.
7. The first call of a stage that an endpoint may refuse goes alone (`probe`), for two
   seconds at most, so a refusal costs one call instead of one per slot.
8. If a process works under a lease, nothing starts once the lease may have expired,
   because another process may then own its part.
9. A single model is stopped if all its tasks would be refused or its replies are
   useless: none of its tasks starts, they stay open, and other models continue.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from runner import errors as e
from runner.engine.failure_policy import (
    RETRY_RULES,
    SUSPECT_ATTEMPTS,
    RetryDecision,
    decide_retry,
    may_be_billed,
)
from runner.engine.model_queue import (
    ModelQueue,
    ModelQueueStatistics,
    ModelStop,
    QueuedTask,
    TaskPageRequest,
)
from runner.limits.limiter import Endpoint, Limits
from runner.limits.rate_limits import NO_HEADER_LIMITS, HeaderLimits
from runner.money.budget import Budget
from store.task import Scope, is_within


class Fence(Protocol):
    """Reports whether this process still owns its part of the run."""

    def holds(self, now: float) -> bool:
        """Return whether calls may be sent."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerStep:
    """Actions to perform now."""

    start: tuple[QueuedTask, ...]
    load: tuple[TaskPageRequest, ...]
    #: time of the next step at the latest; None: after the next event
    wake_at: float | None
    yields: bool = False  #: it is another run's turn; wake that run


class Scheduler:
    """Decides the engine's next actions."""

    def __init__(
        self,
        models: Iterable[tuple[str, Sequence[str], Limits, Endpoint]],
        *,
        deadline_s: float,
        budget: Budget | None = None,
        fence: Fence | None = None,
    ) -> None:
        """Prepare one queue per model: (model, stages in order, limits, endpoint)."""
        self.budget = budget or Budget()
        self._fence = fence
        self._model_queues = {
            model: ModelQueue(model, stages, limits, endpoint, self.budget)
            for model, stages, limits, endpoint in models
        }
        self._sharing: dict[Endpoint, list[ModelQueue]] = {}
        for model_queue in self._model_queues.values():
            self._sharing.setdefault(model_queue.endpoint, []).append(model_queue)
            model_queue.endpoint.join(model_queue)
        self._deadline_s = deadline_s
        self._draining = False
        self._yields = False
        self._sent: set[QueuedTask] = set()  #: attempts in flight
        self._pauses: set[Scope] = set()

    def probe(self, model: str, stages: Iterable[str]) -> None:
        """Send the first call of each of these stages alone."""
        self._model_queues[model].probes = dict.fromkeys(stages)

    # -- what happened ---------------------------------------------------------

    def loaded(
        self,
        load: TaskPageRequest,
        works: Sequence[tuple[QueuedTask, float]],
        *,
        last: int | None,
        held: int = 0,
        others: int = 0,
    ) -> None:
        """Take a loaded page: tasks with the time at which each may start.

        Args:
            load: the requested page.
            works: its tasks and, for each, the monotonic second it is due.
            last: highest task number on the page; None: the page was empty.
            held: tasks on the page that wait for the user.
            others: tasks on the page that are already loaded, or need no attempt.
        """
        model_queue = self._model_queues[load.model]
        queue = model_queue.queues[load.stage]
        queue.loading = False
        size = len(works) + held + others
        queue.is_dry = size < load.limit and not queue.has_new_tasks
        queue.has_new_tasks = False
        if queue.is_rewound:
            queue.is_rewound = False  # this page is loaded and counted again
        else:
            model_queue.held += held
            queue.cursor = last or queue.cursor
        for work, due in works:
            if work.number in model_queue.loaded_tasks:
                continue
            model_queue.loaded_tasks.add(work.number)
            if due == float("-inf"):
                queue.ready.append(work)
            else:
                model_queue.wait(work, due)

    def planned(self, stage: str, model: str) -> None:
        """Note that tasks of this stage and model were added to the log."""
        self._model_queues[model].queues[stage].grew()

    def reopened(self) -> None:
        """Read the pages from the start: final tasks were reopened."""
        for model_queue in self._model_queues.values():
            model_queue.read_again()

    def passed_over(self, model: str) -> None:
        """Handle a page that shows an unsettled task as open: it was reopened."""
        self._model_queues[model].is_behind = True

    def received(
        self,
        work: QueuedTask,
        now: float,
        *,
        used: int | None,
        cost_pico: int | None = 0,
        header_limits: HeaderLimits = NO_HEADER_LIMITS,
    ) -> None:
        """Take a reply and free its slot.

        Args:
            work: the task.
            now: monotonic seconds.
            used: tokens, if reported.
            cost_pico: its cost; None: its price is known and its usage is not.
            header_limits: limits from the headers.
        """
        self._sent.discard(work)
        self._pay(work, cost_pico)
        model_queue = self._model_queues[work.model]
        model_queue.in_flight -= 1
        model_queue.probed(work.stage)
        if used is not None:
            model_queue.used(used)
        model_queue.limiter.answered(now, work.sent_at, work.among, header_limits)
        model_queue.limiter.release(work.tokens, used)
        model_queue.endpoint.breaker.succeeded()
        model_queue.refusals.answered()

    def stop_model(self, model: str, reason: str) -> None:
        """Stop a model whose replies are useless."""
        model_queue = self._model_queues[model]
        if model_queue.stop is None:
            model_queue.stop = ModelStop(reason=reason, error=None)

    def again(self, work: QueuedTask) -> None:
        """Retry a task whose reply's content was refused, before any other task."""
        self._model_queues[work.model].queues[work.stage].retries.appendleft(work)

    def failed(
        self,
        work: QueuedTask,
        error: e.AttemptError,
        now: float,
        chance: float,
        *,
        header_limits: HeaderLimits = NO_HEADER_LIMITS,
    ) -> tuple[RetryDecision, str | None]:
        """Take a failed attempt; return the decision, and a message if it matters.

        The task is queued again only by `settled(work, retry_at=...)`, once the
        failure is durable.
        """
        self._sent.discard(work)
        self._pay(work, None if may_be_billed(error) else 0)
        model_queue = self._model_queues[work.model]
        model_queue.in_flight -= 1
        model_queue.probed(work.stage, error)
        is_suspect = model_queue.refusals.is_suspect(error)
        notice = model_queue.refused(error, work.number)
        if not is_suspect:
            notice = (
                notice
                or model_queue.endpoint.breaker.failed(error, now)
                or model_queue.give_up(error, self._deadline_s)
            )
        is_out = (
            model_queue.endpoint.breaker.is_open or model_queue.endpoint.breaker.stopped
        )
        # the model is at fault, not the task: it stays open
        is_shared = model_queue.stop is not None and model_queue.stop.error is type(
            error
        )
        if RETRY_RULES[type(error)].is_counted:
            work.failures[type(error)] += 1
            work.prior_attempts += 1
        decision = decide_retry(
            error,
            same=work.failures[type(error)],
            attempts=work.prior_attempts,
            elapsed_s=now - (work.since if work.since is not None else now),
            deadline_s=float("inf") if model_queue.limits.batched else self._deadline_s,
            chance=chance,
        )
        if is_suspect and work.failures[type(error)] < SUSPECT_ATTEMPTS:
            decision = RetryDecision(
                retry_in_s=RETRY_RULES[type(error)].base_s * (1 + chance)
            )
        model_queue.limiter.failed(
            now,
            work.sent_at,
            work.among,
            error,
            header_limits,
            pause_s=decision.pause_endpoint_s,
        )
        model_queue.limiter.release(work.tokens, None)
        is_elsewhere = is_shared or (
            is_out and RETRY_RULES[type(error)].max_attempts > 1
        )
        if decision.retry_in_s is None and is_elsewhere:
            # the endpoint is at fault, not the task: it stays open
            decision = RetryDecision(retry_in_s=0.0)
        return decision, notice

    def left(
        self, work: QueuedTask, error: e.AttemptError | None, now: float
    ) -> str | None:
        """Leave an attempt to the provider; return a message if this stops anything.

        *error* may stop the model or its endpoint.
        This process gives up its task; the reservation stays.
        """
        model_queue = self._model_queues[work.model]
        model_queue.in_flight -= 1
        model_queue.loaded_tasks.discard(work.number)
        if error is None:
            return None
        return model_queue.refused(
            error, work.number
        ) or model_queue.endpoint.breaker.failed(error, now)

    def _pay(self, work: QueuedTask, cost_pico: int | None) -> None:
        reserved = work.reserved_pico
        self.budget.settle(work.worst_pico, cost_pico, reserved_pico=reserved)

    def settled(self, work: QueuedTask, *, retry_at: float | None = None) -> None:
        """Note that an outcome is durable; a retry is due at *retry_at*, if given."""
        model_queue = self._model_queues[work.model]
        if retry_at is None:
            model_queue.loaded_tasks.discard(work.number)
            if model_queue.is_behind:
                model_queue.read_again()
            return
        model_queue.wait(work, retry_at)

    def drain(self) -> None:
        """Start no further attempt."""
        self._draining = True
        for model_queue in self._model_queues.values():
            model_queue.is_draining = True

    def leave(self) -> None:
        """Leave the shared turns: the process's work on the run is over.

        Abandoned calls hold no slot, and may be billed.
        """
        for model_queue in self._model_queues.values():
            model_queue.endpoint.leave(model_queue)
        while self._sent:
            work = self._sent.pop()
            self._model_queues[work.model].limiter.release(work.tokens, None)
            self._pay(work, None)

    def pause(self, stage: str | None, model: str | None) -> None:
        """Pause a stage, a model, one stage of a model, or (None, None) everything."""
        self._pauses.add((stage, model))
        self._mark_paused()

    def lift(self, stage: str | None, model: str | None) -> None:
        """Lift every pause of that stage, that model, or both; or each there is."""
        self._pauses = {p for p in self._pauses if not is_within(p, (stage, model))}
        self._mark_paused()

    def _mark_paused(self) -> None:
        for model_queue in self._model_queues.values():
            model_queue.mark_paused(self._pauses)

    def set_limits(self, model: str, limits: Limits, now: float) -> None:
        """Apply new limits set by the user; calls in flight finish."""
        self._model_queues[model].set_limits(limits, now)

    def go_on(self, work: QueuedTask, reserved_pico: int | None, now: float) -> None:
        """Continue an attempt of an earlier process, even above the limits."""
        self._model_queues[work.model].take(work, now, reserved_pico)
        self._sent.add(work)

    # -- what to do ------------------------------------------------------------

    def may_send(self, now: float) -> bool:
        """Return whether this process may send anything."""
        return self._fence is None or self._fence.holds(now)

    def step(self, now: float) -> SchedulerStep:
        """Return the actions due at *now*."""
        start: list[QueuedTask] = []
        load: list[TaskPageRequest] = []
        wakes: list[float] = []
        self._yields = False
        may_send = self.may_send(now)
        for endpoint, sharing in self._sharing.items():
            if self._draining or endpoint.breaker.stopped is not None or not may_send:
                continue
            active = [
                model_queue for model_queue in sharing if model_queue.stop is None
            ]
            for model_queue in active:
                model_queue.ripen(now)
            wakes += self._start(endpoint, now, start)
            for model_queue in active:
                if model_queue.waiting:
                    wakes.append(model_queue.waiting[0][0])
                changes_at = model_queue.next_changes_at(now)
                if changes_at is not None:
                    wakes.append(changes_at)
                load.extend(model_queue.loads())
        return SchedulerStep(
            start=tuple(start),
            load=tuple(load),
            wake_at=min(wakes, default=None),
            yields=self._yields,
        )

    def _start(
        self, endpoint: Endpoint, now: float, start: list[QueuedTask]
    ) -> Iterator[float]:
        """Start tasks in turn; yield the times at which waiting models may start one.

        Start-time fair queueing (Goyal, Vin, Cheng, 1996), a request counting as one.
        """
        able = [
            model_queue
            for model_queue in self._sharing[endpoint]
            if model_queue.stop is None
        ]
        while able:
            model_queue = min(able, key=endpoint.turn_order)
            queue = model_queue.next_queue(now)
            model_queue.is_broke = queue is not None and not self.budget.has_room(
                queue.head.worst_pico
            )
            if queue is None or model_queue.is_broke:
                able.remove(model_queue)
                continue
            when = model_queue.ready_at(queue, now)
            if when is None or when > now:
                able.remove(model_queue)
                if when is not None:
                    yield when
                continue
            if endpoint.is_anothers_turn(model_queue, self._sharing[endpoint], now):
                self._yields = True
                return
            endpoint.turn = max(endpoint.turn, model_queue.turn)
            model_queue.turn = endpoint.turn + model_queue.turn_s
            work = queue.pop()
            model_queue.take(work, now)
            self._sent.add(work)
            start.append(work)

    # -- state -----------------------------------------------------------------

    def counts_tokens(self, model: str) -> bool:
        """Return whether the tokens of a request matter to a limit."""
        return self._model_queues[model].limiter.counts_tokens

    def limits(self, model: str) -> Limits:
        """Return the user's limits of a model."""
        return self._model_queues[model].limits

    @property
    def held(self) -> int:
        """Number of open tasks that wait for the user."""
        return sum(model_queue.held for model_queue in self._model_queues.values())

    @property
    def stopped(self) -> str | None:
        """Return why an endpoint or model is stopped, if nothing is left to do."""
        for model_queue in self._model_queues.values():
            stop, reason = model_queue.stop, model_queue.endpoint.breaker.stopped
            if stop is not None and stop.error is not None:
                reason = reason or f"{model_queue.model}: {stop.reason}"
            if reason is not None:
                return reason if self.is_idle else None
        return None

    @property
    def futile(self) -> str | None:
        """Return why models were stopped for their replies, if nothing else is left."""
        stops = (model_queue.stop for model_queue in self._model_queues.values())
        reasons = [
            stop.reason for stop in stops if stop is not None and stop.error is None
        ]
        return ". ".join(reasons) if reasons and self.is_idle else None

    @property
    def unaffordable(self) -> QueuedTask | None:
        """Return a task that only a higher budget allows, if nothing else is left."""
        early = float("-inf")  # any of its tasks will do
        stuck = (x.next_queue(early) for x in self._model_queues.values() if x.is_stuck)
        return next((queue.head for queue in stuck if queue is not None), None)

    @property
    def is_out(self) -> bool:
        """Return whether all models are stopped."""
        return all(model_queue.is_out for model_queue in self._model_queues.values())

    @property
    def is_idle(self) -> bool:
        """Return whether nothing is left to start, fetch or wait for."""
        return all(
            model_queue.is_still
            if self._draining or model_queue.is_out
            else model_queue.is_empty or model_queue.is_stuck
            for model_queue in self._model_queues.values()
        )

    def statistics(self) -> tuple[ModelQueueStatistics, ...]:
        """Return the queues of every model as values."""
        return tuple(
            model_queue.statistics() for model_queue in self._model_queues.values()
        )
