"""One task: its attempts, its texts, and the keys between them."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.tui.fake_tasks import FakeTasks, TasksApp
from tui.drawing.glyphs import UNICODE
from tui.screens.task import TaskScreen
from tui.widgets.line import Line
from tui.widgets.text_view import TextView


async def _settled(pilot: Pilot[None]) -> None:
    for _ in range(3):
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()


def _opened(number: int = 2) -> tuple[TaskScreen, TasksApp]:
    screen = TaskScreen(FakeTasks(100), UNICODE, number)
    return screen, TasksApp(screen)


def _tabs(screen: TaskScreen) -> tuple[str, str]:
    return screen.query_one("#task-tabs", Line).said


@pytest.mark.asyncio
async def test_the_last_attempt_is_shown_first_and_k_goes_back() -> None:
    screen, app = _opened()
    async with app.run_test(size=(120, 40)) as pilot:
        await _settled(pilot)
        text = screen.query_one(TextView)
        assert text.text == "The prompt of event 13."
        assert _tabs(screen)[1] == "attempt 2"
        await pilot.press("k")
        await _settled(pilot)
        assert text.text == "The prompt of event 11."
        assert _tabs(screen)[1] == "attempt 1"


@pytest.mark.asyncio
async def test_tab_goes_from_text_to_text() -> None:
    screen, app = _opened()
    async with app.run_test(size=(120, 40)) as pilot:
        await _settled(pilot)
        found = []
        for _ in range(4):
            await pilot.press("tab")
            await _settled(pilot)
            found.append(screen.query_one(TextView).text.split("\n")[0])
        assert found == [
            "The reply of event 14.",
            "Scoring 1",
            "       11  00:00:00  attempt_started  a 1",
            "The prompt of event 13.",
        ]


@pytest.mark.asyncio
async def test_enter_goes_into_the_text_and_esc_out_of_it_and_away() -> None:
    screen, app = _opened()
    async with app.run_test(size=(80, 24)) as pilot:
        await _settled(pilot)
        await pilot.press("enter")
        await _settled(pilot)
        assert app.focused is screen.query_one(TextView)
        await pilot.press("escape")
        assert app.screen is screen
        await pilot.press("escape")
        await _settled(pilot)
        assert app.screen is not screen


@pytest.mark.asyncio
async def test_it_is_read_again_only_when_something_has_happened() -> None:
    source = FakeTasks(100)
    screen = TaskScreen(source, UNICODE, 2)
    app = TasksApp(screen)
    async with app.run_test(size=(80, 24)) as pilot:
        await _settled(pilot)
        source.changes[2] = {"stage": "changed"}
        screen.look()
        await _settled(pilot)
        assert "score" in screen.query_one("#task-key", Line).said[0]
        source.seq += 1
        screen.look()
        await _settled(pilot)
        assert "changed" in screen.query_one("#task-key", Line).said[0]


@pytest.mark.asyncio
async def test_a_task_that_is_not_there_is_a_sentence() -> None:
    screen, app = _opened(7_000)
    async with app.run_test(size=(80, 24)) as pilot:
        await _settled(pilot)
        head = screen.query_one("#task-head", Line).said[0]
        assert head == "There is no T-0007000 in this run: esc goes back."


@pytest.mark.asyncio
async def test_y_copies_the_name_of_the_task() -> None:
    _, app = _opened()
    async with app.run_test(size=(80, 24)) as pilot:
        await _settled(pilot)
        await pilot.press("y")
        assert app.clipboard == "T-0000002"


@pytest.mark.asyncio
async def test_w_keeps_the_text_and_never_replaces_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _, app = _opened()
    async with app.run_test(size=(80, 24)) as pilot:
        await _settled(pilot)
        await pilot.press("w")
        await pilot.pause()
        written = tmp_path / "T-0000002-2-prompt.txt"
        assert written.read_text("utf-8") == "The prompt of event 13."
        written.write_text("mine", "utf-8")
        await pilot.press("w")
        await pilot.pause()
        assert written.read_text("utf-8") == "mine"
        assert len(app._notifications) == 2
