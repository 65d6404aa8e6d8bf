"""What the broker says to whom: turns, pauses, limits and what is relayed.

Broker and shards on loopback sockets, in virtual time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field

import msgspec
import pytest

from runner.errors import RunnerError
from runner.limits.limiter import Endpoint, Limits
from runner.money.budget import Budget, BudgetStatistics
from runner.shards.broker import Broker, BrokerServer, serve_broker
from runner.shards.lease_client import LeaseClient, LeaseHolder, ProcessIdentity
from runner.shards.lease_protocol import (
    LONGEST_LINE,
    TTL_S,
    BrokerMessage,
    ControlLine,
    CreditLease,
    EndpointPaused,
    HeaderLimitSeen,
    Hello,
    LeaseRenewed,
    RenewLease,
    RequestCredit,
    ReturnCredit,
    ShardProgress,
    ShardRefused,
    Welcome,
)
from tests.runner.toy_jobs import LoopClock, run_virtual

RPM = 6000


def _broker(*names: str, rpm: float | None = RPM) -> Broker:
    broker = Broker(run_id="r", limits={"m": Limits(concurrency=9, rpm=rpm)})
    for i, name in enumerate(names):
        assert broker.join(_hello(name, slices=str(i)), 0.0) is None
        # the model is heard of, and its bucket begins to fill
        broker.receive(name, ReturnCredit(endpoint="e", model="m"), 0.0)
    broker.step(0.0)
    return broker


def _hello(name: str, *, slices: str = "0") -> Hello:
    return Hello(
        token="",
        run_id="r",
        process=name,
        shard="0/1",
        slices=slices,
        log=name,
        recorded_pico=0,
        granted_pico=0,
    )


def _ask(requests: int) -> RequestCredit:
    return RequestCredit(endpoint="e", model="m", requests=requests)


def _leases(broker: Broker, now: float) -> list[tuple[str, int]]:
    said = broker.step(now).say
    return [
        (name, message.requests)
        for name, messages in said.items()
        for message in messages
        if isinstance(message, CreditLease)
    ]


def _said(broker: Broker, now: float, name: str) -> list[BrokerMessage]:
    return broker.step(now).say.get(name, [])


def test_a_broker_begins_with_nothing_to_lend_for_another_may_have_lent_it() -> None:
    broker = _broker("a")
    broker.receive("a", _ask(10), 0.0)
    assert _leases(broker, 0.0) == []
    when = broker.step(0.0).wake_at
    assert when is not None
    assert _leases(broker, when) == [("a", 10)]


def test_whoever_wants_much_waits_for_the_others_turn() -> None:
    broker = _broker("a", "b")
    got: list[str] = []
    now = 10.0
    for name in ("a", "b"):
        broker.receive(name, _ask(1000), now)
    for _ in range(40):
        for name, _requests in _leases(broker, now):
            got.append(name)
            broker.receive(name, _ask(1000), now)
        now = broker.step(now).wake_at or now
    assert abs(got.count("a") - got.count("b")) <= 1


def test_the_next_process_of_a_log_takes_the_place_of_the_one_before() -> None:
    broker = _broker("a", "b")
    broker.receive("a", _ask(10), 0.0)
    after = msgspec.structs.replace(_hello("a2"), log="a")
    assert broker.join(after, 1.0) is None
    assert [seen.process for seen in broker.processes(1.0)] == ["b", "a2"]
    # nor is anything lent to who is gone
    assert _leases(broker, 30.0) == []


def test_a_model_without_a_limit_is_lent_whatever_is_asked() -> None:
    broker = _broker("a", rpm=None)
    broker.receive("a", _ask(1000), 0.0)
    assert _leases(broker, 0.0) == [("a", 1000)]


def test_what_comes_back_is_lent_to_the_others() -> None:
    broker = _broker("a", "b")
    broker.receive("a", _ask(15), 10.0)
    broker.receive("b", _ask(15), 10.0)
    assert _leases(broker, 10.0) == [("a", 15)]
    broker.receive("a", ReturnCredit(endpoint="e", model="m", requests=15), 10.0)
    assert _leases(broker, 10.0) == [("b", 15)]


def test_an_endpoint_that_asks_one_shard_to_wait_is_left_alone_by_all() -> None:
    broker = _broker("a", "b")
    waits = EndpointPaused(endpoint="e", for_s=10.0)
    broker.receive("a", waits, 10.0)
    assert _said(broker, 10.0, "b") == [waits]
    broker.receive(
        "b", EndpointPaused(endpoint="e", for_s=5.0), 11.0
    )  # it says nothing new
    assert _said(broker, 11.0, "a") == []
    broker.receive("b", _ask(5), 12.0)
    assert _leases(broker, 19.9) == []
    assert _leases(broker, 20.0) == [("b", 5)]


@pytest.mark.parametrize("lower", ["by hand", "told"])
def test_a_lower_limit_holds_for_all_from_then_on(lower: str) -> None:
    broker = _broker("a")
    broker.receive("a", _ask(1), 10.0)
    assert _leases(broker, 10.0) == [("a", 1)]
    if lower == "by hand":
        broker.set_limits("m", Limits(concurrency=9, rpm=60), 10.0)
    else:
        told = HeaderLimitSeen(
            endpoint="e", model="m", kind="requests", per_minute=60.0
        )
        broker.receive("a", told, 10.0)
    broker.receive("a", _ask(100), 10.0)
    assert _leases(broker, 10.9) == []
    assert _leases(broker, 11.1) == [("a", 1)]


def test_a_silent_shard_is_lent_nothing_and_told_nothing() -> None:
    broker = _broker("a", "b")
    broker.receive("a", _ask(5), 0.0)
    broker.set_limits("m", Limits(concurrency=9, rpm=0.001), 0.0)
    broker.receive("b", _ask(0), TTL_S)
    assert [each.is_alive for each in broker.processes(TTL_S)] == [True, True]
    broker.step(TTL_S)
    assert [each.is_alive for each in broker.processes(TTL_S)] == [False, True]
    broker.relay(b"line")
    assert broker.step(TTL_S).say == {"b": [ControlLine(line=b"line")]}


def test_a_shard_whose_lease_is_revoked_asks_in_vain_until_its_part_is_free() -> None:
    broker = _broker("a")
    renew = RenewLease(figures=ShardProgress())
    broker.receive("a", renew, 1.0)
    assert _said(broker, 1.0, "a") == [LeaseRenewed(now=1.0)]
    broker.revoke("0/1")
    broker.receive("a", renew, 2.0)
    assert "a" not in broker.step(2.0).say
    another = msgspec.structs.replace(_hello("b"), slices="0")
    assert isinstance(broker.join(another, TTL_S), ShardRefused)
    broker.step(1.0 + TTL_S)
    assert broker.join(another, 1.0 + TTL_S) is None
    broker.receive("b", renew, 2.0 + TTL_S)
    assert LeaseRenewed(now=2.0 + TTL_S) in _said(broker, 2.0 + TTL_S, "b")


def test_a_shard_that_comes_later_hears_what_was_relayed() -> None:
    broker = _broker()
    broker.relay(b"line")
    assert broker.join(_hello("a"), 0.0) is None
    welcome, line = _said(broker, 0.0, "a")
    assert isinstance(welcome, Welcome)
    assert line == ControlLine(line=b"line")


def test_a_process_that_is_not_of_the_run_is_refused() -> None:
    refused = Broker(run_id="other", limits={}).join(_hello("a"), 0.0)
    assert isinstance(refused, ShardRefused)


KNOWN, GUESSED = "open sesame", "open barley"
LIMITS = Limits(concurrency=9, rpm=6000)
CLOCK = LoopClock()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Course:
    tasks_ended: int = 5
    in_flight: int = 2
    budget: BudgetStatistics = field(default_factory=Budget().statistics)


class _Worker:
    """A driver that only counts."""

    def __init__(self) -> None:
        self.looks = 0
        self.drained_at: float | None = None

    def statistics(self) -> _Course:
        return _Course()

    def recheck(self) -> None:
        self.looks += 1

    def drain(self) -> None:
        self.drained_at = CLOCK.monotonic()


class _Shard:
    """A shard's side, with all that the broker told it."""

    def __init__(
        self, server: BrokerServer, *, token: str = KNOWN, name: str = "a"
    ) -> None:
        self.said: list[str] = []
        self.lines: list[bytes] = []
        wake = asyncio.Event()
        identity = ProcessIdentity(
            run_id="r", process=name, shard="0/2", slices="0-511", log=name
        )
        self.holder = LeaseHolder(
            identity, token=token, wake=wake.set, on_line=self.lines.append
        )
        host, _, port = server.address.rpartition(":")
        self.worker = _Worker()
        self.lessee = LeaseClient(
            self.holder,
            (host, int(port)),
            clock=CLOCK,
            wake=wake,
            notify=self.said.append,
        )


def _serving_broker() -> Broker:
    return Broker(run_id="r", limits={"m": LIMITS})


def _served(body: Callable[[BrokerServer], Awaitable[None]]) -> None:
    async def main() -> None:
        async with serve_broker(_serving_broker(), token=KNOWN, clock=CLOCK) as server:
            await body(server)

    run_virtual(main())


async def _pass(seconds: float) -> None:
    await CLOCK.sleep_until(CLOCK.monotonic() + seconds)


@asynccontextmanager
async def _raw(
    server: BrokerServer,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    host, _, port = server.address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        yield reader, writer
    finally:
        writer.close()


def test_a_shard_is_lent_requests_and_its_figures_are_known() -> None:
    async def body(server: BrokerServer) -> None:
        shard = _Shard(server)
        limiter = Endpoint("e", lender=shard.holder).limiter("m", LIMITS)
        async with shard.lessee.leasing(shard.worker):
            assert limiter.ready_at(CLOCK.monotonic(), 0) is None
            await _pass(0.2)
            assert shard.worker.looks
            assert limiter.ready_at(CLOCK.monotonic(), 0) == CLOCK.monotonic()
            await _pass(2 * TTL_S)
            (seen,) = server.processes()
            assert (seen.shard, seen.figures.final, seen.figures.in_flight) == (
                *("0/2", 5, 2),
            )
            assert seen.is_alive
        await _pass(0.1)
        assert server.processes() == ()  # it said that it ended

    _served(body)


def test_lines_for_its_control_file_reach_a_shard_that_comes_later_too() -> None:
    async def body(server: BrokerServer) -> None:
        server.relay(b"first")
        shard = _Shard(server)
        async with shard.lessee.leasing(shard.worker):
            server.relay(b"second")
            await _pass(0.1)
            assert shard.lines == [b"first", b"second"]

    _served(body)


def test_a_shard_whose_broker_is_gone_sends_nothing_after_its_ttl_and_drains() -> None:
    async def main() -> None:
        async with serve_broker(_serving_broker(), token=KNOWN, clock=CLOCK) as server:
            shard = _Shard(server)
            at_work = AsyncExitStack()
            await at_work.enter_async_context(shard.lessee.leasing(shard.worker))
            await _pass(0.5 * TTL_S)
        gone = CLOCK.monotonic()
        await _pass(0.5 * TTL_S)
        assert shard.holder.holds(CLOCK.monotonic())
        await _pass(TTL_S)
        assert not shard.holder.holds(CLOCK.monotonic())
        assert shard.worker.drained_at is not None
        assert shard.worker.drained_at <= gone + TTL_S + 1.0
        assert shard.lessee.is_fenced
        assert "no further call is sent" in shard.said[0]
        await at_work.aclose()

    run_virtual(main())


def test_a_shard_goes_on_with_the_broker_that_takes_the_place_of_its_own() -> None:
    async def main() -> None:
        async with serve_broker(_serving_broker(), token=KNOWN, clock=CLOCK) as server:
            shard = _Shard(server)
            port = int(server.address.rpartition(":")[2])
            at_work = AsyncExitStack()
            await at_work.enter_async_context(shard.lessee.leasing(shard.worker))
        await _pass(0.5 * TTL_S)
        async with serve_broker(
            _serving_broker(), token=KNOWN, clock=CLOCK, port=port
        ) as server:
            await _pass(2 * TTL_S)
            assert shard.holder.holds(CLOCK.monotonic())
            assert [each.is_alive for each in server.processes()] == [True]
            await at_work.aclose()
        assert shard.worker.drained_at is None

    run_virtual(main())


def test_whoever_does_not_know_the_token_is_not_taken_in() -> None:
    async def body(server: BrokerServer) -> None:
        shard = _Shard(server, token=GUESSED)
        with pytest.raises(RunnerError, match="does not take shard 0/2 in"):
            async with shard.lessee.leasing(shard.worker):
                raise AssertionError
        assert server.processes() == ()

    _served(body)


def test_slices_of_a_silent_process_are_free_once_its_lease_has_run_out() -> None:
    async def body(server: BrokerServer) -> None:
        gone, after = _Shard(server), _Shard(server, name="b")
        with suppress(ZeroDivisionError):
            async with gone.lessee.leasing(gone.worker):
                raise ZeroDivisionError  # it has no time to say that it ends
        began = CLOCK.monotonic()
        async with after.lessee.leasing(after.worker):
            assert CLOCK.monotonic() - began >= TTL_S - 1.0

    _served(body)


@pytest.mark.parametrize(
    "said",
    [
        b"\n",
        b"[]\n",
        b'{"is":"hello"}\n',
        b'[{"is":"renew"}]\n',
        b"[" * 5000 + b"\n",
        b"\xff\xfe\n",
        b"x" * (LONGEST_LINE + 2),
    ],
)
def test_garbage_is_answered_with_silence_and_harms_nobody(said: bytes) -> None:
    async def body(server: BrokerServer) -> None:
        shard = _Shard(server)
        async with (
            shard.lessee.leasing(shard.worker),
            _raw(server) as (reader, writer),
        ):
            writer.write(said)
            with suppress(ConnectionResetError):  # hung up with bytes unread
                assert await reader.read() == b""
            await _pass(2 * TTL_S)
            assert shard.holder.holds(CLOCK.monotonic())

    _served(body)


def test_who_says_nothing_is_let_go() -> None:
    async def body(server: BrokerServer) -> None:
        async with _raw(server) as (reader, _):
            assert await reader.read() == b""

    _served(body)
