from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.errors import UsageError
from runner.simulate.options import (
    SimulatedBucket,
    SimulatedLimits,
    SimulateOptions,
    retry_after,
)


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
