"""The plan grows in bounded transactions, and one growth at a time."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator

import pytest

from runner.clients.client import Call
from runner.engine.planner import Planner, PlanStart
from runner.job import Answer, TaskSpec
from runner.messages import Reply
from runner.plan import BLOCK, Roles
from store.errors import LogClosed
from store.events import Entry, Event, TasksPlanned
from store.task import TaskRow
from tests.runner.engine.bench import Bench, honest
from tests.runner.toy_jobs import LoopClock, ToyJob, ToySettings, run_virtual
from tests.store.memory_log import MemoryLog


class OneItem(ToyJob):
    """Plans one item, whatever its replicates."""

    def plan(self, dataset: ToySettings) -> Iterator[TaskSpec]:
        del dataset
        yield TaskSpec(stage="read", key="i0")


class DyingLog(MemoryLog):
    """Refuses every append after the first *lives* ones."""

    def __init__(self, lives: int) -> None:
        super().__init__(LoopClock())
        self.lives = lives

    async def append(self, *entries: Entry | Event) -> int:
        self.lives -= 1
        if self.lives < 0:
            raise LogClosed("the process was killed")
        return await super().append(*entries)


class SlowLog(MemoryLog):
    """Yields to the loop in each look at a family or a group, as SQLite's does."""

    async def family(self, root: int) -> list[TaskRow]:
        found = await super().family(root)
        await asyncio.sleep(0.1)
        return found

    async def group(
        self, stage: str, model: str, replicate: int, group: str
    ) -> list[TaskRow]:
        found = await super().group(stage, model, replicate, group)
        await asyncio.sleep(0.1)
        return found


async def _growth(
    log: MemoryLog, job: ToyJob, settings: ToySettings, replicates: int
) -> Planner:
    return Planner(
        job=job,
        dataset=settings,
        log=log,
        roles=Roles(models={"subject": ("m", "n")}, replicates=replicates),
        start=PlanStart(planning=await log.planning(), must_catch_up=False),
    )


async def _grow(log: MemoryLog, job: ToyJob, replicates: int) -> Planner:
    growth = await _growth(log, job, ToySettings(items=3), replicates)
    async for _pair in growth.grow():
        pass
    return growth


async def _planned(log: MemoryLog) -> Counter[tuple[str, str, str, int]]:
    rows = await log.tasks(range(1, (await log.planning()).tasks + 1))
    return Counter((r.stage, r.key, r.model, r.replicate) for r in rows)


async def _blocks(log: MemoryLog) -> list[TasksPlanned]:
    recorded = await log.events(limit=100_000, kinds=["tasks_planned"])
    return [r.event for r in recorded if isinstance(r.event, TasksPlanned)]


def test_a_spec_of_many_replicates_is_planned_in_blocks() -> None:
    async def main() -> None:
        log = MemoryLog(LoopClock())
        await _grow(log, ToyJob(), 3 * BLOCK // 4)
        blocks = await _blocks(log)
        assert [block.count for block in blocks] == [1000, 500, 1000, 500, 1000, 500]
        # a spec is consumed with its last block, and not before
        assert [block.consumed for block in blocks] == [0, 1, 1, 2, 2, 3]
        assert [block.exhausted for block in blocks] == [False] * 5 + [True]
        assert len(await _planned(log)) == (await log.planning()).tasks == 4500

    run_virtual(main())


@pytest.mark.parametrize("lives", range(7))
def test_a_crash_within_a_spec_plans_nothing_twice_and_loses_nothing(
    lives: int,
) -> None:
    async def main() -> None:
        log = DyingLog(lives)
        try:
            await _grow(log, ToyJob(), 3 * BLOCK // 4)
        except LogClosed:
            log.lives = 100
            await _grow(log, ToyJob(), 3 * BLOCK // 4)
        planned = await _planned(log)
        assert len(planned) == 4500
        assert set(planned.values()) == {1}

    run_virtual(main())


class Wide(OneItem):
    """One answer is followed by more tasks than a block holds."""

    def follow_up(
        self, dataset: ToySettings, group: tuple[Answer, ...]
    ) -> Iterator[TaskSpec]:
        if group[0].task.stage == "read":
            for i in range(dataset.words):
                yield TaskSpec(stage="ask", key=f"i0/{i}", group="i0")


@pytest.mark.parametrize("lives", [3, 4, 5, 6, 7])
def test_follow_ups_of_one_answer_are_bounded_and_survive_a_crash(lives: int) -> None:
    """Appends: the plan, started, answered, then two blocks and one with the end."""

    async def main() -> None:
        bench = Bench(settings=ToySettings(items=1, words=2500))
        bench.job = Wide()
        log = DyingLog(lives)
        bench.log = log

        async def asked(call: Call) -> Reply:
            if call.task.stage == "ask":
                await asyncio.sleep(3600)
            return Reply(text=" ".join(map(str, range(2500))))

        bench.answer = asked
        driver = await bench.driver()
        asyncio.get_running_loop().call_later(1, driver.stop)
        try:
            await driver.run()
        except LogClosed:
            log.lives = 100
            again = await bench.driver()
            asyncio.get_running_loop().call_later(1, again.stop)
            await again.run()
        blocks = await _blocks(log)
        assert max(block.count for block in blocks) <= BLOCK
        planned = await _planned(log)
        assert len(planned) == 2501
        assert set(planned.values()) == {1}
        sent = await bench.sent()
        assert sent[1, 1] == 1
        assert (1, 2) not in sent

    run_virtual(main())


def test_calls_are_sent_while_the_rest_of_the_plan_is_written() -> None:
    async def main() -> None:
        written: list[int] = []

        async def answer(call: Call) -> Reply:
            written.append(len(await _blocks(bench.log)))
            driver.stop()
            return honest(call)

        bench = Bench(answer, ToySettings(items=30 * BLOCK), concurrency=1)
        driver = await bench.driver()
        await driver.run()
        assert written
        assert written[0] <= 5  # of 30

    run_virtual(main())


class Converging(ToyJob):
    """Two answers of one family are followed by the same task."""

    def follow_up(
        self, dataset: ToySettings, group: tuple[Answer, ...]
    ) -> Iterator[TaskSpec]:
        del dataset
        if group[0].task.stage == "read":
            for word in ("a", "b"):
                yield TaskSpec(stage="join", key=f"i0/{word}")
        elif group[0].task.stage == "join":
            yield TaskSpec(stage="sum", key="i0")

    def __init__(self) -> None:
        super().__init__()
        read, ask, total = self.stages
        join = type(ask)(name="join", parse=ask.parse)
        self.stages = (read, join, total)


def test_answers_that_end_together_plan_their_common_follow_up_once() -> None:
    async def main() -> None:
        async def answer(call: Call) -> Reply:
            await asyncio.sleep(1)
            return honest(call)

        bench = Bench(answer, ToySettings(items=1))
        bench.job = Converging()
        bench.log = SlowLog(LoopClock())
        assert await bench.run() == "finished"
        planned = await _planned(bench.log)
        assert planned == {
            ("read", "i0", "m", 1): 1,
            ("join", "i0/a", "m", 1): 1,
            ("join", "i0/b", "m", 1): 1,
            ("sum", "i0", "m", 1): 1,
        }

    run_virtual(main())


def test_tasks_of_a_group_that_end_together_plan_what_follows_it_once() -> None:
    async def main() -> None:
        async def answer(call: Call) -> Reply:
            await asyncio.sleep(1)
            return honest(call)

        bench = Bench(answer, ToySettings(items=2))
        bench.log = SlowLog(LoopClock())
        assert await bench.run() == "finished"
        assert set((await _planned(bench.log)).values()) == {1}
        assert (await bench.states())["sum COMPLETED"] == 2

    run_virtual(main())


def test_a_log_that_refuses_ends_the_run_at_once_and_sends_nothing_more() -> None:
    async def main() -> None:
        broken_off: list[str] = []
        sent: list[str] = []

        async def answer(call: Call) -> Reply:
            sent.append(call.task.key)
            if call.task.key == "i0":
                await asyncio.sleep(1)
                bench.log.lives = 0
                return honest(call)
            try:
                await asyncio.sleep(20)
            except asyncio.CancelledError:
                broken_off.append(call.task.key)
                raise
            return honest(call)

        class WithDyingLog(Bench):
            log: DyingLog

        bench = WithDyingLog(answer, ToySettings(items=9), concurrency=3, grace_s=30.0)
        bench.log = DyingLog(100)
        with pytest.raises(LogClosed, match="killed"):
            await bench.run()
        # neither the calls in flight nor the time of grace were waited for
        assert asyncio.get_running_loop().time() < 2
        assert sorted(broken_off) == ["i1", "i2"]
        assert sent == ["i0", "i1", "i2"]

    run_virtual(main())


def test_a_part_of_a_plan_says_where_its_tasks_are_in_the_whole() -> None:
    async def main() -> None:
        log = MemoryLog(LoopClock())
        start = PlanStart(
            planning=await log.planning(),
            must_catch_up=False,
            takes=lambda spec: spec.key in {"i1", "i3"},
        )
        growth = Planner(
            job=ToyJob(),
            dataset=ToySettings(items=5),
            log=log,
            roles=Roles(models={"subject": ("m",)}, replicates=1),
            start=start,
        )
        assert [pair async for pair in growth.grow()]
        recorded = await log.events(limit=100, kinds=["tasks_planned"])
        events = [r.event for r in recorded if isinstance(r.event, TasksPlanned)]
        assert [place for event in events for place in event.places or ()] == [1, 3]

    run_virtual(main())


class EarlierItem(ToyJob):
    """Plans one item more, before all others."""

    def plan(self, dataset: ToySettings) -> Iterator[TaskSpec]:
        yield TaskSpec(stage="read", key="i9")
        yield from super().plan(dataset)


def test_what_a_plan_has_early_under_other_settings_is_planned_by_a_resume() -> None:
    async def main() -> None:
        bench = Bench(settings=ToySettings(items=2, words=0))
        assert await bench.run() == "finished"
        before = await bench.sent()
        bench.job = EarlierItem()
        assert await bench.run(must_catch_up=True) == "finished"
        assert (await bench.states())["read COMPLETED"] == 3
        assert set((await bench.sent()).values()) == {1}
        assert len(await bench.sent()) == len(before) + 1

    run_virtual(main())
