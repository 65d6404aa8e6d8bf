"""One process of a run: takes it up, drives it, and says how it ended.

The same steps as `runner.run.launch`, which is bound to a folder, signals and HTTP.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from runner.engine.attempt_events import abandoned_attempts
from runner.engine.config import (
    CostBounds,
    DrainOptions,
    EngineConfig,
    EngineServices,
    ModelEndpoints,
    RetryOptions,
    TakeoverOptions,
)
from runner.engine.driver import Driver
from runner.engine.planner import Planner, PlanStart
from runner.engine.scheduler import Scheduler
from runner.limits.limiter import Endpoint
from runner.money.budget import Budget
from runner.plan import Roles
from runner.run.control import lifts
from runner.run.end import RunEnding
from store.control import Command
from store.events import RunResumed, RunStarted
from store.task import usd
from tests.runner.toy_jobs import ToySettings
from tests.simulation.ahead import LogAhead
from tests.simulation.broken import Broken
from tests.simulation.disk import Disk
from tests.simulation.job import VariedJob
from tests.simulation.listening import NOWHERE, SimulatedListener
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """What whoever starts a process says."""

    holds: bool = False  #: leave alone what an earlier process left unknown
    rereads: bool = False  #: derive the whole plan again
    budget_usd: float | None = None  #: another cap from here on


class Process:
    """What a crash takes away; the disk and the provider stay."""

    def __init__(
        self,
        *,
        number: int,
        scenario: Scenario,
        orders: Orders,
        log: LogAhead,
        disk: Disk,
        provider: Provider,
        clock: SimulatedClock,
        commands: Sequence[Command],
    ) -> None:
        self.log = log
        self.drained_at_s: float | None = None
        self._number = number
        self._scenario = scenario
        self._orders = orders
        self._disk = disk
        self._provider = provider
        self._clock = clock
        self._commands = commands
        self._job = VariedJob()
        self._driver: _Driver | None = None
        self._is_stopped = False
        self._scheduler: Scheduler

    # -- signals ---------------------------------------------------------------

    def drain(self) -> None:
        """The first one."""
        if self._driver is not None:
            self.drained_at_s = self.drained_at_s or self._clock.monotonic()
            self._driver.drain()

    def stop(self) -> None:
        """The second one."""
        if self._driver is not None:
            self.drain()
            self._is_stopped = True
            self._driver.stop()

    # -- the way of a process --------------------------------------------------

    async def run(self) -> str:
        """From taking the run up to the last event; how it ended."""
        await self._take_up()
        self._scheduler = self._new_scheduler()
        growth = await self._new_growth()
        self._driver = driver = _Driver(self._parts(growth))
        listener = SimulatedListener(
            self._commands,
            on_reopened=self._reopened,
            log=self.log,
            driver=driver,
            clock=self._clock,
            stages=tuple(stage.name for stage in self._job.stages),
            models=tuple(lane.model for lane in self._scenario.lanes),
            notify=lambda _: None,
        )
        async with listener.listening():
            outcome = await driver.run()
        end = RunEnding(
            folder=NOWHERE,
            log=self.log,
            clock=self._clock,
            planner=growth,
            driver=driver,
            listener=listener,
        )
        await self.log.last_seq()
        await self._check(outcome, is_late=listener.is_late)
        return (await end.conclude(outcome)).outcome

    async def _take_up(self) -> None:
        orders, log = self._orders, self.log
        if await log.last_seq() == 0:
            await log.append(_started(self._scenario))
            return
        before = self._disk.standing()
        cap_usd = orders.budget_usd or before.money.cap_usd
        unknown = await abandoned_attempts(log, hold=orders.holds)
        if unknown is not None:
            await self._check_unknown([task for task, _ in unknown.attempts])
            await log.append(unknown)
        resumed = RunResumed(
            code_sha256="",
            settings="",
            unknown=len(unknown.attempts) if unknown is not None else 0,
            budget_usd=cap_usd,
        )
        await log.append(resumed, *lifts(before.pauses, by="resume"))

    def _new_scheduler(self) -> Scheduler:
        scenario, money = self._scenario, self._disk.standing().money
        endpoints = {name: Endpoint(name) for name in scenario.rules}
        stages = [stage.name for stage in self._job.stages]
        return Scheduler(
            [
                (lane.model, stages, lane.limits, endpoints[lane.endpoint])
                for lane in scenario.lanes
            ],
            deadline_s=1e9 if scenario.is_mild else scenario.deadline_s,
            budget=Budget(
                money.cap_pico,
                spent_pico=money.spent_pico,
                possible_pico=money.possible_pico,
            ),
        )

    async def _new_growth(self) -> Planner:
        scenario = self._scenario
        models = tuple(lane.model for lane in scenario.lanes)
        return Planner(
            job=self._job,
            dataset=self._settings,
            log=self.log,
            roles=Roles(models={"subject": models}, replicates=scenario.replicates),
            start=PlanStart(
                planning=await self.log.planning(), must_catch_up=self._orders.rereads
            ),
        )

    @property
    def _settings(self) -> ToySettings:
        return ToySettings(items=self._scenario.items, words=self._scenario.words)

    def _parts(self, growth: Planner) -> EngineConfig:
        scenario = self._scenario
        return EngineConfig(
            services=EngineServices(
                job=self._job,
                dataset=self._settings,
                log=self.log,
                clock=self._clock,
                scheduler=self._scheduler,
                planner=growth,
                notify=lambda _: None,
            ),
            endpoints=ModelEndpoints(
                clients={
                    lane.model: SimulatedClient(
                        provider=self._provider,
                        endpoint=lane.endpoint,
                        process=self._number,
                        disk=self._disk,
                    )
                    for lane in scenario.lanes
                }
            ),
            costs=CostBounds(
                prices={lane.model: lane.price for lane in scenario.lanes}
            ),
            retries=RetryOptions(
                seed=scenario.seed + self._number, reask=scenario.reask
            ),
            takeover=TakeoverOptions(frees_held=not self._orders.holds),
            drain=DrainOptions(grace_s=scenario.grace_s),
        )

    def _reopened(self, tasks: list[int]) -> bool:
        self._provider.forgive(tasks)
        return self._driver is not None and self._driver.is_deciding

    # -- what must hold --------------------------------------------------------

    def due(self, now: float) -> float | None:
        """When the scheduler wants to be asked next, if it says so."""
        if self._driver is None or not self._driver.is_deciding:
            return None
        step = self._scheduler.step(now)
        return now if step.start or step.load else step.wake_at

    async def _check_unknown(self, tasks: list[int]) -> None:
        found = Counter(row.model for row in await self.log.tasks(tasks))
        for model, n in found.items():
            if n > self._provider.most_slots[model]:
                raise Broken(
                    "unknown calls are at most those in flight",
                    f"{n} of {model} are unknown, with "
                    f"{self._provider.most_slots[model]} slots",
                )

    async def _check(self, outcome: str, *, is_late: bool) -> None:
        """What is left over at the end of a process that ends in order."""
        cut = len(await self.log.in_flight())
        if not self._is_stopped:  # else some are cut off before they have begun
            self._check_reservations(cut, is_cut=outcome == "drained")
            self._check_money()
        planned = (await self.log.planning()).tasks
        rows = await self.log.tasks(range(1, planned + 1))
        left = [row for row in rows if row.state.is_open]
        if outcome == "finished" and left and not is_late:
            raise Broken("a run ends when nothing is left to do", f"{left[0]}")
        if outcome == "held" and not any(row.is_held for row in left):
            raise Broken("a run ends when nothing is left to do", "nothing is held")

    def _check_reservations(self, cut: int, *, is_cut: bool) -> None:
        lanes = self._scheduler.statistics()
        calls = sum(lane.in_flight for lane in lanes)
        slots = sum(lane.limiter.in_flight for lane in lanes)
        unsettled = sum(lane.unsettled for lane in lanes)
        # whoever is cut off holds no slot: another run may wait for it
        if (calls, slots) != (cut, 0) or (unsettled and not is_cut):
            raise Broken(
                "reservations return to zero",
                f"{calls} calls, {slots} slots and {unsettled} outcomes at the end, "
                f"of which {cut} were cut off",
            )

    def _check_money(self) -> None:
        live = self._scheduler.budget.statistics()
        told = self._disk.standing().money
        if live.reserved_pico:
            raise Broken("reservations return to zero", f"{usd(live.reserved_pico)} $")
        if (live.spent_pico, live.possible_pico, live.cap_pico) != (
            told.spent_pico,
            # what was cut off may be billed; the log calls it in flight until a resume
            told.possible_pico + told.in_flight_pico,
            told.cap_pico,
        ):
            raise Broken(
                "the folded state equals the live state", f"{live}, log says {told}"
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
        budget_usd=scenario.budget_usd,
    )
