"""Broker and shards on loopback sockets, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field

import pytest

from runner.errors import RunnerError
from runner.limits.limiter import Endpoint, Limits
from runner.money.budget import Budget, BudgetStatistics
from runner.shards.broker import Broker, BrokerServer, serve_broker
from runner.shards.lease_client import LeaseClient, LeaseHolder, ProcessIdentity
from runner.shards.lease_protocol import LONGEST_LINE, TTL_S
from tests.runner.toy_jobs import LoopClock, run_virtual

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

    def look_again(self) -> None:
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


def _broker() -> Broker:
    return Broker(run_id="r", limits={"m": LIMITS})


def _served(body: Callable[[BrokerServer], Awaitable[None]]) -> None:
    async def main() -> None:
        async with serve_broker(_broker(), token=KNOWN, clock=CLOCK) as server:
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
            (seen,) = server.seen()
            assert (seen.shard, seen.figures.final, seen.figures.in_flight) == (
                *("0/2", 5, 2),
            )
            assert seen.is_alive
        await _pass(0.1)
        assert server.seen() == ()  # it said that it ended

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
        async with serve_broker(_broker(), token=KNOWN, clock=CLOCK) as server:
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
        assert "nothing more is sent" in shard.said[0]
        await at_work.aclose()

    run_virtual(main())


def test_a_shard_goes_on_with_the_broker_that_takes_the_place_of_its_own() -> None:
    async def main() -> None:
        async with serve_broker(_broker(), token=KNOWN, clock=CLOCK) as server:
            shard = _Shard(server)
            port = int(server.address.rpartition(":")[2])
            at_work = AsyncExitStack()
            await at_work.enter_async_context(shard.lessee.leasing(shard.worker))
        await _pass(0.5 * TTL_S)
        async with serve_broker(
            _broker(), token=KNOWN, clock=CLOCK, port=port
        ) as server:
            await _pass(2 * TTL_S)
            assert shard.holder.holds(CLOCK.monotonic())
            assert [each.is_alive for each in server.seen()] == [True]
            await at_work.aclose()
        assert shard.worker.drained_at is None

    run_virtual(main())


def test_whoever_does_not_know_the_token_is_not_taken_in() -> None:
    async def body(server: BrokerServer) -> None:
        shard = _Shard(server, token=GUESSED)
        with pytest.raises(RunnerError, match="does not take shard 0/2 in"):
            async with shard.lessee.leasing(shard.worker):
                raise AssertionError
        assert server.seen() == ()

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
