"""Who takes part: one process a slice, and one a log."""

from __future__ import annotations

import msgspec

from runner.shards.lease_pools import Membership
from runner.shards.lease_protocol import Hello, ShardRefused

TTL_S = 15.0
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
    assert not roll.seen(30.0)[0].is_alive
    assert roll.seen(30.0)[0].silent_s == 20.0
