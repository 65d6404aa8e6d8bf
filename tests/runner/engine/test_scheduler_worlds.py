"""The scheduler in small worlds of random faults: invariants at every step."""

from __future__ import annotations

import heapq
import random
from collections import Counter
from itertools import count

import pytest

from runner import errors as e
from runner.engine.model_queue import QueuedTask, TaskPageRequest
from runner.engine.scheduler import Scheduler
from runner.limits.limiter import Endpoint, Limits

STAGES = ("first", "second")


FAULTS = (
    e.RateLimited("429", retry_after_s=1.5),
    e.ServerError("500"),
    e.ConnectionLost("reset"),
    e.MalformedReply("not json"),
    e.BadRequest("400"),
)


class World:
    """A log, an endpoint and a driver, all as plain lists and numbers.

    Each completed first-stage task plans up to two second-stage tasks. Invariants are
    checked at every step.
    """

    def __init__(self, seed: int, models: dict[str, Limits], tasks: int) -> None:
        self.random = random.Random(seed)
        self.now = 0.0
        self.limits = models
        endpoint = Endpoint("shared")
        self.scheduler = Scheduler(
            [(m, STAGES, limits, endpoint) for m, limits in models.items()],
            deadline_s=1e9,
        )
        self.numbers = count(1)
        self.open: dict[tuple[str, str], list[int]] = {
            (s, m): [] for s in STAGES for m in models
        }
        self.final: Counter[int] = Counter()
        self.in_flight: Counter[str] = Counter()
        self.most_loaded = 0
        self.events: list[tuple[float, int, QueuedTask]] = []
        self.order = count()
        self.fault_share = self.random.choice([0.0, 0.2, 0.6])
        for model in models:
            self._plan("first", model, tasks)

    def _plan(self, stage: str, model: str, n: int) -> None:
        self.open[stage, model] += [next(self.numbers) for _ in range(n)]
        self.scheduler.planned(stage, model)

    def run(self) -> None:
        for _ in range(200_000):
            step = self.scheduler.step(self.now)
            for load in step.load:
                self._load(load)
            for work in step.start:
                self._start(work)
            if self.scheduler.is_idle:
                return
            if step.load or step.start:
                continue
            self._advance(step.wake_at)
        pytest.fail("the run never ended")

    def _load(self, load: TaskPageRequest) -> None:
        numbers = [
            n
            for n in self.open[load.stage, load.model]
            if n > load.after and not self.final[n]
        ][: load.limit]
        works = [
            (
                QueuedTask(
                    number=n, stage=load.stage, model=load.model, prior_attempts=0
                ),
                float("-inf"),
            )
            for n in numbers
        ]
        self.scheduler.loaded(load, works, last=numbers[-1] if numbers else None)
        loaded = sum(s.ready + s.waiting for s in self.scheduler.statistics())
        self.most_loaded = max(self.most_loaded, loaded)

    def _start(self, work: QueuedTask) -> None:
        assert not self.final[work.number], "a final task was sent again"
        assert all(w is not work for _, _, w in self.events), "sent twice at a time"
        self.in_flight[work.model] += 1
        assert self.in_flight[work.model] <= self.limits[work.model].concurrency
        latency = self.random.choice([0.01, 0.5, 30.0])
        heapq.heappush(self.events, (self.now + latency, next(self.order), work))

    def _advance(self, wake_at: float | None) -> None:
        assert self.events or wake_at is not None, "nothing will ever happen again"
        if self.events and (wake_at is None or self.events[0][0] <= wake_at):
            self.now, _, work = heapq.heappop(self.events)
            self._end(work)
        else:
            assert wake_at is not None
            assert wake_at > self.now, "woken for nothing"
            self.now = wake_at

    def _end(self, work: QueuedTask) -> None:
        self.in_flight[work.model] -= 1
        if self.random.random() < self.fault_share:
            error = self.random.choice(FAULTS)
            decision, _ = self.scheduler.failed(
                work, error, self.now, self.random.random()
            )
            if decision.retry_in_s is not None:
                self.scheduler.settled(work, retry_at=self.now + decision.retry_in_s)
                return
        else:
            self.scheduler.received(work, self.now, used=None)
            if work.stage == "first":
                self._plan("second", work.model, self.random.randint(0, 2))
        self.final[work.number] += 1
        self.scheduler.settled(work)


@pytest.mark.parametrize("seed", range(30))
def test_every_task_becomes_final_exactly_once_whatever_happens(seed: int) -> None:
    some = {"a": Limits(concurrency=3), "b": Limits(concurrency=40, rpm=2000)}
    world = World(seed, some, tasks=200)
    world.run()
    if world.scheduler.stopped is None:
        planned = {n for numbers in world.open.values() for n in numbers}
        assert set(world.final) == planned
    assert set(world.final.values()) <= {1}
    assert all(s.in_flight == s.unsettled == 0 for s in world.scheduler.statistics())


def test_memory_is_bounded_by_the_window_and_not_by_the_run() -> None:
    world = World(7, {"a": Limits(concurrency=4)}, tasks=5000)
    world.fault_share = 0.0
    world.run()
    assert world.most_loaded <= 2 * 64
