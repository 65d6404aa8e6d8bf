"""A wall clock that is set forward or back changes nothing but the times that are told.

Whatever waits (limits, retries, timeouts, a drain) is measured by the monotonic clock;
the wall clock stamps events, and says when a task that an earlier process left waiting
is due.
"""

from __future__ import annotations

import asyncio

import pytest

from runner import errors as e
from runner.clients.client import Call
from runner.clients.offline import Answerer, FunctionClient
from runner.engine.config import EngineConfig, EngineServices, ModelEndpoints
from runner.engine.driver import Driver, Outcome
from runner.engine.planner import Planner, PlanStart
from runner.engine.scheduler import Scheduler
from runner.limits.limiter import Endpoint, Limits
from runner.messages import Reply
from runner.plan import Roles
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
