"""Ships a shard's log to a place, from its first event to its last, and checks both.

Only processes that use this folder can be detected; the user must keep shards on other
machines apart.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from runner.engine.background import run_alongside
from runner.engine.driver import Driver
from runner.errors import RunnerError, UsageError
from runner.installed import version
from runner.options import RunOptions
from runner.roles import assigned
from runner.run.context import RunContext
from runner.run.end import RunOutcome
from runner.run.resume_checks import check_inputs
from runner.shards.parts import ShardPart, log_beginning
from runner.workload import Workload
from store.clock import Clock
from store.errors import PlaceAway, Unshipped
from store.events import RunStarted
from store.runs import RunFolder, add_place
from store.segments.place import Place
from store.segments.shipping import Shipper
from store.segments.source import sources
from store.slices import Shard, Slices


def check_others(
    shard_folder: RunFolder,
    shard: Shard,
    work: Workload,
    options: RunOptions,
    *,
    accept_changes: bool,
) -> None:
    """Compare a shard with the others of its run, and with its earlier start.

    Raises:
        RunChanged: they have other inputs.
        UsageError: they have other settings, or the run is not split.
        RunnerError: another process works on the same slices.
    """
    whole = shard_folder.whole
    before = log_beginning(whole)
    if before is not None and before.shard is None:
        raise UsageError(
            f"Run {shard_folder.run_id} is not split: continue with "
            f"siftlog resume {shard_folder.run_id}, or choose another "
            "--run-id."
        )
    for other in shard_folder.shards():
        first = log_beginning(other)
        if first is None:
            continue
        if not accept_changes:
            check_same(other.log, first, work, options)
        if first.shard is None or other == shard_folder or not other.is_alive():
            continue
        shared = Slices.parse(shard.slices) & Slices.parse(first.shard.slices)
        if shared:
            raise RunnerError(
                f"Shard {first.shard} of run {shard_folder.run_id} is at work on "
                f"{len(shared)} slices of Shard {shard}: wait until it ends, or end "
                f"it with siftlog drain {shard_folder.run_id}."
            )


def check_same(
    log: Path, first: RunStarted, work: Workload, options: RunOptions
) -> None:
    """Compare a shard with the start of another log of its run.

    Raises:
        RunChanged: it has other inputs.
        UsageError: it has other settings.
    """
    models = {role: tuple(role_models) for role, role_models in first.models.items()}
    settings = _without_inputs(json.loads(first.settings), first)
    now = _without_inputs(json.loads(work.settings_json), first)
    differs = {
        "job": first.job != work.job.name,
        "models": models != assigned(work.job, options).models,
        "replicates": first.replicates != options.replicates,
        **{name: settings.get(name) != now.get(name) for name in {**settings, **now}},
    }
    wrong = next((name for name, is_other in differs.items() if is_other), None)
    if wrong is not None:
        raise UsageError(
            f"{log} was started with another {wrong!r}: the shards of a "
            "run must have the same settings; restore it, or choose "
            "another --run-id."
        )
    check_inputs(first, work)


def check_place(place: Place, run_id: str) -> None:
    """Check that a place accepts the logs of a run, before anything is paid for.

    Raises:
        PlaceAway: it cannot be written.
        UsageError: it holds logs of another run, and both would be damaged.
    """
    place.prove()
    run_ids = {source.identity.run_id for source in sources(place)}
    if run_ids - {run_id}:
        raise UsageError(
            f"{place.address} holds the logs of run "
            f"{min(run_ids - {run_id})}: name another --ship for run "
            f"{run_id}; each run needs its own location."
        )


def _without_inputs(
    settings: Mapping[str, object], first: RunStarted
) -> dict[str, object]:
    """Return settings without file names, which differ between machines."""
    input_settings = {recorded_input.setting for recorded_input in first.inputs}
    return {
        name: value for name, value in settings.items() if name not in input_settings
    }


TIMEOUT_S = 60.0
"""Time to wait for an unreachable place at the start or the end: enough for a failover
of a file server; a cluster that ends the job does not wait longer."""

POLL_S = 1.0
"""Delay between two attempts, and maximum delay of a second Ctrl-C."""


async def check_reachable(
    place: Place, run_id: str, clock: Clock, *, patient: bool
) -> None:
    """Check that a place accepts a run's logs, before anything is paid for.

    Args:
        place: the target of a shard's log.
        run_id: its run.
        clock: times the retries.
        patient: wait for an unreachable place. A user who mistyped it wants an error at
            once; a process that restarts shards would give this one up.

    Raises:
        PlaceAway: it cannot be written.
        UsageError: it holds the logs of another run.
    """
    until = clock.monotonic() + (TIMEOUT_S if patient else 0.0)
    while True:
        try:
            await asyncio.to_thread(check_place, place, run_id)
        except PlaceAway:
            if clock.monotonic() >= until:
                raise
        else:
            return
        await clock.sleep_until(clock.monotonic() + POLL_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogShipper:
    """Ships new events while the driver works."""

    shipper: Shipper
    driver: Driver
    context: RunContext
    folder: RunFolder
    address: str

    async def carry(self) -> None:
        """Ship until cancelled; the driver drains when too much is unshipped."""
        try:
            await self.shipper.run()
        except Unshipped as error:
            self.context.notify(f"{error}.")
            self.driver.drain()

    async def conclude(self, ended: RunOutcome) -> RunOutcome:
        """Ship the rest, after the log's last event.

        Waits for an unreachable place: the disk may be gone with this process.

        Returns:
            The outcome: not finished while some events are unshipped.
        """
        clock = self.context.clock
        until = clock.monotonic() + TIMEOUT_S
        while not (is_carried := await self._carry_rest(ended)):
            if self.driver.is_stopping or clock.monotonic() >= until:
                break
            await clock.sleep_until(clock.monotonic() + POLL_S)
        if is_carried:
            return ended
        left = self.shipper.statistics().unshipped_bytes
        reason = (
            f"The last {left:,} bytes of {self.folder.log} "
            f"were not shipped to {self.address}: keep the file, and start the "
            "shard again once the place is reachable."
        )
        if ended.reason is not None:
            self.context.notify(ended.reason)
        outcome = "drained" if ended.outcome == "finished" else ended.outcome
        return RunOutcome(outcome=outcome, reason=reason)

    async def _carry_rest(self, ended: RunOutcome) -> bool:
        """Ship all events, and the end marker; False: the place is unreachable."""
        if ended.outcome == "finished":
            return await self.shipper.finish()
        return await self.shipper.flush()


@asynccontextmanager
async def shipping_log(
    folder: RunFolder, part: ShardPart, driver: Driver, context: RunContext
) -> AsyncIterator[LogShipper | None]:
    """Ship a log while the body runs, if requested.

    Args:
        folder: folder of the log, which is open for writing.
        part: the shard.
        driver: drained when shipping fails.
        context: clock and messages.

    Raises:
        PlaceAway: the place cannot be read.
    """
    if part.shipping is None:
        yield None
        return
    place = part.shipping.place
    async with Shipper.following(
        folder.log,
        place,
        clock=context.clock,
        notify=lambda message: context.notify(f"{message}."),
        siftlog_version=version("siftlog"),
        shard=part.shard,
        every_s=part.shipping.every_s,
    ) as shipper:
        log_shipper = LogShipper(
            shipper=shipper,
            driver=driver,
            context=context,
            folder=folder,
            address=place.address,
        )
        add_place(folder.places, place.address)
        async with run_alongside(driver.guard(log_shipper.carry)):
            yield log_shipper
