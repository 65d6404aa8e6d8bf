"""The Metrics screen: six charts under one cursor, and the headline so far."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from textual.pilot import Pilot

from store.errors import CorruptLog
from store.runs import RunFolder
from tests.store.memory_log import FakeClock
from tests.tui.fake_history import HEADLINE, FakeHeadline, FakeHistory
from tests.tui.fake_tasks import FakeTasks, watching
from tests.tui.sights import HOSTILE, FakeSource, later, snapshot, with_status
from tui.app import Monitor
from tui.render.glyphs import ASCII, UNICODE, Glyphs
from tui.screens.metrics import REST_S, MetricsScreen
from tui.sources.command import CommandFailed
from tui.sources.headline import EVERY_S, REST
from tui.sources.result import ScoringResult
from tui.sources.run_snapshot import ReadProblem, RunSnapshot, SnapshotOrProblem


@dataclass
class Seat:
    """Before the screen: its keys, and what it is given to see."""

    pilot: Pilot[str]
    app: Monitor
    source: FakeSource
    history: FakeHistory
    headline: FakeHeadline
    clock: FakeClock

    @property
    def screen(self) -> MetricsScreen:
        assert isinstance(self.app.screen, MetricsScreen)
        return self.app.screen

    def shown(self) -> str:
        """The cells of the screen, as lines of text."""
        strips = self.app.screen._compositor.render_strips()
        return "\n".join("".join(part.text for part in strip) for strip in strips)

    def line(self, name: str) -> str:
        left, right = self.screen.query_one(f"#{name}").texts
        return f"{left}{right}"

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.settle()

    async def look(
        self, sight: SnapshotOrProblem | None = None, seconds: float = 0
    ) -> None:
        """Some time passes, and the screen looks, at something else if it is named."""
        self.clock.advance(seconds)
        if sight is not None:
            self.source.sights = [sight]
        self.screen.poll()
        await self.settle()

    async def settle(self) -> None:
        for _ in range(3):
            await self.pilot.pause()


Act = Callable[[Seat], Awaitable[None]]


@dataclass(frozen=True, kw_only=True)
class Given:
    """What a monitor on this screen has before it."""

    sight: SnapshotOrProblem
    size: tuple[int, int] = (120, 40)
    glyphs: Glyphs = UNICODE
    history: FakeHistory = field(default_factory=FakeHistory)
    headline: FakeHeadline = field(default_factory=FakeHeadline)


def watched(given: Given, act: Act) -> None:
    """Let *act* work the keys of the screen."""

    async def watch() -> None:
        clock, source = FakeClock(), FakeSource([given.sight])
        sources = replace(
            watching(FakeTasks(), clock=clock).sources,
            run=lambda _: source,
            history=lambda *_: given.history,
            headline=lambda *_: given.headline,
        )
        run = RunFolder(Path("runs/r1"))
        app = Monitor(sources, glyphs=given.glyphs, run=run)
        async with app.run_test(size=given.size) as pilot:
            seat = Seat(pilot, app, source, given.history, given.headline, clock)
            await pilot.press("m")
            await seat.settle()
            await act(seat)

    asyncio.run(watch())
    assert given.history.is_closed
    assert given.headline.is_closed


def test_the_heartbeat_is_left_out_of_a_heading_without_room_for_it(
    tmp_path: Path,
) -> None:
    sight = with_status(snapshot(tmp_path / "r1"), run_id="a-run-of-a-long-name")

    async def act(seat: Seat) -> None:
        await seat.look()
        assert "(heartbeat 0.0 s)" in seat.line("head")
        await seat.pilot.resize_terminal(80, 24)
        await seat.settle()
        assert seat.line("head").startswith("METRICS a-run-of-a-long-name  ▶ live")
        assert "heartbeat" not in seat.line("head")
        assert "…" not in seat.shown().split("\n")[0]

    watched(Given(sight=sight), act)


@pytest.mark.parametrize("size", [(80, 24), (100, 30)])
def test_every_size_has_a_chart_its_figures_and_the_headline(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    async def act(seat: Seat) -> None:
        seat.headline.may_answer.set()
        await seat.look()
        text = seat.shown()
        assert len(text.split("\n")) == size[1]
        assert "METRICS r1  ▶ live" in text
        assert "tasks completed per minute" in text
        assert "▲" in text
        assert "in flight 12/32" in text
        if size[0] < 100:
            assert "cost per hour" not in text
            await seat.press(*["tab"] * 4)
            assert "cost per hour" in seat.shown()
            await seat.press("tab", "tab")
        text = seat.shown()
        assert "of 812 done tasks, as of event 12,345" in text
        assert "0.4000–0.6000" in text
        assert "as of 00:00:00 UTC" in text.split("\n")[-2]
        assert "z Window" in text.split("\n")[-1]

    watched(Given(sight=snapshot(tmp_path / "r1"), size=size), act)


def test_one_cursor_reads_off_all_charts_and_jumps_from_mark_to_mark(
    tmp_path: Path,
) -> None:
    async def act(seat: Seat) -> None:
        assert seat.line("figures").startswith("rate 9/min")
        assert "last before: 09:55:30 resumed" in seat.line("moment")
        await seat.press("h", "h")
        assert seat.line("moment").startswith("2026-01-01 09:57–09:58 UTC")
        assert seat.line("figures").startswith("rate 7/min")
        assert seat.shown().count("│ ") > 6
        await seat.press("N")
        assert "09:55:30 resumed" in seat.line("moment")
        await seat.press("N")
        assert "09:50:30 paused: the run, by ops" in seat.line("moment")
        await seat.press("N", "l")
        assert seat.line("figures") == "no process worked on the run"
        await seat.press("n")
        assert seat.line("moment").startswith("2026-01-01 09:55")
        await seat.press("g")
        assert seat.line("moment").startswith("2026-01-01 09:00")
        await seat.press("h", "l")
        assert seat.line("moment").startswith("2026-01-01 09:01")
        await seat.press("G")
        assert seat.line("moment").startswith("2026-01-01 09:59")
        await seat.press("h", "z")
        assert "last 6 h, 5 min per column" in seat.line("head")
        assert seat.line("moment").startswith("2026-01-01 09:55–10:00")

    watched(Given(sight=snapshot(tmp_path / "r1")), act)


def test_the_window_and_the_model_are_chosen_and_read_in_columns_that_fit(
    tmp_path: Path,
) -> None:
    async def act(seat: Seat) -> None:
        columns = seat.history.asked[-1].columns
        assert 90 < columns <= 120
        seat.history.asked.clear()
        await seat.press("z", "z", "z", "z")
        assert [ask.minutes for ask in seat.history.asked] == [360, None, 15, 60]
        seat.history.asked.clear()
        await seat.press("b", "b", "b")
        models = [ask.model for ask in seat.history.asked]
        assert models == ["m-large", "m-small", None]
        assert {ask.columns for ask in seat.history.asked} == {columns}

    watched(Given(sight=snapshot(tmp_path / "r1")), act)


def test_it_is_read_again_when_something_happened_and_not_more_often(
    tmp_path: Path,
) -> None:
    live = snapshot(tmp_path / "r1")

    async def act(seat: Seat) -> None:
        async def reads(seen: RunSnapshot) -> int:
            before = len(seat.history.asked)
            await seat.look(seen)
            return len(seat.history.asked) - before

        newer = with_status(live, last_seq=live.status.last_seq + 1)
        assert [await reads(seen) for seen in (live, later(live, 59), newer)] == [0] * 3
        assert await reads(later(newer, REST_S)) == 1
        assert await reads(later(newer, REST_S + 1)) == 0
        assert await reads(later(live, 61)) == 1

    watched(Given(sight=live), act)


def test_frozen_it_keeps_what_it_shows_and_counts_what_it_misses(
    tmp_path: Path,
) -> None:
    live = snapshot(tmp_path / "r1")

    async def act(seat: Seat) -> None:
        await seat.press("space")
        asked = len(seat.history.asked)
        await seat.look(
            with_status(later(live, 9), last_seq=live.status.last_seq + 7), 9
        )
        assert len(seat.history.asked) == asked
        assert "FROZEN 9.0 s, 7 events since: space continues" in seat.shown()
        await seat.press("h")
        assert seat.line("moment").startswith("2026-01-01 09:58")
        await seat.press("space")
        assert len(seat.history.asked) == asked + 1
        assert "FROZEN" not in seat.shown()

    watched(Given(sight=live), act)


def test_the_headline_is_computed_one_at_a_time_and_says_so(tmp_path: Path) -> None:
    live = snapshot(tmp_path / "r1")
    tasks = replace(live.status.tasks, completed=9_999)
    newer = with_status(live, tasks=tasks)
    answers = [
        HEADLINE,
        CommandFailed("the corpus is gone"),
        replace(HEADLINE, ended=9),
    ]

    async def act(seat: Seat) -> None:
        await seat.look(seconds=5)
        assert "computing for 5.0 s" in seat.shown()
        await seat.press("r")
        assert seat.headline.asked == 1
        seat.headline.may_answer.set()
        await seat.look(newer)
        assert "of 812 done tasks" in seat.shown()
        assert seat.headline.asked == 1
        await seat.look(seconds=REST * 5)
        assert seat.headline.asked == 2
        await seat.look(seconds=REST * 5)
        assert "not computed: the corpus is gone; r tries again" in seat.shown()
        assert seat.headline.asked == 2
        await seat.press("r")
        assert "of 9 done tasks" in seat.shown()

    watched(Given(sight=live, headline=FakeHeadline(answers=answers)), act)


def test_the_headline_of_the_newest_scoring_is_not_computed_again(
    tmp_path: Path,
) -> None:
    live = snapshot(tmp_path / "r1")
    recorded = replace(HEADLINE, ended=live.ended, seq=0, is_partial=False)
    scoring = ScoringResult(number=1, folder=tmp_path, headline=recorded)

    async def act(seat: Seat) -> None:
        await seat.look(seconds=2 * EVERY_S)
        assert "of the newest scoring" in seat.shown()
        assert seat.headline.asked == 0

    watched(Given(sight=replace(live, result=scoring)), act)


def test_an_imported_run_has_no_course_and_says_why(tmp_path: Path) -> None:
    sight = with_status(snapshot(tmp_path / "r1"), imported=True)

    async def act(seat: Seat) -> None:
        seat.headline.may_answer.set()
        await seat.look()
        text = seat.shown()
        assert "This run was imported" in text
        assert "of 812 done tasks" in text
        assert "tasks completed per minute" not in text
        assert seat.history.asked == []

    watched(Given(sight=sight, size=(80, 24)), act)


def test_what_cannot_be_read_is_a_sentence_and_goes_when_it_can(
    tmp_path: Path,
) -> None:
    live = snapshot(tmp_path / "r1")
    broken = FakeHistory(error=CorruptLog("event 7 is damaged: see 'siftlog verify'"))

    async def act(seat: Seat) -> None:
        assert "event 7 is damaged" in seat.line("moment")
        seat.history.error = None
        seat.history.marks = ((599, HOSTILE),)
        await seat.look(later(live, 60))
        assert "no heartbeat for 60 s" in seat.line("moment")
        await seat.press("N")
        assert "\x1b" not in seat.shown()
        assert "[/INST] [@click=app.quit]x[/]" in seat.shown()
        await seat.look(ReadProblem(sentence="the log of r1 is gone: look elsewhere"))
        text = seat.shown()
        assert "the log of r1 is gone: look elsewhere." in text
        assert "tasks completed" not in text
        await seat.look(live)
        assert "tasks completed" in seat.shown()
        await seat.press("escape")
        assert not isinstance(seat.app.screen, MetricsScreen)
        await seat.press("m")
        assert seat.line("figures")

    watched(Given(sight=live, history=broken), act)


def test_plain_terminals_get_plain_signs(tmp_path: Path) -> None:
    async def act(seat: Seat) -> None:
        assert seat.shown().isascii()
        assert "^" in seat.shown()

    watched(Given(sight=snapshot(tmp_path / "r1"), glyphs=ASCII), act)
