"""A job of every kind of request on a virtual clock: to its end through any crash."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest

from runner import errors as e
from runner.clients.client import Call
from runner.clients.offline import Answerer, FunctionClient
from runner.engine.config import (
    EngineConfig,
    EngineServices,
    ModelEndpoints,
    RetryOptions,
)
from runner.engine.driver import Driver, Outcome
from runner.engine.failure_policy import MAX_ATTEMPTS
from runner.engine.planner import Planner, PlanStart
from runner.engine.scheduler import Scheduler
from runner.job import Task
from runner.limits.limiter import Endpoint, Limits
from runner.messages import AnyReply, ParseFailure, Ranking, Reply, Usage, Vectors
from runner.plan import Roles
from store.events import AttemptAnswered, AttemptFailed, AttemptsAbandoned
from tests.runner.toy_jobs import LoopClock, PanelJob, PanelSettings, run_virtual
from tests.store.memory_log import MemoryLog

ROLES = Roles(
    models={
        "subject": ("a", "b"),
        "judge": ("j",),
        "embed": ("e",),
        "rerank": ("r",),
    },
    replicates=1,
)


def honest(call: Call) -> AnyReply:
    said = PanelJob().baseline(call.request)
    return Reply(text=said) if isinstance(said, str) else said


class Bench:
    """A run's parts around one log, so that a second process can take over."""

    def __init__(
        self, answer: Answerer, settings: PanelSettings, job: PanelJob | None = None
    ) -> None:
        self.job = job or PanelJob()
        self.log = MemoryLog(LoopClock())
        self.answer = answer
        self.settings = settings

    async def driver(self) -> Driver:
        job = self.job
        endpoint = Endpoint("x")
        lanes = [
            (model, ROLES.stages_of(job, model), Limits(concurrency=3), endpoint)
            for model in ROLES.all_models
        ]
        start = PlanStart(planning=await self.log.planning(), must_catch_up=False)
        return Driver(
            EngineConfig(
                services=EngineServices(
                    job=job,
                    dataset=self.settings,
                    log=self.log,
                    clock=LoopClock(),
                    scheduler=Scheduler(lanes, deadline_s=3600),
                    planner=Planner(
                        job=job,
                        dataset=self.settings,
                        log=self.log,
                        roles=ROLES,
                        start=start,
                    ),
                    notify=lambda _: None,
                ),
                endpoints=ModelEndpoints(
                    clients=dict.fromkeys(ROLES.all_models, FunctionClient(self.answer))
                ),
                retries=RetryOptions(seed=1, reask=self.settings.reask),
            )
        )

    async def run(self) -> Outcome:
        return await (await self.driver()).run()

    async def tasks(self) -> Counter[str]:
        planning = await self.log.planning()
        rows = await self.log.tasks(range(1, planning.tasks + 1))
        return Counter(f"{row.stage} {row.model} {row.state.name}" for row in rows)


WHOLE = {
    "embed e COMPLETED": 6,
    "rerank r COMPLETED": 6,
    "answer a COMPLETED": 6,
    "answer b COMPLETED": 6,
    "judge j COMPLETED": 12,
    "sum j COMPLETED": 6,
}


def test_every_stage_is_asked_of_the_models_of_its_role() -> None:
    async def main() -> None:
        bench = Bench(honest, PanelSettings(items=6))
        assert await bench.run() == "finished"
        assert await bench.tasks() == WHOLE

    run_virtual(main())


def test_a_group_that_a_judge_gathers_waits_for_the_slowest_subject() -> None:
    async def main() -> None:
        sums: list[str] = []

        async def answer(call: Call) -> AnyReply:
            if call.task.model == "b":
                await asyncio.sleep(100)
            if call.task.stage == "sum":
                sums.append(call.task.context or "")
            return honest(call)

        bench = Bench(answer, PanelSettings(items=6))
        assert await bench.run() == "finished"
        assert sums == ["2"] * 6  # each over the verdicts on both subjects

    run_virtual(main())


@pytest.mark.parametrize("seed", range(10))
def test_whatever_the_crashes_the_plan_ends_as_if_there_were_none(seed: int) -> None:
    async def main() -> None:
        chance = random.Random(seed)

        async def answer(call: Call) -> AnyReply:
            await asyncio.sleep(chance.expovariate(1.0))
            if chance.random() < 0.1:
                raise e.MalformedReply("x")
            return honest(call)

        bench = Bench(answer, PanelSettings(items=6))
        for _ in range(100):
            unknown = await bench.log.in_flight()
            if unknown:
                await bench.log.append(AttemptsAbandoned(attempts=unknown))
            driver = await bench.driver()
            timer = asyncio.get_running_loop().call_later(
                chance.uniform(0, 4), driver.stop
            )
            outcome = await driver.run()
            timer.cancel()
            if outcome == "finished":
                break
        assert await bench.tasks() == WHOLE

    run_virtual(main())


@pytest.mark.parametrize(
    ("stage", "bad", "reason"),
    [
        ("embed", Vectors.of([[1.0, 2.0], [1.0]]), "bad_vectors"),
        ("rerank", Ranking(results=()), "bad_ranking"),
    ],
)
def test_vectors_and_scores_that_cannot_be_used_are_kept_and_not_asked_again(
    stage: str, bad: AnyReply, reason: str
) -> None:
    async def main() -> None:
        def answer(call: Call) -> AnyReply:
            return bad if call.task.stage == stage else honest(call)

        # a dialogue about it is something that only chats have
        bench = Bench(answer, PanelSettings(items=1, reask=2))
        assert await bench.run() == "finished"
        rows = await bench.log.tasks(range(1, 3))
        (row,) = [row for row in rows if row.stage == stage]
        assert (row.state.name, row.reason, row.attempts) == ("COMPLETED", reason, 1)

    run_virtual(main())


class Strict(PanelJob):
    """Says what it misses in a text."""

    @staticmethod
    def _text(dataset: PanelSettings, task: Task, reply: Reply) -> str | ParseFailure:
        del dataset, task
        if "good" in reply.text:
            return reply.text
        return ParseFailure(reason="no_json", detail="line 1, column 7: a brace")


def test_a_process_that_takes_a_dialogue_up_says_what_was_said_before() -> None:
    async def main() -> None:
        asked: list[str] = []

        async def answer(call: Call) -> AnyReply:
            said = honest(call)
            if call.task.stage != "answer" or call.task.model != "a":
                return Reply(text="good") if isinstance(said, Reply) else said
            asked.append(call.request.messages[-1].text)
            await asyncio.sleep(5)
            return Reply(text="good" if len(asked) == 3 else "bad")

        bench = Bench(answer, PanelSettings(items=1, reask=1), Strict())
        driver = await bench.driver()
        asyncio.get_running_loop().call_later(7, driver.stop)
        assert await driver.run() == "drained"
        unknown = await bench.log.in_flight()
        await bench.log.append(AttemptsAbandoned(attempts=unknown))
        assert await bench.run() == "finished"
        first, then, again = asked
        assert first.startswith("answer i0")
        assert "(no json: line 1, column 7: a brace)" in then
        assert again == then

    run_virtual(main())


def test_a_refused_form_is_asked_again_at_once_and_does_not_count() -> None:
    async def main() -> None:
        left = Counter[int]()

        def answer(call: Call) -> AnyReply:
            left[call.task.number] += 1
            if left[call.task.number] <= MAX_ATTEMPTS + 1:
                raise e.FormRefused("no such form", status=400)
            return honest(call)

        bench = Bench(answer, PanelSettings(items=6))
        assert await bench.run() == "finished"
        assert await bench.tasks() == WHOLE
        assert LoopClock().monotonic() < 1.0
        failures = await bench.log.events(limit=10_000, kinds=["attempt_failed"])
        assert {
            (failed.event.error, failed.event.retry_in_s)
            for failed in failures
            if isinstance(failed.event, AttemptFailed)
        } == {("FormRefused", 0.0)}

    run_virtual(main())


def test_tokens_written_to_a_cache_are_recorded_apart() -> None:
    async def main() -> None:
        usage = Usage(tokens_in=9, tokens_out=1, tokens_cached=2, tokens_cache_write=3)

        def answer(call: Call) -> AnyReply:
            said = honest(call)
            return (
                Reply(text=said.text, usage=usage) if isinstance(said, Reply) else said
            )

        bench = Bench(answer, PanelSettings(items=1))
        assert await bench.run() == "finished"
        rows = await bench.log.events(limit=100, kinds=["attempt_answered"])
        facts = {
            (row.event.tokens_in, row.event.tokens_cached, row.event.tokens_cache_write)
            for row in rows
            if isinstance(row.event, AttemptAnswered)
        }
        assert facts == {(None, None, None), (9, 2, 3)}

    run_virtual(main())
