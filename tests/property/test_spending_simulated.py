"""Spending never passes the cap: random prices, latencies, failures and crashes.

The real scheduler, driver and budget run on a virtual clock over a log in memory. The
simulated provider keeps a bill of its own: it charges for replies that never arrived,
for replies without a usage, and for calls that were in flight at a crash. The short
form runs in `make test`, a thousand simulations in `make prove`.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable

import pytest

from runner import errors as e
from runner.abandoned import abandoned
from runner.attempts import Parts, worst_prompt
from runner.budget import Budget, BudgetStatistics
from runner.clients.client import Call
from runner.clients.function import FunctionClient
from runner.driver import Driver, Outcome
from runner.growth import Growth, Start
from runner.limiter import Endpoint, Limits
from runner.plan import Roles
from runner.prices import Price, cost_pico
from runner.reply import Reply, Usage
from runner.scheduler import Scheduler
from runner.testing import LoopClock, ToyJob, ToySettings, run_virtual
from store.events import (
    AttemptAnswered,
    AttemptFailed,
    AttemptsAbandoned,
)
from store.task import pico
from store.testing import MemoryLog

ROUNDS = 1_000 if os.environ.get("SIFTLOG_PROVE") else 100
PROCESSES = 4
"""Of one run, at most: all but the last one crash."""

UNBILLED = (e.RateLimited, e.Overloaded, e.ServerError, e.BadRequest)
LOST = (e.Timeout, e.ConnectionLost, e.MalformedReply)


class Provider:
    """Answers, fails, hangs and drops at random, and writes a bill."""

    def __init__(self, chance: random.Random, check: Callable[[], None]) -> None:
        self.bill_pico = 0
        self._chance = chance
        self._check = check
        self._faults = chance.choice((0.0, 0.2, 0.6))  #: share of the calls
        self._mute = chance.choice((0.0, 0.3))
        """Share of the replies that tell no usage."""

    def client(self, price: Price) -> FunctionClient:
        async def answer(call: Call) -> Reply:
            return await self._answer(call, price)

        return FunctionClient(answer)

    async def _answer(self, call: Call, price: Price) -> Reply:
        chance = self._chance
        usage = self._usage(call)
        if chance.random() < self._faults / 2:
            await asyncio.sleep(chance.expovariate(1.0))
            raise chance.choice(UNBILLED)("no")
        # the work is done, and charged, before anything of it can arrive
        self.bill_pico += cost_pico(price, usage)
        self._check()
        await asyncio.sleep(chance.expovariate(1.0))
        if chance.random() < self._faults / 2:
            raise chance.choice(LOST)("gone")
        text = ToyJob().baseline(call.request) if chance.random() < 0.8 else ""
        return Reply(text=text, usage=None if chance.random() < self._mute else usage)

    def _usage(self, call: Call) -> Usage:
        """Anything up to what the prompt and the output limit allow."""
        worst = worst_prompt(call.request)
        tokens_in = self._chance.choice((worst, self._chance.randint(1, worst)))
        cached = self._chance.randint(0, tokens_in)
        return Usage(
            tokens_in=tokens_in,
            tokens_out=self._chance.choice((0, call.request.max_tokens)),
            tokens_cached=cached,
            tokens_cache_write=self._chance.randint(0, tokens_in - cached),
        )


class Simulated:
    """One run with everything about it drawn from a seed."""

    def __init__(self, seed: int) -> None:
        self.chance = chance = random.Random(seed)
        self.log = MemoryLog(LoopClock())
        self.settings = ToySettings(
            items=chance.randint(1, 8), words=2, reask=chance.randint(0, 2)
        )
        models = ("a", "b", "c")[: chance.randint(1, 3)]
        self.prices = {model: self._price() for model in models}
        self.cap_pico = pico(chance.uniform(0.0, 0.02))
        self.provider = Provider(chance, self._check)
        self.outcome: Outcome | None = None

    def _price(self) -> Price:
        usd = [self.chance.uniform(0, 1e-5) for _ in range(4)]
        return Price(
            input_usd=usd[0],
            output_usd=usd[1],
            cached_input_usd=usd[2],
            cache_write_usd=usd[3],
        )

    def _check(self) -> None:
        assert self.provider.bill_pico <= self.cap_pico, "billed beyond the cap"

    async def run(self) -> None:
        """Let processes follow one another; the books must agree at the end."""
        for _ in range(self.chance.randint(0, PROCESSES - 1)):
            await self._process(crash_after_s=self.chance.uniform(0.0, 10.0))
            if self.outcome not in {None, "drained"}:
                break
        money = await self._process(crash_after_s=None)
        assert self.outcome in {"finished", "budget"}
        assert money.reserved_pico == 0
        assert (money.spent_pico, money.possible_pico) == await self.folded()
        assert self.provider.bill_pico <= money.spent_pico + money.possible_pico
        assert money.spent_pico + money.possible_pico <= self.cap_pico

    async def _process(self, crash_after_s: float | None) -> BudgetStatistics:
        unknown = await abandoned(self.log, hold=False)
        if unknown is not None:
            await self.log.append(unknown)
        scheduler = Scheduler(
            self._lanes(), deadline_s=3600, budget=await self._budget()
        )
        driver = Driver(await self._parts(scheduler))
        async with asyncio.TaskGroup() as group:
            running = group.create_task(driver.run())
            if crash_after_s is not None:
                await asyncio.wait([running], timeout=crash_after_s)
                driver.stop()
        self.outcome = running.result()
        return scheduler.budget.statistics()

    def _lanes(self) -> list[tuple[str, list[str], Limits, Endpoint]]:
        stages = [stage.name for stage in ToyJob().stages]
        limits = Limits(concurrency=self.chance.randint(1, 8))
        return [(model, stages, limits, Endpoint(model)) for model in self.prices]

    async def _budget(self) -> Budget:
        spent, possible = await self.folded()
        return Budget(self.cap_pico, spent_pico=spent, possible_pico=possible)

    async def _parts(self, scheduler: Scheduler) -> Parts:
        job = ToyJob()
        return Parts(
            job=job,
            dataset=self.settings,
            log=self.log,
            clock=LoopClock(),
            clients={m: self.provider.client(p) for m, p in self.prices.items()},
            scheduler=scheduler,
            growth=Growth(
                job=job,
                dataset=self.settings,
                log=self.log,
                roles=Roles(models={"subject": tuple(self.prices)}, replicates=1),
                start=Start(planning=await self.log.planning(), must_catch_up=False),
            ),
            tell=lambda _: None,
            reask=self.settings.reask,
            prices=self.prices,
        )

    async def folded(self) -> tuple[int, int]:
        """What is spent, and what may be, by the log alone."""
        spent = possible = 0
        for recorded in await self.log.events(limit=1_000_000):
            match recorded.event:
                case AttemptAnswered(cost_usd=cost, possible_usd=worst):
                    spent += pico(cost or 0.0)
                    possible += pico(worst or 0.0)
                case AttemptFailed(possible_usd=worst):
                    possible += pico(worst)
                case AttemptsAbandoned(possible_usd=worst):
                    possible += pico(worst)
                case _:
                    pass
        return spent, possible


@pytest.mark.timeout(120)
def test_no_bill_passes_the_cap_and_no_reservation_is_left() -> None:
    outcomes: dict[str | None, int] = {}
    for seed in range(ROUNDS):
        run = Simulated(seed)
        try:
            run_virtual(run.run())
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
        outcomes[run.outcome] = outcomes.get(run.outcome, 0) + 1
    # both ends were met often enough for this to mean something
    assert min(outcomes.get("finished", 0), outcomes.get("budget", 0)) > ROUNDS / 10
