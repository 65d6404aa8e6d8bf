"""One process of a run: takes it up, drives it, and says how it ended.

The same steps as `runner.launch`, which itself is bound to a folder, signals and HTTP.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter

from runner.attempts import Parts
from runner.beside import beside
from runner.driver import Driver, Outcome
from runner.growth import Growth, Start
from runner.limiter import Endpoint
from runner.plan import Roles
from runner.scheduler import Scheduler
from runner.testing import ToySettings
from store.events import (
    AttemptsAbandoned,
    CommandAccepted,
    CommandApplied,
    RunDrained,
    RunFinished,
    RunResumed,
    RunStarted,
    TasksReopened,
)
from store.task import TaskState
from tests.simulation.ahead import LogAhead
from tests.simulation.broken import Broken
from tests.simulation.disk import Disk
from tests.simulation.job import VariedJob
from tests.simulation.loop import SimulatedClock
from tests.simulation.provider import Provider, SimulatedClient
from tests.simulation.scenario import Scenario


class _Driver(Driver):
    """Knows whether it still decides."""

    is_deciding = False

    async def _dispatch(
        self, calls: asyncio.TaskGroup, plan: asyncio.Task[None]
    ) -> None:
        self.is_deciding = True
        try:
            await super()._dispatch(calls, plan)
        finally:
            self.is_deciding = False


class Process:
    """What a crash takes away; the disk and the provider stay."""

    def __init__(
        self,
        *,
        number: int,
        scenario: Scenario,
        log: LogAhead,
        disk: Disk,
        provider: Provider,
        clock: SimulatedClock,
        holds: bool,
        rereads: bool,
    ) -> None:
        self.number = number
        self.log = log
        self.driver: _Driver | None = None
        self.is_stopped = False
        self.drained_at_s: float | None = None
        self._is_reopening = False
        self._scenario = scenario
        self._disk = disk
        self._provider = provider
        self._clock = clock
        self._holds = holds
        self._rereads = rereads
        self._commands: asyncio.Queue[float] = asyncio.Queue()
        endpoints = {name: Endpoint(name) for name in scenario.rules}
        stages = [stage.name for stage in VariedJob().stages]
        self.scheduler = Scheduler(
            [
                (lane.model, stages, lane.limits, endpoints[lane.endpoint])
                for lane in scenario.lanes
            ],
            deadline_s=1e9 if scenario.is_mild else scenario.deadline_s,
        )

    def retry(self, chance: float) -> None:
        """Somebody asks for some of the final tasks once more."""
        self._commands.put_nowait(chance)

    def stop(self) -> None:
        """The second signal."""
        if self.driver is not None:
            self.drain()
            self.is_stopped = True
            self.driver.stop()

    def drain(self) -> None:
        """The first signal."""
        if self.driver is not None:
            self.drained_at_s = self.drained_at_s or self._clock.monotonic()
            self.driver.drain()

    def due(self, now: float) -> float | None:
        """When the scheduler wants to be asked next, if it says so."""
        if self.driver is None or not self.driver.is_deciding:
            return None
        step = self.scheduler.step(now)
        return now if step.start or step.load else step.wake_at

    async def run(self) -> str:
        """From taking the run up to the last event."""
        scenario, log = self._scenario, self.log
        if await log.last_seq() == 0:
            await log.append(_started(scenario))
        else:
            await self._resume()
        job = VariedJob()
        settings = ToySettings(items=scenario.items, words=scenario.words)
        models = tuple(lane.model for lane in scenario.lanes)
        planning = await log.planning()
        self.driver = _Driver(
            Parts(
                job=job,
                dataset=settings,
                log=log,
                clock=self._clock,
                clients={
                    lane.model: SimulatedClient(
                        provider=self._provider,
                        endpoint=lane.endpoint,
                        process=self.number,
                        disk=self._disk,
                    )
                    for lane in scenario.lanes
                },
                scheduler=self.scheduler,
                growth=Growth(
                    job=job,
                    dataset=settings,
                    log=log,
                    roles=Roles(
                        models={"subject": models}, replicates=scenario.replicates
                    ),
                    start=Start(planning=planning, must_catch_up=self._rereads),
                ),
                tell=lambda _: None,
                seed=scenario.seed + self.number,
                reask=scenario.reask,
                grace_s=scenario.grace_s,
                frees_held=not self._holds,
            )
        )
        async with beside(self._listen(self.driver)):
            outcome = await self.driver.run()
        return await self._conclude(outcome)

    async def _resume(self) -> None:
        unknown = await self.log.in_flight()
        if unknown:
            await self._check_unknown([task for task, _ in unknown])
            await self.log.append(AttemptsAbandoned(attempts=unknown, hold=self._holds))
        await self.log.append(
            RunResumed(code_sha256="", settings="", unknown=len(unknown))
        )

    async def _check_unknown(self, tasks: list[int]) -> None:
        found = Counter(row.model for row in await self.log.tasks(tasks))
        for lane in self._scenario.lanes:
            if found[lane.model] > lane.limits.concurrency:
                raise Broken(
                    "unknown calls are at most those in flight",
                    f"{found[lane.model]} of {lane.model} are unknown, with "
                    f"{lane.limits.concurrency} slots",
                )

    async def _listen(self, driver: _Driver) -> None:
        while True:
            chance = await self._commands.get()
            self._is_reopening = True
            await self._obey(chance)
            self._is_reopening = not driver.is_deciding
            driver.reopened()

    async def _obey(self, chance: float) -> None:
        """Reopen some of the final tasks."""
        planned = (await self.log.planning()).tasks
        rows = await self.log.tasks(range(1, planned + 1))
        ended = (TaskState.COMPLETED, TaskState.FAILED)
        final = [row.task for row in rows if row.state in ended]
        draw = random.Random(chance)
        tasks = sorted(draw.sample(final, min(len(final), draw.randint(1, 6))))
        if not tasks:
            return
        self._provider.forgive(tasks)
        command = f"c{self._disk.seq}"
        await self.log.append(
            CommandAccepted(
                command=command, kind="retry", author="somebody", payload="{}"
            ),
            TasksReopened(tasks=tasks, by="somebody"),
            CommandApplied(command=command, effect=f"{len(tasks)} tasks reopened"),
        )

    async def _conclude(self, outcome: Outcome) -> str:
        await self.log.last_seq()
        unknown = len(await self.log.in_flight())
        self._check_reservations(unknown, is_cut=outcome == "drained")
        planned = (await self.log.planning()).tasks
        rows = await self.log.tasks(range(1, planned + 1))
        states = Counter(row.state for row in rows)
        if outcome == "held" and not any(row.is_held for row in rows):
            raise Broken("a run ends when nothing is left to do", "nothing is held")
        left = sum(n for state, n in states.items() if state.is_open)
        if outcome == "finished" and not left:
            await self.log.append(
                RunFinished(
                    completed=states[TaskState.COMPLETED],
                    failed=states[TaskState.FAILED],
                    skipped=states[TaskState.SKIPPED],
                )
            )
            return outcome
        if outcome == "finished" and not self._is_reopening:
            raise Broken(
                "a run ends when nothing is left to do",
                f"it ended with {left} tasks open: {dict(states)}",
            )
        await self.log.append(RunDrained(by="operator", why=outcome, open=left))
        return "reopened" if outcome == "finished" else outcome

    def _check_reservations(self, unknown: int, *, is_cut: bool) -> None:
        """What is still held belongs to calls that were cut off."""
        if self.is_stopped:
            return  # some were cut off before they had begun
        lanes = self.scheduler.statistics()
        calls = sum(lane.in_flight for lane in lanes)
        slots = sum(lane.limiter.in_flight for lane in lanes)
        unsettled = sum(lane.unsettled for lane in lanes)
        if (calls, slots) != (unknown, unknown) or (unsettled and not is_cut):
            raise Broken(
                "reservations return to zero",
                f"{calls} calls, {slots} slots and {unsettled} outcomes at the end, "
                f"of which {unknown} were cut off",
            )


def _started(scenario: Scenario) -> RunStarted:
    return RunStarted(
        run_id="simulated",
        job="toy",
        job_version="1",
        code_sha256="",
        settings="",
        models={"subject": [lane.model for lane in scenario.lanes]},
        replicates=scenario.replicates,
        inputs=[],
        siftlog_version="0",
    )
