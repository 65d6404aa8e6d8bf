"""Refusals that come when most calls are in flight, and others."""

from __future__ import annotations

import random

import pytest

from runner.limits.learned_rate import ConcurrencyEvidence
from runner.limits.limiter import FULL


def _window(crowd: ConcurrencyEvidence, passed: list[int], refused: int) -> float:
    crowd.begin()
    for among in (*passed, refused):
        crowd.sent(among)
    crowd.refused(refused)
    crowd.compare(1, is_steady=True)
    return crowd.score


def test_one_window_proves_nothing() -> None:
    assert _window(ConcurrencyEvidence(), list(range(40)) * 3, 40) == 0.0


def test_refusals_at_the_same_number_that_none_had_passed_are_evidence() -> None:
    crowd = ConcurrencyEvidence()
    for _ in range(3):
        score = _window(crowd, list(range(40)) * 3, 40)
    assert score >= FULL


def test_refusals_at_different_numbers_take_all_evidence_back() -> None:
    crowd = ConcurrencyEvidence()
    for _ in range(3):
        _window(crowd, list(range(40)) * 3, 40)
    assert _window(crowd, list(range(20)) * 3, 20) == 0.0


@pytest.mark.parametrize("in_flight", [1, 3, 20, 200])
def test_a_call_like_any_other_that_is_refused_is_hardly_ever_taken_for_one(
    in_flight: int,
) -> None:
    chance, crowd, mistakes = random.Random(in_flight), ConcurrencyEvidence(), 0
    for _ in range(1000):
        amongs = [
            round(chance.gauss(in_flight, in_flight**0.5 / 2)) for _ in range(100)
        ]
        mistakes += _window(crowd, amongs[1:], amongs[0]) >= FULL
    assert mistakes <= 5
