"""Refusals by chance, and more than that."""

from __future__ import annotations

import random

import pytest

from runner.limits.learned_rate import RefusalExcess


def _alarms(surplus: RefusalExcess, share: float, requests: int, seed: int) -> int:
    chance = random.Random(seed)
    alarms = 0
    for _ in range(requests):
        if chance.random() < share:
            alarms += surplus.refused()
        else:
            surplus.passed()
    return alarms


def test_every_refusal_counts_while_no_usual_share_is_known() -> None:
    surplus = RefusalExcess()
    surplus.passed()
    assert surplus.refused()
    assert surplus.refused()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("share", [0.001, 0.01, 0.05, 0.2])
def test_the_usual_share_raises_no_alarm(share: float, seed: int) -> None:
    surplus = RefusalExcess()
    surplus.learn(share)
    assert _alarms(surplus, share, 50_000, seed) == 0


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("share", [0.001, 0.01, 0.05, 0.2])
def test_a_share_that_grew_by_a_tenth_is_noticed_within_1000_requests(
    share: float, seed: int
) -> None:
    surplus = RefusalExcess()
    surplus.learn(share)
    assert _alarms(surplus, share + 0.1, 1000, seed) >= 1


def test_an_empty_bucket_is_noticed_after_a_dozen_refusals() -> None:
    surplus = RefusalExcess()
    surplus.learn(0.05)
    assert [surplus.refused() for _ in range(13)].index(True) >= 4


def test_where_most_requests_are_refused_that_is_no_chance() -> None:
    surplus = RefusalExcess()
    surplus.learn(0.9)
    assert surplus.usual == 0.0
    assert surplus.refused()


def test_a_share_that_has_gone_is_forgotten_and_every_refusal_counts_again() -> None:
    surplus = RefusalExcess()
    surplus.learn(0.02)
    for _ in range(50_000):
        surplus.passed()
    assert surplus.usual == 0.0
    assert surplus.refused()


def test_a_growing_share_never_becomes_the_usual_one_by_itself() -> None:
    surplus = RefusalExcess()
    surplus.learn(0.02)
    _alarms(surplus, 0.5, 5_000, seed=1)
    assert surplus.usual <= 0.02
