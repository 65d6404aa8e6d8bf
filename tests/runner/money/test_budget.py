"""The budget alone: whatever is reserved and settled in which order, the cap holds.

Money in a whole run: reserved before a call, settled after it, kept in the log.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner import errors as e
from runner.clients.client import Call
from runner.clients.offline import Answerer, FunctionClient
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
from runner.limits.limiter import Endpoint, Limits
from runner.messages import Parameters, Reply, Usage
from runner.model_terms import ModelTerms
from runner.money.budget import Budget, BudgetStatistics
from runner.money.prices import FREE, Price, scaled
from runner.money.tokens import LEAST_LEARNED
from runner.plan import Roles
from store.events import AttemptAnswered, AttemptFailed, AttemptStarted, Event
from store.slices import SLICES, Slices
from store.task import pico, usd
from tests.replacing import replace
from tests.runner.toy_jobs import LoopClock, ToyJob, ToySettings, run_virtual
from tests.store.memory_log import MemoryLog

CAP = 10_000


class Calls:
    """Sends what has room, and ends it in any order."""

    def __init__(self, budget: Budget, *, excess: float = 1.0) -> None:
        self.budget = budget
        self.excess = excess  #: of the true cost over the worst case, at most
        self.billed = 0
        self.out: list[tuple[int, int]] = []

    def send(self, worst: int) -> None:
        if self.budget.has_room(worst):
            self.out.append((worst, self.budget.reserve(worst)))

    def end(self, data: st.DataObject) -> None:
        worst, reserved = self.out.pop(
            data.draw(st.integers(0, len(self.out) - 1), label="which")
        )
        cost = data.draw(st.integers(0, int(worst * self.excess)), label="cost")
        is_told = data.draw(st.booleans(), label="is told")
        self.billed += cost
        self.budget.settle(worst, cost if is_told else None, reserved_pico=reserved)


@given(
    worst_cases=st.lists(st.integers(0, CAP + 100), max_size=60),
    before=st.integers(0, CAP),
    data=st.data(),
)
def test_the_cap_holds_and_reservations_return_to_zero(
    worst_cases: list[int], before: int, data: st.DataObject
) -> None:
    budget = Budget(CAP, spent_pico=before)
    calls = Calls(budget)
    for worst in worst_cases:
        calls.send(worst)
        while calls.out and data.draw(st.booleans(), label="one ends"):
            calls.end(data)
        seen = budget.statistics()
        total = seen.spent_pico + seen.possible_pico + seen.reserved_pico
        assert before + calls.billed <= total <= CAP
    while calls.out:
        calls.end(data)
    assert budget.statistics().reserved_pico == 0


def test_a_cost_is_settled_and_an_unknown_one_keeps_its_worst_case() -> None:
    budget = Budget(100)
    for _ in range(3):
        assert budget.reserve(30) == 30
    assert not budget.has_room(30)
    budget.settle(30, 12, reserved_pico=30)
    budget.settle(30, None, reserved_pico=30)
    budget.settle(30, 0, reserved_pico=30)
    assert budget.statistics() == BudgetStatistics(
        cap_pico=100, spent_pico=12, possible_pico=30, reserved_pico=0
    )
    assert budget.has_room(58)
    assert not budget.has_room(59)


def test_what_is_free_has_room_even_where_the_cap_is_passed() -> None:
    budget = Budget(10, spent_pico=11)
    assert budget.has_room(0)
    assert not budget.has_room(1)


def test_without_a_cap_there_is_always_room_and_the_sums_are_kept() -> None:
    budget = Budget()
    assert budget.has_room(10**18)
    budget.settle(7, 5, reserved_pico=budget.reserve(7))
    assert budget.statistics().spent_pico == 5
    budget.add(1)
    assert budget.statistics().cap_pico is None


def test_a_raised_cap_makes_room() -> None:
    budget = Budget(10)
    assert not budget.has_room(15)
    budget.add(5)
    assert budget.has_room(15)


def test_worst_cases_that_prove_too_low_are_raised_from_then_on() -> None:
    """As with a tokenizer whose tokens are shorter than was thought."""
    budget = Budget(1000)
    reserved = [budget.reserve(100) for _ in range(3)]
    for held in reserved:
        # all were underrated by the same factor, which must not multiply itself
        budget.settle(100, 130, reserved_pico=held)
    assert budget.statistics().spent_pico == 390
    assert budget.reserve(100) == pytest.approx(130, abs=1)
    assert not budget.has_room(400)


@given(worst_cases=st.lists(st.integers(1, 500), min_size=1, max_size=60))
def test_once_known_a_provider_that_bills_half_as_much_again_keeps_the_cap(
    worst_cases: list[int],
) -> None:
    budget = Budget(CAP)
    billed = 0
    for worst in worst_cases:
        if budget.has_room(worst):
            reserved = budget.reserve(worst)
            billed += worst * 3 // 2
            budget.settle(worst, worst * 3 // 2, reserved_pico=reserved)
    # only the first call could not know
    assert billed <= CAP + 250


@given(cap=st.integers(0, 10**6), more=st.integers(0, 10**6), count=st.integers(1, 40))
def test_those_who_spend_apart_keep_the_cap_together(
    cap: int, more: int, count: int
) -> None:
    shares = [Fraction(len(Slices.of(i, count)), SLICES) for i in range(count)]
    budgets = [Budget(cap, share=share) for share in shares]
    for budget in budgets:
        budget.add(more)
    caps = [budget.statistics().cap_pico or 0 for budget in budgets]
    assert cap + more - 2 * count <= sum(caps) <= cap + more


CENT = Price(
    input_usd=0.01, output_usd=0.01, cached_input_usd=0.01, cache_write_usd=0.01
)
USED = Usage(tokens_in=4, tokens_out=1)
WORST_USD = 0.32
"""Of the toy job's first stage: 7 bytes, 1 and 8 around them, 16 out."""


def _answer(call: Call) -> Reply:
    return Reply(text=ToyJob().baseline(call.request), usage=USED)


class Bench:
    """A run of the toy job around one log, with prices."""

    def __init__(
        self,
        answer: Answerer = _answer,
        *,
        prices: Mapping[str, Price | None] | None = None,
        settings: ToySettings | None = None,
        concurrency: int = 4,
    ) -> None:
        self.log = MemoryLog(LoopClock())
        self.answer = answer
        self.prices = prices or {"m": CENT}
        self.settings = settings or ToySettings(items=4, words=0)
        self.concurrency = concurrency
        self.budget = Budget()
        self.terms: dict[str, ModelTerms] = {}

    async def run(self, budget: Budget | None = None) -> Outcome:
        return await (await self.driver(budget)).run()

    async def driver(self, budget: Budget | None = None) -> Driver:
        job, models = ToyJob(), tuple(self.prices)
        self.budget = budget or Budget()
        limits = Limits(concurrency=self.concurrency)
        stages = [stage.name for stage in job.stages]
        return Driver(
            EngineConfig(
                services=EngineServices(
                    job=job,
                    dataset=self.settings,
                    log=self.log,
                    clock=LoopClock(),
                    scheduler=Scheduler(
                        [(model, stages, limits, Endpoint(model)) for model in models],
                        deadline_s=3600,
                        budget=self.budget,
                    ),
                    planner=Planner(
                        job=job,
                        dataset=self.settings,
                        log=self.log,
                        roles=Roles(models={"subject": models}, replicates=1),
                        start=PlanStart(
                            planning=await self.log.planning(), must_catch_up=False
                        ),
                    ),
                    notify=lambda _: None,
                ),
                endpoints=ModelEndpoints(
                    clients={model: FunctionClient(self.answer) for model in models},
                    terms=self.terms,
                ),
                costs=CostBounds(prices=self.prices),
                retries=RetryOptions(reask=self.settings.reask),
            )
        )

    async def events(self, kind: str) -> list[Event]:
        recorded = await self.log.events(limit=10_000, kinds=[kind])
        return [r.event for r in recorded if isinstance(r.event, Event)]


def test_an_attempt_says_what_it_may_cost_and_its_answer_what_it_did() -> None:
    async def main() -> None:
        bench = Bench()
        assert await bench.run() == "finished"
        for started in await bench.events("attempt_started"):
            assert isinstance(started, AttemptStarted)
            assert started.worst_usd == WORST_USD
        for answered in await bench.events("attempt_answered"):
            assert isinstance(answered, AttemptAnswered)
            assert (answered.cost_usd, answered.possible_usd) == (0.05, None)
        money = bench.budget.statistics()
        assert (money.spent_pico, money.reserved_pico) == (pico(0.20), 0)

    run_virtual(main())


def test_a_run_ends_where_nothing_in_flight_can_make_room_and_goes_on_with_more() -> (
    None
):
    async def main() -> None:
        bench = Bench()
        assert await bench.run(Budget(pico(0.44))) == "budget"
        # 0.05 are spent by each of three; after them, 0.15 + 0.32 is too much
        assert len(await bench.events("attempt_started")) == 3
        spent = bench.budget.statistics().spent_pico
        assert usd(spent) == pytest.approx(0.15)
        assert await bench.run(Budget(pico(0.48), spent_pico=spent)) == "finished"
        assert len(await bench.events("attempt_started")) == 4

    run_virtual(main())


def test_reservations_bound_what_is_in_flight() -> None:
    async def main() -> None:
        in_flight: list[int] = []
        now = 0

        async def answer(call: Call) -> Reply:
            nonlocal now
            now += 1
            in_flight.append(now)
            await asyncio.sleep(1)
            now -= 1
            return _answer(call)

        bench = Bench(answer, settings=ToySettings(items=30, words=0), concurrency=8)
        await bench.run(Budget(pico(1.0)))
        # 3 x 0.32 fit into 1.00
        assert max(in_flight) == 3

    run_virtual(main())


def test_a_call_that_alone_is_too_dear_is_said_to_be_and_nothing_is_sent() -> None:
    async def main() -> None:
        bench = Bench()
        driver = await bench.driver(Budget(pico(0.27)))
        assert await driver.run() == "budget"
        assert await bench.events("attempt_started") == []
        assert driver.broke is not None
        assert "is too small: a single call of m may cost $0.3200" in driver.broke

    run_virtual(main())


@pytest.mark.parametrize(
    ("error", "possible_usd"),
    [
        (e.Timeout("no byte"), WORST_USD),
        (e.ConnectionLost("cut"), WORST_USD),
        (e.MalformedReply("half a body"), WORST_USD),
        (e.ConnectionLost("refused", was_sent=False), 0.0),
        (e.Timeout("the server's own", status=408), 0.0),
        (e.RateLimited("429"), 0.0),
        (e.ServerError("500"), 0.0),
        (e.BadRequest("400"), 0.0),
    ],
)
def test_what_may_have_been_billed_without_an_answer_is_kept_apart(
    error: e.AttemptError, possible_usd: float
) -> None:
    async def main() -> None:
        failed: list[int] = []

        def answer(call: Call) -> Reply:
            if not failed:
                failed.append(1)
                raise error
            return _answer(call)

        bench = Bench(answer, settings=ToySettings(items=1, words=0))
        await bench.run()
        (event,) = await bench.events("attempt_failed")
        assert isinstance(event, AttemptFailed)
        assert event.possible_usd == possible_usd
        money = bench.budget.statistics()
        assert usd(money.possible_pico) == possible_usd
        assert money.reserved_pico == 0

    run_virtual(main())


def test_a_reply_without_usage_keeps_its_worst_case_and_has_no_cost() -> None:
    async def main() -> None:
        bench = Bench(lambda _: Reply(text=""), settings=ToySettings(items=1))
        await bench.run()
        (answered,) = await bench.events("attempt_answered")
        assert isinstance(answered, AttemptAnswered)
        assert (answered.cost_usd, answered.possible_usd) == (None, WORST_USD)
        assert usd(bench.budget.statistics().possible_pico) == WORST_USD

    run_virtual(main())


def test_an_unknown_price_leaves_costs_unknown_and_a_free_one_makes_them_zero() -> None:
    async def costs(price: Price | None) -> set[tuple[object, ...]]:
        bench = Bench(lambda _: Reply(text=""), prices={"m": price})
        await bench.run()
        started = await bench.events("attempt_started")
        answered = await bench.events("attempt_answered")
        return {
            (s.worst_usd, a.cost_usd, a.possible_usd)
            for s in started
            for a in answered
            if isinstance(s, AttemptStarted) and isinstance(a, AttemptAnswered)
        }

    assert run_virtual(costs(None)) == {(None, None, None)}
    assert run_virtual(costs(FREE)) == {(0.0, 0.0, None)}


def test_a_model_without_room_does_not_hold_up_one_that_is_free() -> None:
    async def main() -> None:
        bench = Bench(prices={"dear": CENT, "free": FREE})
        assert await bench.run(Budget(pico(0.34))) == "budget"
        rows = await bench.log.tasks(range(1, 100))
        ended = [row.model for row in rows if not row.state.is_open]
        assert sorted(ended) == ["dear", "free", "free", "free", "free"]

    run_virtual(main())


def test_asking_again_reserves_for_the_longer_prompt() -> None:
    async def main() -> None:
        texts = iter(["", "fine"])
        bench = Bench(
            lambda _: Reply(text=next(texts), usage=USED),
            settings=ToySettings(items=1, words=0, reask=1),
        )
        assert await bench.run() == "finished"
        first, second = await bench.events("attempt_started")
        assert isinstance(first, AttemptStarted)
        assert isinstance(second, AttemptStarted)
        assert first.worst_usd == WORST_USD
        assert (second.worst_usd or 0.0) > WORST_USD + 0.1

    run_virtual(main())


def test_a_retry_waits_for_room_like_any_other_call() -> None:
    """What may have been billed at the first attempt leaves none for a second."""

    async def main() -> None:
        def lost(_: Call) -> Reply:
            raise e.Timeout("no byte")

        bench = Bench(lost, settings=ToySettings(items=1))
        assert await bench.run(Budget(pico(0.50))) == "budget"
        assert len(await bench.events("attempt_failed")) == 1
        assert usd(bench.budget.statistics().possible_pico) == WORST_USD

    run_virtual(main())


def test_a_papers_calls_are_sent_close_together_so_that_prompt_caches_hit() -> None:
    async def main() -> list[str]:
        sent: list[str] = []
        chance = random.Random(1)

        async def answer(call: Call) -> Reply:
            sent.append(call.task.key.partition("/")[0])
            await asyncio.sleep(chance.uniform(1, 5))
            return Reply(text="a b c d e f" if call.task.stage == "read" else "x")

        settings = ToySettings(items=60, words=6)
        await Bench(answer, prices={"m": FREE}, settings=settings).run()
        return sent

    sent = run_virtual(main())
    last = {paper: n for n, paper in enumerate(sent)}
    begun: set[str] = set()
    most = 0
    for n, paper in enumerate(sent):
        begun.add(paper)
        most = max(most, len(begun))
        if last[paper] == n:
            begun.remove(paper)
    # of sixty papers, twice as many as there are calls at a time
    assert most <= 8


async def _worst(bench: Bench) -> list[float | None]:
    """What each attempt had reserved, in the order in which they were sent."""
    events = await bench.events("attempt_started")
    return [event.worst_usd for event in events if isinstance(event, AttemptStarted)]


def test_a_reply_over_its_limit_raises_what_the_tasks_in_the_queue_reserve() -> None:
    def answer(call: Call) -> Reply:
        text = ToyJob().baseline(call.request)
        return Reply(text=text, usage=Usage(tokens_in=4, tokens_out=17))

    async def main() -> None:
        bench = Bench(answer, concurrency=1)
        assert await bench.run() == "finished"
        first, *later = await _worst(bench)
        assert first == WORST_USD
        assert later
        prompt_usd = WORST_USD - 16 * CENT.output_usd
        raised = prompt_usd + LEAST_LEARNED * CENT.output_usd
        assert later == pytest.approx([raised] * len(later))

    run_virtual(main())


def test_a_call_in_a_dearer_tier_reserves_its_price() -> None:
    async def main() -> None:
        price = replace(CENT, tiers=(("priority", scaled(CENT, 3)),))
        bench = Bench(prices={"m": price})
        parameters = Parameters(service_tier="priority")
        bench.terms = {"m": ModelTerms(parameters=parameters)}
        assert await bench.run() == "finished"
        assert await _worst(bench) == pytest.approx([3 * WORST_USD] * 4)

    run_virtual(main())


def test_the_log_has_what_is_reserved_after_a_bound_proved_too_low() -> None:
    def answer(call: Call) -> Reply:
        text = ToyJob().baseline(call.request)
        return Reply(text=text, usage=Usage(tokens_in=64, tokens_out=0))

    async def main() -> None:
        bench = Bench(answer, concurrency=1)
        assert await bench.run() == "finished"
        first, *later = await _worst(bench)
        assert first == WORST_USD
        assert later == pytest.approx([0.64] * 3)

    run_virtual(main())
