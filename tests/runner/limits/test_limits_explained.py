"""Refusals that are no matter of a rate: by chance, or for want of places.

From the second minute on, refusals by chance may cost a tenth of the speed that the
run has without them, and of the places of an endpoint nine tenths must be in use, at
one refusal in a hundred; told by 429s, which a rate explains at first, from the third
minute on. A limit on the rate beside refusals by chance must still be kept.
"""

from __future__ import annotations

import pytest

from runner.limits.limiter import Limits
from tests.allowing import Minute, Rules, World, seeds

CEILING = Limits(concurrency=256)
ONE = {"m": CEILING}
LATENCY_S = (0.15, 0.4)
TAKES_S = sum(LATENCY_S) / 2 + 0.006
"""Of a call: on average, with the ways there and back, and late timers."""


def _run(world: World, minutes: int) -> list[Minute]:
    return world.run(minutes)[1:]


@pytest.mark.parametrize("seed", seeds(2))
@pytest.mark.parametrize("waits", ["ms", "s"])
@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("chance", [0.005, 0.02, 0.05])
def test_refusals_by_chance_cost_a_run_less_than_a_tenth_of_its_speed(
    chance: float, status: int, waits: str, seed: int
) -> None:
    world = World(
        rules=[Rules()],
        models={"m": Limits(concurrency=64)},
        latency_s=LATENCY_S,
        chance=chance,
        status=status,
        waits=waits,
        seed=seed,
    )
    minutes = _run(world, 3)
    assert min(m.served for m in minutes) >= 0.9 * 60 * 64 / TAKES_S
    assert max(m.refused_share for m in minutes) <= 2 * chance + 0.002


@pytest.mark.parametrize("seed", seeds(2))
@pytest.mark.parametrize("waits", ["ms", "s", ""])
@pytest.mark.parametrize(("status", "found"), [(429, 2), (503, 1)])
@pytest.mark.parametrize("places", [10, 40])
def test_an_endpoint_that_takes_so_many_calls_at_a_time_is_kept_full(
    places: int, found: int, status: int, waits: str, seed: int
) -> None:
    world = World(
        rules=[Rules()],
        models=ONE,
        latency_s=LATENCY_S,
        slots=places,
        status=status,
        waits=waits,
        seed=seed,
    )
    minutes = world.run(4)[found:]
    assert min(m.served for m in minutes) >= 0.9 * 60 * places / TAKES_S
    assert max(m.refused_share for m in minutes) <= 0.01


@pytest.mark.parametrize("seed", seeds(3))
def test_a_rate_is_kept_where_some_are_refused_by_chance_too(seed: int) -> None:
    world = World(rules=[Rules(rps=50)], models=ONE, chance=0.02, seed=seed)
    minutes = _run(world, 4)
    assert sum(m.served for m in minutes) >= 0.85 * 3 * 3000
    assert sum(m.refused for m in minutes) <= 0.1 * 3 * 3000


@pytest.mark.parametrize("seed", seeds(3))
def test_a_rate_that_comes_up_after_refusals_by_chance_is_found(seed: int) -> None:
    rules = [Rules(), Rules(since_s=120, rps=50)]
    models = {"m": Limits(concurrency=64)}
    world = World(rules=rules, models=models, chance=0.01, seed=seed)
    minutes = _run(world, 6)
    assert min(m.served for m in minutes[2:]) >= 0.9 * 3000
    assert max(m.refused_share for m in minutes[2:]) <= 0.1


def test_an_endpoint_that_refuses_everything_is_not_pressed() -> None:
    world = World(rules=[Rules()], models=ONE, chance=1.0, waits="s")
    minutes = _run(world, 3)
    assert max(m.served for m in minutes) == 0
    # all slots, no more than once a second
    assert max(m.refused for m in minutes) <= 60 * 8
