"""Calls at a time learned from refusals; on a number as clock.

How many calls at a time: doubling, then small steps; on a number as clock.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable

import pytest

from runner.errors import Overloaded
from runner.limits.adaptive_concurrency import (
    OFTEN,
    START,
    UNPACED,
    AdaptiveConcurrency,
    LearnedConcurrency,
)
from runner.limits.learned_rate import QUIET_S
from runner.limits.limiter import Endpoint, Limits


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


def _round(
    slots: AdaptiveConcurrency,
    now: float,
    *,
    used: float = 1.0,
    took: Callable[[int], float] = lambda _: 1.0,
) -> float:
    """Keep a share of the slots busy until the limit has moved or could have."""
    limit = slots.limit
    busy = max(1, int(limit * used))
    for _ in range(limit):
        slots.answered(now + took(limit), now, busy)
    return now + took(limit) + 0.001


def test_the_limit_doubles_from_a_quarter_to_the_ceiling_and_not_beyond() -> None:
    slots, now, seen = AdaptiveConcurrency(100), 0.0, [START]
    for _ in range(5):
        now = _round(slots, now)
        seen.append(slots.limit)
    assert seen == [8, 25, 50, 100, 100, 100]


@pytest.mark.parametrize(("is_paced", "start"), [(True, 250), (False, UNPACED)])
def test_the_first_reply_starts_many_calls_only_where_a_rate_is_known(
    is_paced: bool, start: int
) -> None:
    slots = AdaptiveConcurrency(1000)
    slots.answered(1.0, 0.0, START, is_paced=is_paced)
    assert slots.limit == start


def test_a_refusal_before_the_first_reply_leaves_the_start_at_eight() -> None:
    slots = AdaptiveConcurrency(1000)
    slots.refused()
    slots.answered(1.0, 0.0, START, is_paced=True)
    assert slots.limit == START


def test_a_ceiling_below_the_start_is_kept() -> None:
    slots = AdaptiveConcurrency(3)
    _round(slots, 0.0)
    assert slots.limit == 3


def test_slots_that_are_not_used_do_not_grow() -> None:
    slots = AdaptiveConcurrency(100)
    now = _round(slots, 0.0)
    _round(slots, now, used=0.7)
    assert slots.limit == 25


def test_a_round_with_a_refusal_does_not_grow() -> None:
    slots = AdaptiveConcurrency(1000)
    slots.refused()
    now = _round(slots, 0.0)
    assert slots.limit == START
    _round(slots, now)
    assert slots.limit == 2 * START


def test_a_lowered_ceiling_holds_at_once_and_a_raised_one_is_climbed_to() -> None:
    slots, now = AdaptiveConcurrency(1000), 0.0
    for _ in range(4):
        now = _round(slots, now)
    slots.set_ceiling(10)
    assert slots.limit == 10
    slots.set_ceiling(200)
    assert slots.limit == 10
    for _ in range(5):
        now = _round(slots, now)
    assert slots.limit == 200


def test_a_few_milliseconds_more_a_call_do_not_end_the_doubling() -> None:
    slots, now, seen = AdaptiveConcurrency(100), 0.0, []
    for _ in range(4):
        now = _round(slots, now, took=lambda limit: limit / 20_000)
        seen.append(slots.limit)
    assert seen == [25, 50, 100, 100]


def test_a_doubling_that_only_makes_calls_slower_is_the_last() -> None:
    slots, now, seen = AdaptiveConcurrency(1000), 0.0, []
    for _ in range(6):  # 32 calls at a time are all that the endpoint works on
        now = _round(slots, now, took=lambda limit: max(1.0, limit / 32))
        seen.append(slots.limit)
    assert seen[:2] == [64, 67]
    assert seen[-1] < 90


def test_calls_sent_before_a_round_say_nothing_about_it() -> None:
    slots = AdaptiveConcurrency(100)
    now = _round(slots, 1.0)
    for _ in range(50):
        slots.answered(now + 0.1, 1.0, 25)
    assert slots.limit == 25


def _little_load(
    *, every_s: float, took_s: float, seconds: int, seed: int
) -> tuple[list[int], int]:
    """Send a call now and then to an endpoint that refuses one in fifty with 503.

    Returns:
        The limit, second by second, and the most calls that waited for a slot.
    """
    chance = random.Random(seed)
    limiter = Endpoint("x").limiter("m", Limits(concurrency=64))
    flying: list[tuple[float, float, int, bool]] = []
    limits, waiting, most = [], 0, 0
    for tick in range(10 * seconds):
        now = tick / 10
        while flying and flying[0][0] <= now:
            _, sent_at, among, is_refused = heapq.heappop(flying)
            if is_refused:
                limiter.failed(now, sent_at, among, Overloaded("busy", status=503))
            else:
                limiter.answered(now, sent_at, among)
            limiter.release(1, None)
            waiting += is_refused
        waiting += tick % round(10 * every_s) == 0
        while waiting and limiter.has_slot:
            among = limiter.acquire(now, 1)
            is_refused = chance.random() < 0.02
            took = 0.1 if is_refused else took_s * chance.lognormvariate(0, 0.3)
            heapq.heappush(flying, (now + took, now, among, is_refused))
            waiting -= 1
        most = max(most, waiting)
        limits.append(limiter.statistics().concurrency)
    return limits[::10], most


@pytest.mark.parametrize("seed", range(5))
def test_refusals_now_and_then_under_little_load_do_not_hold_calls_back(
    seed: int,
) -> None:
    limits, waiting = _little_load(every_s=1.0, took_s=2.0, seconds=900, seed=seed)
    # one slot carries half of the calls; with a full rest it takes ten minutes
    assert sum(limit == 1 for limit in limits) < 150
    assert waiting < 100


def test_a_limit_of_one_call_is_tried_upwards_after_a_minute() -> None:
    places = LearnedConcurrency()
    places.refused(0.0, -0.1, 0)
    for n in range(60):
        places.sent(float(n), 0)
    assert places.limit > 1


def test_a_refused_step_is_undone_and_the_next_one_waits_longer() -> None:
    places, now, waits = LearnedConcurrency(), 0.0, []
    places.refused(now, -0.1, 1)
    for _ in range(4):
        began = now
        while places.limit == 1:
            now += 1.0
            places.sent(now, 0)
        waits.append(now - began)
        places.refused(now + 0.2, now + 0.1, 1)
        assert places.limit == 1
        now += 1.0
    assert waits == [30, 60, 120, 240]


def test_calls_of_the_same_burst_that_pass_undo_a_refusal_by_chance() -> None:
    places = LearnedConcurrency()
    places.passed(5.0, 0.0, 0)
    places.refused(5.1, 0.0, 1)  # the second of six calls that were sent at once
    assert places.limit == 1
    for among in (2, 3, 4, 5):
        places.passed(5.2, 0.0, among)
    assert places.limit == 6
    places.refused(10.0, 5.3, 5)
    assert places.limit == 5
    places.passed(11.0, 10.5, 7)  # sent later: it says nothing about that refusal
    assert places.limit == 5


def test_calls_that_passed_a_moment_ago_beside_more_others_bound_the_limit() -> None:
    places = LearnedConcurrency()
    places.passed(10.0, 9.0, 4)
    places.refused(11.0, 10.9, 1)
    assert places.limit == 5
    places.drop()
    places.passed(20.0, 19.0, 4)
    places.refused(21.0 + QUIET_S, 20.9 + QUIET_S, 1)
    assert places.limit == 1
