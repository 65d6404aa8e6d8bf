"""The scheduler alone, on a clock that is a number: no asyncio, no database.

Reopened tasks are read again, whatever was on its way as they were reopened.
"""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter

import pytest

from runner import errors as e
from runner.engine.model_queue import OVERDUE_S, QueuedTask, TaskPageRequest
from runner.engine.scheduler import Scheduler
from runner.limits.limiter import Endpoint, Limits
from runner.limits.rate_limits import HeaderLimits, Quota
from runner.money.budget import Budget

STAGES = ("first", "second")


def test_later_stages_go_first() -> None:
    scheduler = Scheduler(
        [("a", STAGES, Limits(concurrency=1), Endpoint("x"))], deadline_s=1
    )
    for load in scheduler.step(0.0).load:
        number = 1 if load.stage == "first" else 9
        work = QueuedTask(number=number, stage=load.stage, model="a", prior_attempts=0)
        scheduler.loaded(load, [(work, float("-inf"))], last=number)
    assert [work.number for work in scheduler.step(0.0).start] == [9]


def _two_stages(tasks: int) -> tuple[Scheduler, list[QueuedTask], TaskPageRequest]:
    """So many tasks of the first stage, and the page that the second asks for."""
    scheduler = Scheduler(
        [("a", STAGES, Limits(concurrency=1), Endpoint("x"))], deadline_s=1e9
    )
    works = [
        QueuedTask(number=n, stage="first", model="a", prior_attempts=0)
        for n in range(tasks)
    ]
    second, first = scheduler.step(0.0).load
    scheduler.loaded(first, [(w, float("-inf")) for w in works], last=tasks)
    return scheduler, works, second


def test_a_retry_of_an_early_stage_starts_a_minute_after_it_is_due() -> None:
    scheduler, (work,), second = _two_stages(1)
    assert scheduler.step(0.0).start == (work,)
    scheduler.failed(work, e.ServerError("500"), 0.0, 0.5)
    scheduler.settled(work, retry_at=10.0)
    _give(scheduler, second)  # and there is always more of the second stage
    for now in range(1, 200):
        step = scheduler.step(float(now))
        if work in step.start:
            assert now == 10 + OVERDUE_S
            return
        assert len(step.start) == 1
        for later in step.start:
            scheduler.received(later, now + 0.5, used=None)
            scheduler.settled(later)
        for load in step.load:
            if load.stage == "second":
                _give(scheduler, load)
    pytest.fail("the retry starved")


def test_the_moment_at_which_a_retry_has_waited_enough_is_one_to_look_at() -> None:
    scheduler, works, second = _two_stages(2)
    assert scheduler.step(0.0).start == (works[0],)
    scheduler.failed(works[0], e.ServerError("500"), 0.0, 0.5)
    scheduler.settled(works[0], retry_at=10.0)
    _give(scheduler, second)
    # the only slot is taken by a call of the second stage, for as long as it likes
    (taken,) = scheduler.step(9.0).start
    assert taken.stage == "second"
    assert scheduler.step(10.0).wake_at == 10.0 + OVERDUE_S
    assert scheduler.step(10.0 + OVERDUE_S).wake_at is None


def test_an_endpoint_that_asks_for_a_day_is_left_and_fails_no_task() -> None:
    endpoint = Endpoint("x")
    scheduler = Scheduler(
        [("a", ("first",), Limits(concurrency=2), endpoint)], deadline_s=3600.0
    )
    (load,) = scheduler.step(0.0).load
    _give(scheduler, load)
    work, other = scheduler.step(0.0).start
    told = e.RateLimited("quota", retry_after_s=86_400.0)
    decision, said = scheduler.failed(work, told, 1.0, 0.5)
    assert decision.retry_in_s is not None
    assert said is not None
    assert "asks to wait 86,400 s" in said
    scheduler.settled(work, retry_at=1.0)
    # the one beside it says the same, and is not listened to again
    decision, _ = scheduler.failed(other, told, 1.0, 0.5)
    assert decision.retry_in_s is not None
    scheduler.settled(other, retry_at=1.0)
    assert scheduler.step(2.0).start == ()
    assert scheduler.stopped == said


def test_retries_start_in_the_order_in_which_they_were_due() -> None:
    scheduler, works, _ = _two_stages(5)
    for n, work in enumerate(works):
        assert scheduler.step(float(n)).start == (work,)
        scheduler.failed(work, e.ServerError("500"), n + 0.5, 0.5)
        scheduler.settled(work, retry_at=20.0 + n)
    order = []
    for n in range(5):
        (work,) = scheduler.step(30.0 + n).start
        order.append(work)
        scheduler.received(work, 30.5 + n, used=None)
        scheduler.settled(work)
    assert order == works


@pytest.mark.parametrize("seed", range(20))
def test_between_two_starts_of_a_model_another_has_no_more_than_its_weight(
    seed: int,
) -> None:
    chance = random.Random(seed)
    weights = {m: chance.choice([0.5, 1.0, 2.0, 7.0]) for m in "abc"}
    scheduler = _shared(**weights)
    works = [*scheduler.step(0.0).start]
    for now in range(1, 300):
        for work in works:
            scheduler.received(work, float(now), used=None)
            scheduler.settled(work)
        step = scheduler.step(float(now))
        for load in step.load:
            _give(scheduler, load)
        works = [*step.start, *scheduler.step(float(now)).start]
        # all slots come back at once; after the first turns a model may want for some
        order = [work.model for work in works[:8]]
        for model, other in itertools.permutations(weights, 2):
            most = 1 + math.ceil(weights[other] / weights[model])
            assert _longest_run(order, model, other) <= most


def _longest_run(order: list[str], model: str, other: str) -> int:
    """Most starts of *other* between two of *model*."""
    most = run = 0
    for name in order:
        run = 0 if name == model else run + (name == other)
        most = max(most, run)
    return most


def _one(limits: Limits) -> tuple[Scheduler, QueuedTask]:
    scheduler = Scheduler([("a", ("first",), limits, Endpoint("x"))], deadline_s=1e9)
    work = QueuedTask(number=1, stage="first", model="a", prior_attempts=0)
    (load,) = scheduler.step(0.0).load
    scheduler.loaded(load, [(work, float("-inf"))], last=1)
    return scheduler, work


def test_a_drain_starts_nothing_and_ends_when_the_last_call_is_settled() -> None:
    scheduler, work = _one(Limits(concurrency=2))
    assert scheduler.step(0.0).start == (work,)
    scheduler.drain()
    assert not scheduler.is_idle
    scheduler.received(work, 0.0, used=None)
    assert not scheduler.is_idle
    scheduler.settled(work)
    assert scheduler.is_idle


def test_an_answer_that_is_not_durable_yet_keeps_the_run_alive() -> None:
    scheduler, work = _one(Limits(concurrency=2))
    scheduler.step(0.0)
    scheduler.received(work, 0.0, used=None)
    assert not scheduler.is_idle


def test_a_task_planned_while_a_page_is_on_its_way_is_not_forgotten() -> None:
    scheduler = Scheduler(
        [("a", ("first",), Limits(concurrency=1), Endpoint("x"))], deadline_s=1
    )
    (load,) = scheduler.step(0.0).load
    scheduler.planned("first", "a")  # after the page was read, before it arrived
    scheduler.loaded(load, [], last=None)
    assert not scheduler.is_idle
    (again,) = scheduler.step(0.0).load
    scheduler.loaded(again, [], last=None)
    assert scheduler.is_idle


def test_a_wrong_key_leaves_its_tasks_open_and_ends_the_run() -> None:
    scheduler, work = _one(Limits(concurrency=2))
    scheduler.step(0.0)
    decision, said = scheduler.failed(work, e.AuthFailed("401"), 0.0, 0.5)
    assert said is not None
    assert decision.retry_in_s is not None
    scheduler.settled(work, retry_at=0.0)
    assert scheduler.step(1.0).start == ()
    assert scheduler.is_idle
    assert scheduler.stopped is not None


def _shared(**weights: float) -> Scheduler:
    endpoint = Endpoint("x")
    scheduler = Scheduler(
        [
            (model, ("first",), Limits(concurrency=8, weight=weight), endpoint)
            for model, weight in weights.items()
        ],
        deadline_s=1e9,
    )
    for load in scheduler.step(0.0).load:
        _give(scheduler, load)
    return scheduler


def _give(scheduler: Scheduler, load: TaskPageRequest) -> None:
    numbers = range(load.after + 1, load.after + load.limit + 1)
    works = [
        (
            QueuedTask(number=n, stage=load.stage, model=load.model, prior_attempts=0),
            float("-inf"),
        )
        for n in numbers
    ]
    scheduler.loaded(load, works, last=numbers[-1])


def test_models_at_one_endpoint_take_turns_by_weight() -> None:
    started = _shared(a=1.0, b=3.0).step(0.0).start
    assert Counter(work.model for work in started) == {"a": 8, "b": 8}
    first = Counter(work.model for work in started[:8])
    assert first == {"a": 2, "b": 6}


def test_a_model_that_could_not_use_its_turns_does_not_make_up_for_them() -> None:
    scheduler = _shared(a=1.0, b=1.0)
    works = [work for work in scheduler.step(0.0).start if work.model == "b"]
    for n in range(1, 100):  # nothing of a's comes back, so b goes on alone
        for work in works:
            scheduler.received(work, n, used=None)
            scheduler.settled(work)
        step = scheduler.step(n)
        for load in step.load:
            _give(scheduler, load)
        works = [*step.start]
        assert {work.model for work in works} <= {"b"}
    assert scheduler._model_queues["b"].turn > 300
    lane = scheduler._model_queues["a"]
    lane.limiter.release(0, None)
    lane.limiter.release(0, None)
    for work in works[:2]:
        scheduler.received(work, 100.0, used=None)
    assert Counter(w.model for w in scheduler.step(100.0).start) == {"a": 2, "b": 2}


def test_a_task_loaded_before_tokens_mattered_reserves_what_is_usual() -> None:
    scheduler = _shared(a=1.0)
    works = scheduler.step(0.0).start
    assert [work.tokens for work in works] == [0] * 8
    told = HeaderLimits(tokens=Quota(per_minute=60_000))
    scheduler.received(works[0], 1.0, used=300, header_limits=told)
    scheduler.settled(works[0])
    (work,) = scheduler.step(1.0).start
    assert work.tokens == 300


def _asking() -> tuple[Scheduler, TaskPageRequest]:
    scheduler = Scheduler(
        [("a", ("first",), Limits(concurrency=1), Endpoint("x"))], deadline_s=1e9
    )
    (load,) = scheduler.step(0.0).load
    return scheduler, load


def test_a_page_that_was_on_its_way_when_tasks_came_back_is_read_again() -> None:
    scheduler, load = _asking()
    scheduler.reopened()
    scheduler.loaded(load, [], last=100, held=3, others=load.limit - 3)
    assert scheduler.held == 0
    (again,) = scheduler.step(0.0).load
    assert again.after == 0
    scheduler.loaded(again, [], last=100, held=3)
    assert scheduler.held == 3


def test_tasks_on_a_page_that_need_no_attempt_do_not_end_the_pages() -> None:
    scheduler, load = _asking()
    scheduler.loaded(load, [], last=load.limit, others=load.limit)
    (more,) = scheduler.step(0.0).load
    assert more.after == load.limit
    assert not scheduler.is_idle
    scheduler.loaded(more, [], last=load.limit + 3, others=3)
    assert not scheduler.step(0.0).load
    assert scheduler.is_idle


def test_a_call_of_another_run_may_leave_room_in_the_budget_that_both_have() -> None:
    budget = Budget(cap_pico=100)
    reserved = budget.reserve(60)
    scheduler = Scheduler(
        [("a", ("first",), Limits(concurrency=1), Endpoint("x"))],
        deadline_s=1,
        budget=budget,
    )
    work = QueuedTask(
        number=1, stage="first", model="a", prior_attempts=0, worst_pico=50
    )
    (load,) = scheduler.step(0.0).load
    scheduler.loaded(load, [(work, float("-inf"))], last=1)
    assert scheduler.step(0.0).start == ()
    assert not scheduler.is_idle
    budget.settle(60, 10, reserved_pico=reserved)
    assert scheduler.step(1.0).start == (work,)


AT_ONCE = float("-inf")


def _scheduler() -> Scheduler:
    lane = ("m", ("only",), Limits(concurrency=4), Endpoint("here"))
    return Scheduler([lane], deadline_s=1e9)


def _work(number: int) -> QueuedTask:
    return QueuedTask(number=number, stage="only", model="m", prior_attempts=0)


def _one_load(scheduler: Scheduler) -> TaskPageRequest:
    (load,) = scheduler.step(0.0).load
    return load


def test_a_page_on_its_way_does_not_move_the_cursor_that_a_reopening_set_back() -> None:
    scheduler = _scheduler()
    load = _one_load(scheduler)
    scheduler.reopened()
    # read before the tasks 1 and 2 were put back into the queue
    scheduler.loaded(load, [(_work(3), AT_ONCE)], last=3)
    assert _one_load(scheduler).after == 0


def test_a_task_that_is_reopened_before_its_end_is_settled_is_read_again() -> None:
    scheduler = _scheduler()
    work = _work(1)
    scheduler.loaded(_one_load(scheduler), [(work, AT_ONCE)], last=1)
    scheduler.step(0.0)
    scheduler.received(work, 1.0, used=None)
    scheduler.reopened()
    load = _one_load(scheduler)
    scheduler.passed_over("m")
    scheduler.loaded(load, [], last=1, others=1)
    scheduler.settled(work)
    assert not scheduler.is_idle
    assert _one_load(scheduler).after == 0


def test_what_waits_for_a_person_is_counted_anew_after_a_reopening() -> None:
    scheduler = _scheduler()
    scheduler.loaded(_one_load(scheduler), [], last=2, held=2)
    assert scheduler.held == 2
    scheduler.reopened()
    scheduler.loaded(_one_load(scheduler), [], last=2, held=1, others=1)
    assert scheduler.held == 1
