"""The Events screen at more than a million events: pages, searches, feeds.

Searches go through a whole log that holds nothing of what is sought, step by step as
the screen does. A feed is what the loop does twice a second while it follows: taking in
what is new, handing a full ring to the table, and drawing it.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from store.clock import SystemClock
from store.events import Entry, Event
from store.log.sqlite import SqliteLog
from store.query import parse_event_query
from store.read.history import SeqRange
from store.runs import RunFolder
from tests.bench.row import Row
from tests.bench.verdict import most, shown
from tests.store.samples import RUN_STARTED, answered, completed, failed, plan, started
from tests.store.samples import task as planned
from tests.tui.fake_events import event
from tests.tui.fake_tasks import TasksApp
from tui.render.glyphs import UNICODE
from tui.run_screens import MonitorSources, WatchedRun
from tui.screens.events import EventsScreen
from tui.sources.events import LINES, EventWindow, LogEvents
from tui.widgets.events import EventTable

BLOCK, UNIT = 10_000, 1_000
"""Tasks planned at once, and tasks whose events are appended at once."""
SIZE = (120, 40)
PAGE = 500
FEEDS = 50
NEW = 500
"""Events between two looks at a thousand a second."""
FAILED_OF = 25
"""One task in so many fails once."""
SOUGHT = {
    "an error class": "err:Nothing",
    "a kind": "kind:task_failed",
    "a model": "model:nobody",
    "a reason": "reason:nothing",
    "a text": '"not there"',
}


def measure(quick: bool) -> list[Row]:
    """All rows; quick takes a tenth of 1.2 million."""
    return asyncio.run(_measure(40_000 if quick else 400_000))


async def _measure(tasks: int) -> list[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = RunFolder(Path(name))
        await _written(folder.log, tasks)
        return [*await _reads(folder), *await _screen(folder)]


async def _written(path: Path, tasks: int) -> None:
    """A log of three events for each task, and two more where one has failed."""
    async with await SqliteLog.create(
        path, run_id="bench", config_sha256=b"", clock=SystemClock(), owner="bench"
    ) as log:
        await log.append(RUN_STARTED)
        for first in range(1, tasks + 1, BLOCK):
            block = [planned(number) for number in range(first, first + BLOCK)]
            await log.append(plan(block, first=first))
            for begin in range(first, first + BLOCK, UNIT):
                await log.append(*_course(range(begin, begin + UNIT)))


def _course(numbers: range) -> Iterator[Entry | Event]:
    for number in numbers:
        attempt = 1
        if number % FAILED_OF == 0:
            yield from (started(number), failed(number))
            attempt = 2
        yield started(number, attempt)
        yield answered(number, attempt, cost_usd=0.001)
        yield completed(number, attempt)


async def _reads(folder: RunFolder) -> list[Row]:
    source = LogEvents(folder)
    last = (await source.tip()).seq
    rows = []
    everything = parse_event_query("")
    for what, stretch in {"last": last, "in the middle": last // 2}.items():
        began = time.perf_counter()
        await source.find(
            everything, SeqRange(1, stretch), limit=PAGE, is_backward=True
        )
        ms = (time.perf_counter() - began) * 1000
        rows.append(most("tui", f"{PAGE} events, {what}, ms", ms, 50))
    began = time.perf_counter()
    await _searched(source, "kind:command_*", last)
    rare_ms = (time.perf_counter() - began) * 1000
    rows.append(most("tui", "a rare kind, by its marks, whole log, ms", rare_ms, 50))
    for what, expression in SOUGHT.items():
        steps = await _searched(source, expression, last)
        whole_s = sum(steps) / 1000
        rows += [
            most("tui", f"{what} that is not there, a step, p95 ms", _p95(steps), 50),
            shown(f"{what} that is not there, in {last:,} events, s", whole_s),
        ]
    source.close()
    return rows


async def _searched(source: LogEvents, expression: str, last: int) -> list[float]:
    """Milliseconds of each step of a search through the whole log."""
    query = parse_event_query(expression)
    rest, steps = SeqRange(1, last), []
    while len(rest):
        began = time.perf_counter()
        found = await source.find(query, rest, limit=PAGE, is_backward=True)
        steps.append((time.perf_counter() - began) * 1000)
        rest = found.rest
    return steps


async def _screen(folder: RunFolder) -> list[Row]:
    clock = SystemClock()
    sources = MonitorSources.of(folder.path.parent, clock)
    watched = WatchedRun(folder=folder, sources=sources, glyphs=UNICODE)
    screen = EventsScreen(watched)
    began = time.perf_counter()
    async with TasksApp(screen).run_test(size=SIZE):
        table = screen.query_one(EventTable)
        while not table.numbers:  # noqa: ASYNC110 - a bench sees it as a person does
            await asyncio.sleep(0.0005)
        first_ms = (time.perf_counter() - began) * 1000
        ring = EventWindow.at(0).with_newer(
            [event(n) for n in range(1, LINES + 1)], LINES
        )
        feeds = []
        for number in range(FEEDS):
            after = LINES + number * NEW
            new = [event(seq) for seq in range(after + 1, after + NEW + 1)]
            began = time.process_time()
            ring = ring.with_newer(new, after + NEW)
            table.show({line.recorded.seq: line for line in ring.lines})
            table.to_bottom()
            for y in range(SIZE[1]):
                table.render_line(y)
            feeds.append((time.process_time() - began) * 1000)
    return [
        shown("Events screen, start to first rows, ms", first_ms),
        most("tui", f"{NEW} new events, ring and lines, CPU, p95 ms", _p95(feeds), 8),
    ]


def _p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20)[18]
