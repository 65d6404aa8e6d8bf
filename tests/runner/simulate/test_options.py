"""tests.runner.simulate.test_options"""

from __future__ import annotations

from collections import Counter
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.errors import UsageError
from runner.simulate.options import (
    Chance,
    RequestOutcome,
    SimulatedBucket,
    SimulatedLimits,
    SimulateOptions,
    planned_outcome,
    retry_after,
)

STORM = SimulateOptions(
    seed=7,
    rate_429=0.2,
    rate_5xx=0.15,
    rate_malformed=0.1,
    rate_drop=0.1,
    rate_hang=0.05,
    latency_ms=100,
    jitter_ms=50,
)


def digest(n: int) -> str:
    return sha256(b"%d" % n).hexdigest()


def test_faults_come_as_often_as_they_were_asked_for() -> None:
    n = 5000
    counts = Counter(planned_outcome(STORM, digest(i), 0).outcome for i in range(n))
    expected = {
        RequestOutcome.RATE_LIMITED: 0.2,
        RequestOutcome.SERVER_ERROR: 0.15,
        RequestOutcome.MALFORMED: 0.1,
        RequestOutcome.DROPPED: 0.1,
        RequestOutcome.HANG: 0.05,
        RequestOutcome.ANSWERED: 0.4,
    }
    assert set(counts) == set(expected)
    for outcome, share in expected.items():
        # four standard deviations
        assert abs(counts[outcome] / n - share) < 4 * (share * (1 - share) / n) ** 0.5


@given(st.integers(), st.integers(0, 100))
def test_a_fate_depends_on_seed_request_and_times_seen_alone(n: int, seen: int) -> None:
    assert planned_outcome(STORM, digest(n), seen) == planned_outcome(
        STORM, digest(n), seen
    )


def test_a_request_that_failed_can_succeed_later() -> None:
    first = [
        i for i in range(300) if planned_outcome(STORM, digest(i), 0).status != 200
    ]
    later = [
        i
        for i in first
        if planned_outcome(STORM, digest(i), 1).outcome is RequestOutcome.ANSWERED
    ]
    assert len(later) > len(first) / 4


def test_latency_lies_between_its_floor_and_its_jitter() -> None:
    times = [planned_outcome(STORM, digest(i), 0).latency_s for i in range(300)]
    assert 0.1 <= min(times) < 0.105
    assert 0.145 < max(times) < 0.15


def test_a_server_without_faults_answers_at_once() -> None:
    for i in range(300):
        destined = planned_outcome(SimulateOptions(), digest(i), 0)
        assert (destined.outcome, destined.latency_s) == (RequestOutcome.ANSWERED, 0.0)


@pytest.mark.parametrize(
    "values",
    [
        {"rate_429": -0.1},
        {"rate_429": 0.6, "rate_drop": 0.5},
        {"latency_ms": -1},
        {"rps": 0},
        {"tpm": -5},
    ],
)
def test_options_that_make_no_sense_are_refused(values: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        SimulateOptions(**values)


def test_chance_is_the_same_on_every_machine() -> None:
    chance = Chance("fate", 7, "request")
    drawn = [chance.below(1000) for _ in range(12)]
    assert drawn == [835, 105, 527, 660, 767, 335, 693, 769, 82, 666, 864, 900]


@given(st.integers(1, 10**6))
def test_draws_stay_below_their_bound(bound: int) -> None:
    chance = Chance(bound)
    assert all(0 <= chance.below(bound) < bound for _ in range(20))
    assert all(0 <= chance.unit() < 1 for _ in range(20))


def served(
    limits: SimulatedLimits, rate: float, seconds: float, tokens: int = 1
) -> int:
    """How many of evenly spaced requests are admitted."""
    times = [i / rate for i in range(int(rate * seconds))]
    return sum(limits.admit(tokens, now) == 0.0 for now in times)


def test_no_more_than_the_rate_and_one_second_in_advance_are_served() -> None:
    limits = SimulatedLimits(SimulateOptions(rps=50), 0.0)
    assert 50 * 10 <= served(limits, 500, 10) <= 50 * 11


def test_below_the_rate_nobody_is_refused() -> None:
    limits = SimulatedLimits(SimulateOptions(rps=50), 0.0)
    assert served(limits, 49, 10) == 490


def test_another_rate_holds_so_long_after_the_first_request() -> None:
    limits = SimulatedLimits(
        SimulateOptions(rps=50, rps_after=(10, 20), limit_headers=True), 0.0
    )
    times = [100 + i / 500 for i in range(500 * 30)]
    admitted = [now for now in times if limits.admit(1, now) == 0.0]
    before = sum(now < 110 for now in admitted)
    assert 50 * 10 <= before <= 50 * 11
    assert 20 * 20 <= len(admitted) - before <= 20 * 21
    assert limits.headers(130.0)["x-ratelimit-limit-requests"] == "1200"


@pytest.mark.parametrize(
    "values",
    [{"rps_after": (10, 20)}, {"rps": 5, "rps_after": (0, 20)}],
)
def test_another_rate_needs_a_first_one_and_a_time(values: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="--rps-after"):
        SimulateOptions(**values)


def test_tokens_are_counted_by_the_minute() -> None:
    limits = SimulatedLimits(SimulateOptions(tpm=6000), 0.0)
    assert served(limits, 10, 60, tokens=100) == 60 + 59


def test_both_limits_hold_and_a_refusal_takes_nothing() -> None:
    limits = SimulatedLimits(SimulateOptions(rps=1000, tpm=600), 0.0)
    assert [limits.admit(200, 0.0) for _ in range(3)] == [0.0, 0.0, 0.0]
    assert [limits.admit(200, 0.0) for _ in range(3)] == pytest.approx([20.0] * 3)
    assert limits.admit(200, 20.0) == 0.0


def test_without_limits_nothing_is_refused_or_told() -> None:
    limits = SimulatedLimits(SimulateOptions(limit_headers=True), 0.0)
    assert served(limits, 1000, 1, tokens=10**6) == 1000
    assert limits.headers(1.0) == {}


def test_a_request_larger_than_the_bucket_is_served_from_a_full_one() -> None:
    limits = SimulatedLimits(SimulateOptions(tpm=600), 0.0)
    assert limits.admit(900, 0.0) == 0.0
    assert limits.admit(1, 0.0) == pytest.approx(30.1)


@given(
    st.lists(
        st.tuples(st.floats(0, 5), st.floats(0.1, 50)),
        max_size=60,
    )
)
def test_a_bucket_never_gives_more_than_it_held_and_got(
    draws: list[tuple[float, float]],
) -> None:
    bucket, now, taken = SimulatedBucket(rate=10, capacity=50, now=0.0), 0.0, 0.0
    for pause, amount in draws:
        now += pause
        wait_s = bucket.wait_s(amount, now)
        if wait_s == 0.0:
            bucket.take(amount, now)
            taken += amount
        else:
            assert bucket.wait_s(amount, now + wait_s + 1e-6) == 0.0
            now += wait_s + 1e-6
    assert taken <= 50 + 10 * now + 1e-6


def test_the_limits_are_told_as_openai_tells_them() -> None:
    limits = SimulatedLimits(
        SimulateOptions(rps=2, tpm=60_000, limit_headers=True), 0.0
    )
    limits.admit(1500, 0.0)
    assert limits.headers(0.0) == {
        "x-ratelimit-limit-requests": "120",
        "x-ratelimit-remaining-requests": "1",
        "x-ratelimit-reset-requests": "500ms",
        "x-ratelimit-limit-tokens": "60000",
        "x-ratelimit-remaining-tokens": "58500",
        "x-ratelimit-reset-tokens": "1.5s",
    }
    limits.admit(58_500, 0.0)
    headers = limits.headers(0.0)
    assert headers["x-ratelimit-reset-tokens"] == "1m0s"
    assert headers["x-ratelimit-remaining-tokens"] == "0"


def test_a_wait_is_told_in_whole_seconds_and_in_milliseconds() -> None:
    assert retry_after(0.12) == {"retry-after": "1", "retry-after-ms": "120"}
