"""What share of an allowed rate is used, and what it costs, in virtual minutes.

The goals are those of the engine: from the second minute on at least 97 % of the rate,
and at most 0.5 % of the requests refused. A look at whether a limit has risen may fall
into any one minute, so a minute's share is bounded a little wider than the sum's.
"""

from __future__ import annotations

import pytest

from runner.limits.limiter import Limits
from tests.allowing import Minute, Rules, World, seeds

CEILING = Limits(concurrency=256)
ONE = {"m": CEILING}


def _holds(minutes: list[Minute], allowed: float, *, tokens: bool = False) -> None:
    used = [(m.tokens if tokens else m.served) / allowed for m in minutes]
    assert min(used) >= 0.97, used
    refused = [m.refused_share for m in minutes]
    assert max(refused) <= 0.005, refused


@pytest.mark.parametrize("seed", seeds(5))
@pytest.mark.parametrize("waits", ["ms", "s", ""])
def test_without_headers_the_rate_is_learned_from_refusals(
    waits: str, seed: int
) -> None:
    world = World(rules=[Rules(rps=50)], models=ONE, waits=waits, seed=seed)
    _holds(world.run(4)[1:], 3000)


@pytest.mark.parametrize("seed", seeds(3))
def test_told_limits_are_kept_without_a_refusal(seed: int) -> None:
    world = World(rules=[Rules(rps=50)], models=ONE, with_headers=True, seed=seed)
    minutes = world.run(3)
    _holds(minutes, 3000)
    assert sum(m.refused for m in minutes) <= 8  # sent before anything was told


@pytest.mark.parametrize("seed", seeds(3))
def test_a_told_token_limit_is_used_and_kept(seed: int) -> None:
    rules = [Rules(tpm=300_000)]
    world = World(
        rules=rules, models=ONE, with_headers=True, tokens=(50, 150), seed=seed
    )
    _holds(world.run(3)[1:], 300_000, tokens=True)


@pytest.mark.parametrize("seed", seeds(5))
def test_a_token_limit_that_nobody_tells_is_learned_as_a_rate(seed: int) -> None:
    world = World(
        rules=[Rules(tpm=300_000)], models=ONE, tokens=(50, 150), waits="s", seed=seed
    )
    _holds(world.run(4)[1:], 300_000, tokens=True)


def test_a_limit_set_by_hand_wins_where_it_is_lower() -> None:
    by_hand = {"m": Limits(concurrency=256, rpm=600)}
    world = World(rules=[Rules(rps=50)], models=by_hand, with_headers=True)
    assert all(570 <= m.served <= 600 for m in world.run(2))
    world = World(
        rules=[Rules(rps=50)],
        models={"m": Limits(concurrency=256, rpm=60_000)},
        with_headers=True,
    )
    _holds(world.run(2), 3000)


@pytest.mark.parametrize("seed", seeds(5))
@pytest.mark.parametrize("with_headers", [False, True])
def test_a_limit_that_halves_is_followed(with_headers: bool, seed: int) -> None:
    rules = [Rules(rps=100), Rules(since_s=120, rps=50)]
    world = World(rules=rules, models=ONE, with_headers=with_headers, seed=seed)
    minutes = world.run(5)
    _holds(minutes[1:2], 6000)
    _holds(minutes[2:], 3000)


@pytest.mark.parametrize("seed", seeds(3))
def test_a_limit_that_doubles_is_found_within_two_minutes(seed: int) -> None:
    rules = [Rules(rps=25), Rules(since_s=120, rps=50)]
    world = World(rules=rules, models=ONE, seed=seed)
    minutes = world.run(5)
    _holds(minutes[1:2], 1500)
    _holds(minutes[3:], 3000)


@pytest.mark.parametrize("weight", [1.0, 3.0])
@pytest.mark.parametrize("with_headers", [False, True])
def test_two_models_share_an_endpoint_by_weight(
    with_headers: bool, weight: float
) -> None:
    models = {"a": Limits(concurrency=256, weight=weight), "b": CEILING}
    world = World(rules=[Rules(rps=50)], models=models, with_headers=with_headers)
    minutes = world.run(3)[1:]
    _holds(minutes, 3000)
    for minute in minutes:
        ratio = minute.by_model["a"] / minute.by_model["b"]
        assert ratio == pytest.approx(weight, rel=0.02)


@pytest.mark.parametrize("apart", [{"a": 1.0, "b": 1.0}, {"a": 1.0, "b": 0.2}])
def test_limits_that_are_told_for_each_model_are_used_for_each(
    apart: dict[str, float],
) -> None:
    world = World(
        rules=[Rules(rps=50)],
        models={"a": CEILING, "b": CEILING},
        with_headers=True,
        apart=apart,
    )
    for minute in world.run(3)[1:]:
        for model, share in apart.items():
            assert minute.by_model[model] >= 0.97 * 3000 * share
        assert minute.refused_share <= 0.005


def test_slow_answers_are_met_with_more_slots() -> None:
    world = World(rules=[Rules(rps=20)], models=ONE, latency_s=(2.0, 8.0))
    _holds(world.run(5)[1:], 1200)


@pytest.mark.parametrize("rps", [0.5, 1, 2, 5])
@pytest.mark.parametrize("waits", ["ms", "s", ""])
def test_a_low_rate_is_learned_too(waits: str, rps: float) -> None:
    world = World(rules=[Rules(rps=rps)], models=ONE, waits=waits)
    minutes = world.run(10)[1:]
    # a wait told in whole seconds costs up to one of them
    least = 0.85 if waits == "s" else 0.9
    assert sum(m.served for m in minutes) >= least * 9 * 60 * rps
    assert max(m.refused_share for m in minutes) <= 0.05


def test_an_endpoint_without_limits_is_used_to_the_ceiling() -> None:
    world = World(
        rules=[Rules()], models={"m": Limits(concurrency=64)}, latency_s=(0.2, 0.2)
    )
    second = world.run(2)[1]
    assert second.served >= 0.97 * 60 * 64 / (0.2 + 0.002)
    assert second.refused == 0
