"""The Events screen: its keys, what it says, and every state in words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Static

from store.errors import StoreError
from tests.tui.fake_events import FakeEvents
from tests.tui.fake_tasks import FakeTasks, TasksApp, watching
from tests.tui.hostile import HOSTILE
from tui.render.glyphs import ASCII, UNICODE, Glyphs
from tui.screens.events import EventScreen, EventsScreen
from tui.screens.tasks import TaskScreen
from tui.widgets.events import EventPane, EventTable
from tui.widgets.filter_field import FilterField
from tui.widgets.panel import TextLine
from tui.widgets.text_view import TextView

SIZES = [(80, 24), (100, 30), (120, 40), (160, 50)]


class Seat:
    """A screen under test and what stands on it."""

    def __init__(self, source: FakeEvents, glyphs: Glyphs = UNICODE) -> None:
        self.source = source
        self.tasks = FakeTasks()
        watched = watching(self.tasks, glyphs=glyphs)
        sources = replace(watched.sources, events=lambda _: source)
        self.screen = EventsScreen(replace(watched, sources=sources))
        self.app = TasksApp(self.screen)

    @property
    def table(self) -> EventTable:
        return self.screen.query_one(EventTable)

    def said(self, name: str) -> str:
        return " ".join(self.screen.query_one(f"#{name}", TextLine).texts).strip()

    @property
    def complaint(self) -> str:
        said = self.screen.query_one("#said", Static)
        return str(said.content) if said.display else ""

    def lines(self) -> list[str]:
        """All that is on the screen."""
        strips = self.app.screen._compositor.render_strips()
        return ["".join(segment.text for segment in strip) for strip in strips]


async def _settled(pilot: Pilot[None]) -> None:
    for _ in range(2):
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()


async def _press(pilot: Pilot[None], *keys: str) -> None:
    await pilot.press(*keys)
    await _settled(pilot)


async def _grow(pilot: Pilot[None], seat: Seat, by: int) -> None:
    seat.source.seq += by
    seat.screen.poll()
    await _settled(pilot)


async def _type(pilot: Pilot[None], seat: Seat, text: str) -> None:
    seat.screen.query_one("#filter", Input).value = text
    seat.screen.query_one("#filter", Input).focus()
    await _press(pilot, "enter")


async def _page(pilot: Pilot[None], seat: Seat, move: str) -> None:
    """Thirty pages: more than are at hand when it begins."""
    for _ in range(30):
        seat.table.action_move(move)
        await pilot.pause(0)


@pytest.mark.asyncio
async def test_the_end_of_the_log_is_there_at_once_in_every_size() -> None:
    seat = Seat(FakeEvents())
    async with seat.app.run_test(size=SIZES[0]) as pilot:
        await _settled(pilot)
        for size in SIZES:
            await pilot.resize_terminal(*size)
            await _settled(pilot)
            lines = seat.lines()
            assert lines[0].startswith(" EVENTS 1120-a ")
            assert lines[0].endswith(" following · 1,000,000 events ")
            assert lines[-3].startswith(" ▸ 1,000,000 ")
            assert " attempt_failed    250000  RateLimited: too " in lines[-3]
            # the date where the day changes, or of the line under the cursor
            assert ("  09-27  " in lines[-3]) == (size[0] >= 100)
            assert lines[-2].endswith(" 2028-09-27T00:00:00Z ")
            assert all(len(line) == size[0] for line in lines)
        assert len(seat.source.found) == 1


@pytest.mark.asyncio
async def test_it_follows_until_the_cursor_leaves_and_nothing_moves_under_it() -> None:
    seat = Seat(FakeEvents())
    async with seat.app.run_test(size=(100, 30)) as pilot:
        await _settled(pilot)
        await _grow(pilot, seat, 3)
        assert seat.table.chosen == 1_000_003
        await _press(pilot, "k", "k")
        before = seat.lines()[2:-2]
        await _grow(pilot, seat, 20)
        assert seat.lines()[2:-2] == before
        assert seat.said("foot").startswith(
            "the cursor left the bottom · 20 newer: f follows"
        )
        await _press(pilot, "f")
        assert seat.table.chosen == 1_000_023
        await _press(pilot, "space")
        await _grow(pilot, seat, 1_204)
        assert seat.table.chosen == 1_000_023
        assert seat.said("foot").startswith(
            "FROZEN, 1,204 events since: space continues"
        )
        await _press(pilot, "space", "g")
        assert seat.table.chosen == 1
        await _page(pilot, seat, "PAGE_DOWN")
        assert seat.table.chosen == 1 + 30 * (seat.table.size.height - 2)
        await _press(pilot, "G")
        await _page(pilot, seat, "PAGE_UP")
        assert seat.table.chosen == 1_001_227 - 30 * (seat.table.size.height - 2)
        assert not seat.table.is_at_bottom
    assert seat.source.is_closed


@pytest.mark.asyncio
async def test_a_filter_shows_what_fits_and_x_shows_what_is_around_it() -> None:
    seat = Seat(FakeEvents(100_000))
    async with seat.app.run_test(size=(120, 40)) as pilot:
        await _settled(pilot)
        await _press(pilot, "n")
        await _type(pilot, seat, "err:RateLimited")
        assert list(seat.table.numbers)[-2:] == [90_000, 100_000]
        assert seat.said("head").endswith("10 of 100,000 events")
        await _press(pilot, "N", "N", "n")
        assert seat.table.chosen == 90_000
        await pilot.press("x")
        # as if it had waited for the next letter
        seat.screen.query_one(FilterField).read()
        await _settled(pilot)
        assert seat.table.chosen == 90_000
        assert 89_999 in seat.table.numbers
        await _press(pilot, "N")
        assert seat.table.chosen == 80_000
        await _type(pilot, seat, "err:Nothing")
        assert "No event fits err:Nothing: x clears the filter" in "".join(seat.lines())
        await _type(pilot, seat, "knd:x [/INST]")
        assert seat.complaint == (
            "^\nthere is no key 'knd': did you mean 'kind'? esc undoes it."
        )
        await _press(pilot, "escape", "escape")
        assert seat.app.screen is not seat.screen


@pytest.mark.asyncio
async def test_a_search_that_lasts_says_so_and_esc_stops_it() -> None:
    seat = Seat(FakeEvents())
    async with seat.app.run_test(size=(120, 40)) as pilot:
        await _settled(pilot)
        seat.source.answers_after = 960_000
        await pilot.press("slash", *"err:No", "enter")
        while any(worker.group == "keys" for worker in seat.app.workers):
            await pilot.pause(0.01)
        # what was typed so far may be searched first where the machine is busy
        while not seat.said("foot").startswith("searching, at event 960,001 "):
            await pilot.pause(0.01)
        assert "…: esc stops" in seat.said("foot")
        await _press(pilot, "escape")
        assert "searched back to event 960,001: N continues" in seat.said("foot")
        assert seat.app.screen is seat.screen


@pytest.mark.asyncio
async def test_an_event_opens_in_full_and_leads_to_its_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    seat = Seat(FakeEvents(1_003))
    async with seat.app.run_test(size=(120, 40)) as pilot:
        await _settled(pilot)
        await _press(pilot, "k", "y", "enter")
        assert isinstance(seat.app.screen, EventScreen)
        assert "1002  attempt_failed  task 250  Overloaded" in seat.app.clipboard
        shown = seat.app.screen.query_one(TextView).text
        assert "message: too many requests\n" in shown
        assert shown.endswith("99 bytes\n\nThe body of event 1002.")
        await _press(pilot, "w", "o")
        assert isinstance(seat.app.screen, TaskScreen)
        written = (tmp_path / "event-1002.txt").read_text("utf-8")
        assert written.startswith("event 1002  2026-01-02T00:02:52Z  attempt_failed\n")
        assert "The body of event 1002." in written
        await _press(pilot, "escape", "escape", "w")
        assert seat.app.screen is seat.screen
        await pilot.resize_terminal(160, 50)
        await _press(pilot, "enter", "j")
        pane = seat.screen.query_one(EventPane)
        assert pane.display
        assert "task: 250" in pane.query_one(TextView).text
        await _press(pilot, "escape")
        assert not pane.display
    assert seat.tasks.is_closed


@pytest.mark.asyncio
async def test_a_log_that_is_gone_is_a_sentence_and_hostile_texts_are_harmless() -> (
    None
):
    source = FakeEvents(4 * len(HOSTILE))
    source.messages = {4 * number + 2: text for number, text in enumerate(HOSTILE)}
    source.trouble = StoreError("the log is gone [/INST]")
    source.finish()
    seat = Seat(source, ASCII)
    async with seat.app.run_test(size=(100, 60)) as pilot:
        await _settled(pilot)
        assert seat.complaint == "the log is gone [/INST]."
        source.trouble = None
        await _grow(pilot, seat, 0)
        await _grow(pilot, seat, 0)
        assert not seat.complaint
        lines = seat.lines()
        assert "Overloaded: [@click=app.quit]x[/]" in "".join(lines)
        assert "the run has finished: no further events" in lines[-2]
        assert all(line.isascii() for line in lines)
        assert all(len(line) == 100 for line in lines)
