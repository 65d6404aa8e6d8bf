"""A shard's part of the budget: what it asks for, gives back, and when it gives up."""

from __future__ import annotations

from runner.shards.lease_protocol import (
    BudgetRaised,
    MoneyExhausted,
    MoneyLease,
    MoneyShort,
    RequestMoney,
    ReturnMoney,
)
from runner.shards.lease_shares import CALLS_AHEAD, HOLD_S, MoneyShare

LATER = 10.0


class _Bell:
    """Counts how often something was to be said."""

    rung = 0

    def ring(self) -> None:
        self.rung += 1


def _lent(pico: int) -> MoneyShare:
    money = MoneyShare(_Bell().ring)
    money.receive(MoneyLease(pico=pico))
    return money


def test_money_is_asked_for_where_a_call_finds_no_room_and_only_once() -> None:
    bell = _Bell()
    money = MoneyShare(bell.ring)
    assert not money.has_room(10)
    assert bell.rung == 1
    assert money.says(LATER) == [RequestMoney(need_pico=10, want_pico=10 * CALLS_AHEAD)]
    assert not money.has_room(10)
    assert money.says(LATER) == []
    money.receive(MoneyLease(pico=10))
    assert money.has_room(10)
    assert money.granted_pico == 10


def test_a_free_call_needs_no_money() -> None:
    money = MoneyShare(_Bell().ring)
    assert money.has_room(0)
    assert money.says(LATER) == []


def test_more_is_asked_for_ahead_and_never_again_once_there_is_little() -> None:
    money = _lent(100)
    money.reserve(40)
    assert money.says(LATER) == [RequestMoney(need_pico=0, want_pico=40 * CALLS_AHEAD)]
    money.receive(MoneyLease(pico=0))
    money.reserve(40)
    assert money.says(LATER) == []
    assert not money.has_room(40)
    assert money.says(LATER) == [
        ReturnMoney(back_pico=20, spent_pico=0),
        RequestMoney(need_pico=40, want_pico=0),
    ]


def test_where_money_is_short_what_is_not_reserved_goes_back() -> None:
    money = _lent(100)
    money.reserve(30)
    money.says(LATER - HOLD_S)
    money.receive(MoneyShort(is_short=True))
    assert money.gives_back_at == LATER
    assert money.says(LATER - 0.1) == []
    assert money.says(LATER) == [ReturnMoney(back_pico=70, spent_pico=0)]
    money.settle(30, 10, reserved_pico=30)
    assert money.says(LATER) == [ReturnMoney(back_pico=20, spent_pico=10)]
    assert money.says(LATER) == []
    assert money.granted_pico == money.spent_pico == 10


def test_only_the_brokers_word_ends_it_and_only_for_what_was_refused() -> None:
    money = MoneyShare(_Bell().ring)
    settled = [money.has_room(10)]
    money.says(LATER)
    settled.append(money.is_settled)
    money.receive(MoneyExhausted(cap_pico=500, taken_pico=495))
    settled.append(money.is_settled)
    money.has_room(10)
    settled.append(money.is_settled)
    money.has_room(5)  # less than what was refused
    settled.append(money.is_settled)
    assert settled == [False, False, True, True, False]
    assert money.says(LATER)


def test_what_was_refused_is_shown_with_the_sums_of_all_shards() -> None:
    money = MoneyShare(_Bell().ring)
    money.has_room(10)
    money.says(LATER)
    money.receive(MoneyExhausted(cap_pico=500, taken_pico=495))
    shown = money.statistics()
    assert (shown.cap_pico, shown.spent_pico) == (500, 495)


def test_a_raised_budget_is_asked_again_and_is_the_brokers_to_raise() -> None:
    money = MoneyShare(_Bell().ring)
    money.has_room(10)
    money.says(LATER)
    money.receive(MoneyExhausted(cap_pico=5, taken_pico=0))
    money.add(1000)
    assert not money.has_room(10)
    money.receive(BudgetRaised())
    assert not money.has_room(10)
    assert money.says(LATER) == [RequestMoney(need_pico=10, want_pico=10 * CALLS_AHEAD)]


def test_a_new_connection_is_asked_what_the_old_one_did_not_answer() -> None:
    money = MoneyShare(_Bell().ring)
    money.has_room(10)
    asked = money.says(LATER)
    money.reconnected()
    assert money.says(LATER) == asked
