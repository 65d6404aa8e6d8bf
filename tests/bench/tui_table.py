"""The table of tasks at a million rows: key to paint, filters, memory (tui.md, 11).

A key is timed from the key's action until the screen's lines are drawn from rows read
of the log, in one process without a terminal. Textual's `DataTable` with ten thousand
rows stands beside it, held in memory.
"""

from __future__ import annotations

import asyncio
import random
import resource
import statistics
import tempfile
import time
from contextlib import closing
from pathlib import Path

from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.widgets import DataTable

from store.clock import SystemClock
from store.database import connect
from store.log.sqlite import SqliteLog
from store.query import parse_query
from store.read.tasks import TaskOrder
from store.runs import RunFolder
from tests.bench.row import Row
from tests.bench.verdict import most, shown
from tests.store.samples import RUN_STARTED, plan, task
from tests.tui.fake_tasks import TasksApp
from tui.render.glyphs import UNICODE
from tui.run_screens import MonitorSources, WatchedRun
from tui.screens.tasks import TasksScreen
from tui.sources.tasks import LogTasks
from tui.widgets.scrolling import CursorMove, Viewport
from tui.widgets.table import PagedTable

BLOCK = 10_000
SIZE = (120, 40)
KEYS = 100
JUMPS = 300
PAUSE_S = 0.1
"""Between two keys: without it a frame nobody sees any more is counted as well."""
SMALL = 10_000
FAILED_OF = 25
"""One task in so many has failed."""


def measure(quick: bool) -> list[Row]:
    """All rows; quick takes a tenth of a million."""
    return asyncio.run(_measure(100_000 if quick else 1_000_000))


async def _measure(count: int) -> list[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = RunFolder(Path(name))
        await _planned(folder.log, count)
        return [
            *await _filters(folder, count),
            *await _screen(folder, count),
            *await _data_table(),
        ]


async def _planned(path: Path, count: int) -> None:
    """A log of *count* tasks, some of which are made to have failed."""
    async with await SqliteLog.create(
        path, run_id="bench", config_sha256=b"", clock=SystemClock(), owner="bench"
    ) as log:
        await log.append(RUN_STARTED)
        for first in range(1, count + 1, BLOCK):
            tasks = [task(number) for number in range(first, first + BLOCK)]
            await log.append(plan(tasks, first=first))
    with closing(connect(path)) as conn:
        conn.execute(
            "UPDATE task SET state = 4, error = 'RateLimited', latency_ms = task % 977 "
            f"WHERE task % {FAILED_OF} = 0"
        )


async def _filters(folder: RunFolder, count: int) -> list[Row]:
    source = LogTasks(folder)
    first, whole = {}, {}
    for expression in ("", "state:failed", "item-77", "latency>0.9s"):
        query = parse_query(expression)
        began = time.perf_counter()
        step = await source.list_tasks(query, TaskOrder.NUMBER, None, 200)
        first[expression] = (time.perf_counter() - began) * 1000
        while step.after is not None:
            step = await source.list_tasks(query, TaskOrder.NUMBER, step.after, 10_000)
        whole[expression] = (time.perf_counter() - began) * 1000
    began = time.perf_counter()
    await source.list_tasks(parse_query(""), TaskOrder.SLOWEST, None, 200)
    top_ms = (time.perf_counter() - began) * 1000
    source.close()
    return [
        *(
            most("tui", f"first page of {expression or 'all'!r}, ms", ms, 100)
            for expression, ms in first.items()
        ),
        *(
            shown(f"whole list of {expression or 'all'!r}, {count:,} tasks, ms", ms)
            for expression, ms in whole.items()
        ),
        shown("top 1,000 by latency, ms", top_ms),
    ]


async def _screen(folder: RunFolder, count: int) -> list[Row]:
    clock = SystemClock()
    watched = WatchedRun(
        folder=folder,
        sources=MonitorSources.of(folder.path.parent, clock),
        glyphs=UNICODE,
    )
    screen = TasksScreen(watched)
    began = time.perf_counter()
    async with TasksApp(screen).run_test(size=SIZE) as pilot:
        table = screen.query_one("#tasks", PagedTable)
        await _until_drawn(table)
        first_ms = (time.perf_counter() - began) * 1000
        rng = random.Random(5)
        steps, jumps = [], []
        for _ in range(KEYS):
            await asyncio.sleep(PAUSE_S)
            steps.append(await _keyed(table, "DOWN"))
        before, cpu = _peak_mib(), time.process_time()
        for _ in range(KEYS):
            await asyncio.sleep(PAUSE_S)
            jumps.append(await _jumped(table, rng.randrange(count)))
        jump_cpu_ms = (time.process_time() - cpu) * 1000 / KEYS
        for _ in range(JUMPS):
            await _jumped(table, rng.randrange(count))
        grown = _peak_mib() - before
        drawing_ms = await _cpu_of_lines(pilot, table)
    return [
        shown("Tasks screen, start to first rows, ms", first_ms),
        most("tui", "key to drawn rows, one down, p95 ms", _p95(steps), 50),
        most("tui", "key to drawn rows, anywhere, p95 ms", _p95(jumps), 50),
        shown("of it CPU with the frame, mean, ms", jump_cpu_ms),
        shown("drawing 40 lines, CPU, ms", drawing_ms),
        most("tui", "peak memory of the process, MiB", _peak_mib(), 120),
        shown(f"of it for {KEYS + JUMPS} jumps, MiB", grown),
    ]


async def _until_drawn(table: PagedTable) -> None:
    """Wait for the rows in view, then draw the screen's lines."""
    while not _is_read(table):  # noqa: ASYNC110 - a bench sees it as a person does
        await asyncio.sleep(0.0005)
    _draw(table)


def _is_read(table: PagedTable) -> bool:
    top = table.scroll_offset.y
    last = min(len(table.numbers), top + table.size.height - 1)
    return last > top and all(table._pages.row(at) for at in range(top, last))


def _draw(table: PagedTable) -> None:
    for y in range(table.size.height):
        table.render_line(y)


async def _keyed(table: PagedTable, move: str) -> float:
    began = time.perf_counter()
    table.action_move(move)
    await _until_drawn(table)
    return (time.perf_counter() - began) * 1000


async def _jumped(table: PagedTable, position: int) -> float:
    height = table.size.height - 1
    began = time.perf_counter()
    viewport = Viewport(position, position).moved(
        CursorMove.UP, len(table.numbers), height
    )
    table._go(viewport)
    await _until_drawn(table)
    return (time.perf_counter() - began) * 1000


async def _cpu_of_lines(pilot: Pilot[None], table: PagedTable) -> float:
    await pilot.pause()
    began = time.process_time()
    for _ in range(50):
        _draw(table)
    return (time.process_time() - began) * 1000 / 50


class _Cells(App[None]):
    """Textual's own table with rows in memory."""

    def compose(self) -> ComposeResult:
        yield DataTable(cursor_type="row")


async def _data_table() -> list[Row]:
    app = _Cells()
    async with app.run_test(size=SIZE) as pilot:
        table = app.query_one(DataTable)
        table.add_columns(*(f"column {n}" for n in range(8)))
        began = time.perf_counter()
        for number in range(SMALL):
            table.add_row(*(f"{number} {n}" for n in range(8)), key=str(number))
        await pilot.pause()
        filled_s = time.perf_counter() - began
        changed = []
        for number in range(20):
            began = time.perf_counter()
            table.update_cell(str(number), table.ordered_columns[0].key, "changed")
            _lines_of(table)
            changed.append((time.perf_counter() - began) * 1000)
    return [
        shown(f"DataTable, {SMALL:,} rows: filling, s", filled_s),
        shown(f"DataTable, {SMALL:,} rows: a changed cell, ms", _p95(changed)),
    ]


def _lines_of(table: DataTable[str]) -> None:
    for y in range(table.size.height):
        table.render_line(y)


def _p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20)[18]


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
