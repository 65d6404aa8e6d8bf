"""Simulates how long a recorded run would take under other limits; sans-IO."""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from runner import errors as e
from runner.engine.model_queue import QueuedTask, TaskPageRequest
from runner.engine.scheduler import Scheduler
from runner.limits.limiter import Endpoint, Limits
from runner.limits.rate_limits import NO_HEADER_LIMITS, HeaderLimits, TokenBucket


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedAttempt:
    """A recorded attempt: the data that the simulation needs."""

    duration_s: float  #: from taking its slot to its outcome
    error: e.AttemptError | None = None  #: None: it was answered
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    cost_pico: int | None = 0  #: None: its price is unknown
    header_limits: HeaderLimits = NO_HEADER_LIMITS  #: limits in the reply's headers

    @property
    def tokens(self) -> int:
        """Tokens that count against a token limit."""
        return self.tokens_in + self.tokens_out


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedTask:
    """A recorded task with its attempts in order."""

    stage: str
    model: str
    attempts: tuple[RecordedAttempt, ...]
    worst_tokens: int = 0  #: reservation of an attempt under a token limit


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedItem:
    """A first-stage task and its follow-ups."""

    first: RecordedTask
    later: tuple[RecordedTask, ...] = ()  #: by stage, in the stages' order


class LearnedRateLimit:
    """A request rate that an endpoint was found to allow.

    Requests above it are refused. Without one, refusals are among the recorded
    attempts.
    """

    def __init__(
        self, per_second: float, *, refused_s: float, sends_retry_after: bool
    ) -> None:
        """Allow a rate, with bursts of a second's worth, as most servers do.

        Args:
            per_second: accepted requests.
            refused_s: duration of a refusal.
            sends_retry_after: whether a refusal has a `retry-after`.
        """
        self.per_second = per_second
        self._bucket = TokenBucket(per_second, max(1.0, per_second))
        self._refused_s = refused_s
        self._sends_retry_after = sends_retry_after

    def refuses(self, now: float) -> RecordedAttempt | None:
        """Return the refusal of a request that arrives *now*; None: it is accepted."""
        free_at = self._bucket.ready_at(now, 1.0)
        if free_at <= now:
            self._bucket.take(now, 1.0)
            return None
        wait_s = free_at - now if self._sends_retry_after else None
        error = e.RateLimited("over the rate", retry_after_s=wait_s)
        return RecordedAttempt(duration_s=self._refused_s, error=error)


CALL_S: Final = 0.00035
"""Engine time per call, sequential: 0.34 to 0.38 ms in `tests/bench/RESULTS.md`; no
limit makes a run faster than that."""

ASSUMED: Final = (
    "an attempt takes as long as it took in the recorded run, under that run's load",
    "failures occur at the same attempts as in the run",
    "follow-ups leave once all earlier stages of their first-stage task have ended",
    f"the engine itself starts at most {round(1 / CALL_S, -2):,.0f} calls a second",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedModel:
    """One model with its limits and its first-stage items."""

    model: str
    stages: Sequence[str]
    limits: Limits
    endpoint: Endpoint
    items: Iterable[RecordedItem]
    rate: LearnedRateLimit | None = None  #: shared by all models of the endpoint


@dataclass(slots=True, kw_only=True)
class CallTotals:
    """Totals of one model's calls."""

    calls: int = 0  #: attempts
    answered: int = 0
    refused: int = 0  #: attempts that ended with a 429
    failed: int = 0  #: tasks without a reply
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    cost_pico: int = 0
    unpriced: int = 0  #: answers whose price is unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfOutcome:
    """Outcome of the simulated run."""

    seconds: float
    models: Mapping[str, CallTotals]
    most_in_flight: int
    stopped: str | None  #: why an endpoint would have been stopped


def what_if(
    replayed_models: Sequence[ReplayedModel], *, deadline_s: float, seed: int = 0
) -> WhatIfOutcome:
    """Simulate a run with these limits.

    Args:
        replayed_models: the models with their items.
        deadline_s: deadline of one task, retries included.
        seed: seed of the jitter between retries.
    """
    return _Simulation(replayed_models, deadline_s, seed).run()


@dataclass(slots=True, kw_only=True, eq=False)
class _Family:
    """An item in progress, with what is still to be released."""

    later: deque[RecordedTask]
    open: int = 1  #: released trials that have not ended


@dataclass(slots=True, kw_only=True, eq=False)
class _ActiveTask:
    """A trial in progress."""

    trial: RecordedTask
    family: _Family
    number: int = 0
    next: int = 0  #: index of its next attempt

    @property
    def has_more(self) -> bool:
        """Whether there is another recorded attempt."""
        return self.next < len(self.trial.attempts)


@dataclass(slots=True, kw_only=True)
class _Supply:
    """The items of one model in order, with lookahead."""

    items: Iterator[RecordedItem]
    next: RecordedItem | None = field(default=None)

    def peek(self) -> RecordedItem | None:
        if self.next is None:
            self.next = next(self.items, None)
        return self.next

    def take(self) -> RecordedItem | None:
        item, self.next = self.peek(), None
        return item


class _Simulation:
    def __init__(
        self, replayed_models: Sequence[ReplayedModel], deadline_s: float, seed: int
    ) -> None:
        self._scheduler = Scheduler(
            [(a.model, a.stages, a.limits, a.endpoint) for a in replayed_models],
            deadline_s=deadline_s,
        )
        self._order = {
            name: index for a in replayed_models for index, name in enumerate(a.stages)
        }
        self._supplies = {
            a.model: _Supply(items=iter(a.items)) for a in replayed_models
        }
        self._released: dict[tuple[str, str], deque[_ActiveTask]] = {}
        self._active: dict[int, _ActiveTask] = {}
        self._rates = {a.model: a.rate for a in replayed_models}
        self._ends: list[tuple[float, int, QueuedTask, RecordedAttempt]] = []
        self._chance = random.Random(seed)  # noqa: S311 - jitter, no secret
        self._numbers = count(1)
        self._sums = {a.model: CallTotals() for a in replayed_models}
        self._most = 0
        self._busy_until = 0.0
        self._now = 0.0
        self._last = 0.0

    def run(self) -> WhatIfOutcome:
        scheduler = self._scheduler
        while True:
            step = scheduler.step(self._now)
            for load in step.load:
                self._load(load)
            for work in step.start:
                self._start(work)
            self._most = max(self._most, len(self._ends))
            if step.load:
                continue
            if not self._advance(step.wake_at):
                break
        return WhatIfOutcome(
            seconds=self._last,
            models=self._sums,
            most_in_flight=self._most,
            stopped=scheduler.stopped,
        )

    def _advance(self, wake_at: float | None) -> bool:
        """Advance to the next event; False: there is none."""
        if self._ends and (wake_at is None or self._ends[0][0] <= wake_at):
            self._now, number, work, attempt = heapq.heappop(self._ends)
            self._last = self._now
            self._end(self._active[number], work, attempt)
            return True
        if wake_at is None:
            return False
        self._now = max(self._now, wake_at)
        return True

    # -- tasks -----------------------------------------------------------------

    def _load(self, load: TaskPageRequest) -> None:
        released = self._released.setdefault((load.stage, load.model), deque())
        works: list[QueuedTask] = []
        while len(works) < load.limit:
            active = released.popleft() if released else self._from_items(load)
            if active is None:
                break
            active.number = next(self._numbers)
            self._active[active.number] = active
            works.append(
                QueuedTask(
                    number=active.number,
                    stage=load.stage,
                    model=load.model,
                    prior_attempts=0,
                    tokens=active.trial.worst_tokens,
                )
            )
        self._scheduler.loaded(
            load,
            [(work, float("-inf")) for work in works],
            last=works[-1].number if works else None,
        )

    def _from_items(self, load: TaskPageRequest) -> _ActiveTask | None:
        """Return the next item, if it starts with the requested stage."""
        supply = self._supplies[load.model]
        item = supply.peek()
        if item is None:
            return None
        if item.first.stage != load.stage:
            self._scheduler.planned(item.first.stage, load.model)
            return None
        supply.take()
        return _ActiveTask(trial=item.first, family=_Family(later=deque(item.later)))

    def _follow(self, family: _Family) -> None:
        """Release the next stage of a family whose released trials have all ended."""
        family.open -= 1
        if family.open or not family.later:
            return
        index = self._order[family.later[0].stage]
        while family.later and self._order[family.later[0].stage] <= index:
            trial = family.later.popleft()
            key = (trial.stage, trial.model)
            self._released.setdefault(key, deque()).append(
                _ActiveTask(trial=trial, family=family)
            )
            family.open += 1
            self._scheduler.planned(*key)

    # -- attempts --------------------------------------------------------------

    def _start(self, work: QueuedTask) -> None:
        active = self._active[work.number]
        self._busy_until = max(self._now, self._busy_until) + CALL_S
        rate = self._rates[work.model]
        attempt = rate.refuses(self._busy_until) if rate is not None else None
        if attempt is None:
            attempt = active.trial.attempts[active.next]
            active.next += 1
        end = (self._busy_until + attempt.duration_s, work.number, work, attempt)
        heapq.heappush(self._ends, end)
        self._sums[work.model].calls += 1

    def _end(
        self, active: _ActiveTask, work: QueuedTask, attempt: RecordedAttempt
    ) -> None:
        if attempt.error is not None:
            self._fail(active, work, attempt.error)
            return
        sums = self._sums[work.model]
        sums.answered += 1
        sums.tokens_in += attempt.tokens_in
        sums.tokens_out += attempt.tokens_out
        sums.tokens_cached += attempt.tokens_cached
        sums.cost_pico += attempt.cost_pico or 0
        sums.unpriced += attempt.cost_pico is None
        used = attempt.tokens or None
        self._scheduler.received(
            work, self._now, used=used, header_limits=attempt.header_limits
        )
        if active.has_more:
            self._scheduler.again(work)
            return
        self._settle(active, work)

    def _fail(
        self, active: _ActiveTask, work: QueuedTask, error: e.AttemptError
    ) -> None:
        sums = self._sums[work.model]
        sums.refused += isinstance(error, e.RateLimited)
        decision, _ = self._scheduler.failed(
            work, error, self._now, self._chance.random()
        )
        if decision.retry_in_s is not None and active.has_more:
            retry_at = self._now + decision.retry_in_s
            self._scheduler.settled(work, retry_at=retry_at)
            return
        sums.failed += 1
        self._settle(active, work)

    def _settle(self, active: _ActiveTask, work: QueuedTask) -> None:
        del self._active[work.number]
        self._scheduler.settled(work)
        self._follow(active.family)
