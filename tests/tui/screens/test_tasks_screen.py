"""The Tasks screen: filters, orders, what is new, and every state in words."""

from __future__ import annotations

import asyncio
import re

import pytest
from textual import events
from textual.pilot import Pilot
from textual.widgets import Static

from store.errors import StoreError
from store.query import Query
from store.read.tasks import TaskListStep, TaskOrder
from tests.store.memory_log import FakeClock
from tests.tui.fake_tasks import FakeTasks, TasksApp, settled, watching
from tests.tui.hostile import HOSTILE
from tui.render.colours import MONOCHROME
from tui.render.glyphs import ASCII, UNICODE, Glyphs
from tui.screens.tasks import SortMenu, TaskScreen, TasksScreen
from tui.sources.filters import FilterMemory, Filters
from tui.widgets.filter_field import FilterField
from tui.widgets.panel import TextLine
from tui.widgets.table import PagedTable
from tui.widgets.task_pane import TaskPane
from tui.widgets.text_view import TextView


class Seat:
    """A screen under test and what stands on it."""

    def __init__(
        self, source: FakeTasks, expression: str = "", glyphs: Glyphs = UNICODE
    ) -> None:
        self.source = source
        self.memory = FilterMemory()
        self.screen = TasksScreen(
            watching(source, glyphs=glyphs, clock=FakeClock(), filters=self.memory)
        )
        self.screen.filter_by(expression)
        self.app = TasksApp(self.screen)

    @property
    def table(self) -> PagedTable:
        return self.screen.query_one("#tasks", PagedTable)

    @property
    def field(self) -> FilterField:
        return self.screen.query_one(FilterField)

    def said(self, name: str) -> str:
        return " ".join(self.screen.query_one(f"#{name}", TextLine).texts).strip()

    @property
    def complaint(self) -> str:
        said = self.screen.query_one("#said", Static)
        return str(said.content) if said.display else ""

    @property
    def told(self) -> str:
        """The last sentence that came and goes."""
        return [each.message for each in self.app._notifications][-1]

    def lines(self) -> list[str]:
        """All that is on the screen."""
        strips = self.app.screen._compositor.render_strips()
        return ["".join(segment.text for segment in strip) for strip in strips]


async def _press(pilot: Pilot[None], *keys: str) -> None:
    await pilot.press(*keys)
    await settled(pilot)


async def _type(pilot: Pilot[None], seat: Seat, text: str) -> None:
    await pilot.press("slash")
    seat.field.value = text
    await _press(pilot, "enter")


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
@pytest.mark.asyncio
async def test_a_million_tasks_are_there_at_once(size: tuple[int, int]) -> None:
    seat = Seat(FakeTasks(1_000_000))
    async with seat.app.run_test(size=size) as pilot:
        await settled(pilot)
        lines = seat.lines()
        assert lines[0].startswith(" TASKS 1120-a ")
        assert lines[0].endswith(" 1,000,000 of 1,000,000 · by number ")
        assert lines[3].startswith(" ▸     1  PMC7…1/claim:1 ")
        assert re.search(r" 2/3 right ", lines[3])
        assert lines[-2].endswith("─ row 1 ")
        assert len(seat.source.asked) <= 3
        assert all(len(line) == size[0] for line in lines)


@pytest.mark.asyncio
async def test_a_filter_shows_what_fits_and_its_matches_are_found_in_the_whole() -> (
    None
):
    seat = Seat(FakeTasks(1_000))
    async with seat.app.run_test(size=(120, 40)) as pilot:
        await _press(pilot, "n")
        assert seat.told == "No filter: / sets one."
        await _type(pilot, seat, "state:failed")
        assert seat.said("head").endswith("125 of 1,000 · by number")
        assert seat.table.chosen == 2
        assert seat.screen.task_filter == "state:failed"
        await _press(pilot, "n")
        assert seat.table.chosen == 10
        await _press(pilot, "x")
        assert seat.said("head").endswith("1,000 of 1,000 · by number")
        assert seat.table.chosen == 1
        found = []
        for key in ("n", "n", "N", "N"):
            await _press(pilot, key)
            found.append(seat.table.chosen)
        assert found == [2, 10, 2, 2]
        assert seat.told == "No task before this one fits state:failed."


@pytest.mark.asyncio
async def test_typing_filters_and_what_was_used_comes_back_with_up() -> None:
    seat = Seat(FakeTasks(1_000))
    seat.memory.filters = Filters(recent=("state:waiting", "state:failed"))
    async with seat.app.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        # keys that come in one go, as over a slow line: none of them acts on the list
        for key in ("slash", *"0005", "slash"):
            seat.app.post_message(events.Key(key, "/" if key == "slash" else key))
        while seat.field.expression != "0005/":
            await pilot.pause(0.05)
        await settled(pilot)
        assert seat.table.numbers[0] == 5
        await pilot.press("escape")
        assert seat.app.focused is seat.table
        await _press(pilot, "asterisk")
        assert seat.memory.filters.starred == ("0005/",)
        assert seat.memory.filters.recent[0] == "0005/"
        await pilot.press("x", "slash", *"sta")
        seen = []
        for key in ("up", "up", "up", "up", "down", "down", "down", "down"):
            await pilot.press(key)
            seen.append(seat.field.value)
        older = ["0005/", "state:waiting", "state:failed"]
        assert seen == [*older, older[-1], *older[1::-1], "sta", "sta"]
        seat.field.post_message(events.Paste("\x1b]0;t\x07題\u202e"))
        await pilot.press("end")
        assert seat.field.value == "sta]0;t題"
        await pilot.press("escape", "x", "asterisk")
        assert seat.told == "There is no filter to give a star: / types one."


@pytest.mark.asyncio
async def test_a_filter_that_cannot_be_read_is_explained_and_changes_nothing() -> None:
    seat = Seat(FakeTasks(100))
    async with seat.app.run_test(size=(80, 24)) as pilot:
        await _type(pilot, seat, "PMC stat:failed [/INST]")
        mark, sentence = seat.complaint.split("\n")
        assert sentence == (
            "there is no key 'stat': did you mean 'state'? esc undoes it."
        )
        assert len(seat.table.numbers) == 100
        # the mark stands under the key
        at = seat.lines()[1].index("stat:failed")
        assert seat.lines()[2][at] == "^"
        assert mark.endswith("^")
        await _press(pilot, "x")
        assert not seat.complaint


@pytest.mark.asyncio
@pytest.mark.parametrize("is_entered", [False, True])
async def test_esc_undoes_a_filter_that_cannot_be_read(*, is_entered: bool) -> None:
    seat = Seat(FakeTasks(100))
    async with seat.app.run_test(size=(80, 24)) as pilot:
        await _type(pilot, seat, "state:waiting")
        await pilot.press("slash")
        seat.field.value = "stat:failed"
        seat.field.read()
        await settled(pilot)
        if is_entered:
            await _press(pilot, "enter")
        assert seat.complaint
        await _press(pilot, "escape")
        assert not seat.complaint
        assert seat.field.value == "state:waiting"
        assert seat.app.screen is seat.screen
        # the keys of the list work again
        await _press(pilot, "x")
        assert seat.field.value == ""
        assert len(seat.table.numbers) == 100


@pytest.mark.asyncio
async def test_a_screen_begins_with_its_filter_and_says_where_nothing_fits() -> None:
    seat = Seat(FakeTasks(100), "nothing")
    async with seat.app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        assert seat.field.value == "nothing"
        assert "No task fits nothing: x clears the filter" in seat.lines()[3]
        seat.screen.filter_by("state:waiting")
        await settled(pilot)
        assert seat.table.chosen == 4


@pytest.mark.asyncio
async def test_s_asks_for_an_order_and_the_titles_sort() -> None:
    seat = Seat(FakeTasks(100))
    async with seat.app.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await pilot.press("s", "j", "k", "j", "enter")
        await settled(pilot)
        assert seat.said("head").endswith("100 of 100 · newest first")
        at = seat.lines()[2].index("latency")
        await pilot.click(PagedTable, offset=(at + 2, 0))
        await settled(pilot)
        assert seat.source.listed[-1][1] is TaskOrder.SLOWEST
        assert seat.said("head").endswith("top 1,000 by latency of 100")
        await pilot.press("s")
        assert isinstance(seat.app.screen, SortMenu)
        await _press(pilot, "escape")
        assert seat.source.listed[-1][1] is TaskOrder.SLOWEST


@pytest.mark.asyncio
async def test_new_tasks_wait_for_r_and_those_that_change_stay_in_place() -> None:
    seat = Seat(FakeTasks(1_000), "state:failed")
    async with seat.app.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await _press(pilot, "G")
        chosen, before = seat.table.chosen, seat.lines()[3:-2]
        seat.source.count = seat.source.seq = 1_016
        seat.screen.poll()
        await settled(pilot)
        assert seat.lines()[3:-2] == before
        assert seat.said("foot") == "PMC7000994/claim:0 row 125 · 2 new, press r"
        await _press(pilot, "r")
        assert seat.table.chosen == chosen
        assert len(seat.table.numbers) == 127
        assert seat.said("foot") == "PMC7000994/claim:0 row 125"
        await _press(pilot, "g")
        seat.source.changes[10] = {"key": "changed"}
        seat.source.seq += 1
        seat.screen.poll()
        await settled(pilot)
        assert "   10  changed" in seat.lines()[4]
        await pilot.press("space")
        seat.source.changes[10] = {"key": "again"}
        seat.source.seq += 1
        seat.screen.poll()
        await settled(pilot)
        assert "   10  changed" in seat.lines()[4]
        assert seat.said("foot").startswith("FROZEN: space continues")
        await _press(pilot, "space")
        assert "   10  again" in seat.lines()[4]


class _Endless(FakeTasks):
    """Its lists come to an end only when they are let."""

    def __init__(self) -> None:
        super().__init__(1_000)
        self.may_end = asyncio.Event()

    async def list_tasks(
        self, query: Query, order: TaskOrder, after: tuple[int, int] | None, limit: int
    ) -> TaskListStep:
        if after is not None:
            await self.may_end.wait()
            return TaskListStep(numbers=[999], after=None, seq=self.seq)
        step = await super().list_tasks(query, order, after, limit)
        return TaskListStep(
            numbers=step.numbers[:limit], after=(0, limit), seq=step.seq
        )


@pytest.mark.asyncio
async def test_while_a_list_grows_its_bar_is_hatched_and_its_number_a_least() -> None:
    source = _Endless()
    seat = Seat(source)
    async with seat.app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert seat.said("head").endswith("≥ 200 of 1,000 · by number")
        assert any(line.endswith("░") for line in seat.lines())
        source.may_end.set()
        await settled(pilot)
        assert seat.said("head").endswith(" 201 of 1,000 · by number")
        assert not any(line.endswith("░") for line in seat.lines())


@pytest.mark.asyncio
async def test_a_log_that_cannot_be_read_is_a_sentence() -> None:
    source = FakeTasks(100)
    source.trouble = StoreError("the log is gone: list the runs")
    seat = Seat(source)
    async with seat.app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        assert seat.complaint == "the log is gone: list the runs."
        await _press(pilot, "j", "G", "r")
        assert seat.complaint
        source.trouble = None
        await _press(pilot, "r")
        assert not seat.complaint
        assert len(seat.table.numbers) == 100


@pytest.mark.asyncio
async def test_enter_opens_the_task_and_esc_comes_back_and_then_leaves() -> None:
    seat = Seat(FakeTasks(100))
    async with seat.app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("j", "y")
        assert seat.app.clipboard == "2"
        await _press(pilot, "enter")
        assert isinstance(seat.app.screen, TaskScreen)
        assert seat.lines()[0].startswith(" task 2 · ✗ failed · RateLimited")
        await _press(pilot, "escape")
        assert seat.app.screen is seat.screen
        assert seat.table.chosen == 2
        await _press(pilot, "escape")
    assert seat.source.is_closed


@pytest.mark.asyncio
async def test_on_a_wide_screen_the_task_opens_beside_and_follows() -> None:
    seat = Seat(FakeTasks(100))
    async with seat.app.run_test(size=(160, 50)) as pilot:
        await settled(pilot)
        await _press(pilot, "enter")
        assert seat.screen.query_one(TaskPane).display
        await _press(pilot, "j")
        assert seat.said("task-head").startswith("task 2 ")
        await _press(pilot, "escape")
        assert not seat.screen.query_one(TaskPane).display


@pytest.mark.asyncio
async def test_hostile_texts_neither_act_nor_disturb() -> None:
    source = FakeTasks(100)
    fields = ("key", "stage", "model", "error", "reason")
    for number, text in enumerate(HOSTILE, 1):
        source.changes[number] = dict.fromkeys(fields, text)
    source.texts = {13: "\n".join(HOSTILE[:-1]), 14: HOSTILE[-1]}
    seat = Seat(source)
    async with seat.app.run_test(size=(160, 50)) as pilot:
        await settled(pilot)
        seen = "".join(seat.lines())
        await _press(pilot, "enter")
        seen += "".join(seat.lines())
        await _press(pilot, "tab")
        await _press(pilot, "j")
        seen += "".join(seat.lines())
        assert not re.search(r"[\x00-\x1f\x7f-\x9f\u200b\u202a-\u202e]", seen)
        assert "[@click=app.quit]x[/]" in seen
        assert seat.app.is_running


@pytest.mark.asyncio
async def test_without_colour_and_signs_the_screen_says_the_same() -> None:
    seat = Seat(FakeTasks(1_000), "state:failed", ASCII)
    seat.app.theme = MONOCHROME.name
    async with seat.app.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        lines = seat.lines()
        assert "".join(lines[:-1]).isascii()
        assert re.search(r">    2 +\S+ +score +\S+ +1 +x failed ", lines[3])


@pytest.mark.asyncio
async def test_p_and_u_go_to_what_failed_is_wrong_or_had_a_reply_rejected() -> None:
    source = FakeTasks(40)
    # failed: 2, 10, 18, ...; unparsed: 16, 32; wrong: 5; recovered: 13
    source.wrong_numbers = frozenset({5})
    source.rejected = frozenset({13})
    seat = Seat(source)
    async with seat.app.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        found = []
        for key in "ppppppuuuuuuu":
            await _press(pilot, key)
            found.append(seat.table.chosen)
        assert found == [2, 5, 10, 13, 16, 18, 16, 13, 10, 5, 2, 2, 2]
        assert seat.told.startswith(
            "No task before this one failed, is wrong or had a reply rejected."
        )


@pytest.mark.asyncio
@pytest.mark.parametrize("columns", [80, 160])
async def test_the_first_tab_turns_the_text_of_an_open_task(columns: int) -> None:
    seat = Seat(FakeTasks(40))
    async with seat.app.run_test(size=(columns, 40)) as pilot:
        await settled(pilot)
        await _press(pilot, "enter")
        texts = []
        for key in ("tab", "tab", "shift+tab"):
            await _press(pilot, key)
            pane = seat.app.screen.query_one(TaskPane)
            texts.append(pane.query_one(TextView).text.split(" event")[0])
        reply, parsed = (
            "The reply of",
            "The reply is not JSON: tab shows the other texts.",
        )
        assert texts == [reply, parsed, reply]
        assert "tab Next text" in seat.lines()[-1]


@pytest.mark.asyncio
@pytest.mark.parametrize("columns", [80, 160])
async def test_the_attempt_that_failed_opens_with_its_reply(columns: int) -> None:
    source = FakeTasks(40)
    source.rejected = frozenset({13})
    seat = Seat(source)
    async with seat.app.run_test(size=(columns, 40)) as pilot:
        await settled(pilot)

        async def opened() -> tuple[str, str]:
            await _press(pilot, "enter")
            pane = seat.app.screen.query_one(TaskPane)
            tabs = pane.query_one("#task-tabs", TextLine).texts
            text = pane.query_one(TextView).text
            await _press(pilot, "escape")
            if columns < 140:
                assert seat.app.screen is seat.screen
            return " ".join(tabs)[-9:], text

        # its last attempt was answered: nothing asks for another one
        assert await opened() == ("attempt 2", "The prompt of event 13.")
        # the same task, by its error: the attempt that had it
        await _type(pilot, seat, "err:RateLimited item:PMC7000013")
        assert seat.table.chosen == 13
        assert await opened() == ("attempt 1", "The reply of event 12.")
        await _press(pilot, "x", "g", "p", "p", "p")
        assert seat.table.chosen == 13
        assert await opened() == ("attempt 1", "The reply of event 12.")


@pytest.mark.asyncio
async def test_o_opens_the_text_of_the_item_and_goes_from_mark_to_mark() -> None:
    source = FakeTasks(40)
    lines = [f"line {n}" for n in range(200)]
    lines[50], lines[120] = "a ⟪passage that", "and ⟪another⟫ one"
    lines[51] = "goes on⟫ here"
    source.item_text = "\n".join(lines)
    seat = Seat(source)
    async with seat.app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await _press(pilot, "o")
        assert isinstance(seat.app.screen, TaskScreen)
        view = seat.app.screen.query_one(TextView)
        tops = [view.scroll_offset.y]
        for _ in range(2):
            await _press(pilot, "o")
            tops.append(view.scroll_offset.y)
        assert tops == [47, 117, 47]
        shown = "\n".join(seat.lines())
        assert "a ⟪passage that" in shown
        marked = [
            segment.text
            for strip in seat.app.screen._compositor.render_strips()[10:]
            for segment in strip.crop(0, 79)  # without the scroll bar
            if segment.style and segment.style.reverse
        ]
        assert [text for text in marked if text.strip()] == [
            *("⟪", "passage that", "goes on", "⟫")
        ]


@pytest.mark.asyncio
async def test_titles_and_values_stand_beside_keys_where_there_is_room() -> None:
    source = FakeTasks(40)
    source.titles = {1: "A title in words", 2: HOSTILE[0]}
    seat = Seat(source)
    for size, is_shown in (((200, 60), True), ((80, 24), False)):
        async with Seat(source).app.run_test(size=size) as pilot:
            seat = Seat(source)
            pilot.app.push_screen(seat.screen)
            await settled(pilot)
            strips = pilot.app.screen._compositor.render_strips()
            lines = ["".join(segment.text for segment in strip) for strip in strips]
            assert ("title" in lines[2]) is is_shown
            # of the chosen task it is always there
            assert "A title in words" in lines[-2]
            assert "value of 1" in lines[3]
