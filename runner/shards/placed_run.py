"""Drives a run whose shards are placed by an engine, until all have ended.

The driver makes no calls and writes no event: it lends limits and money to the shards
(`runner.shards.broker`), places and restarts them through an engine, keeps their union
current, and relays commands. When it dies, its shards finish their calls and end;
another driver continues from their logs.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, assert_never

from runner.clients.client import HTTP
from runner.engine.background import obey_signals, run_alongside
from runner.engine.failure_policy import GO_ON
from runner.errors import RunnerError, UsageError
from runner.limits.limiter import Limits
from runner.money.prices import prices_of
from runner.options import RunOptions, toml_of, write_toml
from runner.registry import job_word
from runner.roles import assigned
from runner.run.context import RunContext
from runner.run.end import REASON, RunOutcome, cancelled
from runner.shards.broker import Broker, BrokerServer, serve_broker
from runner.shards.engines import (
    EngineName,
    PlacedRunStatus,
    Placement,
    ProcessEngine,
    ShardEngine,
    ShardSpec,
    ShowPlacedRun,
)
from runner.shards.lease_protocol import VARIABLE
from runner.shards.placed_tasks import (
    CommandRelay,
    EarlierProgress,
    ShardPlacer,
    UnionRefresher,
    earlier_progress,
)
from runner.shards.ray_engine import RayEngine
from runner.shards.shipping import check_place
from runner.shards.supervisor import RestartPolicy, ShardVerdict, Supervisor
from runner.workload import Workload
from store.clock import Clock
from store.database import WriterLock, open_reader
from store.errors import LogBusy
from store.read.live import union_progress
from store.runs import RunFolder, add_place
from store.segments.place import Place
from store.task import pico, usd

POLL_S: Final = 0.25


def check_split(folder: RunFolder) -> None:
    """Raise `UsageError` if the run has one log, which shards would not read."""
    folder.refresh()
    if not folder.log.exists():
        return
    with open_reader(folder.log) as reader:
        if union_progress(reader) is None:
            raise UsageError(
                f"Run {folder.run_id} is not split, and cannot be split "
                f"now; continue with siftlog resume {folder.run_id} without "
                "--engine."
            )


@contextmanager
def exclusive_driver(folder: RunFolder) -> Iterator[None]:
    """Hold the run's driver lock: one process keeps limits and money."""
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


async def wait_for_orphans(
    folder: RunFolder, clock: Clock, notify: Callable[[str], None], longest_s: float
) -> None:
    """Wait for the shards of a driver that died; they end by themselves.

    Raises:
        RunnerError: they do not end in time.
    """
    until = clock.monotonic() + longest_s
    if folder.is_written():
        notify("Shards of an earlier process still finish their calls.")
    while folder.is_written() and clock.monotonic() < until:
        await clock.sleep_until(clock.monotonic() + POLL_S)
    if folder.is_written():
        raise RunnerError(
            f"Shards of run {folder.run_id} were started by another "
            "process and are still running: wait until they end, or "
            f"stop them with siftlog drain {folder.run_id}."
        )


def _inherited(context: RunContext) -> dict[str, str]:
    """Return the variables beside the token that a shard needs as this process does."""
    return {n: v for n, v in context.environment.items() if n == HTTP}


def open_engine(
    name: EngineName,
    environment: Mapping[str, str],
    *,
    shards: int,
    address: str | None,
) -> ShardEngine:
    """Open an engine by name.

    Args:
        name: its name.
        environment: values of the variables passed to shards.
        shards: maximum number of shards placed at a time.
        address: address of its cluster, if it has one.

    Raises:
        RunnerError: it is not installed, or its cluster cannot be joined.
    """
    match name:
        case "processes":
            return ProcessEngine(environment)
        case "ray":
            return RayEngine(environment, shards=shards, address=address)
        case _:
            assert_never(name)


LATE_S: Final = 5.0
"""Margin for the end of a process after its lease and the grace for its calls."""


async def drive(
    folder: RunFolder,
    work: Workload,
    options: RunOptions,
    context: RunContext,
    *,
    placement: Placement,
    show: ShowPlacedRun,
    startup_limits: Collection[str] = (),
) -> RunOutcome:
    """Start or continue a run until its shards have ended.

    Args:
        folder: the run's folder.
        work: its job, settings and data.
        options: run options of the whole run.
        context: context of the run.
        placement: how it is split and placed.
        show: displays its status.
        startup_limits: names of limits given for this process; earlier commands about
            them do not apply.

    Raises:
        UsageError: a price is missing, the run is not split, or its logs could not be
            merged.
        RunnerError: another process drives it, or no shard could start.
        PlaceAway: the place for shipped logs is unreachable.
    """
    prices_of(assigned(work.job, options).all_models, options)
    if placement.ship is not None:
        place = Place.of(placement.ship)
        await asyncio.to_thread(check_place, place, folder.run_id)
    folder.path.mkdir(parents=True, exist_ok=True)
    if placement.ship is not None:
        add_place(folder.places, placement.ship)
    check_split(folder)
    fence_s = placement.ttl_s + options.grace_s + LATE_S
    with exclusive_driver(folder):
        await wait_for_orphans(folder, context.clock, context.notify, fence_s)
        token = secrets.token_urlsafe()
        engine = await asyncio.to_thread(
            open_engine,
            placement.engine,
            {VARIABLE: token} | _inherited(context),
            shards=placement.shards,
            address=placement.address,
        )
        try:
            if engine.is_spread and placement.ship is None:
                raise UsageError(
                    "The shards keep their logs on the machines of the cluster: name "
                    "with --ship DIR|URL where these come together."
                )
            # their logs may be on other machines
            settings = work.settings.model_dump(mode="json")
            write_toml(
                folder.config, job=work.job.name, options=options, settings=settings
            )
            driven = _Drive(
                folder=folder,
                work=work,
                options=options,
                context=context,
                placement=placement,
                engine=engine,
                union=UnionRefresher(folder, context),
                startup_limits=startup_limits,
            )
            return await driven.carry_out(token, fence_s, show)
        finally:
            await asyncio.to_thread(engine.close)


@dataclass(slots=True, kw_only=True)
class _Drive:
    """One driver's work on one run."""

    folder: RunFolder
    work: Workload
    options: RunOptions
    context: RunContext
    placement: Placement
    engine: ShardEngine
    union: UnionRefresher
    startup_limits: Collection[str]  #: limits given for this process

    async def carry_out(
        self, token: str, fence_s: float, show: ShowPlacedRun
    ) -> RunOutcome:
        """Place the shards, and continue until all have ended."""
        past = await asyncio.to_thread(earlier_progress, self.folder)
        limits = self._limits(past)
        money, cap_pico = past.money, past.money.cap_pico
        if self.options.budget is not None:
            cap_pico = pico(self.options.budget)
        broker = Broker(
            run_id=self.folder.run_id,
            limits=limits,
            budget_pico=cap_pico,
            # the possible spending of earlier processes is not lent again
            spent_pico=money.spent_pico + money.possible_pico + money.in_flight_pico,
            ttl_s=self.placement.ttl_s,
        )
        supervisor = Supervisor(self.placement.shards, RestartPolicy(fence_s=fence_s))
        async with serve_broker(
            broker, host=self.engine.host, token=token, clock=self.context.clock
        ) as server:
            foreman = ShardPlacer(
                specs=self._specs(server.address, cap_pico),
                engine=self.engine,
                supervisor=supervisor,
                silence=lambda: _silence(server),
                revoke=server.revoke,
                clock=self.context.clock,
                notify=self.context.notify,
            )
            relay = CommandRelay(
                folder=self.folder,
                server=server,
                close=foreman.close,
                limits=limits,
            )
            relay.take_up(past.waiting)
            obey_signals(foreman, self.context.notify)
            async with (
                show(lambda: self._run_status(server, supervisor)),
                run_alongside(self.union.keep()),
            ):
                await foreman.work(relay.listen)
                await self.union.refresh(to_the_end=True)
        return self._ended(supervisor)

    def _limits(self, past: EarlierProgress) -> dict[str, Limits]:
        """Return the user's limits for all shards together, by model."""
        whole = self.options.model_copy(update={"rate_share": 1})
        models = assigned(self.work.job, whole).all_models
        limits = {model: whole.limits_of(model) for model in models}
        for change in (change.without(self.startup_limits) for change in past.limits):
            for model in filter(change.concerns, models):
                limits[model] = change.applied_to(limits[model])
        return limits

    def _specs(self, address: str, cap_pico: int | None) -> list[ShardSpec]:
        """Return all shards, with the options of the whole run."""
        placement, run_id = self.placement, self.folder.run_id
        here = self.folder.path.parent.absolute()
        cap_usd = None if cap_pico is None else usd(cap_pico)
        config = toml_of(
            job=self.work.job.name,
            options=self.options.model_copy(update={"budget": cap_usd}),
            settings=self.work.settings.model_dump(mode="json"),
        )
        words = [
            *(
                "run",
                job_word(self.work.job),
                f"--run-id={run_id}",
                f"--runs-dir={here}",
            ),
            f"--broker={address}",
            f"--rate-share={placement.shards}",
        ]
        if placement.ship is not None:
            words.append(f"--ship={placement.ship}")
            words.append(f"--ship-every={placement.ship_every_s}")
        if placement.accept_loss:
            words.append("--accept-loss")
        return [
            ShardSpec(
                run_id=run_id,
                index=index,
                count=placement.shards,
                words=(*words, f"--shard={index}/{placement.shards}"),
                config=config,
                environment=(VARIABLE, *_inherited(self.context)),
                runs_dir=here,
                local_dir=placement.local_dir,
            )
            for index in range(placement.shards)
        ]

    def _run_status(
        self, server: BrokerServer, supervisor: Supervisor
    ) -> PlacedRunStatus:
        alive = [record for record in server.processes() if record.is_alive]
        return PlacedRunStatus(
            status=self.union.status,
            at_work=len(alive),
            shards=supervisor.count,
            restarts=supervisor.restarts,
            in_flight=sum(record.figures.in_flight for record in alive),
        )

    def _ended(self, supervisor: Supervisor) -> RunOutcome:
        """Combine the outcomes of all shards; the worst one decides."""
        for shard in supervisor.shards:
            if shard.verdict is ShardVerdict.GIVEN_UP:
                last_line = shard.last_line.removeprefix("siftlog: ")
                name = f"{shard.index}/{supervisor.count}"
                reason = f"Shard {name} was given up; its last line: {last_line}"
                if self.union.status is None:
                    raise RunnerError(reason)
                return RunOutcome(outcome="given up", reason=reason)
        verdicts = {shard.verdict for shard in supervisor.shards}
        run_id = self.folder.run_id
        go_on = f"continue with: siftlog resume {run_id} {self.placement.words}"
        futile = next(
            (s for s in supervisor.shards if s.verdict is ShardVerdict.FUTILE), None
        )
        if futile is not None and ShardVerdict.INTERRUPTED not in verdicts:
            reason = futile.last_line.partition("; continue")[0]
            name = f"{futile.index}/{supervisor.count}"
            return RunOutcome(
                outcome="futility", reason=f"Shard {name}: {reason}; {go_on} {GO_ON}"
            )
        if ShardVerdict.INTERRUPTED in verdicts:
            seen = self.union.status
            if seen is None:
                raise RunnerError(f"Ended before a shard had started; {go_on}")
            if seen.signs.phase == "run_cancelled":
                return cancelled(run_id, seen.skips.get(REASON, 0))
            return RunOutcome(outcome="drained", reason=f"Interrupted; {go_on}")
        if ShardVerdict.BUDGET in verdicts:
            return RunOutcome(
                outcome="budget", reason=f"The budget is spent; {go_on} --budget USD"
            )
        return RunOutcome(outcome="finished")


def _silence(server: BrokerServer) -> dict[int, float]:
    """Return the seconds since the last message of each shard."""
    silence_s: dict[int, float] = {}
    for record in server.processes():
        index = int(record.shard.partition("/")[0])
        silence_s[index] = min(record.silent_s, silence_s.get(index, record.silent_s))
    return silence_s
