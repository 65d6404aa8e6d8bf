"""A process that does a part of a run on somebody's word sends nothing without it."""

from __future__ import annotations

import asyncio

from runner.clients.client import Call
from runner.engine.attempts import NOT_SENT
from runner.messages import Reply
from store.events import AttemptFailed
from tests.runner.engine.bench import Bench, honest
from tests.runner.toy_jobs import LoopClock, ToySettings, run_virtual

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
