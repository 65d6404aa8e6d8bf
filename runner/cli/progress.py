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
"""Rates are over the last minute: a run's mean hides that it slowed down."""


class Rate:
    """How fast a count grows."""

    def __init__(self, clock: Clock, count: int = 0) -> None:
        """It stands at *count* now."""
        self._clock = clock
        self._marks = [(clock.monotonic(), count)]

    def per_s(self, count: int) -> float:
        """Its growth over the last minute, now that it stands at *count*."""
        now = self._clock.monotonic()
        self._marks.append((now, count))
        while self._marks[1][0] < now - WINDOW_S:
            self._marks.pop(0)
        began, before = self._marks[0]
        return (count - before) / max(now - began, 1e-9)


@asynccontextmanager
async def progress_line(
    line: Callable[[int | None], str], clock: Clock
) -> AsyncIterator[None]:
    """Show a line on stderr while the body runs, and once more at the end.

    Args:
        line: how things stand; fitted to a width, if one is given.
        clock: says when it is due.
    """
    async with run_alongside(_move(line, clock)):
        yield
    erased = ERASE if sys.stderr.isatty() else ""
    write_stderr(f"{erased}{line(None)}\n")


async def _move(line: Callable[[int | None], str], clock: Clock) -> None:
    terminal = sys.stderr.isatty()
    while True:
        pause = TERMINAL_S if terminal else PLAIN_S
        await clock.sleep_until(clock.monotonic() + pause)
        if terminal:
            # a longer line would wrap, and leave its first part behind
            write_stderr(ERASE + line(shutil.get_terminal_size().columns - 1))
        else:
            write_stderr(f"{line(None)}\n")


@contextmanager
def paced_progress(clock: Clock) -> Iterator[Callable[[str], None]]:
    """Shows on stderr how far something is; of many lines those that are due.

    On a terminal the line changes in its place, and is gone at the end.
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
            # a longer line would wrap, and leave its first part behind
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


def progress(clock: Clock) -> ProgressWatch:
    """A watcher for `runner.run.context.RunContext`."""

    @asynccontextmanager
    async def watch(
        driver: Driver, planner: Planner, before: Status
    ) -> AsyncIterator[None]:
        meter = _Meter(driver, planner, before, clock)
        async with progress_line(meter.line, clock):
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
        """How the run stands, in one line; what does not fit in *width* is left out."""
        figures = self._driver.statistics()
        rate = self._rate.per_s(figures.tasks_ended)
        ended = self._ended_before + figures.tasks_ended
        # what is never asked is no progress
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
    """What was spent so far, of what may be; nothing where nothing costs anything."""
    spent = budget.spent_pico + budget.possible_pico
    if budget.cap_pico is not None:
        return [f"{dollars(usd(spent))} of {dollars(usd(budget.cap_pico))}"]
    return [dollars(usd(spent))] if spent else []


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
        self._seen: list[tuple[Driver, Planner, Status]] = []
        self._over = 0
        self._rate = Rate(clock)

    @asynccontextmanager
    async def watch(
        self, driver: Driver, planner: Planner, before: Status
    ) -> AsyncIterator[None]:
        """Count a run in; a watcher for `runner.run.context.RunContext`."""
        self._seen.append((driver, planner, before))
        try:
            yield
        finally:
            self._over += 1

    @asynccontextmanager
    async def display(self) -> AsyncIterator[None]:
        """Show the line while the body runs, and once more at the end."""
        async with progress_line(lambda width: self.line()[:width], self._clock):
            yield

    def line(self) -> str:
        """How all runs stand, in one line."""
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
    """The moment that *name* means, and a reader of the log as it was then.

    Raises:
        NoSuchMoment: it cannot be read, or lies outside of the run.
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
    """What is looked back on, for programs."""
    return {"at": {"seq": moment.seq, "time": _time(moment)}}


def moment_text(moment: Moment) -> str:
    """The same for people."""
    return f"after event {moment.seq:,}, at {_time(moment)}"


def _time(moment: Moment) -> str:
    when = datetime.fromtimestamp(moment.at_us // 1_000_000, UTC)
    micros = moment.at_us % 1_000_000
    return when.replace(microsecond=micros).isoformat(timespec="microseconds")
