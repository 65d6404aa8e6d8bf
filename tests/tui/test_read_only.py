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

from store.clock import SystemClock
from store.events import RunFinished
from store.runs import RunFolder
from store.sqlite import SqliteLog
from tests.store.logs import COURSE, written
from tui.app import Monitor
from tui.drawing.glyphs import UNICODE
from tui.places import PLACES
from tui.watched import Sources

LEFT_OUT = ("Detach", "Suspend", "Theme ")
"""How the commands begin that end the monitor, put it aside, or are all the same."""
WAYS = ((), ("2",), *((place.key,) for place in PLACES), ("t", "enter"))
"""Keys that lead from the run to every other kind of screen."""


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


async def _press(pilot: Pilot[str], *keys: str) -> None:
    await pilot.press(*keys)
    await _settle(pilot)


async def _settle(pilot: Pilot[str]) -> None:
    """Wait until the screen in front stands."""
    await pilot.pause(0.02)
    for _ in range(200):
        if pilot.app.screen.query(Widget):
            return
        await pilot.pause(0.02)


async def _try_all(pilot: Pilot[str], app: Monitor) -> set[str]:
    """Run every command that any screen offers, and say yes to whatever it asks."""
    done: set[str] = set()
    for keys in (*WAYS, ("1",)):
        await _press(pilot, "2", *keys)
        while True:
            offered = app.get_system_commands(app.screen)
            left = (c for c in offered if not c.title.startswith(LEFT_OUT))
            new = [c for c in left if c.title not in done]
            if not new:
                break
            done.add(new[0].title)
            called = new[0].callback()
            if asyncio.iscoroutine(called):
                await called
            await _settle(pilot)
            if isinstance(app.screen, ModalScreen):
                await _press(pilot, "y", "enter")
            if isinstance(app.screen, ModalScreen):
                app.pop_screen()
    return done


@pytest.mark.parametrize("is_live", [True, False], ids=["live", "finished"])
def test_every_command_leaves_the_folder_of_the_run_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_live: bool
) -> None:
    folder = RunFolder(tmp_path / "runs" / "r1")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    monkeypatch.setenv("HOME", str(elsewhere))

    async def main() -> None:
        async with _run(folder, is_live=is_live):
            before = _bytes(folder.path)
            sources = Sources.of(folder.path.parent, SystemClock(), is_read_only=True)
            app = Monitor(sources, glyphs=UNICODE, run=folder)
            async with app.run_test(size=(80, 24)) as pilot:
                await pilot.pause(0.3)
                assert app.return_value is None
                await _press(pilot, *"PLRC", "y")
                done = await _try_all(pilot, app)
                assert folder.is_alive() == is_live
            expected = {
                "Run r1",
                "Tasks that failed",
                "Commands log  (a)",
                "Screenshot",
            }
            assert expected <= done
            assert _bytes(folder.path) == before

    asyncio.run(main())
