"""Holds the scheduler's state of one model: its queues, its limits, its turn.

State and queries only; decisions are in `runner.engine.scheduler`.
"""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from runner import errors as e
from runner.engine.failure_policy import Refusals
from runner.limits.limiter import Endpoint, LimiterStatistics, Limits
from runner.money.budget import Budget
from store.task import Scope, is_within

USUAL_WEIGHT = 0.05
"""Weight of the last call in averages; stages differ and alternate."""
OVERDUE_S = 60.0
"""A retry overdue for longer precedes later stages, because its deadline approaches."""


PROBE_S = 2.0
"""Time for which the first call of a stage is sent alone. An endpoint refuses a
parameter before the model starts, so that takes a round trip; a reply may take a
minute."""

LOW_WATER = 0.5
"""Share of the window below which the next page is fetched."""


@dataclass(slots=True, kw_only=True, eq=False)
class QueuedTask:
    """A loaded task and its attempts; the driver passes it back unchanged."""

    number: int
    stage: str
    model: str
    prior_attempts: int  #: attempts that count against the bound, before this process's
    tokens: int = 0  #: worst case of one attempt, prompt and output
    worst_pico: int = 0  #: maximum cost of one attempt; 0: free or unknown
    worst_reason: str = ""  #: why it exceeds the cost at the request's limit
    reserved_pico: int = 0  #: reservation of the budget for the attempt in flight
    since: float | None = None  #: monotonic seconds of the first attempt here
    sent_at: float = 0.0  #: monotonic seconds of the last attempt
    among: int = 0  #: other calls in flight when it was sent
    due: float = float("inf")  #: monotonic time from which a retry may be sent
    failures: defaultdict[type[e.AttemptError], int] = field(
        default_factory=partial(defaultdict, int)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPageRequest:
    """Fetch a page of open tasks: numbers above `after`, at most `limit`."""

    stage: str
    model: str
    after: int
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStop:
    """Reason why a model is stopped although its endpoint may serve others."""

    reason: str
    error: type[e.AttemptError] | None  #: None: its replies are useless


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelQueueStatistics:
    """One model's queues."""

    model: str
    ready: int
    waiting: int
    in_flight: int
    unsettled: int
    held: int
    limiter: LimiterStatistics


class StageQueue:
    """The loaded tasks of one stage and model, and the position of the last page."""

    def __init__(self, stage: str) -> None:
        self.stage = stage
        self.ready: deque[QueuedTask] = deque()
        self.retries: deque[QueuedTask] = deque()  #: ready too; sent first
        self.waiting = 0
        self.cursor = 0
        self.loading = False
        self.is_dry = False  #: the log had no further tasks at the last read
        self.has_new_tasks = False  #: tasks were planned while a page was being fetched
        self.is_rewound = False  #: restart at the first page after that one
        self.is_paused = False

    def grew(self) -> None:
        """Note that tasks were added to the log, so there is more to read."""
        self.is_dry = False
        self.has_new_tasks = self.loading

    def rewind(self) -> None:
        """Read from the start again: any task may have been reopened."""
        self.cursor = 0
        self.is_rewound = self.loading
        self.grew()

    def __len__(self) -> int:
        """Loaded tasks that may be sent."""
        return len(self.retries) + len(self.ready)

    @property
    def head(self) -> QueuedTask:
        """The task that is next."""
        return (self.retries or self.ready)[0]

    def pop(self) -> QueuedTask:
        """Take the task that is next."""
        return (self.retries or self.ready).popleft()


class ModelQueue:
    """The scheduler's state of one model."""

    def __init__(
        self,
        model: str,
        stages: Sequence[str],
        limits: Limits,
        endpoint: Endpoint,
        budget: Budget,
    ) -> None:
        self.model = model
        self.endpoint = endpoint
        self.limits = limits  #: the user's limits
        self.limiter = endpoint.limiter(model, limits)
        self.budget = budget
        #: later stages first
        self.queues = {stage: StageQueue(stage) for stage in reversed(stages)}
        self.waiting: list[tuple[float, int, QueuedTask]] = []
        self.loaded_tasks: set[int] = set()  #: loaded and not settled
        self.in_flight = 0
        self.held = 0
        self.is_behind = False  #: a page showed a reopened task that is not settled
        self.is_broke = False  #: the budget has no room for its next task
        self.is_draining = False
        self.stop: ModelStop | None = None  #: for the rest of this process
        self.refusals = Refusals()
        self.turn = 0.0  #: virtual time at which its share is used up
        self.probes: dict[str, float | None] = {}
        """Stages whose requests the endpoint may refuse, with the monotonic time of the
        probing call; None: not sent yet."""
        self.usual_tokens = 0.0  #: of a call; 0: unknown

    def take(
        self, work: QueuedTask, now: float, reserved_pico: int | None = None
    ) -> None:
        """Give an attempt its slot, its rate credit and its money.

        Args:
            work: the task to send.

            now: monotonic seconds.

            reserved_pico: reservation by an earlier process, at the price that it knew;

                None: none, or it knew no price.
        """
        self.loaded_tasks.add(work.number)
        worst_pico = work.worst_pico if reserved_pico is None else reserved_pico
        work.reserved_pico = self.budget.reserve(worst_pico)
        work.among = self.limiter.acquire(now, work.tokens)
        self.in_flight += 1
        if work.since is None:
            work.since = now
        work.sent_at, work.due = now, float("inf")
        if work.stage in self.probes and self.probes[work.stage] is None:
            self.probes.update(dict.fromkeys(self._probed_with(work.stage), now))

    def wait(self, work: QueuedTask, due: float) -> None:
        """Delay a loaded task until *due*."""
        self.queues[work.stage].waiting += 1
        heapq.heappush(self.waiting, (due, work.number, work))

    def ripen(self, now: float) -> None:
        """Queue the retries that are due."""
        while self.waiting and self.waiting[0][0] <= now:
            due, _, work = heapq.heappop(self.waiting)
            work.due = due
            queue = self.queues[work.stage]
            queue.waiting -= 1
            if self.endpoint.breaker.is_open:
                # the next probe is another task: this one may be the cause
                queue.ready.append(work)
            else:
                queue.retries.append(work)

    def probed(self, stage: str, error: e.AttemptError | None = None) -> None:
        """Record the end of a call of *stage*; after an error the next one probes."""
        for waiting_stage in self._probed_with(stage):
            if error is None:
                self.probes.pop(waiting_stage, None)
            elif waiting_stage in self.probes:
                self.probes[waiting_stage] = None

    def _probed_with(self, stage: str) -> list[str]:
        """The stages that wait for a call of *stage*: in batches, all of them."""
        return [*self.probes] if self.limits.batched else [stage]

    def probe_ends_at(self, queue: StageQueue) -> float | None:
        """Return until when the queue waits for a probing call.

        A probing call in a batch has no time limit: a refusal would cost all items of
        the next batch, and each of them another round.
        """
        sent_at = self.probes.get(queue.stage)
        if sent_at is None:
            return None
        return float("inf") if self.limits.batched else sent_at + PROBE_S

    def loads(self) -> Iterator[TaskPageRequest]:
        """Yield the pages to fetch now."""
        for queue in self.queues.values():
            loaded = len(queue) + queue.waiting
            if queue.loading or queue.is_dry or loaded > self.window * LOW_WATER:
                continue
            queue.loading = True
            yield TaskPageRequest(
                stage=queue.stage,
                model=self.model,
                after=queue.cursor,
                limit=self.window - loaded,
            )

    def set_limits(self, limits: Limits, now: float) -> None:
        """Apply new limits set by the user."""
        self.limits = limits
        self.limiter.set(limits, now)

    @property
    def turn_s(self) -> float:
        """Return the cost of one start in virtual time."""
        return 1.0 / self.limits.weight

    @property
    def window(self) -> int:
        """Maximum number of loaded tasks of one stage."""
        return max(64, 2 * self.limits.concurrency)

    @property
    def most_unsettled(self) -> int:
        """Number of outcomes that may wait for the disk before starts must wait."""
        return 2 * self.limits.concurrency + 64

    def ready_at(self, queue: StageQueue, now: float) -> float | None:
        """Return when the next task of *queue* may start; None: after an event."""
        if not self.limiter.has_slot or self.unsettled >= self.most_unsettled:
            return None
        ends_at = self.probe_ends_at(queue)
        if ends_at is not None and now < ends_at:
            return None if self.limits.batched else ends_at
        work = queue.head
        if not work.tokens and self.limiter.counts_tokens:
            # loaded before the endpoint reported a token limit
            work.tokens = round(self.usual_tokens)
        return self.limiter.ready_at(now, work.tokens)

    def is_able(self, now: float) -> bool:
        """Return whether its next task may be sent now, turns aside."""
        queue = self.next_queue(now)
        is_out = self.is_draining or self.stop is not None
        if is_out or queue is None or not self.budget.has_room(queue.head.worst_pico):
            return False
        when = self.ready_at(queue, now)
        return when is not None and when <= now

    def next_queue(self, now: float) -> StageQueue | None:
        """Return the queue whose first task is next.

        Later stages first, unless a retry has waited for long.
        """
        able = [q for q in self.queues.values() if q and not q.is_paused]
        if len(able) <= 1:
            return able[0] if able else None
        # a stage that waits for its probe does not block others
        able = [q for q in able if not self._is_probed(q, now)] or able
        oldest = min(able, key=lambda queue: queue.head.due, default=None)
        if oldest is not None and oldest.head.due + OVERDUE_S <= now:
            return oldest
        return able[0] if able else None

    def _is_probed(self, queue: StageQueue, now: float) -> bool:
        ends_at = self.probe_ends_at(queue)
        return ends_at is not None and now < ends_at

    def next_changes_at(self, now: float) -> float | None:
        """Return when a waiting retry will take precedence."""
        ends = (q.head.due + OVERDUE_S for q in self.queues.values() if q)
        return min((end for end in ends if now < end < float("inf")), default=None)

    def give_up(self, error: e.AttemptError, deadline_s: float) -> str | None:
        """Stop an endpoint that requests a longer wait than a task's deadline.

        All its tasks would fail, so they stay open for a later process.
        """
        requested_s = error.retry_after_s or 0.0
        is_limit = isinstance(error, e.RateLimited | e.Overloaded)
        if not is_limit or requested_s <= deadline_s or self.limits.batched:
            return None
        return self.endpoint.breaker.stop(
            f"{self.endpoint.name} asks to wait {requested_s:,.0f} s, "
            f"but a task has at most {deadline_s:,.0f} s (--deadline-s)"
        )

    def refused(self, error: e.AttemptError, task: int) -> str | None:
        """Stop the model if *error* concerns all its tasks; return a message then."""
        if self.stop is not None:
            return None
        reason = self.refusals.stops(error, task)
        if reason is None:
            return None
        self.stop = ModelStop(reason=reason, error=type(error))
        return (
            f"{self.model}: {reason.rstrip('.')}; no further request of this model is "
            "sent."
        )

    @property
    def is_out(self) -> bool:
        """Whether this process sends it nothing more."""
        return self.stop is not None or self.endpoint.breaker.stopped is not None

    def mark_paused(self, pauses: Collection[Scope]) -> None:
        """Pause exactly what *pauses* name by stage and model."""
        freed = set()
        for queue in self.queues.values():
            here = queue.stage, self.model
            was_paused = queue.is_paused
            queue.is_paused = any(is_within(here, pause) for pause in pauses)
            if was_paused and not queue.is_paused:
                freed.add(queue.stage)
        self._restart_clocks(freed)

    def _restart_clocks(self, stages: Collection[str]) -> None:
        """Exclude the time during which loaded tasks of *stages* were paused."""
        waiting = (work for _, _, work in self.waiting)
        ready = (w for q in self.queues.values() for w in (*q.retries, *q.ready))
        for work in (*waiting, *ready):
            if work.stage in stages:
                work.since = None

    def read_again(self) -> None:
        """Read every page from the start."""
        self.held = 0
        self.is_behind = False
        for queue in self.queues.values():
            queue.rewind()

    def used(self, tokens: int) -> None:
        """Record the tokens that a call has used."""
        weight = USUAL_WEIGHT if self.usual_tokens else 1.0
        self.usual_tokens += weight * (tokens - self.usual_tokens)

    @property
    def unsettled(self) -> int:
        """Number of tasks with an ended attempt whose outcome is not durable yet."""
        ready = sum(map(len, self.queues.values()))
        return len(self.loaded_tasks) - ready - len(self.waiting) - self.in_flight

    @property
    def is_still(self) -> bool:
        """Whether nothing is in flight or unsettled, although tasks may wait."""
        return self.in_flight == 0 and self.unsettled == 0

    @property
    def is_stuck(self) -> bool:
        """Return whether only money blocks it: nothing is in flight or being loaded.

        Calls of other runs with the same budget may still cost less than reserved.
        """
        is_loading = any(queue.loading for queue in self.queues.values())
        is_settled = self.budget.is_settled
        is_broke = self.is_broke and self.stop is None
        return is_broke and self.is_still and is_settled and not is_loading

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to do or to fetch."""
        return not self.loaded_tasks and all(
            q.is_dry and not q.loading for q in self.queues.values()
        )

    def statistics(self) -> ModelQueueStatistics:
        """Return the model's queues as values."""
        return ModelQueueStatistics(
            model=self.model,
            ready=sum(map(len, self.queues.values())),
            waiting=len(self.waiting),
            in_flight=self.in_flight,
            unsettled=self.unsettled,
            held=self.held,
            limiter=self.limiter.statistics(),
        )
