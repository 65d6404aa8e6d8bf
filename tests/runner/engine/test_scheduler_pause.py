"""Pauses and live limits in the scheduler, on a clock that is a number.

The scheduler in small worlds of random faults: invariants at every step.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner import errors as e
from runner.engine.model_queue import QueuedTask, TaskPageRequest
from runner.engine.scheduler import Scheduler
from runner.limits.limiter import Endpoint, Limits
from store.task import Scope, is_within

STAGES = ("first", "second")
MODELS = ("a", "b")
LANES = [(stage, model) for stage in STAGES for model in MODELS]
NOW = float("-inf")


def _scheduler(concurrency: int = 8, tasks: int = 1, **limits: float) -> Scheduler:
    """Every stage of every model with so many tasks that are ready."""
    own = Limits(concurrency=concurrency, **limits)
    scheduler = Scheduler(
        [(model, STAGES, own, Endpoint(model)) for model in MODELS], deadline_s=100
    )
    for load in scheduler.step(0.0).load:
        first = 1 + LANES.index((load.stage, load.model)) * 1000
        numbers = range(first, first + tasks)
        works = [
            (
                QueuedTask(
                    number=n, stage=load.stage, model=load.model, prior_attempts=0
                ),
                NOW,
            )
            for n in numbers
        ]
        scheduler.loaded(load, works, last=numbers[-1])
    return scheduler


def _started(scheduler: Scheduler, now: float = 0.0) -> list[tuple[str, str]]:
    return sorted((w.stage, w.model) for w in scheduler.step(now).start)


def test_a_call_that_goes_on_without_the_process_is_not_waited_for() -> None:
    scheduler = _scheduler()
    first, *others = scheduler.step(0.0).start
    assert scheduler.left(first, None, 1.0) is None
    said = [scheduler.left(work, e.AuthFailed("no"), 1.0) for work in others]
    assert sum(each is not None for each in said) == len(MODELS)
    assert scheduler.is_idle
    assert scheduler.is_out
    assert all(lane.limiter.in_flight for lane in scheduler.statistics())
    scheduler.leave()
    assert not any(lane.limiter.in_flight for lane in scheduler.statistics())


scopes = st.tuples(st.sampled_from([None, *STAGES]), st.sampled_from([None, *MODELS]))


@given(pauses=st.lists(scopes, max_size=4), lifts=st.lists(scopes, max_size=3))
def test_what_is_started_is_what_no_pause_names(
    pauses: list[Scope], lifts: list[Scope]
) -> None:
    scheduler = _scheduler()
    for pause in pauses:
        scheduler.pause(*pause)
    for lift in lifts:
        scheduler.lift(*lift)
    left = [p for p in pauses if not any(is_within(p, lift) for lift in lifts)]
    free = [
        (stage, model)
        for stage, model in LANES
        if not any(s in {None, stage} and m in {None, model} for s, m in left)
    ]
    assert _started(scheduler) == sorted(free)
    scheduler.lift(None, None)
    assert _started(scheduler) == sorted(set(LANES) - set(free))


def test_a_paused_run_waits_for_a_person_and_not_for_a_time() -> None:
    scheduler = _scheduler()
    scheduler.pause(None, None)
    step = scheduler.step(0.0)
    assert (step.start, step.wake_at) == ((), None)
    assert not scheduler.is_idle, "the process would end"


def test_calls_in_flight_come_back_to_a_paused_run_and_it_can_be_drained() -> None:
    scheduler = _scheduler()
    works = scheduler.step(0.0).start
    scheduler.pause(None, None)
    for work in works:
        scheduler.received(work, 1.0, used=None)
        scheduler.settled(work)
    scheduler.drain()
    assert scheduler.is_idle


def test_a_retry_that_falls_due_in_a_pause_waits_for_its_end() -> None:
    scheduler = _scheduler()
    scheduler.pause("second", None)
    scheduler.pause(None, "b")
    (work,) = scheduler.step(0.0).start
    scheduler.pause(None, None)
    decision, _ = scheduler.failed(work, e.ServerError("500"), 1.0, 0.5)
    assert decision.retry_in_s is not None
    scheduler.settled(work, retry_at=1.0 + decision.retry_in_s)
    assert scheduler.step(50.0).start == ()
    scheduler.lift(None, None)
    assert work in scheduler.step(50.0).start


def test_the_time_of_a_pause_is_not_the_task_s_own() -> None:
    scheduler = _scheduler()
    scheduler.pause("second", None)
    scheduler.pause(None, "b")
    (work,) = scheduler.step(0.0).start
    scheduler.failed(work, e.ServerError("500"), 1.0, 0.5)
    scheduler.settled(work, retry_at=2.0)
    scheduler.pause("first", None)
    assert scheduler.step(10_000.0).start == ()
    scheduler.lift("first", None)
    assert scheduler.step(10_000.0).start == (work,)
    decision, _ = scheduler.failed(work, e.ServerError("500"), 10_001.0, 0.5)
    assert decision.retry_in_s is not None, "its deadline of 100 s passed in the pause"


def test_a_lower_ceiling_waits_for_the_calls_above_it_and_a_higher_one_is_used() -> (
    None
):
    scheduler = _scheduler(concurrency=4, tasks=40)
    works = [w for w in scheduler.step(0.0).start if w.model == "a"]
    assert len(works) == 4
    scheduler.set_limits("a", Limits(concurrency=2), 1.0)
    assert scheduler.limits("a") == Limits(concurrency=2)
    assert scheduler.limits("b") == Limits(concurrency=4)
    in_flight: list[QueuedTask] = []
    for done, work in enumerate(works, 1):
        scheduler.received(work, 1.0, used=None)
        scheduler.settled(work)
        started = [w for w in scheduler.step(1.0).start if w.model == "a"]
        assert len(started) == (done > 2), "above the new ceiling"
        in_flight += started
    scheduler.set_limits("a", Limits(concurrency=64), 2.0)
    most, now = 0, 2.0
    for _ in range(40):
        in_flight += [w for w in scheduler.step(now).start if w.model == "a"]
        most = max(most, len(in_flight))
        now += 1.0
        while in_flight:
            work = in_flight.pop()
            scheduler.received(work, now, used=None)
            scheduler.settled(work)
    assert most > 4, "the old ceiling still held"


def test_a_rate_can_be_set_and_lifted_while_the_run_goes_on() -> None:
    scheduler = _scheduler(concurrency=8, tasks=40)
    scheduler.pause(None, "b")
    scheduler.set_limits("a", Limits(concurrency=8, rpm=60), 0.0)
    assert len(scheduler.step(0.0).start) == 1
    assert scheduler.step(0.5).start == ()
    scheduler.set_limits("a", Limits(concurrency=8), 0.5)
    assert len(scheduler.step(0.5).start) == 7


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
