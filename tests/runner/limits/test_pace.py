"""A rate learned from refusals, against a bucket that is known; a number as clock."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.limits.learned_rate import LearnedRate
from runner.simulate.options import SimulatedBucket

RTT_S = 0.002


def _refuse(
    pace: LearnedRate, now: float, sent_at: float, resume_at: float = 0.0
) -> None:
    pace.missed(sent_at)
    pace.refused(now, sent_at, 0, resume_at)


def _press(
    pace: LearnedRate,
    server: SimulatedBucket,
    seconds: float,
    *,
    start: float = 0.0,
    most: float = 500,
) -> tuple[int, int]:
    """Send all that the pace and *most* a second allow; requests passed, refused."""
    now, passed, refused = start, 0, 0
    while now < start + seconds:
        when = pace.ready_at(now)
        if when > now:
            now = when + RTT_S / 4
            continue
        pace.sent(now, 0)
        if server.wait_s(1, now) == 0.0:
            server.take(1, now)
            passed += 1
        else:
            refused += 1
            _refuse(pace, now + RTT_S, now)
        now += 1 / most
    return passed, refused


def test_nothing_is_held_back_before_a_refusal() -> None:
    pace = LearnedRate()
    assert pace.rate is None
    pace.sent(0.0, 0)
    assert pace.ready_at(0.0) == 0.0


def test_one_refusal_holds_and_does_not_slow_down() -> None:
    pace = LearnedRate()
    pace.sent(1.0, 0)
    _refuse(pace, 1.1, 1.0)
    assert pace.ready_at(1.1) > 1.1
    assert pace.ready_at(2.0) == 2.0
    assert pace.rate is None


def test_a_pause_that_the_endpoint_asked_for_is_part_of_the_hold() -> None:
    pace = LearnedRate()
    pace.sent(1.0, 0)
    _refuse(pace, 1.1, 1.0, 31.1)
    assert pace.ready_at(1.2) == 31.1


@settings(max_examples=25)
@given(rate=st.floats(10, 200), depth_s=st.sampled_from([0.5, 1.0, 10.0, 60.0]))
def test_the_allowed_rate_is_found_whatever_the_size_of_the_bucket(
    rate: float, depth_s: float
) -> None:
    pace = LearnedRate()
    server = SimulatedBucket(rate=rate, capacity=max(2.0, rate * depth_s), now=0.0)
    start = 2 * depth_s + 60.0
    _press(pace, server, start)
    passed, refused = _press(pace, server, 240.0, start=start)
    assert passed >= 0.97 * 240.0 * rate
    # two per look at whether the limit has risen, at least 300 requests apart
    assert refused <= 0.01 * passed


def test_a_limit_that_has_risen_is_found_again() -> None:
    pace = LearnedRate()
    _press(pace, SimulatedBucket(rate=20, capacity=20, now=0.0), 60.0)
    assert pace.rate is not None
    assert 19 <= pace.rate <= 22
    _press(pace, SimulatedBucket(rate=100, capacity=100, now=60.0), 120.0, start=60.0)
    assert 95 <= pace.rate <= 110


def test_a_pace_that_is_not_used_does_not_grow() -> None:
    pace = LearnedRate()
    server = SimulatedBucket(rate=50, capacity=50, now=0.0)
    _press(pace, server, 60.0)
    learned = pace.rate
    assert learned is not None
    _press(pace, server, 600.0, start=60.0, most=10)
    assert pace.rate is not None
    assert pace.rate <= 1.05 * learned


def test_a_step_upwards_that_is_refused_is_undone_at_once() -> None:
    pace, server = LearnedRate(), SimulatedBucket(rate=50, capacity=50, now=0.0)
    now, rates = 40.0, []
    _press(pace, server, now)
    while now < 160.0:
        _press(pace, server, 0.1, start=now)
        now += 0.1
        assert pace.rate is not None
        rates.append(pace.rate)
    steps = [(a, b) for a, b in itertools.pairwise(rates) if b > 1.04 * a]
    undone = [(a, b) for a, b in itertools.pairwise(rates) if b < a / 1.04]
    assert 2 <= len(steps) <= 12
    assert undone
    assert all(b < 56 for _, b in undone)


@pytest.mark.parametrize("one_in", [10, 50, 200])
def test_a_pace_that_is_refused_however_low_it_is_becomes_doubtful(one_in: int) -> None:
    pace, now, sent = LearnedRate(), 0.0, 0
    while not pace.is_doubtful and sent < 20 * one_in + 400:
        now = max(now + 0.005, pace.ready_at(now))
        pace.ready_at(now)
        pace.sent(now, 0)
        sent += 1
        if sent % one_in == 0:
            _refuse(pace, now + RTT_S, now, now + 0.1)
    assert pace.is_doubtful
    assert 0.5 / one_in <= pace.share <= 2 / one_in
    pace.drop(now)
    assert pace.rate is None
    assert not pace.is_doubtful
