from __future__ import annotations

from collections import Counter
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.errors import UsageError
from runner.simulate.options import (
    Chance,
    RequestOutcome,
    SimulateOptions,
    planned_outcome,
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
