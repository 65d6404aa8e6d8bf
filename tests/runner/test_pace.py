"""A rate learned from refusals, against a bucket that is known; a number as clock."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from runner.pace import DEAF_S, Pace
from runner.simulate.bucket import Bucket

RTT_S = 0.002


def _press(
    pace: Pace, server: Bucket, seconds: float, *, start: float = 0.0, most: float = 500
) -> tuple[int, int]:
    """Send all that the pace and *most* a second allow; requests passed, refused."""
    now, passed, refused = start, 0, 0
    while now < start + seconds:
        when = pace.ready_at(now)
        if when > now:
            now = when + RTT_S / 4
            continue
        pace.sent(now)
        if server.wait_s(1, now) == 0.0:
            server.take(1, now)
            passed += 1
        else:
            refused += 1
            pace.refused(now + RTT_S, now, now + RTT_S)
        now += 1 / most
    return passed, refused


def test_nothing_is_held_back_before_a_refusal() -> None:
    pace = Pace()
    assert pace.rate is None
    pace.sent(0.0)
    assert pace.ready_at(0.0) == 0.0


def test_one_refusal_holds_and_does_not_slow_down() -> None:
    pace = Pace()
    pace.sent(1.0)
    pace.refused(1.1, 1.0, 1.1)
    assert pace.ready_at(1.1) > 1.1
    assert pace.ready_at(2.0) == 2.0
    assert pace.rate is None


def test_a_pause_that_the_endpoint_asked_for_is_part_of_the_hold() -> None:
    pace = Pace()
    pace.sent(1.0)
    pace.refused(1.1, 1.0, 31.1)
    assert pace.ready_at(1.2) == 31.1


@settings(deadline=None, max_examples=25)
@given(rate=st.floats(10, 200), depth_s=st.sampled_from([0.5, 1.0, 10.0, 60.0]))
def test_the_allowed_rate_is_found_whatever_the_size_of_the_bucket(
    rate: float, depth_s: float
) -> None:
    pace = Pace()
    server = Bucket(rate=rate, capacity=max(2.0, rate * depth_s), now=0.0)
    start = 2 * depth_s + 60.0
    _press(pace, server, start)
    passed, refused = _press(pace, server, 240.0, start=start)
    assert passed >= 0.97 * 240.0 * rate
    # two per look at whether the limit has risen, at least 300 requests apart
    assert refused <= 0.01 * passed


def test_a_limit_that_has_risen_is_found_again() -> None:
    pace = Pace()
    _press(pace, Bucket(rate=20, capacity=20, now=0.0), 60.0)
    assert pace.rate is not None
    assert 19 <= pace.rate <= 22
    _press(pace, Bucket(rate=100, capacity=100, now=60.0), 120.0, start=60.0)
    assert 95 <= pace.rate <= 110


def test_a_pace_that_is_not_used_does_not_grow() -> None:
    pace = Pace()
    server = Bucket(rate=50, capacity=50, now=0.0)
    _press(pace, server, 60.0)
    learned = pace.rate
    assert learned is not None
    _press(pace, server, 600.0, start=60.0, most=10)
    assert pace.rate is not None
    assert pace.rate <= 1.05 * learned


def test_refusals_that_slowing_down_does_not_lessen_are_no_matter_of_rate() -> None:
    pace, now = Pace(), 0.0
    for n in range(4000):
        now = max(now + 0.005, pace.ready_at(now))
        pace.ready_at(now)
        pace.sent(now)
        if n % 20 == 19:
            pace.refused(now + RTT_S, now, now + 0.1)
        if pace.is_deaf(now):
            break
    assert pace.is_deaf(now)
    assert pace.rate is None
    assert not pace.is_deaf(now + DEAF_S)


def test_not_listening_ends_for_good_where_it_makes_refusals_many() -> None:
    pace = Pace()
    pace._deaf_until = 1e9
    for n in range(200):
        pace.sent(n / 100)
        if n % 2:
            pace.refused(n / 100 + RTT_S, n / 100, n / 100)
    assert not pace.is_deaf(2.0)
