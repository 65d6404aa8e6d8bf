"""Shows progress on stderr: a changing line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Self

from runner.cli.console import ERASE, write_stderr
from runner.cli.paced import PLAIN_S, TERMINAL_S, paced_progress
from runner.engine.background import run_alongside
from runner.engine.driver import Driver
from runner.run.context import ProgressWatch
from store.clock import Clock
from store.database import LogReader, open_reader
from store.read.forecast import (
    ForecastInterval,
    Progress,
    budget_text,
    progress_text,
    rate_text,
    share_text,
    time_left_text,
)
from store.read.live import live_status
from store.read.status import Status
from store.read.usage import dollars
from store.runs import RunFolder
from store.tables import last_seq, visible_seq
from store.time_travel import LogPrefix, Moment, moment_named

CATCH_UP_S: Final = 0.5
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
    async def watch(driver: Driver, log: Path, before: Status) -> AsyncIterator[None]:
        del before
        with RunView(log, driver, clock) as view:
            async with progress_line(
                lambda width: _fitted(line_parts(view.look()), width), clock, display
            ):
                yield
                await view.catch_up()

    return watch


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressFigures:
    """The figures of a progress line, of one run or of several together."""

    progress: Progress
    rate: float | None  #: tasks completed per minute; None: too early
    left: ForecastInterval | None  #: seconds; None: unknown
    paused_tasks: int  #: that wait for a pause to end, not included in it
    budget_left: ForecastInterval | None  #: seconds until it is spent; None: it lasts
    cost_usd: float | None  #: recorded; None: the price of an answer is unknown
    budget_usd: float | None
    billable_usd: float  #: may still be billed
    pauses: tuple[str, ...]
    counts: Mapping[str, int]  #: by label


class RunView:
    """Reads a run that this process works on, as every other reader does."""

    def __init__(self, log: Path, driver: Driver, clock: Clock) -> None:
        """Open the log; *driver* adds what no event tells."""
        self._driver = driver
        self._clock = clock
        self._reader = open_reader(log)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._reader.close()

    def look(self) -> ProgressFigures:
        """Return the present figures."""
        live = live_status(self._reader, self._clock.now_us(), is_held=True)
        status, here = live.status, self._driver.statistics()
        return ProgressFigures(
            progress=live.progress,
            rate=live.rate,
            left=live.forecast.seconds if live.forecast else None,
            paused_tasks=live.forecast.paused_tasks if live.forecast else 0,
            budget_left=live.forecast.budget_seconds if live.forecast else None,
            cost_usd=status.cost_usd,
            budget_usd=status.budget_usd,
            billable_usd=status.possible_usd + status.in_flight_usd,
            pauses=tuple(f"paused: {pause}" for pause in status.pauses),
            counts={
                "failed": status.tasks.failed,
                "from the cache": here.cached,
                "from other logs": here.adopted,
                "from the parent run": here.forked,
                "waiting": status.tasks.waiting,
                "running": status.tasks.running,
                "batches open": status.batches.count,
            },
        )

    async def catch_up(self) -> None:
        """Wait until the figures show all that is recorded; for half a second at most.

        A log shows an event in its tables a moment after it has stored it.
        """
        deadline = self._clock.monotonic() + CATCH_UP_S
        while (
            visible_seq(self._reader) < last_seq(self._reader)
            and self._clock.monotonic() < deadline
        ):
            await self._clock.sleep_until(self._clock.monotonic() + CATCH_UP_S / 10)


def line_parts(figures: ProgressFigures) -> list[str]:
    """Return the parts of a progress line, the most important first."""
    parts = [share_text(figures.progress.share), progress_text(figures.progress)]
    # before the rate, which a pause explains
    parts += figures.pauses
    if figures.rate:
        parts.append(rate_text(figures.rate))
    if figures.left is not None and figures.left.expected:
        left = time_left_text(figures.left, paused=figures.paused_tasks)
        parts.append(f"left {left}")
    if figures.budget_left is not None:
        parts.append(budget_text(figures.budget_left))
    budget = figures.budget_usd
    if figures.cost_usd or budget is not None:
        of = "" if budget is None else f" of {dollars(budget)}"
        parts.append(f"{dollars(figures.cost_usd)}{of}")
    parts += [f"{count:,} {label}" for label, count in figures.counts.items() if count]
    if figures.billable_usd:
        parts.append(f"{dollars(figures.billable_usd)} may still be billed")
    return parts


def _fitted(parts: Sequence[str], width: int | None) -> str:
    """Join as many of the first parts as fit into *width*, at least a part of one."""
    line = parts[0][:width]
    for part in parts[1:]:
        if width is None or len(line) + len(part) + len(DOT) <= width:
            line += DOT + part
    return line


class JointProgress:
    """Combined figures of several runs."""

    def __init__(self, clock: Clock, runs: int, *, shares_budget: bool) -> None:
        """Start without runs.

        Args:
            clock: times the updates.
            runs: number of runs to expect.
            shares_budget: all runs spend from one budget.
        """
        self._clock = clock
        self._runs = runs
        self._shares_budget = shares_budget
        self._views: list[RunView] = []
        self._last: dict[RunView, ProgressFigures] = {}

    @asynccontextmanager
    async def watch(
        self, driver: Driver, log: Path, before: Status
    ) -> AsyncIterator[None]:
        """Add a run; a watcher for `runner.run.context.RunContext`."""
        del before
        with RunView(log, driver, self._clock) as view:
            self._views.append(view)
            try:
                yield
                await view.catch_up()
            finally:
                self._last[view] = view.look()

    @asynccontextmanager
    async def display(self) -> AsyncIterator[None]:
        """Show the line while the body runs, and again at the end."""
        async with progress_line(lambda width: self.line()[:width], self._clock):
            yield

    def line(self) -> str:
        """Describe all runs in one line."""
        over = f"{len(self._last):,} of {self._runs:,} runs over"
        figures = [self._last.get(view) or view.look() for view in self._views]
        if not figures:
            return over
        joint = joint_figures(
            figures,
            are_all=len(figures) == self._runs,
            shares_budget=self._shares_budget,
        )
        return DOT.join([over, *line_parts(joint)])


def joint_figures(
    figures: Sequence[ProgressFigures], *, are_all: bool, shares_budget: bool
) -> ProgressFigures:
    """Return the figures of several runs together.

    Args:
        figures: of each run that was started.
        are_all: whether no further run will start.
        shares_budget: all runs spend from one budget.
    """
    counts: Counter[str] = Counter()
    for run in figures:
        counts.update(run.counts)
    costs = [run.cost_usd for run in figures if run.cost_usd is not None]
    budgets = [run.budget_usd for run in figures if run.budget_usd is not None]
    rates = [run.rate for run in figures if run.rate is not None]
    open_runs = [run for run in figures if run.progress.remaining.expected]
    lefts = [run.left for run in open_runs if run.left is not None]
    highs = [left.high for left in lefts]
    is_known = are_all and lefts and len(lefts) == len(open_runs)
    return ProgressFigures(
        progress=Progress(
            done=sum(run.progress.done for run in figures),
            remaining=_sum([run.progress.remaining for run in figures]),
        ),
        rate=sum(rates) if rates else None,
        left=ForecastInterval(
            low=max(left.low for left in lefts),
            expected=max(left.expected for left in lefts),
            high=None if None in highs else max(high for high in highs if high),
        )
        if is_known
        else None,
        paused_tasks=sum(run.paused_tasks for run in open_runs),
        budget_left=None,  # runs that share one spend it at rates of their own
        cost_usd=sum(costs) if len(costs) == len(figures) else None,
        budget_usd=(budgets[0] if shares_budget else sum(budgets)) if budgets else None,
        billable_usd=sum(run.billable_usd for run in figures),
        pauses=(),
        counts=counts,
    )


def _sum(intervals: Sequence[ForecastInterval]) -> ForecastInterval:
    highs = [interval.high for interval in intervals]
    return ForecastInterval(
        low=sum(interval.low for interval in intervals),
        expected=sum(interval.expected for interval in intervals),
        high=None if None in highs else sum(high for high in highs if high),
    )


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
