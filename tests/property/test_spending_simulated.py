"""Spending never passes the cap: random prices, latencies, failures and crashes.

The real scheduler, driver and budget run on a virtual clock over a log in memory. The
simulated provider keeps a bill of its own: it charges for replies that never arrived,
for replies without a usage, and for calls that were in flight at a crash. How it counts
tokens, and how many bytes make one, is drawn too. The short
form runs in `make test`, a thousand simulations in `make prove`.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from runner import errors as e
from runner.clients.client import Call, ClientStatistics, ClientTally, Received
from runner.clients.wire import decode_reply
from runner.clients.wire_openai import OPENAI_CHAT
from runner.engine.attempt_events import abandoned_attempts
from runner.engine.config import (
    CostBounds,
    EngineConfig,
    EngineServices,
    ModelEndpoints,
    RetryOptions,
)
from runner.engine.driver import Driver, Outcome
from runner.engine.planner import Planner, PlanStart
from runner.engine.scheduler import Scheduler
from runner.job import Task
from runner.limits.limiter import Endpoint, Limits
from runner.messages import ChatRequest, Message, TextPart, Usage
from runner.money.budget import Budget, BudgetStatistics
from runner.money.prices import Price, scaled
from runner.money.tokens import TokenBounds
from runner.plan import Roles
from store.events import AttemptAnswered, AttemptFailed, AttemptsAbandoned
from store.task import pico
from tests.replacing import replace
from tests.runner.toy_jobs import LoopClock, ToyJob, ToySettings, run_virtual
from tests.store.memory_log import MemoryLog

ROUNDS = 1_000 if os.environ.get("SIFTLOG_PROVE") else 100
PROCESSES = 4
"""Of one run, at most: all but the last one crash."""

UNBILLED = (e.RateLimited, e.Overloaded, e.ServerError, e.BadRequest)
LOST = (e.Timeout, e.ConnectionLost, e.MalformedReply)


Counted = dict[str, object]

EMPTY = ({}, None, [], {"total_tokens": 7}, {"prompt_tokens": "many"})
"""Usage that tells nothing, or too little."""


def _within(used: Usage) -> Counted:
    """As OpenAI and most others count: the completion includes the reasoning."""
    return {
        "prompt_tokens": used.tokens_in,
        "completion_tokens": used.tokens_out,
        "total_tokens": used.tokens_in + used.tokens_out,
        "prompt_tokens_details": {
            "cached_tokens": used.tokens_cached,
            "cache_write_tokens": used.tokens_cache_write,
            "cache_creation_token_details": {
                "ephemeral_1h_input_tokens": used.tokens_cache_write_1h
            },
        },
        "completion_tokens_details": {"reasoning_tokens": used.tokens_reasoning},
    }


def _beside(used: Usage) -> Counted:
    """As xAI counts."""
    visible = used.tokens_out - used.tokens_reasoning
    return {**_within(used), "completion_tokens": visible}


def _in_the_total(used: Usage) -> Counted:
    """As gateways pass Gemini's on: only the total shows that something was thought."""
    counted = {**_beside(used)}
    del counted["completion_tokens_details"]
    return counted


def _carelessly(used: Usage) -> Counted:
    return {
        "prompt_tokens": float(used.tokens_in),
        "completion_tokens": str(used.tokens_out),
        "total_tokens": None,
        "prompt_tokens_details": _within(used)["prompt_tokens_details"],
        "completion_tokens_details": None,
        "cost": 0.0,
    }


def _cache_apart(used: Usage) -> Counted:
    """As Anthropic counts."""
    written, for_an_hour = used.tokens_cache_write, used.tokens_cache_write_1h
    return {
        "input_tokens": used.tokens_in - used.tokens_cached - written,
        "output_tokens": used.tokens_out,
        "cache_read_input_tokens": used.tokens_cached,
        "cache_creation_input_tokens": written,
        "cache_creation": {
            "ephemeral_5m_input_tokens": written - for_an_hour,
            "ephemeral_1h_input_tokens": for_an_hour,
        },
    }


def _hits(used: Usage) -> Counted:
    """As DeepSeek counts, of what it read from its cache; it writes for nothing."""
    return {
        "prompt_tokens": used.tokens_in,
        "completion_tokens": used.tokens_out,
        "prompt_cache_hit_tokens": used.tokens_cached,
        "prompt_cache_miss_tokens": used.tokens_in - used.tokens_cached,
    }


USAGE_FORMS = (_within, _beside, _in_the_total, _carelessly, _cache_apart, _hits)
UNBOUNDED = (_beside, _in_the_total)
"""Where reasoning is counted beside the completion, the limit does not bound it."""
MOST_OUTPUT = 200
"""Tokens that the models return at most, ten times the toy job's limit."""


class Provider:
    """Answers, fails, hangs and drops at random, and writes a bill."""

    def __init__(self, chance: random.Random, check: Callable[[], None]) -> None:
        self.bill_pico = 0
        self.told_pico = 0  #: of that, what replies with a usage were billed
        self._chance = chance
        self._check = check
        self._faults = chance.choice((0.0, 0.0, 0.2, 0.6))  #: share of the calls
        self._mute = chance.choice((0.0, 0.0, 0.3))
        """Share of the replies that tell no usage."""
        self.counted = chance.choice(USAGE_FORMS)
        self.bytes_a_token = chance.choice((1.0, 1.5, chance.uniform(1.0, 4.0)))

    async def answer(self, call: Call, price: Price) -> Received:
        """The reply to a call, after a while and if nothing comes between."""
        chance = self._chance
        used = self._used(call)
        if chance.random() < self._faults / 2:
            await asyncio.sleep(chance.expovariate(1.0))
            raise chance.choice(UNBILLED)("no")
        tier = chance.choice((None, "default", "flex", "scale"))
        # the work is done, and charged, before anything of it can arrive
        charge = self._charge(used, price, tier)
        self.bill_pico += charge
        self._check()
        await asyncio.sleep(chance.expovariate(1.0))
        if chance.random() < self._faults / 2:
            raise chance.choice(LOST)("gone")
        counted: object = self.counted(used)
        if chance.random() < self._mute:
            counted = chance.choice(EMPTY)
        else:
            self.told_pico += charge
        question = replace(call.request, messages=call.request.messages[1:])
        text = ToyJob().baseline(question) if chance.random() < 0.8 else ""
        choice = {"message": {"content": text}, "finish_reason": "stop"}
        body = json.dumps(
            {"choices": [choice], "usage": counted, "service_tier": tier}
        ).encode()
        reply = decode_reply(OPENAI_CHAT, body)
        return Received(body=body, form=OPENAI_CHAT, reply=reply)

    def _charge(self, used: Usage, price: Price, tier: str | None) -> int:
        """What the provider takes, by its own arithmetic."""
        price = dict(price.tiers).get(tier or "", price)
        hour = price.cache_write_1h_usd
        visible = price.output_usd
        thought = visible if price.reasoning_usd is None else price.reasoning_usd
        if self.counted not in {_within, _beside} or not used.tokens_reasoning:
            # who does not say how much was thought takes the dearer price for all
            visible = thought = max(visible, thought)
        written, for_an_hour = used.tokens_cache_write, used.tokens_cache_write_1h
        parts = (
            (used.tokens_in - used.tokens_cached - written, price.input_usd),
            (used.tokens_cached, price.cached_input_usd),
            (written - for_an_hour, price.cache_write_usd),
            (for_an_hour, price.cache_write_usd if hour is None else hour),
            (used.tokens_out - used.tokens_reasoning, visible),
            (used.tokens_reasoning, thought),
        )
        return sum(tokens * pico(usd) for tokens, usd in parts)

    def _used(self, call: Call) -> Usage:
        """Anything up to what the prompt and the limit allow."""
        request, chance = call.request, self._chance
        assert isinstance(request, ChatRequest)
        size = sum(len(message.text.encode()) for message in request.messages)
        most = math.floor(size / self.bytes_a_token) + 8 * len(request.messages)
        tokens_in = chance.choice((most, chance.randint(1, most)))
        cached = chance.choice((0, chance.randint(0, tokens_in)))
        rest = tokens_in - cached
        written = chance.choice((rest, chance.randint(0, rest)))
        if self.counted is _hits:
            written = 0
        limit = request.max_tokens
        visible = chance.choice((0, limit, chance.randint(0, limit)))
        bound = MOST_OUTPUT if self.counted in UNBOUNDED else limit
        reasoning = chance.choice((0, chance.randint(0, bound - visible)))
        return Usage(
            tokens_in=tokens_in,
            tokens_out=visible + reasoning,
            tokens_cached=cached,
            tokens_cache_write=written,
            tokens_cache_write_1h=chance.choice((written, chance.randint(0, written))),
            tokens_reasoning=reasoning,
        )

    def bounds(self) -> TokenBounds:
        """What is known of its models."""
        is_unbounded = self.counted in UNBOUNDED
        return TokenBounds(most_output=MOST_OUTPUT if is_unbounded else None)


@dataclass(kw_only=True)
class Client:
    """One model of the provider."""

    provider: Provider
    price: Price
    tally: ClientTally = field(default_factory=ClientTally)

    async def call(self, call: Call) -> Received:
        """Send one attempt."""
        with self.tally.attempt():
            return await self.provider.answer(call, self.price)

    def statistics(self) -> ClientStatistics:
        """The client's figures."""
        return self.tally.statistics()

    async def close(self) -> None:
        """Nothing to release."""


class WordyJob(ToyJob):
    """The toy job with prompts of some length: there the bytes of a token matter."""

    def __init__(self, groups: int) -> None:
        super().__init__()
        self._groups = groups

    def request(self, dataset: ToySettings, task: Task) -> ChatRequest:
        """The task's name, and more."""
        request = super().request(dataset, task)
        more = Message(role="system", parts=(TextPart(text="C(=O)" * self._groups),))
        return replace(request, messages=(more, *request.messages))


class Simulated:
    """One run with everything about it drawn from a seed."""

    def __init__(self, seed: int) -> None:
        self.chance = chance = random.Random(seed)
        self.log = MemoryLog(LoopClock())
        self.settings = ToySettings(
            items=chance.randint(1, 8), words=2, reask=chance.randint(0, 2)
        )
        self.job = WordyJob(chance.choice((1, 50)))
        models = ("a", "b", "c")[: chance.randint(1, 3)]
        self.prices = {model: self._price() for model in models}
        self.cap_pico = pico(chance.uniform(0.0, 0.03))
        self.provider = Provider(chance, self._check)
        self.outcome: Outcome | None = None

    def _price(self) -> Price:
        plain = self._tokens()
        share = self.chance.uniform(0.2, 0.9)
        return replace(plain, tiers=(("flex", scaled(plain, share)),))

    def _tokens(self) -> Price:
        usd = [self.chance.uniform(0, 1e-5) for _ in range(4)]
        return Price(
            input_usd=usd[0],
            output_usd=usd[1],
            cached_input_usd=usd[2],
            cache_write_usd=usd[3],
            cache_write_1h_usd=self.chance.choice((None, 1.6 * usd[3])),
            reasoning_usd=self.chance.choice((None, 0.5 * usd[1], 3 * usd[1])),
        )

    def _check(self) -> None:
        assert self.provider.bill_pico <= self.cap_pico, "billed beyond the cap"

    async def run(self) -> None:
        """Let processes follow one another; the books must agree at the end."""
        crashes = self.chance.randint(0, PROCESSES - 1)
        for _ in range(crashes):
            await self._process(crash_after_s=self.chance.uniform(0.0, 10.0))
            if self.outcome not in {None, "drained"}:
                break
        money = await self._process(crash_after_s=None)
        assert self.outcome in {"finished", "budget"}
        assert money.reserved_pico == 0
        assert (money.spent_pico, money.possible_pico) == await self.folded()
        assert self.provider.bill_pico <= money.spent_pico + money.possible_pico
        assert money.spent_pico + money.possible_pico <= self.cap_pico
        if not crashes:
            # to the last digit, of all replies that told it
            assert money.spent_pico == self.provider.told_pico

    async def _process(self, crash_after_s: float | None) -> BudgetStatistics:
        unknown = await abandoned_attempts(self.log, hold=False)
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

    async def _parts(self, scheduler: Scheduler) -> EngineConfig:
        job = self.job
        return EngineConfig(
            services=EngineServices(
                job=job,
                dataset=self.settings,
                log=self.log,
                clock=LoopClock(),
                scheduler=scheduler,
                planner=Planner(
                    job=job,
                    dataset=self.settings,
                    log=self.log,
                    roles=Roles(models={"subject": tuple(self.prices)}, replicates=1),
                    start=PlanStart(
                        planning=await self.log.planning(), must_catch_up=False
                    ),
                ),
                notify=lambda _: None,
            ),
            endpoints=ModelEndpoints(
                clients={
                    model: Client(provider=self.provider, price=price)
                    for model, price in self.prices.items()
                }
            ),
            costs=CostBounds(
                prices=self.prices,
                bounds={model: self.provider.bounds() for model in self.prices},
            ),
            retries=RetryOptions(reask=self.settings.reask),
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
