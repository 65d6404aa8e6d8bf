"""Whole runs of all stages on a virtual clock, through any crash."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any, cast

import pytest

from jobs.evidence_retrieval import baseline, plan
from jobs.evidence_retrieval import prompts as asking
from jobs.evidence_retrieval.data import EvidenceDataset
from jobs.evidence_retrieval.plan import STAGES
from jobs.evidence_retrieval.settings import EvidenceSettings as JobSettings
from runner import errors as e
from runner.clients.client import Call
from runner.clients.offline import FunctionClient
from runner.engine.config import (
    EngineConfig,
    EngineServices,
    ModelEndpoints,
    RetryOptions,
)
from runner.engine.driver import Driver
from runner.engine.planner import Planner, PlanStart
from runner.engine.scheduler import Scheduler
from runner.job import Answer, Job, Stage, Task, TaskSpec
from runner.limits.limiter import Endpoint, Limits
from runner.messages import AnyReply, Reply, Request
from runner.plan import Roles
from store.events import AttemptsAbandoned
from tests.jobs.evidence_retrieval.asked import data
from tests.runner.toy_jobs import LoopClock, run_virtual
from tests.store.memory_log import MemoryLog

WORDS = ("sleep", "night", "bed", "work", "job", "money", "fine", "rain", "tea")


class Asking:
    """As much of the job as a run needs."""

    name = "evidence-retrieval"
    version = "1"
    Settings = JobSettings
    stages = STAGES

    def plan(self, dataset: EvidenceDataset) -> Iterator[TaskSpec]:
        return plan.plan(dataset)

    def request(self, dataset: EvidenceDataset, task: Task) -> Request:
        return asking.request(dataset, task)

    def follow_up(
        self, dataset: EvidenceDataset, group: tuple[Answer, ...]
    ) -> Iterator[TaskSpec]:
        return plan.follow_up(dataset, group)

    def follows(self, dataset: EvidenceDataset, stage: Stage) -> bool:
        del dataset
        return stage.follows


def sentence(chance: random.Random) -> str:
    return " ".join(chance.choices(WORDS, k=4))


def posts() -> dict[str, list[str]]:
    chance = random.Random(7)
    return {
        name: [sentence(chance) for _ in range(n)]
        for name, n in (("long", 35), ("short", 6), ("one", 1), ("none", 0))
    }


class Run:
    """A run's parts around one log, so that a second process can take over."""

    def __init__(self, seed: int, replicates: int = 1, **settings: Any) -> None:
        self.dataset = data(posts(), **settings)
        self.log = MemoryLog(LoopClock())
        self.chance = random.Random(seed)
        self.roles = Roles(
            models={"subject": ("a", "b"), "embed": ("e",), "rerank": ("r",)},
            replicates=replicates,
        )
        self.sent: Counter[tuple[str, str]] = Counter()

    async def answer(self, call: Call) -> AnyReply:
        await asyncio.sleep(self.chance.expovariate(1.0))
        if self.chance.random() < 0.1:
            raise e.MalformedReply("x")
        said = baseline.baseline(call.request)
        self.sent[call.task.stage, call.task.model] += 1
        return Reply(text=said) if isinstance(said, str) else said

    async def driver(self) -> Driver:
        job = cast("Job", Asking())
        lanes = [
            (
                model,
                self.roles.stages_of(job, model),
                Limits(concurrency=3),
                Endpoint("x"),
            )
            for model in self.roles.all_models
        ]
        growth = Planner(
            job=job,
            dataset=self.dataset,
            log=self.log,
            roles=self.roles,
            start=PlanStart(planning=await self.log.planning(), must_catch_up=False),
        )
        client = FunctionClient(self.answer)
        return Driver(
            EngineConfig(
                services=EngineServices(
                    job=job,
                    dataset=self.dataset,
                    log=self.log,
                    clock=LoopClock(),
                    scheduler=Scheduler(lanes, deadline_s=3600),
                    planner=growth,
                    notify=lambda _: None,
                ),
                endpoints=ModelEndpoints(
                    clients=dict.fromkeys(self.roles.all_models, client)
                ),
                retries=RetryOptions(seed=1, reask=0),
            )
        )

    async def through_kills(self, most: int) -> int:
        """Kill after at most some seconds, until it is finished; how many it took."""
        for kills in range(300):
            if unknown := await self.log.in_flight():
                await self.log.append(AttemptsAbandoned(attempts=unknown))
            driver = await self.driver()
            loop = asyncio.get_running_loop()
            timer = loop.call_later(self.chance.uniform(0, most), driver.stop)
            outcome = await driver.run()
            timer.cancel()
            if outcome == "finished":
                return kills
        raise AssertionError("the run never ended")

    async def tasks(self) -> dict[tuple[str, str, str, int], tuple[str, ...]]:
        planning = await self.log.planning()
        rows = await self.log.tasks(range(1, planning.tasks + 1))
        found = {
            (row.stage, row.key, row.model, row.replicate): (
                row.state.name,
                row.reason or "",
                row.context or "",
            )
            for row in rows
        }
        assert len(found) == len(rows)
        return found


ALL: dict[str, Any] = {"tasks": ("assess", "embed", "rerank_api", "rerank")}


@pytest.mark.parametrize(
    "settings",
    [
        ALL,
        ALL | {"batch": "post", "first_stage": "assess"},
        ALL | {"first_stage": "embedding", "replicates": 2, "rerank_depth": 25},
    ],
    ids=["bm25", "assess", "embedding"],
)
def test_whatever_the_crashes_the_windows_end_as_if_there_were_none(
    settings: dict[str, Any],
) -> None:
    async def main() -> None:
        whole = Run(1, **settings)
        assert await (await whole.driver()).run() == "finished"
        expected = await whole.tasks()
        for seed in range(4):
            killed = Run(seed, **settings)
            assert await killed.through_kills(most=1) > 2
            assert await killed.tasks() == expected

    run_virtual(main())


def test_every_stage_is_asked_of_the_models_of_its_role() -> None:
    async def main() -> None:
        run = Run(1, **ALL, first_stage="embedding")
        assert await (await run.driver()).run() == "finished"
        assert run.sent == {
            ("assess", "a"): 6,
            ("assess", "b"): 6,
            ("embed", "e"): 3,
            ("rerank_api", "r"): 4,
            # of two criteria: three windows over the long post, one over the short
            ("rerank", "a"): 8,
            ("rerank", "b"): 8,
        }
        states = Counter((state, why) for state, why, _ in (await run.tasks()).values())
        assert states == {
            ("COMPLETED", ""): 35,
            ("SKIPPED", "no_sentences"): 2 * 2 + 1 + 2,
            ("SKIPPED", "single_sentence"): 2 + 2 * 2,
        }

    run_virtual(main())
