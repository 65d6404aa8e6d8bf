"""Progress of a run on stderr: a changing line on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from runner.cli.figures import duration
from runner.cli.pace import Rate, moving
from runner.engine.driver import Driver
from runner.engine.growth import Growth
from runner.launching.shell import Watch
from runner.money.budget import BudgetStatistics
from store.clock import Clock
from store.read.status import Status
from store.read.usage import dollars
from store.task import usd

DOT: Final = " · "


def progress(clock: Clock) -> Watch:
    """A watcher for `runner.launching.shell.Shell`."""

    @asynccontextmanager
    async def watch(
        driver: Driver, growth: Growth, before: Status
    ) -> AsyncIterator[None]:
        meter = _Meter(driver, growth, before, clock)
        async with moving(meter.line, clock):
            yield

    return watch


class _Meter:
    """Figures of the run so far, and the rate of the last minute."""

    def __init__(
        self, driver: Driver, growth: Growth, before: Status, clock: Clock
    ) -> None:
        self._driver = driver
        self._growth = growth
        tasks = before.tasks
        self._ended_before = tasks.completed + tasks.failed
        self._skipped_before = tasks.skipped
        self._failed_before = tasks.failed
        self._rate = Rate(clock)

    def line(self, width: int | None = None) -> str:
        """How the run stands, in one line; what does not fit in *width* is left out."""
        figures = self._driver.statistics()
        rate = self._rate.per_s(figures.tasks_ended)
        ended = self._ended_before + figures.tasks_ended
        # what is never asked is no progress
        planned = self._growth.planned - self._skipped_before - self._growth.skipped
        share = ended / planned if planned else 0.0
        parts = [f"{ended:,} of {planned:,} planned {share:.1%}", f"{rate:,.1f}/s"]
        left = planned - ended
        if rate > 0 and left > 0 and not figures.pauses:
            parts.append(f"{duration(left / rate)} left")
        parts += _money(figures.budget)
        parts += [f"paused: {pause}" for pause in figures.pauses]
        counts = {
            "failed": self._failed_before + figures.tasks_failed,
            "from the cache": figures.cached,
            "from other logs": figures.adopted,
            "waiting": figures.waiting,
            "in flight": figures.in_flight,
            "batches open": figures.batches,
        }
        parts += [f"{count:,} {what}" for what, count in counts.items() if count]
        line = parts[0][:width]
        for part in parts[1:]:
            if width is None or len(line) + len(part) + len(DOT) <= width:
                line += DOT + part
        return line


def _money(budget: BudgetStatistics) -> list[str]:
    """What was spent so far, of what may be; nothing where nothing costs anything."""
    spent = budget.spent_pico + budget.possible_pico
    if budget.cap_pico is not None:
        return [f"{dollars(usd(spent))} of {dollars(usd(budget.cap_pico))}"]
    return [dollars(usd(spent))] if spent else []
