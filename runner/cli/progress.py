"""Progress of a run on stderr: a changing line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from runner.beside import beside
from runner.budget import BudgetStatistics
from runner.cli.speech import ERASE, mutter
from runner.driver import Driver
from runner.growth import Growth
from runner.shell import Watch
from store.clock import Clock
from store.spending import dollars
from store.task import usd
from store.views import Status

TERMINAL_S: Final = 0.5
PLAIN_S: Final = 30.0
WINDOW_S: Final = 60.0
"""Rates are over the last minute: a run's mean hides that it slowed down."""


def progress(clock: Clock) -> Watch:
    """A watcher for `runner.shell.Shell`."""

    @asynccontextmanager
    async def watch(
        driver: Driver, growth: Growth, before: Status
    ) -> AsyncIterator[None]:
        meter = _Meter(driver, growth, before, clock)
        async with beside(_show(meter, clock)):
            yield
        erased = ERASE if sys.stderr.isatty() else ""
        mutter(f"{erased}{meter.line()}\n")

    return watch


async def _show(meter: _Meter, clock: Clock) -> None:
    terminal = sys.stderr.isatty()
    while True:
        pause = TERMINAL_S if terminal else PLAIN_S
        await clock.sleep_until(clock.monotonic() + pause)
        line = meter.line()
        if terminal:
            # a longer line would wrap, and leave its first part behind
            line = ERASE + line[: shutil.get_terminal_size().columns - 1]
        mutter(line if terminal else f"{line}\n")


class _Meter:
    """Figures of the run so far, and the rate of the last minute."""

    def __init__(
        self, driver: Driver, growth: Growth, before: Status, clock: Clock
    ) -> None:
        self._driver = driver
        self._growth = growth
        self._clock = clock
        tasks = before.tasks
        self._ended_before = tasks.completed + tasks.failed
        self._skipped_before = tasks.skipped
        self._failed_before = tasks.failed
        self._marks: list[tuple[float, int]] = [(clock.monotonic(), 0)]

    def line(self) -> str:
        """How the run stands, in one line."""
        now = self._clock.monotonic()
        figures = self._driver.statistics()
        self._marks.append((now, figures.tasks_ended))
        while self._marks[1][0] < now - WINDOW_S:
            self._marks.pop(0)
        began, count = self._marks[0]
        rate = (figures.tasks_ended - count) / max(now - began, 1e-9)
        ended = self._ended_before + figures.tasks_ended
        # what is never asked is no progress
        planned = self._growth.planned - self._skipped_before - self._growth.skipped
        share = ended / planned if planned else 0.0
        parts = [f"{ended:,} of {planned:,} planned {share:.1%}", f"{rate:,.1f}/s"]
        left = planned - ended
        if rate > 0 and left > 0 and not figures.pauses:
            parts.append(f"{_duration(left / rate)} left")
        counts = {
            "from the cache": figures.cached,
            "in flight": figures.in_flight,
            "waiting": figures.waiting,
            "failed": self._failed_before + figures.tasks_failed,
        }
        parts += [f"{count:,} {what}" for what, count in counts.items() if count]
        parts += [f"paused: {pause}" for pause in figures.pauses]
        return " · ".join(parts + _money(figures.budget))


def _money(budget: BudgetStatistics) -> list[str]:
    """What was spent so far, of what may be; nothing where nothing costs anything."""
    spent = budget.spent_pico + budget.possible_pico
    if budget.cap_pico is not None:
        return [f"{dollars(usd(spent))} of {dollars(usd(budget.cap_pico))}"]
    return [dollars(usd(spent))] if spent else []


def _duration(seconds: float) -> str:
    minutes, second = divmod(round(seconds), 60)
    hour, minute = divmod(minutes, 60)
    if hour:
        return f"{hour} h {minute:02}"
    return f"{minute} min {second:02}" if minute else f"{second} s"
