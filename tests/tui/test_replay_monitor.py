"""The monitor on a replay: its line, its keys, and that it can do nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from textual.events import Key
from textual.keys import key_to_character
from textual.pilot import Pilot
from textual.widgets import Input

from store.runs import RunFolder
from tests.store.logs import COURSE, taken_up_again, written
from tests.store.memory_log import START_US, FakeClock
from tests.tui.comparisons import FakeChild
from tui.render.colours import DARK
from tui.render.glyphs import UNICODE
from tui.replay import Replay
from tui.replay_monitor import ReplayMonitor, past_sources
from tui.screens.config import ConfigScreen
from tui.screens.events import EventsScreen
from tui.screens.metrics import MetricsScreen
from tui.screens.run import RunScreen
from tui.screens.tasks import TasksScreen
from tui.terminal.shell import RefreshRate

Act = Callable[["Chair"], Awaitable[None]]


class Chair:
    """Before a replay: its keys, its screen, and our clock."""

    def __init__(
        self, pilot: Pilot[str], app: ReplayMonitor, past: Replay, clock: FakeClock
    ) -> None:
        self._pilot, self._clock = pilot, clock
        self.app, self.past = app, past

    def shown(self) -> list[str]:
        """The lines of the screen."""
        strips = self.app.screen._compositor.render_strips()
        return ["".join(part.text for part in strip) for strip in strips]

    async def tick(self, seconds: float = 0.0) -> str:
        """Let time pass, and everything that is due be read and shown; the bar."""
        self._clock.advance(seconds)
        for _ in range(2):
            self.app._poll()
            self.past.settle()
            self.past.wait()
        self.app._poll()
        await self._pilot.pause()
        await self._pilot.pause()
        return self.shown()[0]

    async def press(self, *keys: str) -> str:
        """Press keys, and see what they come to."""
        for key in keys:  # pilot's own way waits after each
            self.app.post_message(Key(key, key_to_character(key)))
            await self._pilot.pause()
        return await self.tick()


def replayed(
    folder: Path,
    act: Act,
    *,
    size: tuple[int, int] = (120, 40),
    log: Callable[[Path], Path] = taken_up_again,
) -> None:
    """Sit before a replay at 10x of a log that *log* makes."""
    run = RunFolder(folder / "runs" / "r1")
    run.path.mkdir(parents=True)
    log(run.log)
    clock = FakeClock(START_US + 1_000_000_000_000)

    async def sit() -> None:
        child = FakeChild()
        with closing(Replay(run, clock, 10.0)) as past:
            sources = past_sources(folder / "runs", past)
            app = ReplayMonitor(
                replace(sources, child=lambda: child),
                past,
                glyphs=UNICODE,
                theme=DARK.name,
                pace=RefreshRate(0.5, {}),
            )
            async with app.run_test(size=size) as pilot:
                chair = Chair(pilot, app, past, clock)
                await chair.tick()
                await act(chair)

    asyncio.run(sit())


def test_every_screen_says_that_it_is_a_replay_and_when(tmp_path: Path) -> None:
    screens = {
        "t": TasksScreen,
        "e": EventsScreen,
        "m": MetricsScreen,
        "i": ConfigScreen,
    }

    async def act(chair: Chair) -> None:
        bar = await chair.tick(1.0)
        assert bar.startswith(" REPLAY 10x · 2026-01-01T00:00:10Z ")
        assert "event 2 of 6" in bar
        assert "▶ live" in chair.shown()[1]
        for key, screen in screens.items():
            bar = await chair.press(key)
            assert isinstance(chair.app.screen, screen)
            assert bar.startswith(" REPLAY 10x · 2026-01-01T00:00:10Z ")
            assert len(chair.shown()) == 24

    replayed(tmp_path, act, size=(80, 24))


def test_space_pauses_and_other_keys_move_through_time(tmp_path: Path) -> None:
    async def act(chair: Chair) -> None:
        assert (await chair.press("space")).startswith(" REPLAY paused (10x)")
        assert "00:00:00Z" in await chair.tick(100.0)
        expected = {
            "full_stop": "event 2 of",
            "comma": "event 1 of",
            "right_square_bracket": "00:01:00Z",
            "left_square_bracket": "00:00:00Z",
            "right_curly_bracket": "00:10:00Z",
            "left_curly_bracket": "00:00:00Z",
            "greater_than_sign": "at the end",
            "less_than_sign": "event 1 of",
            "plus": "paused (20x)",
            "minus": "paused (10x)",
        }
        for key, said in expected.items():
            assert said in await chair.press(key), key
        places = {"4": "event 4 of", "-140s": "event 3 of", "9": "event 3 of"}
        for typed, said in places.items():
            (to,) = [
                command
                for command in chair.app.commands_for(typed)
                if command.title.startswith("To ")
            ]
            to.callback()
            assert said in await chair.tick()
        assert [each.message for each in chair.app._notifications] == [
            "there is no event 9: the log has events 1 to 6."
        ]
        await chair.press("less_than_sign")
        assert (await chair.press("space")).startswith(" REPLAY 10x")
        assert "00:00:10Z" in await chair.tick(1.0)

    replayed(tmp_path, act, size=(160, 50))


def test_time_that_goes_back_takes_every_screen_along(tmp_path: Path) -> None:
    async def act(chair: Chair) -> None:
        await chair.press("greater_than_sign", "e")
        await chair.tick()
        assert any("drained" in line for line in chair.shown())
        bar = await chair.press("less_than_sign")
        await chair.tick()
        assert "event 1 of" in bar
        assert isinstance(chair.app.screen, EventsScreen)
        assert not any("drained" in line for line in chair.shown())
        await chair.press("escape")
        assert isinstance(chair.app.screen, RunScreen)
        snapshot = chair.app.screen.snapshot
        assert snapshot is not None
        assert snapshot.status.last_seq == 1
        await chair.press("t")
        chair.app.screen.query_one(Input).value = "state:failed"
        await chair.press("full_stop", "comma")
        await chair.tick()
        assert isinstance(chair.app.screen, TasksScreen)
        assert chair.app.screen.query_one(Input).value == "state:failed"

    replayed(tmp_path, act, log=lambda path: written(path, *COURSE))


def test_no_key_leads_elsewhere_and_a_space_in_a_filter_is_one(tmp_path: Path) -> None:
    async def act(chair: Chair) -> None:
        for key in ("1", "escape", "c", "a", "P", "R", "C", "L"):
            await chair.press(key)
            assert isinstance(chair.app.screen, RunScreen), key
        offered = [
            command.title for command in chair.app.get_system_commands(chair.app.screen)
        ]
        assert not [title for title in offered if title.startswith("Run r")]
        assert not [title for title in offered if "…" in title]
        assert "To run finished, event 5" in offered
        await chair.press("t", "slash", "a", "space", "b")
        assert chair.app.screen.query_one(Input).value == "a b"
        assert not chair.past.playhead.is_paused
        await chair.press("escape", "q")
        assert chair.app.return_value == ""

    replayed(tmp_path, act)
