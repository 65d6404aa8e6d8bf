"""The screens about a run: none is imported before somebody goes there.

A monitor that is left open: what it holds, and what it keeps others from.

A day of a run is written at speed by a clock that is moved by hand (two hours
without SIFTLOG_PROVE), and looked at as often as a person would see change.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path

import pytest
from textual.screen import Screen

from store.database import SQL
from store.events import RunStarted
from store.log.sqlite import SqliteLog
from store.runs import RunFolder
from tests.bench.long_log import EVENTS_A_TASK, beginning, planned, work
from tests.store.memory_log import FakeClock
from tests.store.samples import plan
from tui.app import Monitor
from tui.render.glyphs import UNICODE
from tui.render.layout import Room
from tui.render.run_panels import RUN_PANELS, header
from tui.run_screens import RUN_SCREENS, MonitorSources
from tui.sources.run_snapshot import RunSnapshot, RunSource


def test_every_place_names_a_screen_and_no_key_or_name_twice() -> None:
    for place in RUN_SCREENS:
        module, _, name = place.screen.partition(":")
        assert issubclass(getattr(import_module(module), name), Screen)
    assert len({place.key for place in RUN_SCREENS}) == len(RUN_SCREENS)
    assert len({place.name for place in RUN_SCREENS}) == len(RUN_SCREENS)


def test_the_monitor_starts_without_the_screens_that_are_not_in_front() -> None:
    code = "import sys, tui.app; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "tui.screens.run" in loaded
    assert not {place.screen.partition(":")[0] for place in RUN_SCREENS} & set(loaded)


PROVE = "SIFTLOG_PROVE" in os.environ
HOURS = 24.0 if PROVE else 2.0
LOOKS = 2 if PROVE else 1
"""Looks a minute."""
EVENTS = 60 if PROVE else 12
"""Events a minute."""
MINUTES = round(HOURS * 60)
WARM = 70
"""Minutes after which charts and forecast hold all that they look back on."""
ROOM = Room(width=70, height=12, glyphs=UNICODE)
GROWTH = (4 if PROVE else 1) << 20
"""Bytes that a monitor may hold more in the end than after its first hour: textual
keeps the widths of the texts it saw last, some thousands of them."""


@asynccontextmanager
async def running(
    folder: RunFolder, tasks: int, clock: FakeClock
) -> AsyncIterator[SqliteLog]:
    """A run with so many tasks planned."""
    folder.path.mkdir(parents=True)
    async with await SqliteLog.create(
        folder.log, run_id="r1", config_sha256=b"", clock=clock, owner="tester"
    ) as log:
        started: RunStarted = beginning(folder)
        await log.append(started, plan([planned(n + 1) for n in range(tasks)]))
        await log.heartbeat()
        yield log


@pytest.mark.asyncio
@pytest.mark.timeout(900 if PROVE else 60)
async def test_a_day_of_looking_holds_no_more_than_an_hour_does_nor_reads_more(
    tmp_path: Path,
) -> None:
    folder, clock = RunFolder(tmp_path / "r1"), FakeClock()
    tasks = MINUTES * EVENTS // EVENTS_A_TASK + 100
    held: list[int] = []
    steps: list[int] = []
    largest = 0
    async with running(folder, tasks, clock) as log:
        events = work(1, tasks + 1)
        with RunSource(folder, clock) as source:
            for minute in range(MINUTES):
                for _ in range(LOOKS):
                    clock.advance(60 / LOOKS)
                    some = itertools.islice(events, EVENTS // LOOKS)
                    await log.append(*some)
                    steps.append(_steps_of_a_look(source))
                await log.heartbeat()
                largest = max(largest, log.statistics().wal_bytes)
                if minute == WARM:
                    tracemalloc.start()
                if minute > WARM and minute % 10 == 0:
                    held.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert max(held) - held[0] < GROWTH
    # in steps of SQLite's machine: nothing is timed here
    tenth = len(steps) // 10
    assert max(steps[-tenth:]) < 2 * max(steps[WARM * LOOKS :][:tenth])
    assert largest < 2 * (8 << 20)


def _steps_of_a_look(source: RunSource) -> int:
    """What a look, and drawing what it saw, costs SQLite, in hundreds of steps."""
    taken = 0

    def count() -> int:
        nonlocal taken
        taken += 1
        return 0

    if source._reader is not None:
        source._reader.set_progress_handler(count, 100)
    sight = source.poll()
    assert isinstance(sight, RunSnapshot)
    header(sight, ROOM)
    for part in RUN_PANELS:
        part.draw(sight, ROOM)
    return taken


@pytest.mark.asyncio
async def test_no_place_of_the_monitor_keeps_the_writer_from_resetting_its_wal(
    tmp_path: Path,
) -> None:
    folder, clock = RunFolder(tmp_path / "r1"), FakeClock()
    async with running(folder, 500, clock) as log:
        events = work(1, 501)
        await log._thread.run(lambda conn: conn.execute("PRAGMA busy_timeout = 50"))
        monitor = Monitor(
            MonitorSources.of(tmp_path, clock), glyphs=UNICODE, run=folder
        )

        async def is_reset() -> bool:
            """Whether a checkpoint gets the whole WAL, whatever has been read."""
            await log.append(*itertools.islice(events, 100))
            busy, _, _ = await log._thread.run(
                lambda conn: conn.execute(SQL["checkpoint_truncate"]).fetchone()
            )
            return not busy

        async with monitor.run_test(size=(120, 40)) as pilot:
            for key in ("2", *(place.key for place in RUN_SCREENS), "1"):
                await pilot.press(key)
                await pilot.pause(0.05)
                assert await is_reset(), key
        # who holds a cursor does keep it: the question can be answered otherwise
        with RunSource(folder, clock) as source:
            source.poll()
            assert source._reader is not None
            cursor = source._reader.execute("SELECT seq FROM event")
            cursor.fetchone()
            assert not await is_reset()
            cursor.close()
