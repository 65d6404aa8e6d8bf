"""The end of a cancelled run: nothing stays open, and nothing is planned any more.

Open tasks are skipped page by page, so that a million of them take neither one event
nor memory. A crash on the way leaves the request unapplied, and the next process goes
on with it.
"""

from __future__ import annotations

from collections.abc import Sequence

from runner.engine.abandoned import sent
from runner.engine.growth import Growth
from store.clock import Clock
from store.control import Command
from store.database import open_reader
from store.events import AttemptFailed, CommandApplied, RunCancelled, TaskSkipped
from store.log.interface import Log
from store.read.status import status
from store.runs import RunFolder

REASON = "cancelled"
PAGE = 1000
"""Tasks skipped at a time."""


async def cancel_rest(
    folder: RunFolder,
    log: Log,
    growth: Growth,
    clock: Clock,
    commands: Sequence[Command],
) -> int:
    """Skip all that is open and record that the run was cancelled.

    Args:
        folder: the run's.
        log: the run's.
        growth: reads the answers that came as the calls were cut.
        clock: tells how long cut calls had taken.
        commands: the requests, at least one; applied by this.

    Returns:
        How many tasks were skipped.
    """
    async for _ in growth.finish_reading():
        pass
    skipped = await _skip_cut(log, clock, commands[-1].author)
    with open_reader(folder.log) as reader:
        lanes = [lane.key for lane in status(reader).lanes if lane.is_open]
    for stage, model in lanes:
        after = 0
        while rows := await log.open_tasks(stage, model, after=after, limit=PAGE):
            await log.append(
                *(TaskSkipped(task=row.task, reason=REASON) for row in rows)
            )
            await log.heartbeat()
            after = rows[-1].task
            skipped += len(rows)
    said = f"{skipped:,} open tasks were skipped"
    await log.append(
        RunCancelled(by=commands[-1].author),
        *(CommandApplied(command=command.id, effect=said) for command in commands),
    )
    return skipped


async def _skip_cut(log: Log, clock: Clock, by: str) -> int:
    """End the attempts that were cut; the endpoint may have charged for them."""
    cut = await log.in_flight()
    for task, attempt in cut:
        begun = await sent(log, task, attempt)
        failed = AttemptFailed(
            task=task,
            attempt=attempt,
            error="Cancelled",
            latency_ms=max(0.0, round((clock.now_us() - begun.at_us) / 1e3, 3)),
            message=f"cut by {by}; the endpoint may have charged for it",
            possible_usd=begun.worst_usd,
        )
        await log.append(failed, TaskSkipped(task=task, reason=REASON))
    return len(cut)
