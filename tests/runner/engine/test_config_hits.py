"""Runs of the toy job with a cache: what is taken from it, and what never is."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from runner import errors as e
from runner.clients.client import Call, Received
from runner.clients.offline import FunctionClient
from runner.engine.answer_cache import AnswerOrigin, ResponseCache
from runner.engine.config import (
    AnswerSources,
    EngineConfig,
    EngineServices,
    ModelEndpoints,
    RetryOptions,
)
from runner.engine.driver import Driver
from runner.engine.planner import Planner, PlanStart
from runner.engine.scheduler import Scheduler
from runner.job import Task
from runner.limits.limiter import Endpoint, Limits
from runner.messages import Reply, Usage
from runner.plan import Roles
from store.cache import CacheConnection, connect, groups
from store.clock import SystemClock
from store.events import AttemptAnswered, AttemptStarted, TasksReopened
from store.task import TaskState
from tests.replacing import replace
from tests.runner.toy_jobs import ToyJob, ToySettings
from tests.store.memory_log import MemoryLog

CLOCK = SystemClock()


def _honest(call: Call) -> Reply:
    return Reply(
        text=ToyJob().baseline(call.request), usage=Usage(tokens_in=3, tokens_out=2)
    )


class SlowCache(ResponseCache):
    """Takes its time to look."""

    async def find(self, asked: Sequence[tuple[Task, str]]) -> list[Received | None]:
        await asyncio.sleep(0.05)
        return await super().find(asked)


class Shelf:
    """A cache file that several runs use in turn, and what was asked of the model."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "cache.db"
        self.asked: list[str] = []
        self.told: list[str] = []
        self.driver: Driver | None = None
        self.cache: type[ResponseCache] = ResponseCache
        self.job = ToyJob()

    async def run(
        self,
        log: MemoryLog,
        answer: Callable[[Call], Reply] = _honest,
        settings: ToySettings | None = None,
        spoil: Callable[[sqlite3.Connection], object] | None = None,
    ) -> Driver:
        def record(call: Call) -> Reply:
            self.asked.append(f"{call.task.stage} {call.task.key}")
            return answer(call)

        job, data = self.job, settings or ToySettings()
        stages = [stage.name for stage in job.stages]
        limits = Limits(concurrency=4)
        thread = await CacheConnection.open(self.path)
        if spoil is not None:
            await thread._thread.run(spoil)
        cache = self.cache(
            self.path,
            thread,
            origins={"m": AnswerOrigin(model="m", endpoint="x", structured=True)},
            run="r",
            clock=CLOCK,
            notify=self.told.append,
        )
        driver = self.driver = Driver(
            EngineConfig(
                services=EngineServices(
                    job=job,
                    dataset=data,
                    log=log,
                    clock=CLOCK,
                    scheduler=Scheduler(
                        [("m", stages, limits, Endpoint("x"))], deadline_s=3600
                    ),
                    planner=Planner(
                        job=job,
                        dataset=data,
                        log=log,
                        roles=Roles(models={"subject": ("m",)}, replicates=1),
                        start=PlanStart(
                            planning=await log.planning(), must_catch_up=False
                        ),
                    ),
                    notify=self.told.append,
                ),
                endpoints=ModelEndpoints(clients={"m": FunctionClient(record)}),
                sources=AnswerSources(cache=cache),
                retries=RetryOptions(reask=data.reask),
            )
        )
        try:
            assert await driver.run() == "finished"
            await cache.flush()
        finally:
            await thread.close()
        return driver

    def take_asked(self) -> Counter[str]:
        asked, self.asked = Counter(self.asked), []
        return asked


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


async def _states(log: MemoryLog) -> Counter[str]:
    planning = await log.planning()
    rows = await log.tasks(range(1, planning.tasks + 1))
    return Counter(f"{row.stage} {row.state.name}" for row in rows)


async def _replies(log: MemoryLog) -> dict[str, bytes]:
    planning = await log.planning()
    replies = {}
    for row in await log.tasks(range(1, planning.tasks + 1)):
        stored = await log.reply(row.task)
        assert stored is not None
        replies[f"{row.stage} {row.key}"] = stored.body
    return replies


def test_a_second_run_asks_nothing_and_has_the_same_replies(shelf: Shelf) -> None:
    async def main() -> None:
        # more than a window, and than what is recorded together
        settings = ToySettings(items=150, words=2)
        first, second = MemoryLog(), MemoryLog()
        driver = await shelf.run(first, settings=settings)
        assert driver.statistics().cached == 0
        assert len(shelf.take_asked()) == 600
        driver = await shelf.run(second, settings=settings)
        assert not shelf.take_asked()
        figures = driver.statistics()
        assert (figures.cached, figures.tasks_ended, figures.started) == (600, 600, 0)
        assert await _states(second) == await _states(first)
        assert await _replies(second) == await _replies(first)

    asyncio.run(main())


def test_a_hit_is_recorded_as_what_it_is(shelf: Shelf) -> None:
    async def main() -> None:
        await shelf.run(MemoryLog())
        log = MemoryLog()
        await shelf.run(log)
        answers = [
            recorded.event
            for recorded in await log.events(limit=10_000)
            if isinstance(recorded.event, AttemptAnswered)
        ]
        assert len(answers) == 12
        for answer in answers:
            assert answer.cached
            assert answer.latency_ms is None
            assert answer.cost_usd == 0.0
            assert (answer.tokens_in, answer.tokens_out) == (3, 2)
            assert await log.started(answer.task) is not None

    asyncio.run(main())


def test_what_is_there_is_taken_and_the_rest_is_asked(shelf: Shelf) -> None:
    async def main() -> None:
        await shelf.run(MemoryLog(), settings=ToySettings(items=2))
        shelf.take_asked()
        log = MemoryLog()
        await shelf.run(log, settings=ToySettings(items=3))
        assert shelf.take_asked() == Counter(
            ["read i2", "ask i2/a", "ask i2/b", "sum i2"]
        )
        assert sum((await _states(log)).values()) == 12

    asyncio.run(main())


def test_retry_gets_a_new_answer_which_the_next_run_then_takes(shelf: Shelf) -> None:
    async def main() -> None:
        await shelf.run(MemoryLog())
        log = MemoryLog()
        await shelf.run(log)
        shelf.take_asked()
        await log.append(TasksReopened(tasks=[2], by="me"))

        def other(call: Call) -> Reply:
            return Reply(text=f"again {call.task.key}")

        await shelf.run(log, other)
        # its words are other ones, so what follows is new too
        new = ["read i1", "ask i1/again", "ask i1/i1"]
        assert shelf.take_asked() == Counter(new)
        third = MemoryLog()
        await shelf.run(third)
        assert not shelf.take_asked()
        assert b"again i1" in (await _replies(third))["read i1"]

    asyncio.run(main())


def test_a_task_that_only_failed_is_looked_for_again(shelf: Shelf) -> None:
    async def main() -> None:
        def broken(call: Call) -> Reply:
            raise e.BadRequest(call.task.key)

        log = MemoryLog()
        await shelf.run(log, broken, ToySettings(items=1))
        await shelf.run(MemoryLog(), settings=ToySettings(items=1))
        shelf.take_asked()
        await log.append(TasksReopened(tasks=[1], by="me"))
        await shelf.run(log, settings=ToySettings(items=1))
        assert not shelf.take_asked()
        (row,) = await log.tasks([1])
        assert (row.state, row.attempts) == (TaskState.COMPLETED, 2)

    asyncio.run(main())


def test_a_refused_reply_is_not_kept_nor_is_what_a_dialogue_came_to(
    shelf: Shelf,
) -> None:
    async def main() -> None:
        def late(call: Call) -> Reply:
            is_first = len(call.request.messages) == 1
            refused = is_first and call.task.stage == "read"
            return Reply(text="") if refused else _honest(call)

        settings = ToySettings(items=1, reask=1)
        await shelf.run(MemoryLog(), late, settings)
        shelf.take_asked()
        with closing(connect(shelf.path)) as conn:
            (kept,) = groups(conn)
        assert kept.entries == 3  # of the words and their sum, not of the reading
        log = MemoryLog()
        await shelf.run(log, late, settings)
        # the same dialogue once more, and nothing else
        assert shelf.take_asked() == Counter({"read i0": 2})
        assert len(await _replies(log)) == 4

    asyncio.run(main())


def test_an_unreadable_reply_is_taken_unless_it_would_be_asked_again(
    shelf: Shelf,
) -> None:
    async def main() -> None:
        def empty(_call: Call) -> Reply:
            return Reply(text="", finish_reason="stop")

        await shelf.run(MemoryLog(), empty)
        shelf.take_asked()
        log = MemoryLog()
        await shelf.run(log, empty)
        assert not shelf.take_asked()
        assert await _states(log) == Counter({"read COMPLETED": 3})
        await shelf.run(MemoryLog(), settings=ToySettings(reask=1))
        assert shelf.take_asked()["read i1"] == 1

    asyncio.run(main())


def test_a_truncated_reply_is_the_answer_to_that_limit(shelf: Shelf) -> None:
    async def main() -> None:
        def cut(_call: Call) -> Reply:
            return Reply(text="", finish_reason="length")

        await shelf.run(MemoryLog(), cut)
        shelf.take_asked()
        # asked again it would be cut again
        await shelf.run(MemoryLog(), settings=ToySettings(reask=1))
        assert not shelf.take_asked()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda conn: conn.execute("PRAGMA max_page_count = 1"), "full"),
        (lambda conn: conn.execute("PRAGMA query_only = ON"), "readonly"),
        (lambda conn: conn.execute("DROP TABLE entry"), "no such table"),
    ],
)
def test_a_run_goes_on_without_a_cache_that_fails_and_says_so_once(
    shelf: Shelf, spoil: Callable[[sqlite3.Connection], object], said: str
) -> None:
    async def main() -> None:
        log = MemoryLog()
        await shelf.run(log, settings=ToySettings(items=40), spoil=spoil)
        assert len(await _replies(log)) == 160
        (sentence,) = shelf.told
        assert sentence.startswith("The response cache is left out: ")
        assert said in sentence

    asyncio.run(main())


def test_a_cache_that_is_busy_is_waited_for_by_nobody_else(shelf: Shelf) -> None:
    async def main() -> None:
        await shelf.run(MemoryLog(), settings=ToySettings(items=1))
        shelf.take_asked()
        other = sqlite3.connect(shelf.path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        log = MemoryLog()
        await shelf.run(
            log,
            settings=ToySettings(items=2),
            spoil=lambda conn: conn.execute("PRAGMA busy_timeout = 10"),
        )
        other.execute("ROLLBACK")
        other.close()
        # what was there was read, what came was not written, and nobody complained
        assert len(shelf.take_asked()) == 4
        assert len(await _replies(log)) == 8
        assert shelf.told == []
        await shelf.run(MemoryLog(), settings=ToySettings(items=2))
        assert len(shelf.take_asked()) == 4

    asyncio.run(main())


def test_two_hits_that_lead_to_the_same_task_plan_it_once(shelf: Shelf) -> None:
    async def main() -> None:
        # each word alone asks for its item's sum
        ask = shelf.job.stages[1]
        alone = replace(ask, gathers=False)
        shelf.job.stages = (shelf.job.stages[0], alone, shelf.job.stages[2])
        first, second = MemoryLog(), MemoryLog()
        await shelf.run(first)
        shelf.take_asked()
        await shelf.run(second)
        assert not shelf.take_asked()
        assert await _states(second) == await _states(first)
        assert (await _states(second))["sum COMPLETED"] == 3

    asyncio.run(main())


def test_a_task_that_ends_while_its_page_is_looked_up_is_not_sent_again(
    shelf: Shelf,
) -> None:
    async def main() -> None:
        def answer(call: Call) -> Reply:
            if len(shelf.asked) == 1:
                assert shelf.driver is not None
                shelf.driver.reopened()  # so that the pages are read from the first
            return _honest(call)

        shelf.cache = SlowCache
        log = MemoryLog()
        await shelf.run(log, answer, ToySettings(items=20))
        assert set(shelf.take_asked().values()) == {1}
        assert sum((await _states(log)).values()) == 80

    asyncio.run(main())


def test_hits_wait_for_no_slot(shelf: Shelf) -> None:
    async def main() -> None:
        await shelf.run(MemoryLog(), settings=ToySettings(items=20))
        shelf.take_asked()
        log = MemoryLog()
        order: list[str] = []

        def slow(call: Call) -> Reply:
            started = sum(isinstance(r.event, AttemptStarted) for r in log._events)
            order.append(f"{call.task.key} after {started}")
            return _honest(call)

        await shelf.run(log, slow, ToySettings(items=21))
        # all twenty readings were taken before the one that is new was sent
        assert order[0].startswith("i20 after ")
        assert int(order[0].rsplit(" ", 1)[1]) > 20

    asyncio.run(main())
