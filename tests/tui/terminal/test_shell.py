"""What stands around the screens: the palette, help, pages, pictures, signs, keys.

How often the monitor looks: what slows it down, and that a person's word stands.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tui.seats import Seat, watched
from tests.tui.sights import snapshot
from tui.render.colours import CONTRAST
from tui.render.glyphs import ASCII
from tui.run_screens import RUN_SCREENS
from tui.screens.base import PageScreen
from tui.screens.config import ConfigScreen
from tui.screens.palette import HelpScreen
from tui.screens.run import RunScreen
from tui.screens.tasks import TaskScreen, TasksScreen
from tui.terminal.shell import ENOUGH, MAX_FRAMES, RATES, REMOTE, RefreshRate, Timings


def offered(seat: Seat) -> dict[str, Callable[[], Any]]:
    """What the palette offers, by its title."""
    commands = seat.app.get_system_commands(seat.app.screen)
    return {command.title: command.callback for command in commands}


def notified(seat: Seat) -> str:
    """What was said in passing; a test's terminal does not show it."""
    return "\n".join(each.message for each in seat.app._notifications)


def test_the_palette_offers_everything_with_its_key(tmp_path: Path) -> None:
    async def press(seat: Seat) -> None:
        titles = offered(seat)
        for title in (
            "Tasks  (t)",
            "Config  (i)",
            "Freeze  (space)",
            "Look more often  (+)",
            "Quit  (q)",
            "Tasks that failed in ask",
            "Tasks with the error Overloaded",
            "Export answers",
            "Screenshot",
            "About",
            "Signs: ASCII only",
            "Theme siftlog-contrast",
            "Theme ansi-dark",
            "Theme nord",
        ):
            assert title in titles
        assert not [title for title in titles if title.startswith("Down")]
        titles["Theme siftlog-contrast"]()
        assert seat.app.theme == CONTRAST.name
        titles["Export answers"]()
        assert seat.app.clipboard == "siftlog export r1"
        await seat.press("t")
        assert "Sort  (s)" in offered(seat)
        await seat.press("escape", "colon", *"t-7")
        await seat.until(lambda: "Task 7" in seat.shown())
        await seat.press("enter")
        await seat.until(lambda: isinstance(seat.app.screen, TaskScreen))

    text, _ = watched(snapshot(tmp_path / "r1"), press)
    assert "task 7" in text


@pytest.mark.parametrize("size", [(79, 24), (80, 23)])
def test_no_screen_is_broken_by_a_window_that_is_too_small(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    async def press(seat: Seat) -> None:
        for place in RUN_SCREENS:
            await seat.press(place.key)
            lines = seat.shown().split("\n")
            said = "\n".join(lines[:6])
            assert "needs a window of 80 columns and 24 lines" in said, place.name
            assert not "".join(lines[6:]).strip(), place.name
            assert lines[0].strip(), place.name
        await seat.press("question_mark")
        assert "this screen" in seat.shown()

    watched(snapshot(tmp_path / "r1"), press, size=size)


def test_pages_are_read_copied_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("runs").mkdir()

    async def press(seat: Seat) -> None:
        offered(seat)["About"]()
        await seat.pilot.pause()
        assert isinstance(seat.app.screen, PageScreen)
        for words in (
            "Textual",
            "SQLite",
            "TERM",
            "120 columns",
            "theme",
            "last event",
        ):
            assert words in seat.shown()
        await seat.press("y", "w")
        assert seat.app.clipboard.startswith("siftlog ")
        await seat.press("escape", "i")
        assert isinstance(seat.app.screen, ConfigScreen)
        assert "there is no setup" in seat.shown()
        await seat.press("escape")
        assert isinstance(seat.app.screen, RunScreen)

    watched(snapshot(tmp_path / "runs" / "r1"), press)
    (page,) = tmp_path.glob("*.txt")
    assert page.name == "siftlog-r1-about-20260101T000000Z.txt"
    assert page.read_text().startswith("siftlog ")


def test_a_screenshot_is_a_picture_and_a_text_and_lies_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("runs").mkdir()

    async def press(seat: Seat) -> None:
        offered(seat)["Screenshot"]()
        await seat.pilot.pause()
        await seat.pilot.pause()
        assert str(tmp_path / "siftlog-r1-run-20260101T000000Z.svg") in notified(seat)
        monkeypatch.chdir(tmp_path / "runs" / "r1")
        offered(seat)["Screenshot"]()
        await seat.pilot.pause()
        await seat.pilot.pause()
        assert "belongs to the run r1" in notified(seat)

    watched(snapshot(tmp_path / "runs" / "r1"), press, size=(160, 50))
    names = sorted(path.name for path in tmp_path.glob("*.*"))
    assert names == [f"siftlog-r1-run-20260101T000000Z.{end}" for end in ("svg", "txt")]
    assert "▶ live" in (tmp_path / names[1]).read_text("utf-8")
    picture = (tmp_path / names[0]).read_text("utf-8")
    assert picture.startswith("<svg")
    assert "url(http" not in picture.replace('"', ""), "it asks nobody for a font"
    assert not list((tmp_path / "runs" / "r1").glob("siftlog*"))


def test_ascii_is_all_that_is_drawn_once_it_is_chosen(tmp_path: Path) -> None:
    async def press(seat: Seat) -> None:
        offered(seat)["Signs: ASCII only"]()
        await seat.settle()
        for keys in (("plus",), ("colon",), ("escape", "question_mark"), ("escape",)):
            await seat.press(*keys)
            await seat.pilot.pause(0.2)
            assert seat.shown().isascii()
        offered(seat)["Signs: all that there are"]()
        await seat.settle()

    text, _ = watched(snapshot(tmp_path / "r1"), press)
    assert "▶ live" in text
    assert watched(snapshot(tmp_path / "r1"), glyphs=ASCII)[0].isascii()


def test_keys_of_ones_own_act_and_are_told(tmp_path: Path) -> None:
    async def press(seat: Seat) -> None:
        seat.app.set_keymap({"help": "f1", "tasks": "T,f2"})
        await seat.press("question_mark", "t")
        assert isinstance(seat.app.screen, RunScreen)
        await seat.press("f1")
        assert isinstance(seat.app.screen, HelpScreen)
        assert "  T f2 " in seat.shown()
        assert "  f1 " in seat.shown()
        assert "Tasks  (T f2)" not in offered(seat)
        await seat.press("escape", "f2")
        assert isinstance(seat.app.screen, TasksScreen)

    watched(snapshot(tmp_path / "r1"), press)


def test_a_slow_terminal_is_looked_at_less_often_and_told(tmp_path: Path) -> None:
    async def press(seat: Seat) -> None:
        for _ in range(ENOUGH):
            seat.app.pace.frames.add(0.2)
        seat.app._poll()
        await seat.pilot.pause()
        assert notified(seat) == "this terminal is slow; 1 refreshes per second"
        await seat.press("plus")
        assert seat.app.pace.rate == 2.0

    watched(snapshot(tmp_path / "r1"), press)


def test_its_end_waits_for_what_is_being_broken_off(tmp_path: Path) -> None:
    """A child that was killed is to be waited for while there still is a loop."""
    ends: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(1000):  # longer than the screens take, in turns of the loop
                await asyncio.sleep(0)
            ends.append("waited for")

    async def press(seat: Seat) -> None:
        seat.app.run_worker(work())
        await seat.pilot.pause()

    watched(snapshot(tmp_path / "r1"), press)
    assert ends == ["waited for"]


def test_it_begins_slower_where_every_frame_crosses_a_network() -> None:
    assert RefreshRate(None, {}).rate == 2.0
    assert RefreshRate(None, {"SSH_CONNECTION": "1.2.3.4 5 6.7.8.9 22"}).rate == REMOTE
    assert RefreshRate(4.0, {"SSH_CONNECTION": "1.2.3.4 5 6.7.8.9 22"}).rate == 4.0


def test_slow_frames_make_it_slower_once() -> None:
    pace = RefreshRate(None, {})
    for _ in range(ENOUGH):
        assert not pace.is_relieved()
        pace.frames.add(0.06)
    assert pace.is_relieved()
    assert pace.rate == REMOTE
    assert not pace.is_relieved()


def test_one_slow_frame_among_quick_ones_changes_nothing() -> None:
    pace = RefreshRate(None, {})
    for seconds in (0.4, *[0.01] * ENOUGH):
        pace.frames.add(seconds)
    assert not pace.is_relieved()


def test_what_a_person_chose_is_kept() -> None:
    pace = RefreshRate(None, {})
    pace.step(1)
    for _ in range(ENOUGH):
        pace.frames.add(1.0)
    assert not pace.is_relieved()
    assert pace.rate == 4.0


@given(st.lists(st.sampled_from([-1, 1])))
def test_the_pace_stays_among_those_there_are(steps: list[int]) -> None:
    pace = RefreshRate(None, {})
    for by in steps:
        pace.step(by)
        assert pace.rate in RATES


@given(st.lists(st.floats(0, 10), min_size=1), st.floats(0.01, 1))
def test_a_percentile_is_a_time_that_was_taken(
    taken: list[float], share: float
) -> None:
    timings = Timings()
    for seconds in taken:
        timings.add(seconds)
    found = timings.percentile(share)
    assert found in taken
    assert found is not None
    at_most = sum(seconds <= found for seconds in timings.taken)
    assert at_most >= share * len(timings.taken)


def test_only_the_latest_times_are_kept() -> None:
    timings = Timings()
    assert timings.percentile(0.5) is None
    for seconds in (9.0, *[1.0] * MAX_FRAMES):
        timings.add(seconds)
    assert timings.percentile(1) == 1.0
