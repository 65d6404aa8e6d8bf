"""The driver on a virtual clock: a log in memory, endpoints that are functions."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable

import pytest

from runner import errors as e
from runner.attempts import Parts
from runner.budget import Budget
from runner.clients.client import Call
from runner.clients.function import Answerer, FunctionClient
from runner.driver import Driver, Outcome
from runner.growth import Growth, Start
from runner.limiter import Endpoint, Limits
from runner.plan import Roles
from runner.reply import Reply
from runner.scheduler import Scheduler
from runner.testing import LoopClock, ToyJob, ToySettings, run_virtual
from store.events import (
    AttemptsAbandoned,
    AttemptStarted,
    LimitObserved,
    TasksReopened,
)
from store.task import TaskState
from store.testing import MemoryLog


def _honest(call: Call) -> Reply:
    return Reply(text=ToyJob().baseline(call.request))


class Bench:
    """A run's parts around one log, so that a second process can take over."""

    def __init__(
        self,
        answer: Answerer = _honest,
        settings: ToySettings | None = None,
        *,
        concurrency: int = 4,
        grace_s: float = 30.0,
    ) -> None:
        self.log = MemoryLog(LoopClock())
        self.job = ToyJob()
        self.settings = settings or ToySettings()
        self.answer = answer
        self.concurrency = concurrency
        self.grace_s = grace_s
        self.budget = Budget()
        self.told: list[str] = []

    async def driver(self, *, must_catch_up: bool = False) -> Driver:
        stages = [stage.name for stage in self.job.stages]
        limits = Limits(concurrency=self.concurrency)
        return Driver(
            Parts(
                job=self.job,
                dataset=self.settings,
                log=self.log,
                clock=LoopClock(),
                clients={"m": FunctionClient(self.answer)},
                scheduler=Scheduler(
                    [("m", stages, limits, Endpoint("x"))],
                    deadline_s=3600,
                    budget=self.budget,
                ),
                growth=Growth(
                    job=self.job,
                    dataset=self.settings,
                    log=self.log,
                    roles=Roles(models={"subject": ("m",)}, replicates=1),
                    start=Start(
                        planning=await self.log.planning(), must_catch_up=must_catch_up
                    ),
                ),
                tell=self.told.append,
                seed=1,
                reask=self.settings.reask,
                grace_s=self.grace_s,
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


def test_a_plan_grows_by_follow_ups_and_by_gathered_groups_to_its_end() -> None:
    async def main() -> None:
        bench = Bench(settings=ToySettings(items=5, words=2))
        assert await bench.run() == "finished"
        assert await bench.states() == {
            "read COMPLETED": 5,
            "ask COMPLETED": 10,
            "sum COMPLETED": 5,
        }

    run_virtual(main())


def test_an_attempt_is_durable_before_it_is_sent() -> None:
    async def main() -> None:
        seen: list[str | None] = []

        async def answer(call: Call) -> Reply:
            seen.append(await bench.log.started(call.task.number))
            return _honest(call)

        bench = Bench(answer)
        await bench.run()
        assert len(seen) == 12
        assert None not in seen

    run_virtual(main())


def test_failures_are_retried_and_what_never_works_is_failed_and_the_rest_goes_on() -> (
    None
):
    async def main() -> None:
        chance = random.Random(3)

        def answer(call: Call) -> Reply:
            if call.task.key == "i1":
                raise e.BadRequest("cannot")
            if chance.random() < 0.3:
                raise e.ServerError("hiccup")
            return _honest(call)

        bench = Bench(answer, ToySettings(items=6))
        assert await bench.run() == "finished"
        states = await bench.states()
        assert states["read FAILED"] == 1
        assert states["read COMPLETED"] == 5
        assert states["sum COMPLETED"] == 5

    run_virtual(main())


def test_a_failed_question_still_lets_its_group_be_summed() -> None:
    async def main() -> None:
        def answer(call: Call) -> Reply:
            if call.task.key == "i0/a":
                raise e.ContentFiltered("no")
            return _honest(call)

        bench = Bench(answer, ToySettings(items=1))
        await bench.run()
        states = await bench.states()
        assert states["ask FAILED"] == 1
        assert states["sum COMPLETED"] == 1

    run_virtual(main())


def test_an_unreadable_reply_is_asked_again_with_the_reason_and_then_counted() -> None:
    async def main() -> None:
        dialogues: list[int] = []

        def answer(call: Call) -> Reply:
            if call.task.stage == "read":
                dialogues.append(len(call.request.messages))
                return Reply(text="")
            return _honest(call)

        bench = Bench(answer, ToySettings(items=1, reask=2))
        await bench.run()
        assert dialogues == [1, 3, 5]
        (row,) = await bench.log.tasks([1])
        assert (row.state, row.reason) == (TaskState.COMPLETED, "empty_reply")

    run_virtual(main())


def _reluctant(dialogues: list[int]) -> Answerer:
    """Reads well only when it is asked for the third time."""

    async def answer(call: Call) -> Reply:
        await asyncio.sleep(5)
        if call.task.stage == "read":
            dialogues.append(len(call.request.messages))
            return Reply(text="a b" if len(call.request.messages) == 5 else "")
        return _honest(call)

    return answer


@pytest.mark.parametrize("how", ["drain", "stop"])
@pytest.mark.parametrize("after_s", [3, 7, 12])
def test_a_re_ask_goes_on_where_another_process_broke_it_off(
    how: str, after_s: int
) -> None:
    async def main() -> None:
        dialogues: list[int] = []
        bench = Bench(_reluctant(dialogues), ToySettings(items=1, reask=2))
        driver = await bench.driver()
        end = driver.drain if how == "drain" else driver.stop
        asyncio.get_running_loop().call_later(after_s, end)
        assert await driver.run() == "drained"
        unknown = await bench.log.in_flight()
        if unknown:
            await bench.log.append(AttemptsAbandoned(attempts=unknown))
        assert await bench.run() == "finished"
        assert list(dict.fromkeys(dialogues)) == [1, 3, 5]
        assert len(dialogues) == 3
        assert (await bench.states())["sum COMPLETED"] == 1

    run_virtual(main())


def test_a_drain_finishes_what_is_in_flight_and_a_second_process_does_the_rest() -> (
    None
):
    async def main() -> None:
        async def answer(call: Call) -> Reply:
            await asyncio.sleep(5)
            return _honest(call)

        bench = Bench(answer, ToySettings(items=20))
        driver = await bench.driver()
        asyncio.get_running_loop().call_later(7, driver.drain)
        assert await driver.run() == "drained"
        assert await bench.log.in_flight() == []
        assert await bench.run() == "finished"
        assert (await bench.states())["sum COMPLETED"] == 20
        assert set((await bench.sent()).values()) == {1}
        assert len(await bench.sent()) == 20 + 40 + 20

    run_virtual(main())


def test_a_stop_leaves_attempts_unknown_and_only_those_are_sent_again() -> None:
    async def main() -> None:
        async def answer(call: Call) -> Reply:
            await asyncio.sleep(5)
            return _honest(call)

        bench = Bench(answer, ToySettings(items=20))
        driver = await bench.driver()
        asyncio.get_running_loop().call_later(7, driver.stop)
        assert await driver.run() == "drained"
        unknown = await bench.log.in_flight()
        assert len(unknown) == 4
        await bench.log.append(AttemptsAbandoned(attempts=unknown))
        assert await bench.run() == "finished"
        repeated = [task for task, attempt in await bench.sent() if attempt == 2]
        assert sorted(repeated) == sorted(task for task, _ in unknown)

    run_virtual(main())


def test_held_attempts_wait_for_a_person() -> None:
    async def main() -> None:
        bench = Bench(settings=ToySettings(items=3, words=0))
        driver = await bench.driver()

        async def never(call: Call) -> Reply:
            if call.task.number == 2:
                await asyncio.sleep(1e6)
            return _honest(call)

        bench.answer = never
        driver = await bench.driver()
        asyncio.get_running_loop().call_later(9, driver.stop)
        await driver.run()
        unknown = await bench.log.in_flight()
        await bench.log.append(AttemptsAbandoned(attempts=unknown, hold=True))
        bench.answer = _honest
        assert await bench.run() == "held"
        assert (await bench.states())["read WAITING"] == 1

    run_virtual(main())


def test_a_parser_that_breaks_ends_the_run_and_loses_no_answer() -> None:
    async def main() -> None:
        bench = Bench(settings=ToySettings(items=2, words=1))

        class Broken(ToyJob):
            @staticmethod
            def _words(*_: object) -> tuple[str, ...]:
                raise ZeroDivisionError

        bench.job = Broken()
        with pytest.raises(ZeroDivisionError):
            await bench.run()
        assert await bench.log.reply(1) is not None
        before = await bench.sent()
        bench.job = ToyJob()
        assert await bench.run() == "finished"
        after = await bench.sent()
        assert {k: n for k, n in after.items() if k in before} == before
        assert set(after.values()) == {1}

    run_virtual(main())


def test_a_better_parser_adds_exactly_the_questions_that_are_missing() -> None:
    async def main() -> None:
        bench = Bench(settings=ToySettings(items=4, words=1))
        await bench.run()
        before = await bench.sent()
        bench.settings = ToySettings(items=4, words=2)
        assert await bench.run(must_catch_up=True) == "finished"
        added = set(await bench.sent()) - set(before)
        rows = await bench.log.tasks([task for task, _ in added])
        assert {row.key for row in rows} == {f"i{i}/b" for i in range(4)}

    run_virtual(main())


def test_a_wider_plan_adds_exactly_the_items_that_are_missing() -> None:
    async def main() -> None:
        bench = Bench(settings=ToySettings(items=3, words=1))
        await bench.run()
        bench.settings = ToySettings(items=5, words=1)
        assert await bench.run(must_catch_up=True) == "finished"
        assert await bench.states() == {
            "read COMPLETED": 5,
            "ask COMPLETED": 5,
            "sum COMPLETED": 5,
        }
        assert set((await bench.sent()).values()) == {1}
        assert len(await bench.sent()) == 15

    run_virtual(main())


def test_retry_asks_again_and_plans_nothing_twice() -> None:
    async def main() -> None:
        bench = Bench(settings=ToySettings(items=3))
        await bench.run()
        planned = (await bench.log.planning()).tasks
        await bench.log.append(TasksReopened(tasks=[1, 2], by="someone"))
        assert await bench.run() == "finished"
        assert (await bench.log.planning()).tasks == planned
        repeated = [task for task, attempt in await bench.sent() if attempt == 2]
        assert repeated == [1, 2]

    run_virtual(main())


def test_a_wrong_key_costs_a_handful_of_attempts_and_no_task() -> None:
    async def main() -> None:
        def answer(call: Call) -> Reply:
            raise e.AuthFailed(f"401 for {call.task.key}")

        bench = Bench(answer, ToySettings(items=1000))
        driver = await bench.driver()
        assert await driver.run() == "endpoint"
        assert "refused the key" in (driver.stopped or "")
        assert len(await bench.sent()) <= bench.concurrency
        assert (await bench.states()).total() == 1000
        assert not any("FAILED" in state for state in await bench.states())

    run_virtual(main())


def test_an_outage_delays_tasks_and_fails_none() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()

        async def answer(call: Call) -> Reply:
            await asyncio.sleep(0.2)
            if 10 < loop.time() < 600:
                raise e.ConnectionLost("refused")
            return _honest(call)

        bench = Bench(answer, ToySettings(items=300))
        assert await bench.run() == "finished"
        assert not any("FAILED" in state for state in await bench.states())
        during = (await bench.sent()).total() - 300 - 600 - 300
        assert during < 60, "the outage was hammered"
        assert any("one probe at a time" in sentence for sentence in bench.told)

    run_virtual(main())


def _crashing(seed: int) -> Callable[[], object]:
    """A run that is stopped at random moments until it is finished."""

    async def main() -> tuple[Counter[str], int]:
        chance = random.Random(seed)

        async def answer(call: Call) -> Reply:
            await asyncio.sleep(chance.expovariate(1.0))
            if chance.random() < 0.1:
                raise chance.choice(
                    [e.RateLimited("429", retry_after_s=2.0), e.MalformedReply("x")]
                )
            return _honest(call)

        bench = Bench(answer, ToySettings(items=12), concurrency=8)
        for _ in range(100):
            unknown = await bench.log.in_flight()
            assert len(unknown) <= bench.concurrency
            if unknown:
                await bench.log.append(AttemptsAbandoned(attempts=unknown))
            driver = await bench.driver()
            timer = asyncio.get_running_loop().call_later(
                chance.uniform(0, 6), driver.stop
            )
            outcome = await driver.run()
            timer.cancel()
            if outcome == "finished":
                return await bench.states(), len(unknown)
        raise AssertionError("never finished")

    return lambda: run_virtual(main())


@pytest.mark.parametrize("seed", range(25))
def test_whatever_the_crashes_the_plan_ends_as_if_there_were_none(seed: int) -> None:
    states, _ = _crashing(seed)()
    assert states == {"read COMPLETED": 12, "ask COMPLETED": 24, "sum COMPLETED": 12}


def test_a_limit_that_a_refusal_tells_is_kept_and_shown() -> None:
    async def main() -> None:
        refused: list[int] = []

        async def answer(call: Call) -> Reply:
            await asyncio.sleep(0.1)
            if not refused:
                refused.append(call.task.number)
                headers = {"x-ratelimit-limit-requests": "120"}
                raise e.RateLimited("slower", status=429, headers=headers)
            return _honest(call)

        bench = Bench(answer, ToySettings(items=20))
        assert await bench.run() == "finished"
        assert LoopClock().monotonic() > 30 - 2
        rows = await bench.log.events(limit=10_000, kinds=["limit_observed"])
        limits = [row.event for row in rows]
        assert all(isinstance(limit, LimitObserved) for limit in limits)
        assert [limit.rpm for limit in limits][:1] == [None]
        assert limits[-1].rpm == 120.0

    run_virtual(main())
