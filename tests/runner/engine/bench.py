"""A run of the toy job on a log in memory, driven from a test."""

from __future__ import annotations

from collections import Counter

from runner.clients.client import Call
from runner.clients.offline import Answerer, FunctionClient
from runner.engine.config import (
    CostBounds,
    DrainOptions,
    EngineConfig,
    EngineServices,
    ModelEndpoints,
    RetryOptions,
)
from runner.engine.driver import Driver, Outcome
from runner.engine.failure_policy import FutilityMonitor
from runner.engine.planner import Planner, PlanStart
from runner.engine.scheduler import Fence, Scheduler
from runner.job_faults import JobFaults
from runner.limits.limiter import Endpoint, Limits
from runner.messages import Reply
from runner.model_terms import ModelTerms
from runner.money.budget import Budget
from runner.money.prices import Price
from runner.plan import Roles
from store.events import AttemptStarted
from tests.runner.toy_jobs import LoopClock, ToyJob, ToySettings
from tests.store.memory_log import MemoryLog


def honest(call: Call) -> Reply:
    return Reply(text=ToyJob().baseline(call.request))


class Bench:
    """A run's parts around one log, so that a second process can take over."""

    def __init__(
        self,
        answer: Answerer = honest,
        settings: ToySettings | None = None,
        *,
        concurrency: int = 4,
        grace_s: float = 30.0,
        fence: Fence | None = None,
    ) -> None:
        self.log = MemoryLog(LoopClock())
        self.job = ToyJob()
        self.settings = settings or ToySettings()
        self.answer = answer
        self.concurrency = concurrency
        self.grace_s = grace_s
        self.fence = fence
        self.budget = Budget()
        self.futility = FutilityMonitor()
        self.terms: dict[str, ModelTerms] = {}
        self.prices: dict[str, Price | None] = {}
        self.told: list[str] = []

    async def driver(self, *, must_catch_up: bool = False) -> Driver:
        stages = [stage.name for stage in self.job.stages]
        limits = Limits(concurrency=self.concurrency)
        faults = JobFaults(self.told.append)
        return Driver(
            EngineConfig(
                services=EngineServices(
                    job=self.job,
                    dataset=self.settings,
                    log=self.log,
                    clock=LoopClock(),
                    scheduler=Scheduler(
                        [("m", stages, limits, Endpoint("x"))],
                        deadline_s=3600,
                        budget=self.budget,
                        fence=self.fence,
                    ),
                    planner=Planner(
                        job=self.job,
                        dataset=self.settings,
                        log=self.log,
                        roles=Roles(models={"subject": ("m",)}, replicates=1),
                        start=PlanStart(
                            planning=await self.log.planning(),
                            must_catch_up=must_catch_up,
                        ),
                        faults=faults,
                    ),
                    notify=self.told.append,
                    faults=faults,
                ),
                endpoints=ModelEndpoints(
                    clients={"m": FunctionClient(self.answer)}, terms=self.terms
                ),
                costs=CostBounds(prices=self.prices),
                retries=RetryOptions(
                    seed=1, reask=self.settings.reask, futility=self.futility
                ),
                drain=DrainOptions(grace_s=self.grace_s),
            )
        )

    async def run(self, **options: bool) -> Outcome:
        return await (await self.driver(**options)).run()

    async def states(self) -> Counter[str]:
        planning = await self.log.planning()
        rows = await self.log.tasks(range(1, planning.tasks + 1))
        return Counter(f"{row.stage} {row.state.name}" for row in rows)

    async def sent(self) -> Counter[tuple[int, int]]:
        recorded = await self.log.events(limit=100_000, kinds=["attempt_started"])
        return Counter(
            (r.event.task, r.event.attempt)
            for r in recorded
            if isinstance(r.event, AttemptStarted)
        )
