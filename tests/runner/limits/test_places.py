"""Calls at a time learned from refusals; on a number as clock."""

from __future__ import annotations

import pytest

from runner.limits.adaptive_concurrency import OFTEN, LearnedConcurrency
from runner.limits.learned_rate import QUIET_S


def test_nothing_is_limited_before_a_refusal() -> None:
    assert LearnedConcurrency().limit == float("inf")


def test_what_was_in_flight_at_a_refusal_is_the_limit() -> None:
    places = LearnedConcurrency()
    places.refused(1.0, 0.9, 40)
    assert places.limit == 40


def test_refusals_of_calls_sent_before_the_limit_was_set_say_nothing_more() -> None:
    places = LearnedConcurrency()
    places.refused(1.0, 0.9, 40)
    places.refused(1.1, 0.95, 44)
    places.refused(1.2, 0.99, 12)
    assert places.limit == 40


def test_a_limit_that_is_refused_again_is_cut_deeper_each_time() -> None:
    places, limits = LearnedConcurrency(), []
    for n in range(5):
        places.refused(n + 1.0, n + 0.9, 1000)
        limits.append(places.limit)
    assert limits == [1000, 984, 953, 894, 782]


def test_a_limit_never_falls_below_one_call() -> None:
    places = LearnedConcurrency()
    for n in range(4):
        places.refused(n + 1.0, n + 0.9, 0)
    assert places.limit == 1


def test_a_limit_that_is_used_is_tried_upwards_after_a_rest() -> None:
    places = LearnedConcurrency()
    places.refused(0.0, -0.1, 40)
    for n in range(3500):
        places.sent(n / 100, 39)
    assert places.limit == 42


def test_a_limit_that_is_not_used_does_not_grow() -> None:
    places = LearnedConcurrency()
    places.refused(0.0, -0.1, 40)
    for n in range(int(100 * QUIET_S) * 3):
        places.sent(n / 100, 20)
    assert places.limit == 40


@pytest.mark.parametrize("share", [0.01, 0.1])
def test_a_limit_that_is_refused_however_low_it_is_becomes_doubtful(
    share: float,
) -> None:
    places, n = LearnedConcurrency(), 0
    while not places.is_doubtful and n < 10 * OFTEN / share:
        n += 1
        places.sent(n / 100, 30)
        if n % (1 / share) == 0:
            places.refused(n / 100 + 0.002, n / 100, 30)
    assert places.is_doubtful
    assert places.share == pytest.approx(share, rel=0.3)
    places.drop()
    assert places.limit == float("inf")
