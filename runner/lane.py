"""All that concerns one model in the scheduler: its queues, its gate, its turn.

Plain state with the questions that it answers; what is done with it stands in
`runner.scheduler`.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from runner import errors as e
from runner.limiter import Endpoint, Limiter, LimiterStatistics, Limits

USUAL_WEIGHT = 0.05
"""Of the last call, in what is usual; stages differ and come in turns."""


@dataclass(slots=True, kw_only=True, eq=False)
class Work:
    """A loaded task on its way through attempts; the driver only hands it back."""

    number: int
    stage: str
    model: str
    tries: int  #: attempts that count against the bound, before this process's
    tokens: int = 0  #: worst case of one attempt, prompt and output
    since: float | None = None  #: monotonic seconds of the first attempt here
    sent_at: float = 0.0  #: monotonic seconds of the last attempt
    failures: Counter[type[e.AttemptError]] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneStatistics:
    """One model's queues."""

    model: str
    ready: int
    waiting: int
    in_flight: int
    unsettled: int
    held: int
    limiter: LimiterStatistics


class Queue:
    """The loaded tasks of one stage and model, and how far its pages were read."""

    def __init__(self, stage: str) -> None:
        self.stage = stage
        self.ready: deque[Work] = deque()
        self.waiting = 0
        self.cursor = 0
        self.loading = False
        self.is_dry = False  #: the log held nothing more when last asked
        self.asked_again = False  #: tasks were planned while a page was on its way
        self.is_reopened = False  #: tasks were reopened meanwhile: the page is stale


class Lane:
    """All that concerns one model."""

    def __init__(
        self, model: str, stages: Sequence[str], limits: Limits, endpoint: Endpoint
    ) -> None:
        self.model = model
        self.endpoint = endpoint
        self.limiter = Limiter(limits, endpoint)
        #: later stages first
        self.queues = {stage: Queue(stage) for stage in reversed(stages)}
        self.waiting: list[tuple[float, int, Work]] = []
        self.known: set[int] = set()  #: loaded and not settled
        self.in_flight = 0
        self.held = 0
        self.turn_s = 1.0 / limits.weight
        self.turn = 0.0  #: virtual time at which it has had its share
        self.usual_tokens = 0.0  #: of a call; 0: none is known
        self.window = max(64, 2 * limits.concurrency)
        self.most_unsettled = 2 * limits.concurrency + 64

    def ready_at(self, now: float) -> tuple[Queue | None, float | None]:
        """The queue whose task is next, and when; no queue, or no time: not by time."""
        queue = next((q for q in self.queues.values() if q.ready), None)
        if queue is None or not self.limiter.has_slot:
            return None, None
        if self.unsettled >= self.most_unsettled:
            return None, None
        work = queue.ready[0]
        if not work.tokens and self.limiter.counts_tokens:
            # loaded before the endpoint told that tokens matter
            work.tokens = round(self.usual_tokens)
        return queue, self.limiter.ready_at(now, work.tokens)

    def used(self, tokens: int) -> None:
        """A call is known to have used so many tokens."""
        weight = USUAL_WEIGHT if self.usual_tokens else 1.0
        self.usual_tokens += weight * (tokens - self.usual_tokens)

    @property
    def unsettled(self) -> int:
        """Tasks whose attempt has ended and whose outcome is not durable yet."""
        ready = sum(len(q.ready) for q in self.queues.values())
        return len(self.known) - ready - len(self.waiting) - self.in_flight

    @property
    def is_still(self) -> bool:
        """Whether nothing is under way, whatever may wait."""
        return self.in_flight == 0 and self.unsettled == 0

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do, nor to fetch."""
        return not self.known and all(
            q.is_dry and not q.loading for q in self.queues.values()
        )

    def statistics(self) -> LaneStatistics:
        """The lane's queues as values."""
        return LaneStatistics(
            model=self.model,
            ready=sum(len(q.ready) for q in self.queues.values()),
            waiting=len(self.waiting),
            in_flight=self.in_flight,
            unsettled=self.unsettled,
            held=self.held,
            limiter=self.limiter.statistics(),
        )
