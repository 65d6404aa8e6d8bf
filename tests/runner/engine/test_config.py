"""A wall clock that is set forward or back changes nothing but the times that are told.

What must hold where two things happen at once, or where the last thing fails.

Whatever waits (limits, retries, timeouts, a drain) is measured by the monotonic clock;
the wall clock stamps events, and says when a task that an earlier process left waiting
is due.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from runner import errors as e
from runner.clients.client import Call, Received
from runner.clients.offline import Answerer, FunctionClient
from runner.engine.attempt_events import answered_event
from runner.engine.config import EngineConfig, EngineServices, ModelEndpoints
from runner.engine.driver import Driver, Outcome
from runner.engine.planner import Planner, PlanStart
from runner.engine.scheduler import Scheduler
from runner.job import TaskSpec
from runner.limits.breaker import (
    FAILURES_TO_OPEN,
    FAILURES_TO_OPEN_AT_FIRST,
    FIRST_PROBE_S,
    Breaker,
)
from runner.limits.limiter import Endpoint, Limits
from runner.messages import Reply
from runner.options import options_from
from runner.plan import BLOCK, Roles
from store.errors import LogBehind
from store.events import Entry, Event, LimitObserved, TaskCompleted, TasksPlanned
from store.task import TaskState
from tests.runner.engine.bench import Bench, honest
from tests.runner.toy_jobs import LoopClock, ToyJob, ToySettings, run_virtual
from tests.store.memory_log import MemoryLog

HOURS_US = 5 * 3_600_000_000
SETTINGS = ToySettings(items=6)
JOB = ToyJob()


class SetClock(LoopClock):
    """A clock of the virtual loop whose wall time can be set."""

    def __init__(self) -> None:
        self.offset_us = 0

    def now_us(self) -> int:
        """Wall clock, microseconds since 1970-01-01 UTC."""
        return super().now_us() + self.offset_us


async def _driver(log: MemoryLog, clock: SetClock, answer: Answerer) -> Driver:
    stages = [stage.name for stage in JOB.stages]
    return Driver(
        EngineConfig(
            services=EngineServices(
                job=JOB,
                dataset=SETTINGS,
                log=log,
                clock=clock,
                scheduler=Scheduler(
                    [("m", stages, Limits(concurrency=2, rpm=120.0), Endpoint("x"))],
                    deadline_s=3600,
                ),
                planner=Planner(
                    job=JOB,
                    dataset=SETTINGS,
                    log=log,
                    roles=Roles(models={"subject": ("m",)}, replicates=1),
                    start=PlanStart(planning=await log.planning(), must_catch_up=False),
                ),
                notify=lambda _sentence: None,
            ),
            endpoints=ModelEndpoints(clients={"m": FunctionClient(answer)}),
        )
    )


async def _run(jump_us: int) -> tuple[Outcome, float, list[int]]:
    """A run of slow and failing calls, its clock set after the fifth."""
    clock = SetClock()
    log = MemoryLog(clock)
    calls = 0

    async def answer(call: Call) -> Reply:
        nonlocal calls
        calls += 1
        if calls == 5:
            clock.offset_us = jump_us
        await asyncio.sleep(0.7)
        if calls % 4 == 0:
            raise e.ServerError("busy")
        return Reply(text=JOB.baseline(call.request))

    driver = await _driver(log, clock, answer)
    outcome = await driver.run()
    times = [recorded.ts_us for recorded in await log.events(limit=10_000)]
    return outcome, clock.monotonic(), times


@pytest.mark.parametrize("jump_us", [HOURS_US, -HOURS_US])
def test_a_run_takes_as_long_whatever_its_wall_clock_does(jump_us: int) -> None:
    outcome, took_s, _ = run_virtual(_run(0))
    assert outcome == "finished"
    jumped, jumped_s, times = run_virtual(_run(jump_us))
    assert (jumped, jumped_s) == ("finished", pytest.approx(took_s, abs=0.01))
    assert times == sorted(set(times)), "the log's time went back"


@pytest.mark.parametrize("jump_us", [0, HOURS_US, -HOURS_US])
def test_a_task_that_waited_is_not_kept_waiting_by_a_clock_that_was_set_back(
    jump_us: int,
) -> None:
    async def main() -> float:
        clock = SetClock()
        log = MemoryLog(clock)

        def busy(call: Call) -> Reply:
            del call
            raise e.RateLimited("busy", status=429, retry_after_s=20.0)

        first = await _driver(log, clock, busy)
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(first.run())
            await asyncio.sleep(5)
            first.drain()
        assert running.result() == "drained"
        clock.offset_us = jump_us
        began = clock.monotonic()
        second = await _driver(
            log, clock, lambda call: Reply(text=JOB.baseline(call.request))
        )
        assert await second.run() == "finished"
        return clock.monotonic() - began

    assert run_virtual(main()) < 60


def test_answers_left_unread_are_read_once_while_new_ones_come_in() -> None:
    class Slow(MemoryLog):
        """A log whose commits of read answers take their time."""

        async def append(self, *entries: Entry | Event) -> int:
            if isinstance(entries[0], TaskCompleted):
                await asyncio.sleep(1)
            return await super().append(*entries)

    async def main() -> None:
        bench = Bench(settings=ToySettings(items=400, words=0))
        bench.log = Slow(LoopClock())
        driver = await bench.driver()
        async with asyncio.TaskGroup() as group:
            group.create_task(driver.run())
            await asyncio.sleep(0.5)
            driver.stop()  # answers are stored by now, and none was completed
        assert await bench.log.unread_answers(after=0, limit=1)

        async def answer(call: Call) -> Reply:
            await asyncio.sleep(0.4)
            return honest(call)

        bench.answer = answer
        assert await bench.run() == "finished"
        assert await bench.states() == {"read COMPLETED": 400}

    run_virtual(main())


def test_a_plan_that_raises_ends_the_run_with_one_sentence() -> None:
    class Broken(ToyJob):
        def plan(self, dataset: ToySettings) -> Iterator[TaskSpec]:
            yield from super().plan(dataset)
            raise ZeroDivisionError("no more")

    async def main() -> None:
        bench = Bench(settings=ToySettings(items=2))
        bench.job = Broken()
        began = asyncio.get_running_loop().time()
        with pytest.raises(
            e.RunnerError, match=r"plan of job toy raised ZeroDivisionError at .*: no"
        ):
            await bench.run()
        assert asyncio.get_running_loop().time() - began < 1

    run_virtual(main())


def test_a_reply_that_was_paid_for_counts_though_asking_again_failed() -> None:
    async def main() -> None:
        def answer(call: Call) -> Reply:
            if call.task.stage != "read":
                return honest(call)
            if len(call.request.messages) > 1:
                raise e.ContextTooLong("the dialogue does not fit")
            return Reply(text="")

        bench = Bench(answer, ToySettings(items=1, reask=1))
        assert await bench.run() == "finished"
        (row,) = await bench.log.tasks([1])
        assert (row.state, row.reason) == (TaskState.COMPLETED, "empty_reply")
        assert await bench.log.reply(1) is not None

    run_virtual(main())


def test_calls_that_were_out_when_the_breaker_opened_do_not_delay_its_probe() -> None:
    breaker = Breaker("http://x")
    for _ in range(FAILURES_TO_OPEN_AT_FIRST + 26):
        breaker.failed(e.ConnectionLost("refused"), 0.1)
    assert breaker.ready_at(0.1, 0) == 0.1 + FIRST_PROBE_S


def test_papers_that_are_too_long_say_nothing_against_the_endpoint() -> None:
    async def main() -> None:
        def answer(call: Call) -> Reply:
            if (
                call.task.stage == "read"
                and 5 <= call.task.number <= 5 + 2 * FAILURES_TO_OPEN
            ):
                raise e.ContextTooLong("too long")
            return honest(call)

        bench = Bench(answer, ToySettings(items=100, words=0))
        assert await bench.run() == "finished"
        assert await bench.states() == {
            "read COMPLETED": 100 - 2 * FAILURES_TO_OPEN - 1,
            "read FAILED": 2 * FAILURES_TO_OPEN + 1,
        }
        assert asyncio.get_running_loop().time() < 60

    run_virtual(main())


def test_a_task_that_is_always_refused_is_not_the_only_probe() -> None:
    async def main() -> None:
        def answer(call: Call) -> Reply:
            if 5 <= call.task.number < 5 + FAILURES_TO_OPEN:
                raise e.BadRequest("the endpoint dislikes this one")
            return honest(call)

        bench = Bench(answer, ToySettings(items=100, words=0))
        assert await bench.run() == "finished"
        assert await bench.states() == {
            "read COMPLETED": 100 - FAILURES_TO_OPEN,
            "read FAILED": FAILURES_TO_OPEN,
        }
        assert asyncio.get_running_loop().time() < 60

    run_virtual(main())


def test_a_stopped_endpoint_does_not_cut_off_the_plan_of_another_one() -> None:
    class SlowPlan(MemoryLog):
        """A disk on which a block of the plan takes a second."""

        async def append(self, *entries: Entry | Event) -> int:
            first = entries[0]
            if isinstance(first, Entry) and isinstance(first.event, TasksPlanned):
                await asyncio.sleep(1)
            return await super().append(*entries)

    async def main() -> None:
        log = SlowPlan(LoopClock())
        job, settings = ToyJob(), ToySettings(items=2 * BLOCK, words=0)

        def refuse(call: Call) -> Reply:
            raise e.AuthFailed(f"401 for {call.task.key}")

        names = [stage.name for stage in job.stages]
        driver = Driver(
            EngineConfig(
                services=EngineServices(
                    job=job,
                    dataset=settings,
                    log=log,
                    clock=LoopClock(),
                    scheduler=Scheduler(
                        [
                            (model, names, Limits(concurrency=64), Endpoint(model))
                            for model in ("bad", "good")
                        ],
                        deadline_s=3600,
                    ),
                    planner=Planner(
                        job=job,
                        dataset=settings,
                        log=log,
                        roles=Roles(models={"subject": ("bad", "good")}, replicates=1),
                        start=PlanStart(
                            planning=await log.planning(), must_catch_up=False
                        ),
                    ),
                    notify=lambda _: None,
                ),
                endpoints=ModelEndpoints(
                    clients={
                        "bad": FunctionClient(refuse),
                        "good": FunctionClient(honest),
                    }
                ),
            )
        )
        assert await driver.run() == "endpoint"
        rows = await log.final_tasks("read", "good", after=0, limit=10_000)
        assert len(rows) == 2 * BLOCK

    run_virtual(main())


def test_what_limits_a_run_is_shown_later_where_the_log_is_behind() -> None:
    class Behind(MemoryLog):
        refused = 0

        def append_nowait(self, *entries: Entry | Event) -> None:
            if self.refused < 2:
                self.refused += 1
                raise LogBehind("too much waits")
            super().append_nowait(*entries)

    async def main() -> None:
        async def answer(call: Call) -> Reply:
            await asyncio.sleep(5)
            return honest(call)

        bench = Bench(answer)
        bench.log = Behind(LoopClock())
        assert await bench.run() == "finished"
        observed = await bench.log.events(kinds=["limit_observed"])
        assert [type(row.event) for row in observed] == [LimitObserved]

    run_virtual(main())


def test_a_model_that_is_named_twice_is_asked_once() -> None:
    assert options_from({"model": ["a", "b", "a"]}).model == ("a", "b")


@pytest.mark.parametrize(
    ("text", "is_empty"), [("", True), (" \n", True), ("x", False)]
)
def test_a_reply_of_blanks_is_recorded_as_empty(text: str, *, is_empty: bool) -> None:
    received = Received(body=b"", form="text", reply=Reply(text=text))
    event = answered_event(received, task=1, attempt=1, latency_ms=1.0, cost_usd=None)
    assert event.empty == is_empty
