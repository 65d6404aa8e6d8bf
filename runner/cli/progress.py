"""Shows progress on stderr: a changing line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import shutil
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from typing import Any, Final

from runner.cli.console import ERASE, duration, write_stderr
from runner.engine.background import run_alongside
from runner.engine.driver import Driver
from runner.engine.planner import Planner
from runner.money.budget import BudgetStatistics
from runner.run.context import ProgressWatch
from store.clock import Clock
from store.database import LogReader, open_reader
from store.printable import printable
from store.read.status import Status
from store.read.usage import dollars
from store.runs import RunFolder
from store.task import usd
from store.time_travel import LogPrefix, Moment, moment_named

TERMINAL_S: Final = 0.5
PLAIN_S: Final = 30.0
WINDOW_S: Final = 60.0
"""Rates cover the last minute: the mean of a run would hide a slowdown."""


class Rate:
    """Rate of change of a count."""

    def __init__(self, clock: Clock, count: int = 0) -> None:
        """Start at *count*."""
        self._clock = clock
        self._marks = [(clock.monotonic(), count)]

    def per_s(self, count: int) -> float:
        """Return the growth per second over the last minute up to *count*."""
        now = self._clock.monotonic()
        self._marks.append((now, count))
        while self._marks[1][0] < now - WINDOW_S:
            self._marks.pop(0)
        began, before = self._marks[0]
        return (count - before) / max(now - began, 1e-9)


@asynccontextmanager
async def progress_line(
    line: Callable[[int | None], str],
    clock: Clock,
    display: Callable[[str], None] | None = None,
) -> AsyncIterator[None]:
    """Show a line on stderr while the body runs, and again at the end.

    Args:
        line: returns the text; limited to a width, if one is given.
        clock: times the updates.
        display: replaces the line elsewhere, such as in a notebook; None: stderr.
    """
    if display is not None:
        async with run_alongside(_replace(line, clock, display)):
            yield
        display(line(None))
        return
    async with run_alongside(_move(line, clock)):
        yield
    erased = ERASE if sys.stderr.isatty() else ""
    write_stderr(f"{erased}{line(None)}\n")


async def _replace(
    line: Callable[[int | None], str], clock: Clock, display: Callable[[str], None]
) -> None:
    while True:
        await clock.sleep_until(clock.monotonic() + TERMINAL_S)
        display(line(None))


async def _move(line: Callable[[int | None], str], clock: Clock) -> None:
    terminal = sys.stderr.isatty()
    while True:
        pause = TERMINAL_S if terminal else PLAIN_S
        await clock.sleep_until(clock.monotonic() + pause)
        if terminal:
            # a longer line would wrap and leave its first part on the screen
            write_stderr(ERASE + line(shutil.get_terminal_size().columns - 1))
        else:
            write_stderr(f"{line(None)}\n")


@contextmanager
def paced_progress(clock: Clock) -> Iterator[Callable[[str], None]]:
    """Yield a callback that shows progress on stderr at a limited rate.

    On a terminal the line is updated in place, and removed at the end.
    """
    is_terminal = sys.stderr.isatty()
    pause = TERMINAL_S if is_terminal else PLAIN_S
    due = clock.monotonic() + pause

    def show(line: str) -> None:
        nonlocal due
        now = clock.monotonic()
        if now < due:
            return
        due = now + pause
        if is_terminal:
            # a longer line would wrap and leave its first part on the screen
            width = shutil.get_terminal_size().columns - 1
            write_stderr(ERASE + printable(line)[:width])
        else:
            write_stderr(f"{printable(line)}\n")

    try:
        yield show
    finally:
        if is_terminal:
            write_stderr(ERASE)


DOT: Final = " · "


def progress(
    clock: Clock, display: Callable[[str], None] | None = None
) -> ProgressWatch:
    """Return a watcher for `runner.run.context.RunContext`.

    Args:
        clock: times the updates.
        display: shows a line in place of the last one; None: stderr.
    """

    @asynccontextmanager
    async def watch(
        driver: Driver, planner: Planner, before: Status
    ) -> AsyncIterator[None]:
        meter = _Meter(driver, planner, before, clock)
        async with progress_line(meter.line, clock, display):
            yield

    return watch


class _Meter:
    """Figures of the run so far, and the rate of the last minute."""

    def __init__(
        self, driver: Driver, planner: Planner, before: Status, clock: Clock
    ) -> None:
        self._driver = driver
        self._planner = planner
        tasks = before.tasks
        self._ended_before = tasks.completed + tasks.failed
        self._skipped_before = tasks.skipped
        self._failed_before = tasks.failed
        self._rate = Rate(clock)

    def line(self, width: int | None = None) -> str:
        """Describe the run in one line of at most *width* characters."""
        figures = self._driver.statistics()
        rate = self._rate.per_s(figures.tasks_ended)
        ended = self._ended_before + figures.tasks_ended
        # skipped tasks do not count as progress
        planned = self._planner.planned - self._skipped_before - self._planner.skipped
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
        parts += [f"{count:,} {label}" for label, count in counts.items() if count]
        line = parts[0][:width]
        for part in parts[1:]:
            if width is None or len(line) + len(part) + len(DOT) <= width:
                line += DOT + part
        return line


def _money(budget: BudgetStatistics) -> list[str]:
    """Return spending so far and the budget; nothing if all calls are free."""
    spent = budget.spent_pico + budget.possible_pico
    if budget.cap_pico is not None:
        return [f"{dollars(usd(spent))} of {dollars(usd(budget.cap_pico))}"]
    return [dollars(usd(spent))] if spent else []


class JointProgress:
    """Combined figures of several runs."""

    def __init__(self, clock: Clock, runs: int, *, shares_budget: bool) -> None:
        """Start without runs.

        Args:
            clock: times the rates.
            runs: number of runs to expect.
            shares_budget: all runs spend from one budget.
        """
        self._clock = clock
        self._runs = runs
        self._shares_budget = shares_budget
        self._seen: list[tuple[Driver, Planner, Status]] = []
        self._over = 0
        self._rate = Rate(clock)

    @asynccontextmanager
    async def watch(
        self, driver: Driver, planner: Planner, before: Status
    ) -> AsyncIterator[None]:
        """Add a run; a watcher for `runner.run.context.RunContext`."""
        self._seen.append((driver, planner, before))
        try:
            yield
        finally:
            self._over += 1

    @asynccontextmanager
    async def display(self) -> AsyncIterator[None]:
        """Show the line while the body runs, and again at the end."""
        async with progress_line(lambda width: self.line()[:width], self._clock):
            yield

    def line(self) -> str:
        """Describe all runs in one line."""
        figures = [driver.statistics() for driver, _, _ in self._seen]
        here = sum(statistics.tasks_ended for statistics in figures)
        ended = here + sum(
            before.tasks.completed + before.tasks.failed for *_, before in self._seen
        )
        planned = sum(
            planner.planned - before.tasks.skipped - planner.skipped
            for _, planner, before in self._seen
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
        budgets = [statistics.budget for statistics in figures]
        if self._shares_budget:
            budgets = budgets[:1]
        spent = sum(budget.spent_pico + budget.possible_pico for budget in budgets)
        cap = budgets[0].cap_pico if self._shares_budget and budgets else None
        if cap is not None:
            parts.append(f"{dollars(usd(spent))} of {dollars(usd(cap))}")
        elif spent:
            parts.append(dollars(usd(spent)))
        counts = {
            "failed": sum(before.tasks.failed for *_, before in self._seen)
            + sum(statistics.tasks_failed for statistics in figures),
            "waiting": sum(statistics.waiting for statistics in figures),
            "in flight": sum(statistics.in_flight for statistics in figures),
        }
        parts += [f"{count:,} {label}" for label, count in counts.items() if count]
        return DOT.join(parts)


@contextmanager
def time_travel(
    folder: RunFolder, name: str, clock: Clock
) -> Iterator[tuple[Moment, LogReader]]:
    """Yield the moment that *name* denotes, and a reader of the log up to it.

    Raises:
        NoSuchMoment: the name is invalid or the moment is outside the run.
        StoreError: the log cannot be read.
    """
    is_held = folder.is_alive()
    with open_reader(folder.log) as whole:
        moment = moment_named(whole, name, clock.now_us(), is_held=is_held)
    with LogPrefix(folder.log) as prefix:
        with paced_progress(clock) as show:

            def report(seq: int) -> bool:
                show(f"read {seq:,} of {moment.seq:,} events")
                return True

            prefix.move_to(moment, should_continue=report)
        with prefix.open_reader() as reader:
            yield moment, reader


def moment_json(moment: Moment) -> dict[str, Any]:
    """Return the moment for programs."""
    return {"at": {"seq": moment.seq, "time": _time(moment)}}


def moment_text(moment: Moment) -> str:
    """Describe the moment for people."""
    return f"after event {moment.seq:,}, at {_time(moment)}"


def _time(moment: Moment) -> str:
    when = datetime.fromtimestamp(moment.at_us // 1_000_000, UTC)
    micros = moment.at_us % 1_000_000
    return when.replace(microsecond=micros).isoformat(timespec="microseconds")
