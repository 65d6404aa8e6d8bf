"""Where only looking is wanted, nothing that the monitor offers leaves a trace."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Footer

from store.clock import SystemClock
from store.events import RunFinished
from store.log.sqlite import SqliteLog
from store.runs import RunFolder
from tests.store.logs import COURSE, written
from tui.app import Monitor
from tui.render.glyphs import UNICODE
from tui.run_screens import MonitorSources
from tui.screens.runs import RunsScreen

ENDS = ("Quit", "Suspend", "Theme ")
"""How the commands begin that end the monitor, put it aside, or are all the same."""
NO_RUN = ("Help", "Look ", "Run ", "Runs", "Screenshot", "Signs", "About")
"""Those that are about no run: once is enough."""

TRIED = {"Tasks that failed", "Commands log  (a)", "Metrics  (m)", "Write to file  (w)"}
"""Some of those that are tried with each run."""


def _bytes(folder: Path) -> dict[str, bytes]:
    """What a run's folder holds; SQLite's own index and an empty WAL apart."""
    found = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith("-shm")
    }
    return {name: held for name, held in found.items() if held or "-wal" not in name}


@asynccontextmanager
async def _run(folder: RunFolder, *, is_live: bool) -> AsyncIterator[None]:
    """A run that its process holds, or one that is over."""
    folder.path.mkdir(parents=True)
    ended = RunFinished(completed=2, failed=1, skipped=1)
    end = () if is_live else ([ended],)
    await asyncio.to_thread(written, folder.log, *COURSE[:-1], *end)
    if not is_live:
        yield
        return
    async with await SqliteLog.open(
        folder.log, clock=SystemClock(), owner="tester"
    ) as log:
        await log.heartbeat()
        yield


async def _settle(pilot: Pilot[str]) -> None:
    """Wait until the screen in front stands."""
    await pilot.pause(0.02)
    for _ in range(1500):
        if pilot.app.screen.query(Widget):
            return
        await pilot.pause(0.02)


async def _try_all(pilot: Pilot[str], app: Monitor, but: tuple[str, ...]) -> set[str]:
    """Run every command that a screen offers, and yes to whatever it asks.

    Commands lead from screen to screen; where one offers nothing new, it is left.
    """
    done: set[str] = set()
    for leaving in ("escape", "2", "1", "2"):
        while True:
            offered = app.get_system_commands(app.screen)
            left = (c for c in offered if not c.title.startswith(but))
            new = [c for c in left if c.title not in done]
            if not new:
                break
            done.add(new[0].title)
            called = new[0].callback()
            if asyncio.iscoroutine(called):
                await called
            await _settle(pilot)
            if isinstance(app.screen, ModalScreen):
                await pilot.press("y", "enter")
            if isinstance(app.screen, ModalScreen):
                app.pop_screen()
        await pilot.press(leaving)
        await _settle(pilot)
    return done


def test_every_command_leaves_the_folders_of_runs_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live, over = (RunFolder(tmp_path / "runs" / name) for name in ("live", "over"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    monkeypatch.setenv("HOME", str(elsewhere))
    # the line of keys is made anew after every command: half of what all this costs
    monkeypatch.setattr(Footer, "compose", lambda _: iter(()))

    async def main() -> None:
        async with _run(live, is_live=True), _run(over, is_live=False):
            before = _bytes(live.path.parent)
            sources = MonitorSources.of(
                live.path.parent, SystemClock(), is_read_only=True
            )
            app = Monitor(sources, glyphs=UNICODE, run=live)
            async with app.run_test(size=(80, 24)) as pilot:
                await pilot.press(*"PLRC", "y")
                done = await _try_all(pilot, app, (*ENDS, "Run over"))
                assert {*TRIED, "Screenshot", "Run live"} <= done
                assert live.is_alive()
                app.on_runs_screen_opened(RunsScreen.Opened(over))
                await _settle(pilot)
                await pilot.press(*"PLRC", "y")
                assert await _try_all(pilot, app, (*ENDS, *NO_RUN)) >= TRIED
            assert app.return_value is None
            assert _bytes(live.path.parent) == before

    asyncio.run(main())
