"""Reopened tasks are read again, whatever was on its way as they were reopened."""

from __future__ import annotations

from runner.engine.model_queue import QueuedTask, TaskPageRequest
from runner.engine.scheduler import Scheduler
from runner.limits.limiter import Endpoint, Limits

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
