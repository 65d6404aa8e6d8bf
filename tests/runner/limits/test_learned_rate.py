"""When a learned limit is tried upwards; on a number as clock.

Refusals that come when most calls are in flight, and others. A rate learned from
refusals, against a bucket that is known; a number as clock. Refusals by chance, and
more than that.
"""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.limits.learned_rate import (
    HOLD_S,
    QUIET_REQUESTS,
    QUIET_S,
    SEVERAL,
    ConcurrencyEvidence,
    LearnedRate,
    RefusalExcess,
    UpwardSteps,
)
from runner.limits.limiter import FULL
from runner.simulate.options import SimulatedBucket


def _steps(
    climb: UpwardSteps, seconds: float, *, start: float, rate: float
) -> list[float]:
    times = [start + i / rate for i in range(int(seconds * rate))]
    return [step for step in map(climb.sent, times) if step]


def test_a_limit_rests_before_it_is_tried_upwards_in_growing_steps() -> None:
    climb = UpwardSteps()
    climb.rest(0.0)
    assert _steps(climb, QUIET_S - 1, start=0.0, rate=100) == []
    assert _steps(climb, 17.0, start=QUIET_S - 1, rate=100) == [0.05, 0.1, 0.2, 0.4]


def test_few_requests_are_no_rest_however_long_they_take() -> None:
    climb = UpwardSteps()
    climb.rest(0.0)
    assert _steps(climb, QUIET_REQUESTS - 2, start=0.0, rate=1) == []


def test_an_estimate_of_short_standing_is_tried_sooner() -> None:
    climb = UpwardSteps()
    climb.rest(0.0, 2.0, 100)
    assert _steps(climb, 3.0, start=0.0, rate=100) == [0.05]


def test_a_limit_that_does_not_matter_is_not_raised() -> None:
    climb = UpwardSteps()
    climb.rest(0.0)
    climb.slack()
    assert _steps(climb, QUIET_S + 4, start=0.0, rate=100) == []
    assert _steps(climb, 5.0, start=QUIET_S + 4, rate=100) == [0.05]


def test_refusals_after_steps_are_explained_and_others_are_in_vain() -> None:
    climb = UpwardSteps()
    climb.rest(0.0)
    assert len(_steps(climb, QUIET_S + 7, start=0.0, rate=100)) == 2
    found = []
    for _ in range(4):
        climb.refused()
        found.append(climb.in_vain)
    assert found == [0, 0, 1, 2]


def test_a_new_measure_explains_nothing_that_comes_after_it() -> None:
    climb = UpwardSteps()
    climb.rest(0.0)
    assert _steps(climb, QUIET_S + 7, start=0.0, rate=100)
    climb.measured()
    climb.refused()
    assert climb.in_vain == 1


def test_where_refusals_come_all_the_time_a_short_rest_proves_nothing() -> None:
    climb = UpwardSteps()
    climb.rest(0.0)
    for n in range(SEVERAL):
        _steps(climb, 10.0, start=10.0 * n, rate=100)
        climb.missed()
        climb.refused()
    assert climb.share == 1 / 1000
    climb.rest(30.0, 1.0, 1)
    assert _steps(climb, 29.0, start=30.0, rate=100) == []
    assert _steps(climb, 2.0, start=59.0, rate=100) == [0.05]


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


def test_two_refusals_among_the_first_calls_are_no_rate() -> None:
    """As seen against an endpoint that refuses at random: seven calls had passed."""
    pace = LearnedRate()
    for sent_at, sent, refused_at in ((0.0, 1, 0.0), (1.5, 8, 3.5)):
        for _ in range(sent):
            pace.sent(sent_at, 0)
        _refuse(pace, refused_at, sent_at)
        pace.ready_at(refused_at + HOLD_S)
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


def test_a_limit_below_its_credit_is_found_again_once_it_has_risen() -> None:
    pace = LearnedRate()
    _press(pace, SimulatedBucket(rate=2, capacity=2, now=0.0), 60.0)
    assert pace.rate is not None
    assert 1.9 <= pace.rate <= 2.2
    _press(pace, SimulatedBucket(rate=10, capacity=10, now=60.0), 900.0, start=60.0)
    assert 9.5 <= pace.rate <= 11


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


def test_a_refusal_of_what_was_sent_before_the_last_pause_is_no_news() -> None:
    rate = LearnedRate()
    rate.sent(0.0, 0)
    rate.sent(0.1, 1)
    rate.missed(0.0)
    rate.refused(0.5, 0.0, 0, 0.5)
    assert rate.ready_at(0.5) == 0.5 + HOLD_S
    assert rate.ready_at(1.0) == 1.0
    rate.missed(0.1)
    rate.refused(1.1, 0.1, 1, 1.1)
    assert rate.ready_at(1.1) == 1.1


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
