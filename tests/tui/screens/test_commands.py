"""The commands log: what was asked, what became of it, and what can be taken back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from rich.cells import cell_len
from textual.pilot import Pilot

from store.control import CommandOutcome, CommandRecord
from store.errors import NotALog
from tests.store.memory_log import START_US
from tests.tui.fake_requests import FakeControl, FakeRequests, request
from tests.tui.fake_tasks import FakeTasks, TasksApp, watching
from tests.tui.sights import HOSTILE
from tui.render.glyphs import UNICODE
from tui.screens.commands import CommandsScreen, about, lines, summary

APPLIED = request(
    "c1",
    "limits",
    payload={"model": "m", "rpm": None},
    expected_state="live",
    answer=CommandOutcome.APPLIED,
    accepted_us=START_US + 200_000,
    answered_us=START_US + 400_000,
    said="m: no limit of requests a minute",
)
WAITING = request("c2", "retry", payload={"filter": "state:failed"})


class Log(TasksApp):
    """An app that keeps what is to be taken back."""

    def __init__(self, screen: CommandsScreen) -> None:
        super().__init__(screen)
        self.withdrawn: list[CommandRecord] = []

    def on_commands_screen_withdrawn(self, message: CommandsScreen.Withdrawn) -> None:
        self.withdrawn.append(message.request)


class Seat:
    """Before the commands log of a run."""

    def __init__(self, source: FakeRequests, *, is_read_only: bool = False) -> None:
        watched = watching(FakeTasks())
        sources = replace(watched.sources, requests=lambda _: source)
        control = None if is_read_only else FakeControl(source)
        self.screen = CommandsScreen(replace(watched, sources=sources, control=control))
        self.app = Log(self.screen)

    def watch(self, act: Callable[[Seat, Pilot[None]], Awaitable[None]]) -> None:
        async def main() -> None:
            async with self.app.run_test(size=(100, 24)) as pilot:
                await self.look(pilot)
                await act(self, pilot)

        asyncio.run(main())

    async def look(self, pilot: Pilot[None]) -> None:
        self.screen.poll()
        await self.app.workers.wait_for_complete()
        await pilot.pause()

    def shown(self) -> str:
        strips = self.app.screen._compositor.render_strips()
        return "\n".join("".join(part.text for part in strip) for strip in strips)


def test_the_newest_stands_on_top_and_what_waits_can_be_taken_back() -> None:
    source = FakeRequests([APPLIED, WAITING], is_alive=False)

    async def act(seat: Seat, pilot: Pilot[None]) -> None:
        text = seat.shown()
        assert "2 sent, 1 without an answer; no process works on the run" in text
        assert "▸ 00:00:00  ops  " in text
        assert "waiting  -      retry filter state:failed" in text
        assert "Not answered yet. W withdraws it." in text
        await pilot.press("W")
        await pilot.pause()
        assert seat.app.withdrawn == [WAITING]
        await pilot.press("j", "W")
        await pilot.pause()
        assert seat.app.withdrawn == [WAITING], "it was answered"
        text = seat.shown()
        assert "applied  0.4 s  limits model m rpm none" in text
        assert "on condition that the run is live. Applied: " in text
        source.asked.append(request("c3", "pause", payload={"stage": HOSTILE}))
        await seat.look(pilot)
        text = seat.shown()
        assert "3 sent" in text
        assert "▸" in next(line for line in text.split("\n") if "rpm none" in line)
        assert all(sign.isprintable() or sign == "\n" for sign in text)
        await pilot.press("k", "k", "escape")

    Seat(source).watch(act)
    assert source.is_closed


@pytest.mark.parametrize("is_read_only", [False, True])
def test_nothing_asked_says_what_could_be(is_read_only: bool) -> None:
    async def act(seat: Seat, pilot: Pilot[None]) -> None:
        del pilot
        text = seat.shown()
        assert "No control commands were sent" in text
        assert ("P pauses the run" in text) is not is_read_only
        assert "esc goes back" in text

    Seat(FakeRequests(), is_read_only=is_read_only).watch(act)


def test_a_log_that_cannot_be_read_is_a_sentence_until_it_can() -> None:
    source = FakeRequests([WAITING], trouble=NotALog("there is no log"))

    async def act(seat: Seat, pilot: Pilot[None]) -> None:
        assert "there is no log. Back with esc." in seat.shown()
        source.trouble = None
        await seat.look(pilot)
        assert "retry filter state:failed" in seat.shown()

    Seat(source).watch(act)


def test_a_read_only_log_takes_nothing_back_and_says_why() -> None:
    async def act(seat: Seat, pilot: Pilot[None]) -> None:
        await pilot.press("W")
        await pilot.pause()
        assert not seat.app.withdrawn
        assert "read-only" in seat.shown().split("\n")[0]

    Seat(FakeRequests([WAITING]), is_read_only=True).watch(act)


def test_every_line_fits_its_room() -> None:
    strange = request("c4", HOSTILE, host=None, asked_us=None, author=HOSTILE * 9)
    for width in (0, 1, 40, 80, 160):
        for line in lines([APPLIED, WAITING, strange], width, UNICODE, 0):
            assert cell_len(line) <= width
    assert about(strange).startswith(HOSTILE)
    assert summary([APPLIED], is_alive=True) == "1 sent"


def test_columns_are_as_wide_as_their_texts_so_that_what_was_sent_is_not_cut() -> None:
    sent = request(
        "c5",
        "limits",
        payload={"model": "deepseek-chat", "concurrency": 12},
        host="a-host.of.some.cluster",
    )
    words = "limits model deepseek-chat concurrency 12"
    header, line = lines([sent], 78, UNICODE, 0)
    assert line.endswith(words)
    assert line.index(words) == header.index("what")
    assert "@a-host.of.some" in lines([sent], 120, UNICODE, 0)[1]
