"""The driver on a virtual clock: a log in memory, endpoints that are functions."""

from __future__ import annotations

import asyncio
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from runner import errors as e
from runner.clients.client import Call
from runner.job import Answer, TaskSpec
from runner.messages import Reply
from store.events import AttemptsAbandoned, LimitObserved, TaskCompleted, TasksReopened
from tests.runner.engine.bench import Bench, honest
from tests.runner.toy_jobs import LoopClock, ToyJob, ToySettings, run_virtual


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
            return honest(call)

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
            return honest(call)

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
            return honest(call)

        bench = Bench(answer, ToySettings(items=1))
        await bench.run()
        states = await bench.states()
        assert states["ask FAILED"] == 1
        assert states["sum COMPLETED"] == 1

    run_virtual(main())


class CountingJob(ToyJob):
    """Counts how often groups are followed up."""

    def __init__(self) -> None:
        super().__init__()
        self.gathered = 0

    def follow_up(
        self, dataset: ToySettings, group: tuple[Answer, ...]
    ) -> Iterator[TaskSpec]:
        self.gathered += group[0].task.stage == "ask"
        return super().follow_up(dataset, group)


def test_a_group_whose_tasks_end_together_is_not_read_once_for_each() -> None:
    async def main() -> None:
        async def answer(call: Call) -> Reply:
            await asyncio.sleep(5)
            if call.task.stage == "read":
                return Reply(text=" ".join(map(str, range(40))))
            return honest(call)

        bench = Bench(answer, ToySettings(items=3, words=40), concurrency=120)
        bench.job = job = CountingJob()
        assert await bench.run() == "finished"
        assert (await bench.states())["sum COMPLETED"] == 3
        # an end may come while the group is read, and is looked after once more
        assert 3 <= job.gathered <= 2 * 3

    run_virtual(main())


def test_a_drain_finishes_what_is_in_flight_and_a_second_process_does_the_rest() -> (
    None
):
    async def main() -> None:
        async def answer(call: Call) -> Reply:
            await asyncio.sleep(5)
            return honest(call)

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
            return honest(call)

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
            return honest(call)

        bench.answer = never
        driver = await bench.driver()
        asyncio.get_running_loop().call_later(9, driver.stop)
        await driver.run()
        unknown = await bench.log.in_flight()
        await bench.log.append(AttemptsAbandoned(attempts=unknown, hold=True))
        bench.answer = honest
        assert await bench.run() == "held"
        assert (await bench.states())["read WAITING"] == 1

    run_virtual(main())


def test_a_parser_that_raises_ends_no_run_and_reading_again_is_free() -> None:
    async def main() -> None:
        bench = Bench(settings=ToySettings(items=2, words=1))

        class Broken(ToyJob):
            @staticmethod
            def _words(*_: object) -> tuple[str, ...]:
                raise ZeroDivisionError

        bench.job = Broken()
        assert await bench.run() == "finished"
        rows = await bench.log.tasks([1, 2])
        assert {row.reason for row in rows} == {"parser_error"}
        ends = await bench.log.events(limit=100, kinds=["task_completed"])
        for end in ends:
            assert isinstance(end.event, TaskCompleted)
            fault = end.event.fault or ""
            assert re.fullmatch(
                r"ZeroDivisionError at tests/runner/engine/test_driver\.py:\d+", fault
            )
        traces = [said for said in bench.told if said.startswith("Traceback")]
        assert len(traces) == 1
        assert await bench.log.reply(1) is not None
        before = await bench.sent()
        bench.job = ToyJob()
        assert await bench.run(must_catch_up=True) == "finished"
        after = await bench.sent()
        assert {k: n for k, n in after.items() if k in before} == before
        assert set(after.values()) == {1}
        # both words were read this time, and asked about
        assert (await bench.states())["ask COMPLETED"] == 2

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
            return honest(call)

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
            return honest(call)

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
            return honest(call)

        bench = Bench(answer, ToySettings(items=20))
        assert await bench.run() == "finished"
        assert LoopClock().monotonic() > 30 - 2
        rows = await bench.log.events(limit=10_000, kinds=["limit_observed"])
        limits = [row.event for row in rows]
        assert all(isinstance(limit, LimitObserved) for limit in limits)
        assert [limit.rpm for limit in limits][:1] == [None]
        assert limits[-1].rpm == 120.0

    run_virtual(main())
