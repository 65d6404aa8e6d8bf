"""One task: its attempts, its texts, and the keys between them."""

from __future__ import annotations

import shutil
from io import StringIO
from pathlib import Path

import pytest
from textual.pilot import Pilot

from store.errors import StoreError
from store.events import AttemptFailed
from store.read.tasks import AttemptRow
from tests.replacing import replace
from tests.tui.fake_tasks import FakeTasks, TasksApp, settled
from tui.render.glyphs import UNICODE
from tui.screens.tasks import TaskScreen
from tui.sources.tasks import AttemptLine
from tui.terminal.export import CLIPBOARD
from tui.widgets.panel import TextLine
from tui.widgets.text_view import TextView


async def _press(pilot: Pilot[None], *keys: str) -> None:
    await pilot.press(*keys)
    await settled(pilot)


class Desk:
    """A task's screen under test and what stands on it."""

    def __init__(self, number: int = 2) -> None:
        self.source = FakeTasks(100)
        self.screen = TaskScreen(self.source, UNICODE, number)
        self.app = TasksApp(self.screen)

    @property
    def text(self) -> str:
        return self.screen.query_one(TextView).text

    @property
    def told(self) -> str:
        return [each.message for each in self.app._notifications][-1]

    def said(self, name: str) -> str:
        return "  ".join(self.screen.query_one(f"#task-{name}", TextLine).texts).strip()

    def lines(self) -> list[str]:
        strips = self.app.screen._compositor.render_strips()
        return ["".join(segment.text for segment in strip) for strip in strips]


@pytest.mark.asyncio
async def test_attempts_say_how_long_they_waited_and_why_another_followed() -> None:
    desk = Desk()
    async with desk.app.run_test(size=(160, 40)) as pilot:
        await settled(pilot)
        first, second = desk.lines()[3:5]
        for words in (
            "3.0 s",
            "RateLimited",
            "429 · retry-after 20 s · again after 24",
        ):
            assert words in first
        # it came 25 s after the other one began, which took 0.3 s and a wait of 24 s
        for words in (" 0.7 s ", " 6.2 s ", "2,340 / 1,024", " stop ", " answered "):
            assert words in second
        assert desk.text == "The prompt of event 13."
        assert desk.said("about") == "temperature 0 · max tokens 2,048"
        assert desk.said("tabs").endswith("attempt 2")
        await _press(pilot, "k")
        assert desk.text == "The prompt of event 11."
        assert desk.said("tabs").endswith("attempt 1")


@pytest.mark.asyncio
async def test_tab_goes_from_text_to_text_and_y_copies_it() -> None:
    desk = Desk()
    async with desk.app.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        found = []
        for _ in range(6):
            await _press(pilot, "tab")
            found.append(desk.text.split("\n")[0])
        assert found == [
            "The reply of event 14.",
            "The reply is not JSON: tab shows the other texts.",
            "The item of event 14.",
            "Scoring 2 · qa 1.2 · code 01234567 · the log up to event 80",
            "       11  00:00:00  attempt_started  a 1",
            "The prompt of event 13.",
        ]
        await pilot.press("y")
        assert desk.app.clipboard == "The prompt of event 13."
        desk.source.texts[14] = "x" * (CLIPBOARD + 1)
        await _press(pilot, "tab")
        await pilot.press("y")
        assert desk.told.endswith("too many for a clipboard: w writes them to a file.")
        await _press(pilot, "tab")
        await pilot.press("y")
        assert desk.told.startswith("There is no text to save")


@pytest.mark.asyncio
async def test_d_compares_two_attempts_and_esc_leaves_step_by_step() -> None:
    desk = Desk()
    desk.source.texts = {11: "one\ntwo", 13: "one\n2"}
    async with desk.app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await _press(pilot, "enter", "d")
        assert desk.text == "@@ -1,2 +1,2 @@\n one\n-two\n+2"
        assert desk.said("about") == "- attempt 1, + attempt 2 · d goes back"
        await _press(pilot, "escape")
        assert desk.text == "one\n2"
        assert desk.app.focused is desk.screen.query_one(TextView)
        await _press(pilot, "escape")
        assert desk.app.screen is desk.screen
        await _press(pilot, "tab", "tab", "tab", "tab", "d")
        assert desk.told.startswith("d compares prompts and replies")
        await _press(pilot, "escape")
        assert desk.app.screen is not desk.screen


@pytest.mark.asyncio
async def test_it_is_read_again_only_when_something_has_happened() -> None:
    desk = Desk()
    async with desk.app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        desk.source.read.clear()
        # another task moved: this one is read again, its texts are not
        desk.source.seq += 1
        desk.screen.poll()
        await settled(pilot)
        assert not desk.source.read
        desk.source.changes[2] = {"stage": "changed"}
        desk.screen.poll()
        await settled(pilot)
        assert "score" in desk.said("key")
        desk.source.seq += 1
        desk.screen.poll()
        await settled(pilot)
        assert "changed" in desk.said("key")
        desk.source.trouble = StoreError("the log is gone: list the runs")
        await _press(pilot, "tab")
        assert desk.text == "the log is gone: list the runs."
        desk.source.trouble = None
        desk.source.seq += 1
        desk.screen.poll()
        await settled(pilot)
        assert desk.text == "The reply of event 14."


@pytest.mark.asyncio
async def test_a_task_that_is_not_there_is_a_sentence() -> None:
    desk = Desk(7_000)
    async with desk.app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        assert desk.said("head") == "There is no task 7000 in this run: esc goes back."


@pytest.mark.asyncio
async def test_w_keeps_the_text_elsewhere_and_never_replaces_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    desk = Desk()
    async with desk.app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("w")
        written = tmp_path / "task-2-2-prompt.txt"
        assert written.read_text("utf-8") == "The prompt of event 13."
        written.write_text("mine", "utf-8")
        await pilot.press("w")
        assert written.read_text("utf-8") == "mine"
        assert "is there already, and was not written: move it away" in desk.told
        within = tmp_path / "run" / "scores"
        within.mkdir(parents=True)
        (tmp_path / "run" / "log.db").touch()
        monkeypatch.chdir(within)
        await pilot.press("w")
        assert desk.told.startswith("the current folder belongs to the run run")
        assert not list(within.iterdir())
        delivered: dict[str, str] = {}

        def deliver(text: StringIO, *, save_filename: str) -> None:
            delivered[save_filename] = text.read()

        # in a browser: whoever looks at a run writes nothing on its machine
        monkeypatch.setattr(type(desk.app), "is_web", True)
        monkeypatch.setattr(desk.app, "deliver_text", deliver)
        await pilot.press("w")
        assert delivered == {written.name: "The prompt of event 13."}
        assert not list(within.iterdir())


@pytest.mark.asyncio
async def test_where_there_is_no_pager_v_says_what_else_there_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk = Desk()
    async with desk.app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        monkeypatch.setattr(shutil, "which", lambda _: "less")
        await pilot.press("v")
        # a test's terminal cannot be lent
        assert desk.told.startswith("This terminal cannot be lent to a pager")
        monkeypatch.setattr(shutil, "which", lambda _: None)
        await pilot.press("v")
        assert desk.told.startswith("There is no 'less' on this machine")


_SENT = AttemptRow(
    attempt=3,
    started_us=1_767_225_661_000_000,
    ended_us=None,
    started_seq=1,
    ended_seq=None,
    outcome=None,
)
_LOST = AttemptFailed(
    task=1,
    attempt=3,
    error="ConnectionLost",
    latency_ms=3.0,
    message="the endpoint closed the connection",
)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            AttemptLine(row=_SENT, waited_s=None),
            "No reply yet: the request was sent at 00:01:01 UTC.",
        ),
        (
            AttemptLine(row=_SENT, waited_s=None, is_lost=True),
            (
                "No reply: the process ended while it waited for one. Whether the "
                "endpoint answered is unknown."
            ),
        ),
        (
            AttemptLine(row=replace(_SENT, outcome=_LOST), waited_s=None),
            "No reply came: ConnectionLost: the endpoint closed the connection",
        ),
        (
            AttemptLine(
                row=replace(_SENT, outcome=replace(_LOST, status=503)), waited_s=None
            ),
            (
                "The answer with status 503 had no text: the endpoint closed the "
                "connection"
            ),
        ),
    ],
)
@pytest.mark.asyncio
async def test_an_attempt_without_a_reply_says_why(
    line: AttemptLine, words: str
) -> None:
    desk = Desk()
    desk.source.attempts = (line,)
    async with desk.app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        if "[reply]" not in desk.said("tabs"):  # where nothing has failed
            await _press(pilot, "tab")
        assert desk.text == words
