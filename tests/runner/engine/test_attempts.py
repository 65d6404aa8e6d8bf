"""The order of an attempt's events, and that nothing is sent without a lease."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator

import pytest

from runner.clients.client import Call
from runner.engine import attempts
from runner.engine.attempts import NOT_SENT
from runner.job import Answer, Stage, Task, TaskSpec
from runner.messages import ChatRequest, Reply
from runner.money.prices import Price
from store.events import NAMES, AttemptFailed, Entry, Event
from tests.runner.engine.bench import Bench, honest
from tests.runner.toy_jobs import LoopClock, ToyJob, ToySettings, run_virtual
from tests.store.memory_log import MemoryLog

CLOCK = LoopClock()


class _Until:
    """A fence that holds for so long, or for so many looks at it."""

    def __init__(self, until: float = float("inf"), looks: int = 1_000_000) -> None:
        self.until = until
        self.looks = looks

    def holds(self, now: float) -> bool:
        self.looks -= 1
        return now < self.until and self.looks >= 0


def test_nothing_is_sent_after_the_fence_and_what_is_in_flight_is_recorded() -> None:
    async def main() -> None:
        sent: list[float] = []

        async def answer(call: Call) -> Reply:
            sent.append(CLOCK.monotonic())
            await asyncio.sleep(2)
            return honest(call)

        bench = Bench(answer, ToySettings(items=40), fence=_Until(until=5.0))
        driver = await bench.driver()
        # whoever drains at the fence comes late, as after a long stop of the process
        asyncio.get_running_loop().call_later(60, driver.drain)
        assert await driver.run() == "drained"
        assert max(sent) < 5.0
        assert await bench.log.in_flight() == []
        bench.fence = None
        assert await bench.run() == "finished"
        assert set((await bench.sent()).values()) == {1}

    run_virtual(main())


def test_a_call_whose_start_was_written_too_late_is_not_sent_nor_billed() -> None:
    async def main() -> None:
        def answer(call: Call) -> Reply:
            raise AssertionError(call)

        # it holds as the call is started, and no more as it is to be sent
        bench = Bench(answer, ToySettings(items=1), fence=_Until(looks=2))
        driver = await bench.driver()
        asyncio.get_running_loop().call_later(60, driver.drain)
        assert await driver.run() == "drained"
        (failed,) = await bench.log.events(kinds=["attempt_failed"], limit=9)
        assert isinstance(failed.event, AttemptFailed)
        assert failed.event.message == NOT_SENT
        assert failed.event.possible_usd == 0.0
        bench.answer, bench.fence = honest, None
        assert await bench.run() == "finished"

    run_virtual(main())


class _Watched(MemoryLog):
    """A log that remembers the kinds of events in each unit, once it is durable."""

    def __init__(self) -> None:
        super().__init__(CLOCK)
        self.units: list[list[str]] = []

    async def append(self, *entries: Entry | Event) -> int:
        seq = await super().append(*entries)
        events = (e.event if isinstance(e, Entry) else e for e in entries)
        self.units.append([NAMES[type(event)] for event in events])
        return seq


def test_a_reply_and_the_end_of_its_task_are_one_unit_where_nothing_follows() -> None:
    async def main() -> None:
        bench = Bench(settings=ToySettings(items=1, words=2))
        bench.log = log = _Watched()
        assert await bench.run() == "finished"
        # read is followed up, the two asks are gathered, nothing follows the sum
        started, both = ["attempt_started"], ["attempt_answered", "task_completed"]
        assert [unit for unit in log.units if unit not in (started, both)] == [
            ["tasks_planned"],
            ["attempt_answered"],
            ["task_completed", "tasks_planned"],
            ["tasks_planned"],
        ]
        assert log.units.count(both) == 3

    run_virtual(main())


def test_a_reply_is_durable_before_the_job_derives_its_follow_ups() -> None:
    async def main() -> None:
        bench = Bench(settings=ToySettings(items=1, words=1))
        bench.log = log = _Watched()
        seen: list[list[str]] = []
        derive = bench.job.follow_up

        def follow_up(
            dataset: ToySettings, group: tuple[Answer, ...]
        ) -> Iterator[TaskSpec]:
            seen.append(log.units[-1])
            return derive(dataset, group)

        bench.job.follow_up = follow_up  # type: ignore[method-assign]
        assert await bench.run() == "finished"
        assert seen[0] == ["attempt_answered"]

    run_virtual(main())


def test_a_job_may_say_that_nothing_follows_under_its_settings() -> None:
    class Reader(ToyJob):
        def follows(self, dataset: ToySettings, stage: Stage) -> bool:
            return stage.follows and dataset.words > 0

        def follow_up(
            self, dataset: ToySettings, group: tuple[Answer, ...]
        ) -> Iterator[TaskSpec]:
            raise AssertionError(dataset, group)

    async def main() -> None:
        bench = Bench(settings=ToySettings(items=2, words=0))
        bench.job, bench.log = Reader(), (log := _Watched())
        assert await bench.run() == "finished"
        assert log.units.count(["attempt_answered", "task_completed"]) == 2

    run_virtual(main())


@pytest.mark.parametrize(("held", "builds"), [(attempts.HELD_TOKENS, 1), (0, 2)])
def test_a_request_is_built_once_while_there_is_room_to_keep_it(
    monkeypatch: pytest.MonkeyPatch, held: int, builds: int
) -> None:
    monkeypatch.setattr(attempts, "HELD_TOKENS", held)
    built: Counter[int] = Counter()

    class Counting(ToyJob):
        def request(self, dataset: ToySettings, task: Task) -> ChatRequest:
            built[task.number] += 1
            return super().request(dataset, task)

    async def main() -> None:
        bench = Bench(settings=ToySettings(items=30, words=1))
        bench.job = Counting()
        bench.prices["m"] = Price(
            input_usd=1e-6, output_usd=1e-6, cached_input_usd=0, cache_write_usd=0
        )
        assert await bench.run() == "finished"

    run_virtual(main())
    assert set(built.values()) == {builds}
