"""`--engine`: a run whose shards are placed, from typed words to its scores."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from runner.cli import collector, session
from runner.cli.detaching import Leave
from runner.cli.figures import duration
from runner.cli.pace import Rate, moving
from runner.cli.progress import DOT
from runner.cli.speech import tell
from runner.errors import UsageError
from runner.options import RunOptions
from runner.placing.driving import drive
from runner.placing.placement import Placement, Show, Stand
from runner.work import Work
from store.clock import Clock
from store.read.usage import dollars
from store.runs import RunFolder
from store.segments.place import address_of


def run_placed(
    folder: RunFolder,
    work: Work,
    options: RunOptions,
    given: Mapping[str, Any],
    leave: Leave | None,
    *,
    scores: bool,
) -> int:
    """Drive a run until its shards have ended, and score it.

    Args:
        folder: the run's.
        work: its job, settings and data.
        options: how calls are sent.
        given: the verb's options.
        leave: is called once shards are at work, where it is to leave the terminal.
        scores: whether it is scored, if it got that far.

    Raises:
        UsageError: it is to stop when something is decided, or its logs would never
            come together.
    """
    if options.stopping is not None:
        raise UsageError(
            "--stop-when-decided looks at all answers of a run as they come, and its "
            "shards have only their own: leave it or --engine out."
        )
    if given["local_dir"] is not None and given["ship"] is None:
        raise UsageError(
            "--local-dir keeps the log of each shard on its own machine: name with "
            "--ship DIR|URL where these come together."
        )
    placement = Placement(
        engine=given["engine"],
        shards=given["shards"] or os.cpu_count() or 1,
        address=given["address"],
        ttl_s=given["lease_ttl_s"],
        local_dir=_disk(given["local_dir"]),
        ship=None if given["ship"] is None else address_of(given["ship"]),
        ship_every_s=given["ship_every"],
        accept_loss=given["accept_loss"],
    )
    tell(
        f"Placing {placement.shards} shards of run {folder.run_id} with "
        f"{placement.engine}; what each says stands in its run.*.log in {folder.path}"
    )
    shell = session.shell(given, folder, work, leave)
    # shards read it from a file that lies elsewhere
    cache_dir = _absolute(options.cache_dir)
    options = options.model_copy(update={"cache_dir": cache_dir})
    collector.calm()
    ended = asyncio.run(
        drive(
            folder,
            work,
            options,
            shell,
            placement=placement,
            show=_shown(shell.clock),
            own=session.own_limits(given),
        )
    )
    return session.end(folder, work, ended, given, scores=scores)


def _absolute(path: Path | None) -> Path | None:
    return None if path is None else path.absolute()


def _disk(folder: Path | None) -> str | None:
    """The folder of the shards' logs; by a variable, it is that of their machines."""
    if folder is None:
        return None
    is_theirs = str(folder).startswith("$")
    return str(folder if is_theirs else folder.absolute())


def _shown(clock: Clock) -> Show:
    """Progress over all shards, in one line on stderr."""

    @asynccontextmanager
    async def show(stand: Callable[[], Stand]) -> AsyncIterator[None]:
        meter = _Meter(stand, clock)
        async with moving(lambda width: meter.line()[:width], clock):
            yield

    return show


class _Meter:
    """Figures of all shards, and the rate of the last minute."""

    def __init__(self, stand: Callable[[], Stand], clock: Clock) -> None:
        self._stand = stand
        self._clock = clock
        self._rate: Rate | None = None  #: from what the first look found

    def line(self) -> str:
        """How the run stands, in one line."""
        stand = self._stand()
        parts = [f"{stand.at_work} of {stand.shards} shards at work"]
        seen = stand.status
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
            "in flight": stand.in_flight,
            "restarts": stand.restarts,
        }
        parts += [f"{count:,} {what}" for what, count in counts.items() if count]
        return DOT.join(parts)
