"""What share of a limit its shards use, and that together they keep it, whatever fails.

The goals are those of shared limits: with leases at least 97 % of the rate, however the
work is shared out, for at most one question in ten calls; even parts that never move
are what that is compared with.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.limits.limiter import Limits
from tests.allowing import seeds
from tests.lending import SCENARIOS, Plan, World

IS_PROOF = "SIFTLOG_PROVE" in os.environ
CALLS = 20_000 if IS_PROOF else 10_000
RATE = Limits(concurrency=1, rpm=6000)


@pytest.mark.parametrize("name", SCENARIOS)
def test_leases_use_the_rate_however_the_work_is_shared_out(name: str) -> None:
    world = World(plans=SCENARIOS[name](CALLS), limits=RATE)
    assert world.share_used() >= 0.97
    assert world.lines <= 0.1 * len(world.sent)
    assert world.busiest_minute()[0] <= 6000


def test_parts_that_never_move_leave_much_of_the_rate_unused() -> None:
    used = {
        name: World(plans=plans(4_000), limits=RATE, how="static").share_used()
        for name, plans in SCENARIOS.items()
    }
    assert sorted(used, key=lambda name: used[name])[:2] == ["skewed", "staggered"]
    assert used["skewed"] < used["staggered"] < 0.7


@pytest.mark.parametrize("seed", seeds(10))
def test_64_shards_do_all_their_work_through_kills_and_a_new_broker(seed: int) -> None:
    calls = 200 if IS_PROOF else 60
    world = World(
        plans=[Plan(calls=calls)] * 64,
        limits=RATE,
        kills=[(3.0 + 2 * i, (11 * i + seed) % 64) for i in range(12)],
        broker_ends_at=[9.0, 21.0],
        seed=seed,
    )
    world.run()
    assert world.left == 0
    assert world.busiest_minute()[0] <= 6000
    # a killed process's calls in flight are sent again, and nothing else
    assert len(world.sent) <= 64 * calls + 12 * world.slots


@settings(max_examples=500 if IS_PROOF else 15, deadline=None)
@given(data=st.data())
def test_no_minute_holds_more_than_a_person_allowed(data: st.DataObject) -> None:
    shards = data.draw(st.integers(1, 6))
    rpm = data.draw(st.none() | st.integers(20, 900))
    tpm = data.draw(st.integers(9_000, 90_000) if rpm is None else st.none())
    moments = st.floats(0.1, 90.0)
    world = World(
        plans=[
            Plan(
                calls=data.draw(st.integers(1, 25)),
                starts_s=data.draw(st.floats(0.0, 30.0)),
                tokens=0 if tpm is None else data.draw(st.integers(1, tpm // 20)),
            )
            for _ in range(shards)
        ],
        limits=Limits(concurrency=1, rpm=rpm, tpm=tpm),
        slots=data.draw(st.integers(1, 20)),
        latency_s=(0.05, data.draw(st.floats(0.1, 20.0))),
        on_the_way_s=data.draw(st.floats(0.0, 0.3)),
        kills=data.draw(
            st.lists(st.tuples(moments, st.integers(0, shards - 1)), max_size=3)
        ),
        broker_ends_at=data.draw(st.lists(moments, max_size=2)),
        seed=data.draw(st.integers(0, 99)),
    )
    world.run()
    assert world.left == 0
    requests, tokens = world.busiest_minute()
    assert requests <= (rpm or requests)
    assert tokens <= (tpm or tokens)


def test_what_calls_did_not_need_is_used_by_others() -> None:
    plans = [Plan(calls=60, tokens=1000, used=250)] * 8
    world = World(plans=plans, limits=Limits(concurrency=1, tpm=120_000))
    world.run()
    # with what was reserved, 480,000 tokens, it would take four minutes
    assert world.sent[-1].at < 1.2 * 60
    assert world.busiest_minute()[1] <= 120_000


@settings(max_examples=500 if IS_PROOF else 15, deadline=None)
@given(data=st.data())
def test_all_together_never_spend_more_than_the_budget(data: st.DataObject) -> None:
    shards = data.draw(st.integers(1, 6))
    cost = data.draw(st.integers(0, 50))
    moments = st.floats(0.1, 5.0)
    plans = [
        Plan(
            calls=data.draw(st.integers(1, 40)),
            worst_pico=cost + data.draw(st.integers(1, 100)),
            cost_pico=cost,
        )
        for _ in range(shards)
    ]
    budget = data.draw(st.integers(0, 4000))
    kills = data.draw(
        st.lists(st.tuples(moments, st.integers(0, shards - 1)), max_size=3)
    )
    world = World(
        plans=plans,
        limits=Limits(concurrency=1, rpm=6000),
        budget_pico=budget,
        slots=data.draw(st.integers(1, 20)),
        kills=kills,
        seed=data.draw(st.integers(0, 99)),
    )
    world.run()
    assert world.spent_pico <= budget
    if world.left and not kills:
        # nobody gave up while there was money for any call
        assert budget - world.spent_pico < max(plan.worst_pico for plan in plans)
