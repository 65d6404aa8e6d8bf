"""What an engine is asked to do, and what a foreman makes of what it tells.

Requests to a run are handed on, and what concerns all of it is done at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import msgspec
import pytest

from runner.errors import RunnerError
from runner.limits.limiter import Limits
from runner.shards.broker import BrokerServer
from runner.shards.engines import LOOPBACK, ExitKind, ShardExit, ShardHandle, ShardSpec
from runner.shards.placed_tasks import CommandRelay, ShardPlacer
from runner.shards.supervisor import RestartPolicy, ShardVerdict, Supervisor
from store.control import Command, Payload, send_command
from store.runs import RunFolder

POLICY = RestartPolicy(fence_s=10, backoff_s=0.5)


class _Scripted:
    """An engine that tells, turn by turn, what a script says."""

    host = LOOPBACK
    is_spread = False

    def __init__(
        self, script: Callable[[_Scripted], Iterator[ShardExit | None]]
    ) -> None:
        self.done: list[str] = []
        self.handles: list[ShardHandle] = []
        self.refuses = 0
        self._turns = script(self)

    def place(self, spec: ShardSpec, *, near: ShardHandle | None = None) -> ShardHandle:
        if self.refuses:
            self.refuses -= 1
            raise RunnerError("there is no room")
        where = "" if near is None else f" near {near.number}"
        self.done.append(f"place {spec.index}{where}")
        self.handles.append(ShardHandle(index=spec.index, number=len(self.handles)))
        return self.handles[-1]

    def wait_any(self, timeout_s: float) -> ShardExit | None:
        del timeout_s
        return next(self._turns)

    def stop(self, handle: ShardHandle, *, at_once: bool) -> None:
        self.done.append(f"{'kill' if at_once else 'drain'} {handle.number}")

    def close(self) -> None:
        pass


class _Clock:
    """Two seconds later at every look."""

    def __init__(self) -> None:
        self._now = 0.0

    def monotonic(self) -> float:
        self._now += 2.0
        return self._now

    def now_us(self) -> int:
        return 0

    async def sleep_until(self, when: float) -> None:
        raise AssertionError(when)


class _Site:
    """A foreman with an engine that goes by a script."""

    def __init__(
        self, shards: int, script: Callable[[_Scripted], Iterator[ShardExit | None]]
    ) -> None:
        self.engine = _Scripted(script)
        self.revoked: list[str] = []
        self.silence: dict[int, float] = {}
        self.supervisor = Supervisor(shards, POLICY)
        self.told: list[str] = []
        self.heard = 0
        self.closes_at = 0
        self.foreman = ShardPlacer(
            specs=[_spec(index, shards) for index in range(shards)],
            engine=self.engine,
            supervisor=self.supervisor,
            silence=lambda: self.silence,
            revoke=self.revoked.append,
            clock=_Clock(),
            notify=self.told.append,
        )

    def listen(self) -> None:
        self.heard += 1
        if self.closes_at == self.heard:
            self.foreman.close()

    def work(self) -> list[str]:
        asyncio.run(self.foreman.work(self.listen))
        return self.engine.done


def _spec(index: int, count: int) -> ShardSpec:
    return ShardSpec(
        run_id="r", index=index, count=count, words=(), config="", runs_dir=Path()
    )


def _exit(
    handle: ShardHandle, how: ExitKind = ExitKind.FINISHED, code: int | None = 0
) -> ShardExit:
    return ShardExit(handle=handle, kind=how, code=code)


def test_a_shard_that_dies_is_placed_near_where_it_was() -> None:
    def script(engine: _Scripted) -> Iterator[ShardExit | None]:
        yield _exit(engine.handles[0], ExitKind.DIED, None)
        yield _exit(engine.handles[1])

    site = _Site(1, script)
    assert site.work() == ["place 0", "place 0 near 0"]
    assert site.told == ["Shard 0/1 died.", "Shard 0/1 is placed again."]


def test_a_silent_shard_is_killed_and_the_end_of_what_it_was_counts_for_nothing() -> (
    None
):
    def script(engine: _Scripted) -> Iterator[ShardExit | None]:
        while len(engine.handles) == 1:
            site.silence = {0: 10.5}
            yield None
        # of the one before, while the next has not said anything
        site.silence = {0: 30.0}
        yield _exit(engine.handles[0], ExitKind.DIED, -9)
        yield _exit(engine.handles[1])

    site = _Site(1, script)
    assert site.work() == ["place 0", "kill 0", "place 0"]
    assert site.revoked == ["0/1"]
    assert site.told[0] == "Shard 0/1 has been silent for too long."
    assert site.supervisor.shards[0].verdict is ShardVerdict.DONE


def test_a_shard_out_of_reach_is_placed_anywhere_once_its_lease_has_run_out() -> None:
    def script(engine: _Scripted) -> Iterator[ShardExit | None]:
        yield _exit(engine.handles[0], ExitKind.UNAVAILABLE, None)
        while len(engine.handles) == 1:
            yield None
        yield _exit(engine.handles[1])

    site = _Site(1, script)
    assert site.work() == ["place 0", "kill 0", "place 0"]
    assert site.revoked == ["0/1"]


def test_what_cannot_be_placed_twice_for_the_same_reason_is_given_up() -> None:
    def script(engine: _Scripted) -> Iterator[ShardExit | None]:
        del engine
        yield from ()

    site = _Site(1, script)
    site.engine.refuses = 2
    assert site.work() == []
    shard = site.supervisor.shards[0]
    assert (shard.verdict, shard.last_line) == (
        ShardVerdict.GIVEN_UP,
        "there is no room",
    )


def test_the_first_signal_drains_every_shard_and_the_second_kills_the_rest() -> None:
    def script(engine: _Scripted) -> Iterator[ShardExit | None]:
        site.foreman.drain()
        yield None
        yield _exit(engine.handles[0], code=5)
        site.foreman.stop()
        yield None
        yield _exit(engine.handles[1], ExitKind.DIED, -9)

    site = _Site(2, script)
    done = site.work()
    assert done == ["place 0", "place 1", "drain 0", "drain 1", "kill 1"]
    verdicts = {shard.verdict for shard in site.supervisor.shards}
    assert verdicts == {ShardVerdict.INTERRUPTED}
    assert not site.told


def test_a_shard_that_ends_for_a_request_is_not_placed_again() -> None:
    def script(engine: _Scripted) -> Iterator[ShardExit | None]:
        yield None
        # it read the request before whoever places it did
        site.closes_at = site.heard + 1
        yield _exit(engine.handles[0], code=5)

    site = _Site(1, script)
    assert site.work() == ["place 0"]


class _Server:
    """Writes down what it is to do."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.limits: dict[str, Limits] = {}
        self.added_pico = 0

    def relay(self, line: bytes) -> None:
        self.lines.append(msgspec.json.decode(line, type=Command).id)

    def set_limits(self, model: str, limits: Limits) -> None:
        self.limits[model] = limits

    def add_budget(self, pico: int) -> None:
        self.added_pico += pico


class _RelayingSite:
    def __init__(self, path: Path) -> None:
        self.folder = RunFolder(path)
        self.server = _Server()
        self.closed = 0
        self.relay = CommandRelay(
            folder=self.folder,
            server=cast("BrokerServer", self.server),
            close=self._close,
            limits={"a": Limits(concurrency=8, rpm=60.0), "b": Limits(concurrency=8)},
        )

    def _close(self) -> None:
        self.closed += 1

    def ask(self, kind: str, payload: Payload | None = None) -> str:
        command = Command.new(kind, payload or {}, at_us=1, expected_state=None)
        send_command(self.folder, command)
        return command.id


@pytest.fixture
def site(tmp_path: Path) -> _RelayingSite:
    return _RelayingSite(tmp_path)


def test_every_request_is_handed_on_once(site: _RelayingSite) -> None:
    asked = [site.ask("pause"), site.ask("resume")]
    site.relay.listen()
    site.relay.listen()
    assert site.server.lines == asked
    assert not site.closed


@pytest.mark.parametrize("kind", ["drain", "cancel"])
def test_a_run_that_is_told_to_end_has_no_shard_placed_any_more(
    site: _RelayingSite, kind: str
) -> None:
    asked = site.ask(kind)
    site.relay.listen()
    assert site.closed == 1
    assert site.server.lines == [asked]


def test_of_what_stood_there_before_only_what_waits_for_an_answer_is_done(
    site: _RelayingSite,
) -> None:
    asked = [site.ask(kind, {"add_usd": 1.0}) for kind in ("drain", "budget", "budget")]
    site.relay.take_up({asked[0], asked[2]})
    site.relay.listen()
    assert site.server.lines == asked
    assert (site.closed, site.server.added_pico) == (0, 1_000_000_000_000)


def test_limits_of_one_model_or_of_all_are_those_of_all_shards_together(
    site: _RelayingSite,
) -> None:
    site.ask("limits", {"model": "a", "tpm": 1000.0})
    site.ask("limits", {"rpm": 120.0})
    site.ask("limits", {"rpm": -1.0})
    site.relay.listen()
    assert site.server.limits == {
        "a": Limits(concurrency=8, rpm=120.0, tpm=1000.0),
        "b": Limits(concurrency=8, rpm=120.0),
    }


def test_money_that_is_added_can_be_lent_and_what_is_no_money_cannot(
    site: _RelayingSite,
) -> None:
    for usd in (0.5, -1.0, "much"):
        site.ask("budget", {"add_usd": usd})
    site.relay.listen()
    assert site.server.added_pico == 500_000_000_000
