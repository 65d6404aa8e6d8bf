"""Drives a run whose shards are placed by an engine, until each has ended for good.

The driver makes no calls and writes no event: it lends limits and money to the shards
(`runner.leasing`), has them placed and placed again, keeps their union fresh, and hands
on what people ask of the run. When it dies, its shards finish their calls and end;
another driver goes on with what they recorded.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from runner.control.ending import Ended
from runner.control.signals import obey_signals
from runner.engine.beside import beside
from runner.errors import RunnerError
from runner.launching.launch import check_alive
from runner.launching.shell import Shell
from runner.leasing.broker import Broker
from runner.leasing.serving import Server, serving
from runner.leasing.terms import TTL_S
from runner.leasing.wire import VARIABLE
from runner.limits.limiter import Limits
from runner.options import RunOptions, toml_of
from runner.placing.engine import Engine, Name
from runner.placing.engines import open_engine
from runner.placing.foreman import Foreman
from runner.placing.relaying import Relay
from runner.placing.spec import ShardSpec
from runner.placing.supervisor import Policy, Supervisor, Verdict
from runner.roles import assigned
from runner.work import Work
from store.errors import LogBusy
from store.lock import WriterLock
from store.runs import RunFolder
from store.task import pico
from store.views import Status, open_reader, spending, status

REFRESH_S: Final = 1.0
"""Between two looks at the shards' logs: monitors see a run about as late."""

FIRST_S: Final = 0.1
"""While there is nothing to be seen yet, or somebody else is merging."""

LATE_S: Final = 5.0
"""From the end of a lease and of the grace for its calls to the end of its process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Into how many shards a run is split, and how these are placed."""

    engine: Name
    shards: int
    address: str | None = None  #: of the engine's cluster
    ttl_s: float = TTL_S  #: for how long a shard may be silent
    words: tuple[str, ...] = ()  #: further words of every shard's command
    local_dir: Path | None = None  #: of a disk that each shard has to itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """How a run that is placed gets on."""

    status: Status | None  #: of the union; None: no shard has written yet
    at_work: int  #: shards that were not silent of late
    shards: int
    restarts: int
    in_flight: int  #: calls


Show: TypeAlias = Callable[[Callable[[], Stand]], AbstractAsyncContextManager[None]]
"""Shows how a run stands, inside an async context."""


async def drive(
    folder: RunFolder,
    work: Work,
    options: RunOptions,
    shell: Shell,
    *,
    placement: Placement,
    show: Show,
) -> Ended:
    """Begin a run, or go on with it, until its shards have ended.

    Args:
        folder: the run's.
        work: its job, settings and data.
        options: how calls are sent, of the whole run.
        shell: what surrounds it.
        placement: how it is split.
        show: shows how it stands meanwhile.

    Raises:
        RunnerError: another process drives it, or no shard could begin.
    """
    folder.path.mkdir(parents=True, exist_ok=True)
    fence_s = placement.ttl_s + options.grace_s + LATE_S
    with _alone(folder):
        await _outlive(folder, shell, fence_s)
        token = secrets.token_urlsafe()
        engine = await asyncio.to_thread(
            open_engine,
            placement.engine,
            {VARIABLE: token},
            shards=placement.shards,
            address=placement.address,
        )
        try:
            driven = _Drive(
                folder=folder,
                work=work,
                options=options,
                shell=shell,
                placement=placement,
                engine=engine,
            )
            return await driven.carry_out(token, fence_s, show)
        finally:
            await asyncio.to_thread(engine.close)


@contextmanager
def _alone(folder: RunFolder) -> Iterator[None]:
    """Drive a run alone while the body runs: limits and money are kept by one."""
    lock = WriterLock(folder.driver_lock)
    try:
        lock.acquire()
    except LogBusy as error:
        raise RunnerError(
            f"Another process places the shards of run {folder.run_id}; watch it with "
            f"siftlog status {folder.run_id}."
        ) from error
    try:
        yield
    finally:
        lock.release()


async def _outlive(folder: RunFolder, shell: Shell, fence_s: float) -> None:
    """Wait for the shards of a driver that died; they end by themselves.

    Raises:
        RunnerError: they are at work for another reason.
    """
    clock = shell.clock
    until = clock.monotonic() + fence_s
    if folder.is_alive():
        shell.tell("Shards of an earlier process still finish their calls.")
    while folder.is_alive() and clock.monotonic() < until:
        await clock.sleep_until(clock.monotonic() + REFRESH_S / 4)
    check_alive(folder)


@dataclass(slots=True, kw_only=True)
class _Drive:
    """One driver's work on one run."""

    folder: RunFolder
    work: Work
    options: RunOptions
    shell: Shell
    placement: Placement
    engine: Engine
    seen: Status | None = None  #: the union, as it was last looked at
    merging: threading.Lock = field(default_factory=threading.Lock)

    async def carry_out(self, token: str, fence_s: float, show: Show) -> Ended:
        limits = self._limits()
        supervisor = Supervisor(self.placement.shards, Policy(fence_s=fence_s))
        broker = await asyncio.to_thread(self._broker, limits)
        async with serving(
            broker, host=self.engine.host, token=token, clock=self.shell.clock
        ) as server:
            foreman = Foreman(
                specs=self._specs(server.address),
                engine=self.engine,
                supervisor=supervisor,
                silence=lambda: _silence(server),
                clock=self.shell.clock,
                tell=self.shell.tell,
            )
            relay = Relay(
                folder=self.folder,
                server=server,
                foreman=foreman,
                limits=limits,
                clock=self.shell.clock,
            )
            relay.pass_over()
            obey_signals(foreman, self.shell.tell)
            async with (
                show(lambda: self._stand(server, supervisor)),
                beside(relay.listen()),
                beside(self._refresh()),
            ):
                await foreman.work()
                await self._look(to_the_end=True)
        return self._ended(supervisor)

    def _limits(self) -> dict[str, Limits]:
        """What a person set for all shards together, by model."""
        models = assigned(self.work.job, self.options).all_models
        return {model: self.options.limits_of(model) for model in models}

    def _broker(self, limits: dict[str, Limits]) -> Broker:
        """Whoever lends; what earlier processes have spent is not lent again."""
        cap, spent = self.options.budget, 0
        if self.folder.log.exists():
            with open_reader(self.folder.log) as reader:
                money = spending(reader)
            cap = money.cap_usd if cap is None else cap
            spent = money.spent_pico + money.possible_pico + money.in_flight_pico
        return Broker(
            run_id=self.folder.run_id,
            limits=limits,
            budget_pico=None if cap is None else pico(cap),
            spent_pico=spent,
            ttl_s=self.placement.ttl_s,
        )

    def _specs(self, address: str) -> list[ShardSpec]:
        placement, run_id = self.placement, self.folder.run_id
        runs_dir = self.folder.path.parent.absolute()
        config = toml_of(
            job=self.work.job.name,
            options=self.options,
            settings=self.work.settings.model_dump(mode="json"),
        )
        return [
            ShardSpec(
                run_id=run_id,
                index=index,
                count=placement.shards,
                words=(
                    *("run", self.work.job.name, f"--run-id={run_id}"),
                    f"--runs-dir={runs_dir}",
                    f"--shard={index}/{placement.shards}",
                    f"--rate-share={placement.shards}",
                    f"--broker={address}",
                    *placement.words,
                ),
                config=config,
                environment=(VARIABLE,),
                folder=(placement.local_dir or runs_dir) / run_id,
            )
            for index in range(placement.shards)
        ]

    async def _refresh(self) -> None:
        """Keep the union fresh, for ever."""
        clock = self.shell.clock
        while True:
            pause = FIRST_S if self.seen is None else REFRESH_S
            await clock.sleep_until(clock.monotonic() + pause)
            await self._look()

    async def _look(self, *, to_the_end: bool = False) -> None:
        """Take in what the shards have written, and see how the run stands."""
        was_there = self.seen is not None
        self.seen = await asyncio.to_thread(self._merged, to_the_end=to_the_end)
        if self.seen is not None and not was_there:
            self.shell.launched()

    def _merged(self, *, to_the_end: bool) -> Status | None:
        folder = self.folder
        # a look that was given up goes on in its thread
        with self.merging:
            while folder.refresh() is None and to_the_end and folder.shards():
                time.sleep(FIRST_S)  # whoever else is merging may have begun before
        if not folder.log.exists():
            return None
        with open_reader(folder.log) as reader:
            return status(reader)

    def _stand(self, server: Server, supervisor: Supervisor) -> Stand:
        seen = [one for one in server.seen() if one.is_alive]
        return Stand(
            status=self.seen,
            at_work=len(seen),
            shards=supervisor.count,
            restarts=supervisor.restarts,
            in_flight=sum(one.figures.in_flight for one in seen),
        )

    def _ended(self, supervisor: Supervisor) -> Ended:
        """What the ends of all shards come to; the worst of them counts."""
        for shard in supervisor.shards:
            if shard.verdict is Verdict.GIVEN_UP:
                said = shard.said.removeprefix("siftlog: ")
                name = f"{shard.index}/{supervisor.count}"
                why = f"Shard {name} was given up; it had said: {said}"
                if self.seen is None:
                    raise RunnerError(why)
                return Ended(outcome="given up", why=why)
        verdicts = {shard.verdict for shard in supervisor.shards}
        run_id = self.folder.run_id
        go_on = (
            f"go on with: siftlog resume {run_id} --engine {self.placement.engine} "
            f"--shards {self.placement.shards}"
        )
        if Verdict.INTERRUPTED in verdicts:
            if self.seen is None:
                raise RunnerError(f"Ended before a shard had begun; {go_on}")
            return Ended(outcome="drained", why=f"Interrupted; {go_on}")
        if Verdict.BUDGET in verdicts:
            return Ended(
                outcome="budget", why=f"The budget is spent; {go_on} --budget USD"
            )
        return Ended(outcome="finished")


def _silence(server: Server) -> dict[int, float]:
    """Seconds since a process of each shard was heard."""
    found: dict[int, float] = {}
    for seen in server.seen():
        index = int(seen.shard.partition("/")[0])
        found[index] = min(seen.silent_s, found.get(index, seen.silent_s))
    return found
