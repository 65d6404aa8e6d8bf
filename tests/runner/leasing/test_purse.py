"""The money that is lent: never more than the budget, and none given up too early."""

from __future__ import annotations

import msgspec

from runner.shards.lease_pools import MoneyLoan, MoneyPool
from runner.shards.lease_protocol import Hello, RequestMoney

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
    purse.back("a", 10, 70)
    assert list(purse.lend()) == [MoneyLoan(process="b", pico=30)]


def test_who_needs_little_does_not_overtake_who_waits_for_more() -> None:
    purse = _purse(100, "a", "b", "c")
    purse.ask("a", RequestMoney(need_pico=80, want_pico=0))
    purse.ask("b", RequestMoney(need_pico=30, want_pico=0))
    assert purse.ask("c", RequestMoney(need_pico=10, want_pico=0)) is None
    purse.back("a", 15, 60)
    assert list(purse.lend()) == [MoneyLoan(process="b", pico=30)]
    purse.back("a", 5, 60)
    assert list(purse.lend()) == [MoneyLoan(process="c", pico=10)]


def test_a_call_is_refused_once_not_even_all_that_may_come_back_pays_for_it() -> None:
    purse = _purse(100, "a", "b")
    purse.ask("a", RequestMoney(need_pico=80, want_pico=0))
    purse.ask("b", RequestMoney(need_pico=30, want_pico=0))
    purse.spent("a", 70)
    assert list(purse.lend()) == []
    purse.spent("a", 71)
    assert list(purse.lend()) == [MoneyLoan(process="b", pico=None)]


def test_what_a_silent_shard_was_lent_counts_as_spent() -> None:
    purse = _purse(100, "a", "b")
    purse.ask("a", RequestMoney(need_pico=80, want_pico=0))
    purse.ask("b", RequestMoney(need_pico=30, want_pico=0))
    purse.lost("a")
    assert purse.taken_pico == 80
    assert list(purse.lend()) == [MoneyLoan(process="b", pico=None)]


def test_the_next_process_of_a_log_brings_what_the_one_before_did_not_spend() -> None:
    purse = _purse(100, "a")
    purse.ask("a", RequestMoney(need_pico=80, want_pico=0))
    purse.lost("a")
    after = msgspec.structs.replace(HELLO, process="a2", log="a", recorded_pico=25)
    purse.join(after)
    assert purse.taken_pico == 25


def test_what_an_earlier_broker_lent_counts_in_full() -> None:
    purse = MoneyPool(100, 10)
    purse.join(msgspec.structs.replace(HELLO, granted_pico=60))
    assert purse.taken_pico == 70
