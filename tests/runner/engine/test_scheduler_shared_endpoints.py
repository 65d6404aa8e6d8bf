"""Runs of one process at one endpoint: limits, turns and money are kept by all."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from runner.engine.model_queue import QueuedTask
from runner.engine.scheduler import Scheduler
from runner.limits.limiter import Endpoint, Limits
from runner.money.budget import Budget

MANY = 80


@dataclass(slots=True, kw_only=True)
class World:
    """Schedulers that are woken as drivers wake each other, on a virtual clock."""

    runs: list[Scheduler]
    took_s: float
    cost_pico: int = 0
    worst_pico: int = 0
    now: float = 0.0
    sent: list[tuple[float, int]] = field(default_factory=list)
    flying: list[tuple[float, int, QueuedTask]] = field(default_factory=list)
    most_in_flight: int = 0

    def go(self, until: float) -> None:
        """Step whoever is due, until nobody is or time is over."""
        due = dict.fromkeys(range(len(self.runs)), 0.0)
        while due or self.flying:
            moment = min([*due.values(), *(end for end, _, _ in self.flying)])
            if moment > until:
                return
            self.now = max(self.now, moment)
            landed = [each for each in self.flying if each[0] <= self.now]
            for each in landed:
                self.flying.remove(each)
                _, run, work = each
                self.runs[run].received(
                    work, self.now, used=None, cost_pico=self.cost_pico
                )
                self.runs[run].settled(work)
            if landed:
                due = dict.fromkeys(range(len(self.runs)), self.now)
            ready = [run for run, when in due.items() if when <= self.now]
            for run in ready:
                self._step(run, due)

    def _step(self, run: int, due: dict[int, float]) -> None:
        del due[run]
        scheduler = self.runs[run]
        step = scheduler.step(self.now)
        while step.load:
            for load in step.load:
                works = [
                    (
                        QueuedTask(
                            number=load.after + n,
                            stage=load.stage,
                            model=load.model,
                            prior_attempts=0,
                            worst_pico=self.worst_pico,
                        ),
                        float("-inf"),
                    )
                    for n in range(1, load.limit + 1)
                    if load.after + n <= MANY
                ]
                last = works[-1][0].number if works else None
                scheduler.loaded(load, works, last=last)
            self._send(run, step.start)
            step = scheduler.step(self.now)
        self._send(run, step.start)
        if step.wake_at is not None:
            due[run] = step.wake_at
        if step.start or step.yields:
            others = set(range(len(self.runs))) - {run}
            due.update(dict.fromkeys(others, self.now))

    def _send(self, run: int, works: tuple[QueuedTask, ...]) -> None:
        for work in works:
            self.sent.append((self.now, run))
            self.flying.append((self.now + self.took_s, run, work))
        self.most_in_flight = max(self.most_in_flight, len(self.flying))


def _runs(
    count: int, endpoint: Endpoint, budget: Budget | None = None
) -> list[Scheduler]:
    limits = Limits(concurrency=64)
    return [
        Scheduler(
            [(model, ("only",), limits, endpoint) for model in ("a", "b")],
            deadline_s=1e9,
            budget=budget,
        )
        for _ in range(count)
    ]


@settings(max_examples=25)
@given(
    count=st.integers(1, 4),
    rpm=st.integers(30, 600),
    concurrency=st.integers(1, 20),
    took_s=st.sampled_from([0.1, 1.0, 7.0]),
)
def test_a_limit_of_the_endpoint_holds_over_all_runs_and_models(
    count: int, rpm: int, concurrency: int, took_s: float
) -> None:
    endpoint = Endpoint("x", Limits(concurrency=concurrency, rpm=rpm))
    world = World(runs=_runs(count, endpoint), took_s=took_s)
    world.go(150.0)
    times = [when for when, _ in world.sent]
    assert max(bisect_right(times, t + 59.99) - n for n, t in enumerate(times)) <= rpm
    assert world.most_in_flight <= concurrency
    # and none of it is left unused while somebody has work
    most = min(150 * concurrency / took_s, 150 * rpm / 60, 2 * count * MANY)
    assert len(times) >= 0.9 * most - 5


@settings(max_examples=25)
@given(
    count=st.integers(2, 4),
    limits=st.sampled_from(
        [Limits(concurrency=3), Limits(concurrency=99, rpm=120), Limits(concurrency=1)]
    ),
)
def test_runs_at_one_endpoint_take_turns(count: int, limits: Limits) -> None:
    world = World(runs=_runs(count, Endpoint("x", limits)), took_s=0.5)
    world.go(60.0)
    shares = Counter(run for _, run in world.sent)
    assert len(shares) == count
    assert max(shares.values()) - min(shares.values()) <= 4


@settings(max_examples=25)
@given(
    count=st.integers(2, 4),
    calls=st.integers(1, 60),
    cost=st.integers(0, 10),
    concurrency=st.integers(1, 9),
)
def test_one_budget_holds_over_all_runs_and_is_used_up(
    count: int, calls: int, cost: int, concurrency: int
) -> None:
    budget = Budget(10 * calls)
    endpoint = Endpoint("x", Limits(concurrency=concurrency))
    world = World(
        runs=_runs(count, endpoint, budget), took_s=1.0, cost_pico=cost, worst_pico=10
    )
    world.go(1e6)
    found = budget.statistics()
    assert found.spent_pico <= 10 * calls
    assert found.reserved_pico == 0
    # who finds no room is not over before the calls of the others have settled
    tasks = 2 * count * MANY
    is_done = len(world.sent) == tasks
    assert is_done or found.spent_pico + 10 > 10 * calls
    assert all(run.is_idle for run in world.runs)
    assert all((run.unaffordable is None) == is_done for run in world.runs)


def test_what_a_run_had_under_way_when_it_was_given_up_holds_no_slot() -> None:
    budget = Budget(1000)
    endpoint = Endpoint("x", Limits(concurrency=2))
    one, other = _runs(2, endpoint, budget)
    first = World(runs=[one], took_s=1e9, worst_pico=10)
    first.go(0.0)
    assert len(first.sent) == 2
    one.leave()
    second = World(runs=[other], took_s=1.0, worst_pico=10)
    second.go(3.5)
    assert len(second.sent) == 8
    assert budget.statistics().possible_pico == 20


def test_a_model_that_several_runs_ask_has_one_limit() -> None:
    endpoint = Endpoint("x")
    runs = [
        Scheduler(
            [("a", ("only",), Limits(concurrency=9, rpm=60), endpoint)], deadline_s=1e9
        )
        for _ in range(3)
    ]
    world = World(runs=runs, took_s=0.1)
    world.go(59.0)
    assert 50 <= len(world.sent) <= 60
