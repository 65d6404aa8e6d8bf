"""Progress over several runs at once, in one line on stderr."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from runner.cli.figures import duration
from runner.cli.pace import Rate, moving
from runner.cli.progress import DOT
from runner.engine.driver import Driver
from runner.engine.growth import Growth
from store.clock import Clock
from store.read.status import Status
from store.read.usage import dollars
from store.task import usd


class JointProgress:
    """Figures of all runs that are, or were, at work."""

    def __init__(self, clock: Clock, runs: int, *, shares_budget: bool) -> None:
        """Nothing has been done yet.

        Args:
            clock: tells rates.
            runs: how many there will be.
            shares_budget: whether all of them count the same money.
        """
        self._clock = clock
        self._runs = runs
        self._shares_budget = shares_budget
        self._seen: list[tuple[Driver, Growth, Status]] = []
        self._over = 0
        self._rate = Rate(clock)

    @asynccontextmanager
    async def watch(
        self, driver: Driver, growth: Growth, before: Status
    ) -> AsyncIterator[None]:
        """Count a run in; a watcher for `runner.launching.shell.Shell`."""
        self._seen.append((driver, growth, before))
        try:
            yield
        finally:
            self._over += 1

    @asynccontextmanager
    async def shown(self) -> AsyncIterator[None]:
        """Show the line while the body runs, and once more at the end."""
        async with moving(lambda width: self.line()[:width], self._clock):
            yield

    def line(self) -> str:
        """How all runs stand, in one line."""
        figures = [driver.statistics() for driver, _, _ in self._seen]
        here = sum(each.tasks_ended for each in figures)
        ended = here + sum(
            before.tasks.completed + before.tasks.failed for *_, before in self._seen
        )
        planned = sum(
            growth.planned - before.tasks.skipped - growth.skipped
            for _, growth, before in self._seen
        )
        rate = self._rate.per_s(here)
        share = ended / planned if planned else 0.0
        parts = [
            f"{self._over:,} of {self._runs:,} runs over",
            f"{ended:,} of {planned:,} planned {share:.1%}",
            f"{rate:,.1f}/s",
        ]
        if rate > 0 and planned > ended:
            parts.append(f"{duration((planned - ended) / rate)} left")
        budgets = [each.budget for each in figures]
        if self._shares_budget:
            budgets = budgets[:1]
        spent = sum(each.spent_pico + each.possible_pico for each in budgets)
        cap = budgets[0].cap_pico if self._shares_budget and budgets else None
        if cap is not None:
            parts.append(f"{dollars(usd(spent))} of {dollars(usd(cap))}")
        elif spent:
            parts.append(dollars(usd(spent)))
        counts = {
            "failed": sum(before.tasks.failed for *_, before in self._seen)
            + sum(each.tasks_failed for each in figures),
            "waiting": sum(each.waiting for each in figures),
            "in flight": sum(each.in_flight for each in figures),
        }
        parts += [f"{count:,} {what}" for what, count in counts.items() if count]
        return DOT.join(parts)
