"""Before a monitor: its keys, its screen, and what it is given to see."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from textual.events import Key
from textual.pilot import Pilot

from store.runs import RunFolder
from tests.store.memory_log import FakeClock
from tests.tui.fake_events import FakeEvents
from tests.tui.fake_history import FakeHeadline
from tests.tui.fake_tasks import FakeTasks
from tests.tui.sights import FakeConfig, FakeListing, FakeSource
from tui.app import Monitor
from tui.render.colours import COLOUR_THEMES
from tui.render.glyphs import UNICODE, Glyphs
from tui.run_screens import MonitorSources
from tui.sources.run_list import ListedRun
from tui.sources.run_snapshot import ReadProblem, SnapshotOrProblem
from tui.terminal.shell import RefreshingScreen

LAST_DRAWN = ("q Quit", "make this one larger")


@dataclass(frozen=True)
class Seat:
    """Before a monitor: its keys, its screen, and what it is given to see."""

    pilot: Pilot[str]
    app: Monitor
    source: FakeSource

    def shown(self) -> str:
        """The cells of the screen, as lines of text."""
        strips = self.app.screen._compositor.render_strips()
        return "\n".join("".join(part.text for part in strip) for strip in strips)

    async def settle(self) -> None:
        """Wait for what is drawn last: the keys, or that the window is too small."""
        await self.pilot.pause()
        await self.until(lambda: any(text in self.shown() for text in LAST_DRAWN))

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait for what workers and threads bring about in their own time."""
        for _ in range(1500):
            if holds():
                return
            await self.pilot.pause(0.02)
        pytest.fail(f"it does not get there:\n{self.shown()}")

    async def press(self, *keys: str) -> None:
        """Press keys, and wait for what they do."""
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def burst(self, keys: str) -> None:
        """Press keys that come in one go, as over a slow line."""
        for key in keys:
            name = {"/": "slash", ":": "colon", "\r": "enter", "?": "question_mark"}
            self.app.post_message(Key(name.get(key, key), key))
        await self.pilot.pause()
        await self.until(lambda: all(w.group != "keys" for w in self.app.workers))
        await self.pilot.pause(0.3)

    async def look(self, sight: SnapshotOrProblem | None = None) -> None:
        """Let the screen in front look, at something else if it is named."""
        if sight is not None:
            self.source.sights = [sight]
        screen = self.app.screen
        assert isinstance(screen, RefreshingScreen)
        screen.poll()
        await self.pilot.pause()


Act = Callable[[Seat], Awaitable[None]]


def _sources(
    listing: FakeListing,
    source: FakeSource,
    headline: FakeHeadline | None = None,
    clock: FakeClock | None = None,
) -> MonitorSources:
    """What a monitor reads; the tasks are those of a small log."""
    return MonitorSources(
        listing=listing,
        run=lambda _: source,
        tasks=lambda _: FakeTasks(),
        events=lambda _: FakeEvents(),
        config=lambda _: FakeConfig(),
        clock=clock or FakeClock(),
        headline=lambda *_: headline or FakeHeadline(),
    )


def watched(
    sight: SnapshotOrProblem,
    act: Act | None = None,
    size: tuple[int, int] = (120, 40),
    glyphs: Glyphs = UNICODE,
    theme: str = COLOUR_THEMES[0].name,
    *,
    fake: FakeListing | None = None,
    headline: FakeHeadline | None = None,
    clock: FakeClock | None = None,
) -> tuple[str, FakeSource]:
    """What a monitor of one run shows in the end."""
    source = FakeSource([sight])

    async def watch() -> str:
        app = Monitor(
            _sources(fake or FakeListing(), source, headline, clock),
            glyphs=glyphs,
            run=RunFolder(Path("runs/r1")),
            theme=theme,
        )
        async with app.run_test(size=size) as pilot:
            seat = Seat(pilot, app, source)
            await seat.settle()
            if act is not None:
                await act(seat)
                await pilot.pause()
            return seat.shown()

    return asyncio.run(watch()), source


def listed(run_id: str, sight: SnapshotOrProblem | None) -> ListedRun:
    return ListedRun(folder=RunFolder(Path("runs") / run_id), snapshot=sight)


def listing(
    fake: FakeListing, act: Act | None = None, size: tuple[int, int] = (120, 30)
) -> str:
    """What the list of runs shows in the end."""
    source = FakeSource([ReadProblem(sentence="this run was opened")])

    async def watch() -> str:
        app = Monitor(_sources(fake, source), glyphs=UNICODE)
        async with app.run_test(size=size) as pilot:
            seat = Seat(pilot, app, source)
            await seat.settle()
            if act is not None:
                await act(seat)
                await pilot.pause()
            return seat.shown()

    return asyncio.run(watch())
