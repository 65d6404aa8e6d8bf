"""How many calls at a time: doubling, then small steps; on a number as clock."""

from __future__ import annotations

from collections.abc import Callable

from runner.slots import COOLDOWN_S, START, Slots


def _round(
    slots: Slots,
    now: float,
    *,
    used: float = 1.0,
    took: Callable[[int], float] = lambda _: 1.0,
) -> float:
    """Keep a share of the slots busy until the limit has moved or could have."""
    limit = slots.limit
    busy = max(1, int(limit * used))
    for _ in range(max(8, limit)):
        slots.answered(now + took(limit), now, busy)
    return now + took(limit) + 0.001


def test_the_limit_doubles_from_eight_to_the_ceiling_and_not_beyond() -> None:
    slots, now, seen = Slots(100), 0.0, [START]
    for _ in range(6):
        now = _round(slots, now)
        seen.append(slots.limit)
    assert seen == [8, 16, 32, 64, 100, 100, 100]


def test_a_ceiling_below_the_start_is_kept() -> None:
    slots = Slots(3)
    _round(slots, 0.0)
    assert slots.limit == 3


def test_slots_that_are_not_used_do_not_grow() -> None:
    slots = Slots(100)
    _round(slots, 0.0, used=0.7)
    assert slots.limit == START


def test_after_a_refusal_it_grows_in_small_steps() -> None:
    slots, now = Slots(1000), 0.0
    for _ in range(4):
        now = _round(slots, now)
    slots.refused(now, 100, is_cut=False)
    before = slots.limit
    now = _round(slots, now + 0.001)  # the round of the refusal is not clean
    assert slots.limit == before
    _round(slots, now)
    assert before < slots.limit <= 1 + before * 1.05


def test_an_overload_cuts_once_per_cooldown() -> None:
    slots = Slots(8)
    slots.refused(10.0, 8, is_cut=True)
    slots.refused(11.0, 8, is_cut=True)
    assert slots.limit == 6
    slots.refused(10.0 + COOLDOWN_S, 6, is_cut=True)
    assert slots.limit == 4


def test_a_cut_starts_from_what_was_in_flight_and_never_ends_below_one() -> None:
    slots, now = Slots(1000), 0.0
    for _ in range(5):
        now = _round(slots, now)
    slots.refused(now, 10, is_cut=True)
    assert slots.limit == 8
    slots.refused(now + COOLDOWN_S, 1, is_cut=True)
    assert slots.limit == 1


def test_a_doubling_that_only_makes_calls_slower_is_the_last() -> None:
    slots, now, seen = Slots(1000), 0.0, []
    for _ in range(6):  # 32 calls at a time are all that the endpoint works on
        now = _round(slots, now, took=lambda limit: max(1.0, limit / 32))
        seen.append(slots.limit)
    assert seen[:4] == [16, 32, 64, 67]
    assert seen[-1] < 80


def test_calls_sent_before_a_round_say_nothing_about_it() -> None:
    slots = Slots(100)
    now = _round(slots, 1.0)
    for _ in range(50):
        slots.answered(now + 0.1, 1.0, 16)
    assert slots.limit == 16
