"""The Tasks screen: filters, orders, what is new, and every state in words."""

from __future__ import annotations

import re

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Static

from store.errors import StoreError
from store.testing import FakeClock
from store.views import Order
from tests.tui.fake_tasks import FakeTasks, TasksApp, watching
from tests.tui.hostile import HOSTILE
from tui.drawing.glyphs import ASCII, UNICODE, Glyphs
from tui.drawing.palette import MONOCHROME
from tui.screens.task import TaskScreen
from tui.screens.tasks import TasksScreen
from tui.widgets.line import Line
from tui.widgets.table import Table
from tui.widgets.task_pane import TaskPane

SIZES = [(80, 24), (100, 30), (120, 40), (160, 50)]


class Seat:
    """A screen under test and what stands on it."""

    def __init__(
        self, source: FakeTasks, expression: str = "", glyphs: Glyphs = UNICODE
    ) -> None:
        self.source = source
        self.clock = FakeClock()
        self.screen = TasksScreen(watching(source, glyphs=glyphs, clock=self.clock))
        self.screen.filter_by(expression)
        self.app = TasksApp(self.screen)

    @property
    def table(self) -> Table:
        return self.screen.query_one("#tasks", Table)

    def said(self, name: str) -> str:
        return " ".join(self.screen.query_one(f"#{name}", Line).said).strip()

    @property
    def complaint(self) -> str:
        said = self.screen.query_one("#said", Static)
        return str(said.content) if said.display else ""

    def lines(self) -> list[str]:
        """All that is on the screen."""
        strips = self.app.screen._compositor.render_strips()
        return ["".join(segment.text for segment in strip) for strip in strips]


async def _settled(pilot: Pilot[None]) -> None:
    for _ in range(3):
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()


async def _type(pilot: Pilot[None], watched: Seat, text: str) -> None:
    await pilot.press("slash")
    watched.screen.query_one("#filter", Input).value = text
    await pilot.press("enter")
    await _settled(pilot)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.asyncio
async def test_a_million_tasks_are_there_at_once(size: tuple[int, int]) -> None:
    watched = Seat(FakeTasks())
    async with watched.app.run_test(size=size) as pilot:
        await _settled(pilot)
        lines = watched.lines()
        assert lines[0].startswith(" TASKS 1120-a ")
        assert lines[0].endswith(" 1,000,000 of 1,000,000 · by number ")
        assert lines[3].startswith(" ▸ T-0000001  PMC7000001/claim:1 ")
        assert lines[-2].endswith("─ row 1 ")
        assert len(watched.source.asked) <= 2
        assert all(len(line) == size[0] for line in lines)


@pytest.mark.asyncio
async def test_a_filter_shows_what_fits_and_x_clears_it() -> None:
    watched = Seat(FakeTasks(1_000))
    async with watched.app.run_test(size=(120, 40)) as pilot:
        await _type(pilot, watched, "state:failed")
        assert watched.said("head").endswith("125 of 1,000 · by number")
        assert watched.table.chosen == 2
        await pilot.press("x")
        await pilot.pause(0.3)
        await _settled(pilot)
        assert watched.said("head").endswith("1,000 of 1,000 · by number")


@pytest.mark.asyncio
async def test_typing_filters_without_enter_and_esc_returns_to_the_table() -> None:
    watched = Seat(FakeTasks(1_000))
    async with watched.app.run_test(size=(120, 40)) as pilot:
        await _settled(pilot)
        await pilot.press("slash", *"PMC7000005")
        await pilot.pause(0.3)
        await _settled(pilot)
        assert watched.table.numbers[0] == 5
        await pilot.press("escape")
        assert watched.app.focused is watched.table


@pytest.mark.asyncio
async def test_a_filter_that_cannot_be_read_is_explained_and_changes_nothing() -> None:
    watched = Seat(FakeTasks(100))
    async with watched.app.run_test(size=(80, 24)) as pilot:
        await _type(pilot, watched, "stat:failed [/INST]")
        assert watched.complaint.startswith("there is no key 'stat': use state, ")
        assert len(watched.table.numbers) == 100
        await pilot.press("x")
        await pilot.pause(0.3)
        assert not watched.complaint


@pytest.mark.asyncio
async def test_a_screen_opened_with_a_filter_begins_with_it() -> None:
    watched = Seat(FakeTasks(1_000), "state:waiting")
    async with watched.app.run_test(size=(80, 24)) as pilot:
        await _settled(pilot)
        assert watched.table.chosen == 4
        assert watched.screen.query_one("#filter", Input).value == "state:waiting"


@pytest.mark.asyncio
async def test_a_list_without_tasks_names_the_filter_and_the_key() -> None:
    watched = Seat(FakeTasks(100), "nothing")
    async with watched.app.run_test(size=(80, 24)) as pilot:
        await _settled(pilot)
        assert "No task fits nothing: x clears the filter" in watched.lines()[3]


@pytest.mark.asyncio
async def test_s_and_the_titles_sort() -> None:
    watched = Seat(FakeTasks(100))
    async with watched.app.run_test(size=(120, 40)) as pilot:
        await _settled(pilot)
        await pilot.press("s")
        await _settled(pilot)
        assert watched.said("head").endswith("100 of 100 · newest first")
        at = watched.lines()[2].index("latency")
        await pilot.click(Table, offset=(at + 2, 0))
        await _settled(pilot)
        assert watched.source.listed[-1][1] is Order.SLOWEST
        assert watched.said("head").endswith("top 1,000 by latency of 100")


@pytest.mark.asyncio
async def test_new_tasks_are_counted_and_wait_for_r() -> None:
    watched = Seat(FakeTasks(1_000), "state:failed")
    async with watched.app.run_test(size=(120, 40)) as pilot:
        await _settled(pilot)
        await pilot.press("G")
        await _settled(pilot)
        chosen, before = watched.table.chosen, watched.lines()[3:-2]
        watched.source.count = watched.source.seq = 1_016
        watched.screen.look()
        await _settled(pilot)
        assert watched.lines()[3:-2] == before
        assert watched.said("foot") == "row 125 · 2 new, press r"
        await pilot.press("r")
        await _settled(pilot)
        assert watched.table.chosen == chosen
        assert len(watched.table.numbers) == 127
        assert watched.said("foot") == "row 125"


@pytest.mark.asyncio
async def test_a_task_that_changes_does_so_in_its_place() -> None:
    watched = Seat(FakeTasks(100))
    async with watched.app.run_test(size=(120, 40)) as pilot:
        await _settled(pilot)
        watched.source.changes[3] = {"key": "changed"}
        watched.source.seq += 1
        watched.screen.look()
        await _settled(pilot)
        assert "T-0000003  changed" in watched.lines()[5]
        assert watched.said("foot") == "row 1"


@pytest.mark.asyncio
async def test_space_freezes_what_is_shown_and_goes_on() -> None:
    watched = Seat(FakeTasks(100))
    async with watched.app.run_test(size=(80, 24)) as pilot:
        await _settled(pilot)
        await pilot.press("space")
        watched.source.changes[3] = {"key": "changed"}
        watched.source.seq += 1
        watched.screen.look()
        await _settled(pilot)
        assert "T-0000003  PMC7000003" in watched.lines()[5]
        assert watched.said("foot").startswith("FROZEN: space goes on")
        await pilot.press("space")
        await _settled(pilot)
        assert "T-0000003  changed" in watched.lines()[5]


@pytest.mark.asyncio
async def test_a_log_that_cannot_be_read_is_a_sentence() -> None:
    source = FakeTasks(100)
    source.trouble = StoreError("the log is gone: list the runs")
    watched = Seat(source)
    async with watched.app.run_test(size=(80, 24)) as pilot:
        await _settled(pilot)
        assert watched.complaint == "the log is gone: list the runs."
        await pilot.press("j", "G", "s", "r")
        await _settled(pilot)
        assert watched.complaint
        source.trouble = None
        await pilot.press("r")
        await _settled(pilot)
        assert not watched.complaint
        assert len(watched.table.numbers) == 100


@pytest.mark.asyncio
async def test_enter_opens_the_task_and_esc_comes_back() -> None:
    watched = Seat(FakeTasks(100))
    async with watched.app.run_test(size=(80, 24)) as pilot:
        await _settled(pilot)
        await pilot.press("j", "enter")
        await _settled(pilot)
        assert isinstance(watched.app.screen, TaskScreen)
        assert watched.lines()[0].startswith(" T-0000002 · ✗ failed · RateLimited")
        await pilot.press("escape")
        await _settled(pilot)
        assert watched.app.screen is watched.screen
        assert watched.table.chosen == 2


@pytest.mark.asyncio
async def test_on_a_wide_screen_the_task_opens_beside_and_follows() -> None:
    watched = Seat(FakeTasks(100))
    async with watched.app.run_test(size=(160, 50)) as pilot:
        await _settled(pilot)
        await pilot.press("enter")
        await _settled(pilot)
        assert watched.screen.query_one(TaskPane).display
        await pilot.press("j")
        await _settled(pilot)
        assert watched.said("task-head").startswith("T-0000002")
        await pilot.press("escape")
        await _settled(pilot)
        assert not watched.screen.query_one(TaskPane).display


@pytest.mark.asyncio
async def test_leaving_the_screen_lets_go_of_the_log() -> None:
    watched = Seat(FakeTasks(100))
    async with watched.app.run_test(size=(80, 24)) as pilot:
        await _settled(pilot)
        await pilot.press("escape")
        await _settled(pilot)
    assert watched.source.is_closed


@pytest.mark.asyncio
async def test_y_copies_the_name() -> None:
    watched = Seat(FakeTasks(100))
    async with watched.app.run_test(size=(80, 24)) as pilot:
        await _settled(pilot)
        await pilot.press("j", "y")
        assert watched.app.clipboard == "T-0000002"


@pytest.mark.parametrize("size", [SIZES[0], SIZES[-1]])
@pytest.mark.asyncio
async def test_hostile_texts_neither_act_nor_disturb(size: tuple[int, int]) -> None:
    source = FakeTasks(100)
    for number, text in enumerate(HOSTILE, 1):
        source.changes[number] = {
            "key": text,
            "stage": text,
            "model": text,
            "error": text,
            "reason": text,
        }
        source.texts[13] = text
    watched = Seat(source)
    async with watched.app.run_test(size=size) as pilot:
        await _settled(pilot)
        for _ in HOSTILE:
            await pilot.press("enter")
            await _settled(pilot)
            assert not re.search(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e]", _all(watched))
            await pilot.press("escape", "j")
        assert watched.app.is_running


def _all(watched: Seat) -> str:
    return "".join(watched.lines())


@pytest.mark.asyncio
async def test_without_colour_and_signs_the_screen_says_the_same() -> None:
    watched = Seat(FakeTasks(100), "state:failed", ASCII)
    watched.app.theme = MONOCHROME.name
    async with watched.app.run_test(size=(120, 40)) as pilot:
        await _settled(pilot)
        lines = watched.lines()
        assert "".join(lines[:-1]).isascii()
        assert re.search(r"> T-0000002 +\S+ +score +\S+ +x failed ", lines[3])
