"""Runs a shard: starts its log or continues it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from runner.errors import UsageError
from runner.options import RunOptions
from runner.run import launch
from runner.run.context import RunContext
from runner.run.control import waiting
from runner.run.end import RunOutcome
from runner.shards.parts import (
    ShardPart,
    ShippingOptions,
    log_beginning,
    read_other_logs,
)
from runner.shards.shipping import check_others, check_reachable, check_same
from runner.workload import Workload
from store.runs import RunFolder
from store.slices import Shard


async def work_on(
    folder: RunFolder,
    shard: Shard,
    work: Workload,
    options: RunOptions,
    context: RunContext,
    *,
    startup_limits: Collection[str] = (),
    shipping: ShippingOptions | None = None,
    accept_changes: bool = False,
    accept_loss: bool = False,
) -> RunOutcome:
    """Run a shard to its end, from the current state of its log.

    Args:
        folder: the shard's folder in the run's folder.
        shard: the shard.
        work: the run's job, settings and data.
        options: run options.
        context: context of the process.
        startup_limits: names of limits given for this process.
        shipping: where its log is shipped; None: nowhere.
        accept_changes: allow changed inputs and prompts.
        accept_loss: continue although acknowledged events are missing, here or in a log
            with some of the same items.

    Raises:
        UsageError: there is a stopping rule, or the folder or the place belongs to
            another run.
        PlaceAway: the place cannot be written.
        RunChanged: the run has other inputs.
        EventsLost: such events are missing, and that was not accepted.
        RunnerError: another process works on the same items.
    """
    if options.stopping is not None:
        raise UsageError(
            "--stop-when-decided needs all answers of a run, and a "
            "shard has only its own: omit one of the two."
        )
    launch.check_alive(folder)
    check_others(folder, shard, work, options, accept_changes=accept_changes)
    place = None if shipping is None else shipping.place
    if place is not None:
        is_placed = context.broker is not None
        await check_reachable(place, folder.run_id, context.clock, patient=is_placed)
    other_logs = await read_other_logs(
        folder, shard, place, context.clock, context.notify, accept_loss=accept_loss
    )
    if other_logs.first is not None and not accept_changes:
        check_same(folder.whole.log, other_logs.first, work, options)
    first = log_beginning(folder)
    if first is None:
        launch.check_cancelled(folder.whole, other_logs.state)
    recorded_budgets = {
        started.budget_usd
        for started in (first, other_logs.first)
        if started is not None
    }
    if options.budget is None or options.budget in recorded_budgets:
        # a resubmission repeats the options; the budget may have been raised since
        cap_usd = other_logs.cap_usd if first is None else None
        options = options.model_copy(update={"budget": cap_usd})
    if first is None:
        later = _retries(folder.whole)
        other_logs = replace(other_logs, settled=other_logs.settled | later)
        part = ShardPart(shard=shard, shipping=shipping, others=other_logs)
        ended = await launch.start(folder, work, options, context, part=part)
        if later and ended.outcome == "finished":
            # tasks to retry had to be adopted first
            ended = await work_on(
                folder,
                shard,
                work,
                options,
                context,
                startup_limits=startup_limits,
                shipping=shipping,
                accept_changes=accept_changes,
                accept_loss=accept_loss,
            )
    else:
        part = ShardPart(shard=shard, shipping=shipping, others=other_logs)
        ended = await launch.resume(
            folder,
            work,
            options,
            context,
            accept_changes=accept_changes,
            accept_loss=accept_loss,
            startup_limits=startup_limits,
            part=part,
        )
    if other_logs.adopted is not None and other_logs.adopted.refused:
        context.notify(
            f"{other_logs.adopted.refused:,} answers of the run belong "
            "to requests that have changed: these tasks were sent "
            "again."
        )
    return ended


def _retries(run: RunFolder) -> frozenset[str]:
    """Return ids of `retry` commands that no log of the run has answered."""
    if not run.log.exists():
        return frozenset()
    return frozenset(command.id for command in waiting(run) if command.kind == "retry")
