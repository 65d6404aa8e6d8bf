"""A shard's part of the budget: what it asks for, gives back, and when it gives up.

What a shard holds, by a broker's clock and by its own. The money that is lent: never
more than the budget, and none given up too early. Who takes part: one process a slice,
and one a log.
"""

from __future__ import annotations

import math

import msgspec
import pytest

from runner.shards.lease_client import LeaseHolder, ProcessIdentity
from runner.shards.lease_pools import Membership, MoneyLoan, MoneyPool
from runner.shards.lease_protocol import (
    BudgetRaised,
    CreditLease,
    Hello,
    LeaseRenewed,
    MoneyExhausted,
    MoneyLease,
    MoneyShort,
    RequestMoney,
    ReturnMoney,
    ShardProgress,
    ShardRefused,
    Welcome,
)
from runner.shards.lease_shares import CALLS_AHEAD, HOLD_S, LeasedCredit, MoneyShare

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


IDENTITY = ProcessIdentity(run_id="r", process="p", shard="0/1", slices="0", log="ab")
TTL_S = 15.0


class Endpoint:
    """What is left alone when it asks for that."""

    name = "e"

    def pause(self, until: float) -> None:
        del until


def _holder() -> tuple[LeaseHolder, LeasedCredit]:
    lines: list[bytes] = []
    holder = LeaseHolder(IDENTITY, token="", wake=lambda: None, on_line=lines.append)
    requests, _ = holder.gates(Endpoint(), "m", rpm=60.0, tpm=None)
    assert requests.bucket is not None
    return holder, requests.bucket


@pytest.mark.parametrize("broker_s", [-500.0, 0.0, 1e6])
def test_a_lease_ends_when_the_broker_says_by_whatever_clock(broker_s: float) -> None:
    """And an answer that was long on its way makes it shorter, never longer."""
    holder, credit = _holder()
    holder.connected(100.0)
    holder.receive(Welcome(now=broker_s, ttl_s=TTL_S), 100.4)
    lease = CreditLease(
        endpoint="e", model="m", requests=3, tokens=0, until=broker_s + 0.75
    )
    holder.receive(lease, 100.5)
    assert credit.expires_at == pytest.approx(100.75)
    assert credit.ready_at(100.74, 3) == 100.74
    assert credit.ready_at(100.76, 1) == math.inf


def test_the_fence_counts_from_when_the_question_was_sent() -> None:
    holder, _ = _holder()
    assert not holder.holds(0.0)
    holder.connected(100.0)
    holder.receive(Welcome(now=0.0, ttl_s=TTL_S), 103.0)
    assert holder.holds(100.0 + TTL_S - 0.01)
    assert not holder.holds(100.0 + TTL_S)
    assert holder.says(107.0, ShardProgress)
    # a second answer to one question is none
    holder.receive(LeaseRenewed(now=1.0), 109.0)
    holder.receive(LeaseRenewed(now=2.0), 120.0)
    assert holder.holds_until == 107.0 + TTL_S


HELLO = Hello(
    token="",
    run_id="r",
    process="a",
    shard="0/2",
    slices="0",
    log="a",
    recorded_pico=0,
    granted_pico=0,
)


def _purse(cap: int, *processes: str, spent: int = 0) -> MoneyPool:
    purse = MoneyPool(cap, spent)
    for name in processes:
        purse.join(msgspec.structs.replace(HELLO, process=name, log=name))
    return purse


def test_what_is_lent_ahead_is_a_part_of_what_is_left() -> None:
    purse = _purse(1000, "a", "b", spent=200)
    assert purse.ask("a", RequestMoney(need_pico=10, want_pico=10_000)) == 200
    assert purse.ask("b", RequestMoney(need_pico=10, want_pico=40)) == 40
    assert purse.taken_pico == 440


def test_who_finds_too_little_waits_for_what_others_hold() -> None:
    purse = _purse(100, "a", "b")
    assert purse.ask("a", RequestMoney(need_pico=80, want_pico=0)) == 80
    assert purse.ask("b", RequestMoney(need_pico=30, want_pico=0)) is None
    assert list(purse.lend()) == []
    purse.take_back("a", 10, 70)
    assert list(purse.lend()) == [MoneyLoan(process="b", pico=30)]


def test_who_needs_little_does_not_overtake_who_waits_for_more() -> None:
    purse = _purse(100, "a", "b", "c")
    purse.ask("a", RequestMoney(need_pico=80, want_pico=0))
    purse.ask("b", RequestMoney(need_pico=30, want_pico=0))
    assert purse.ask("c", RequestMoney(need_pico=10, want_pico=0)) is None
    purse.take_back("a", 15, 60)
    assert list(purse.lend()) == [MoneyLoan(process="b", pico=30)]
    purse.take_back("a", 5, 60)
    assert list(purse.lend()) == [MoneyLoan(process="c", pico=10)]


def test_a_call_is_refused_once_not_even_all_that_may_come_back_pays_for_it() -> None:
    purse = _purse(100, "a", "b")
    purse.ask("a", RequestMoney(need_pico=80, want_pico=0))
    purse.ask("b", RequestMoney(need_pico=30, want_pico=0))
    purse.record_spent("a", 70)
    assert list(purse.lend()) == []
    purse.record_spent("a", 71)
    assert list(purse.lend()) == [MoneyLoan(process="b", pico=None)]


def test_what_a_silent_shard_was_lent_counts_as_spent() -> None:
    purse = _purse(100, "a", "b")
    purse.ask("a", RequestMoney(need_pico=80, want_pico=0))
    purse.ask("b", RequestMoney(need_pico=30, want_pico=0))
    purse.presume_spent("a")
    assert purse.taken_pico == 80
    assert list(purse.lend()) == [MoneyLoan(process="b", pico=None)]


def test_the_next_process_of_a_log_brings_what_the_one_before_did_not_spend() -> None:
    purse = _purse(100, "a")
    purse.ask("a", RequestMoney(need_pico=80, want_pico=0))
    purse.presume_spent("a")
    after = msgspec.structs.replace(HELLO, process="a2", log="a", recorded_pico=25)
    purse.join(after)
    assert purse.taken_pico == 25


def test_what_an_earlier_broker_lent_counts_in_full() -> None:
    purse = MoneyPool(100, 10)
    purse.join(msgspec.structs.replace(HELLO, granted_pico=60))
    assert purse.taken_pico == 70


FIRST = Hello(
    token="",
    run_id="r",
    process="a",
    shard="0/2",
    slices="0-511",
    log="one",
    recorded_pico=0,
    granted_pico=0,
)


def _other(**changed: object) -> Hello:
    return msgspec.structs.replace(FIRST, process="b", **changed)


def _refused(hello: Hello, at: float) -> ShardRefused | None:
    roll = Membership("r", TTL_S)
    assert roll.join(FIRST, 0.0) is None
    list(roll.falls_silent(at))
    return roll.join(hello, at)


def test_slices_belong_to_one_process_until_its_lease_has_run_out() -> None:
    taken = _refused(_other(log="two", slices="511-600"), 3.0)
    assert taken is not None
    assert taken.for_s >= TTL_S - 3.0
    assert _refused(_other(log="two", slices="512-1023"), 3.0) is None
    assert _refused(_other(log="two"), TTL_S) is None


def test_whoever_goes_on_with_a_log_takes_the_place_of_the_one_before() -> None:
    assert _refused(_other(), 3.0) is None


def test_a_process_comes_back_while_its_lease_runs_and_not_later() -> None:
    assert _refused(FIRST, TTL_S - 1.0) is None
    late = _refused(FIRST, TTL_S)
    assert late is not None
    assert late.for_s == 0.0


def test_another_run_and_slices_that_are_none_are_refused_for_good() -> None:
    for said in (_other(run_id="s"), _other(slices="0-1024")):
        refused = _refused(said, 100.0)
        assert refused is not None
        assert refused.for_s == 0.0


def test_a_process_that_speaks_is_not_silent() -> None:
    roll = Membership("r", TTL_S)
    roll.join(FIRST, 0.0)
    member = roll.get("a")
    assert member is not None
    member.renewed_at = 10.0
    assert list(roll.falls_silent(24.9)) == []
    assert roll.next_silent_at == 25.0
    assert list(roll.falls_silent(25.0)) == ["a"]
    assert roll.alive() == []
    assert not roll.processes(30.0)[0].is_alive
    assert roll.processes(30.0)[0].silent_s == 20.0
