"""Runs split runs from the command line: one shard, all shards, or `--engine`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from runner.cli import console, run_steps
from runner.cli.console import duration, print_note
from runner.cli.progress import DOT, Rate, progress_line
from runner.cli.request import RunRequest, ShardOptions
from runner.cli.run_steps import Leave
from runner.errors import UsageError
from runner.options import RunOptions
from runner.run.context import RunContext
from runner.run.end import RunOutcome
from runner.shards.engines import EngineName, PlacedRunStatus, Placement, ShowPlacedRun
from runner.shards.parts import ShippingOptions, shard_of
from runner.shards.placed_run import drive
from runner.shards.worker import work_on
from runner.workload import Workload
from store.clock import Clock
from store.read.usage import dollars
from store.runs import RunFolder
from store.segments.place import Place, address_of
from store.slices import Shard

ALONE = "0/1"
"""The shard that covers the whole run."""


def run_part(
    work: Workload, options: RunOptions, request: RunRequest, leave: Leave | None
) -> int:
    """Run one shard; the exit code depends on its tasks only.

    Args:
        work: the run's job, settings and data.
        options: run options.
        request: the typed options.
        leave: called as the shard starts, to leave the terminal.

    Raises:
        UsageError: the shard or the run id is missing or invalid.
    """
    shard = shard_of(request.part.shard or ALONE)
    if request.run_id is None:
        raise UsageError(
            "A run that is split, or shipped, needs --run-id: all its shards are "
            "started with the same one, now and later."
        )
    if "rate_share" not in options.model_fields_set:
        options = options.model_copy(update={"rate_share": shard.count})
    runs_dir = request.part.local_dir or request.runs_dir
    folder = run_steps.new_folder(runs_dir, request.run_id, work.job)
    context = run_steps.run_context(request, folder, work, leave, shard=shard)
    ended = _worked(folder, shard, work, options, context, request)
    shard_folder = folder.shard(shard.index, shard.count)
    code = run_steps.end(shard_folder, work, ended, request.output, scores=False)
    end = "has ended" if ended.outcome == "finished" else "has stopped"
    print_note(
        f"Shard {shard} of run {folder.run_id} {end}; see all of them with: "
        f"{_seen_whole(folder.run_id, request.part)}"
    )
    if ended.outcome == "futility" and ended.reason is not None:
        # last: the process that places shards checks this before it restarts one
        print_note(ended.reason)
    return code


def _seen_whole(run: str, part: ShardOptions) -> str:
    """Return the commands that show the run that a shard belongs to."""
    if part.ship is not None:
        return f"siftlog merge {run} --ship {part.ship} && siftlog score {run}"
    local_dir = part.local_dir
    option = "" if local_dir is None else f" --runs-dir {local_dir}"
    return f"siftlog status {run}{option}; score them with: siftlog score {run}{option}"


def resume_all(
    folder: RunFolder,
    work: Workload,
    options: RunOptions,
    request: RunRequest,
    leave: Leave | None,
    *,
    accept_changes: bool,
    scores: bool,
) -> int:
    """Finish all shards of a run in this process, and score the run.

    Args:
        folder: the run's folder.
        work: its job, settings and data.
        options: run options.
        request: the typed options.
        leave: called as it starts, to leave the terminal.
        accept_changes: allow changed inputs and prompts.
        scores: score the run at its end.

    Raises:
        UsageError: `--local-dir` is given.
    """
    if request.part.local_dir is not None:
        raise UsageError(
            f"Run {folder.run_id} is resumed in its own folder; to keep "
            "a log elsewhere, start a shard: siftlog run JOB --run-id "
            "ID --shard 0/1 --local-dir DIR --ship DIR|URL"
        )
    print_note(
        f"Run {folder.run_id} is split: what its shards have answered is taken over, "
        "and this process does all the rest."
    )
    shard = shard_of(ALONE)
    ended = _worked(
        folder,
        shard,
        work,
        options,
        run_steps.run_context(request, folder, work, leave, shard=shard),
        request,
        accept_changes=accept_changes,
    )
    folder.refresh()
    return run_steps.end(folder, work, ended, request.output, scores=scores)


def _worked(
    folder: RunFolder,
    shard: Shard,
    work: Workload,
    options: RunOptions,
    context: RunContext,
    request: RunRequest,
    *,
    accept_changes: bool = False,
) -> RunOutcome:
    return asyncio.run(
        work_on(
            folder.shard(shard.index, shard.count),
            shard,
            work,
            options,
            context,
            startup_limits=run_steps.startup_limits(request.options),
            shipping=_shipping(request.part),
            accept_changes=accept_changes,
            accept_loss=request.part.accept_loss,
        )
    )


def _shipping(part: ShardOptions) -> ShippingOptions | None:
    """Return the options for shipping the log, if it is shipped."""
    if part.ship is None:
        return None
    return ShippingOptions(
        place=Place.of(address_of(part.ship)), every_s=part.ship_every
    )


def run_placed(
    folder: RunFolder,
    work: Workload,
    options: RunOptions,
    request: RunRequest,
    leave: Leave | None,
    *,
    engine: EngineName,
    scores: bool,
) -> int:
    """Place the shards of a run, wait for them, and score the run.

    Args:
        folder: the run's folder.
        work: its job, settings and data.
        options: run options.
        request: the typed options.
        leave: called once shards are running, to leave the terminal.
        engine: places the shards.
        scores: score the run if it is complete enough.

    Raises:
        UsageError: the run has a stopping rule, or its logs could not be merged.
    """
    if options.stopping is not None:
        raise UsageError(
            "--stop-when-decided needs all answers of a run, and a "
            "shard has only its own: omit it or --engine."
        )
    part, placing = request.part, request.placing
    if part.local_dir is not None and part.ship is None:
        raise UsageError(
            "--local-dir keeps the log of each shard on its own machine: name with "
            "--ship DIR|URL where these come together."
        )
    placement = Placement(
        engine=engine,
        shards=placing.shards or os.cpu_count() or 1,
        address=placing.address,
        ttl_s=placing.lease_ttl_s,
        local_dir=_disk(part.local_dir),
        ship=None if part.ship is None else address_of(part.ship),
        ship_every_s=part.ship_every,
        accept_loss=part.accept_loss,
    )
    print_note(
        f"Placing {placement.shards} shards of run {folder.run_id} with "
        f"{placement.engine}; their output is in run.*.log in "
        f"{folder.path}"
    )
    context = run_steps.run_context(request, folder, work, leave)
    # shards read it from a file in another folder
    cache_dir = _absolute(options.cache_dir)
    options = options.model_copy(update={"cache_dir": cache_dir})
    console.relax_collector()
    ended = asyncio.run(
        drive(
            folder,
            work,
            options,
            context,
            placement=placement,
            show=_progress_display(context.clock),
            startup_limits=run_steps.startup_limits(request.options),
        )
    )
    return run_steps.end(folder, work, ended, request.output, scores=scores)


def _absolute(path: Path | None) -> Path | None:
    return None if path is None else path.absolute()


def _disk(folder: Path | None) -> str | None:
    """Return the folder of the shards' logs; `$` variables are left to them."""
    if folder is None:
        return None
    is_variable = str(folder).startswith("$")
    return str(folder if is_variable else folder.absolute())


def _progress_display(clock: Clock) -> ShowPlacedRun:
    """Return a display of progress over all shards, one line on stderr."""

    @asynccontextmanager
    async def show(
        current_status: Callable[[], PlacedRunStatus],
    ) -> AsyncIterator[None]:
        meter = _Meter(current_status, clock)
        async with progress_line(lambda width: meter.line()[:width], clock):
            yield

    return show


class _Meter:
    """Figures of all shards, and the rate of the last minute."""

    def __init__(
        self, current_status: Callable[[], PlacedRunStatus], clock: Clock
    ) -> None:
        self._current_status = current_status
        self._clock = clock
        self._rate: Rate | None = None  #: starts at the first status

    def line(self) -> str:
        """Describe the run in one line."""
        run_status = self._current_status()
        parts = [f"{run_status.at_work} of {run_status.shards} shards at work"]
        seen = run_status.status
        if seen is not None:
            tasks = seen.tasks
            ended = tasks.completed + tasks.failed
            planned = tasks.planned - tasks.skipped
            self._rate = self._rate or Rate(self._clock, ended)
            rate = self._rate.per_s(ended)
            share = ended / planned if planned else 0.0
            parts += [
                f"{ended:,} of {planned:,} planned {share:.1%}",
                f"{rate:,.1f}/s",
            ]
            if rate > 0 and planned > ended and not seen.pauses:
                parts.append(f"{duration((planned - ended) / rate)} left")
            if seen.budget_usd is not None:
                parts.append(f"{dollars(seen.cost_usd)} of {dollars(seen.budget_usd)}")
            elif seen.cost_usd:
                parts.append(dollars(seen.cost_usd))
            parts += [f"paused: {pause}" for pause in seen.pauses]
        counts = {
            "failed": seen.tasks.failed if seen is not None else 0,
            "in flight": run_status.in_flight,
            "restarts": run_status.restarts,
        }
        parts += [f"{count:,} {label}" for label, count in counts.items() if count]
        return DOT.join(parts)
