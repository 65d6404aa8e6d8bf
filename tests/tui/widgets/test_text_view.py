"""A text is scrolled, begins at its beginning, and its end is reached however long."""

from __future__ import annotations

import pytest
from textual.app import ComposeResult
from textual.screen import Screen

from tests.tui.fake_tasks import TasksApp
from tui.render.glyphs import UNICODE
from tui.widgets.text_view import TextView


class _Viewer(Screen[None]):
    def compose(self) -> ComposeResult:
        yield TextView(UNICODE)


@pytest.mark.asyncio
async def test_another_text_begins_at_its_beginning_and_g_reaches_the_end() -> None:
    screen = _Viewer()
    app = TasksApp(screen)
    async with app.run_test(size=(40, 10)) as pilot:
        view = screen.query_one(TextView)
        view.show("\n".join(f"line {n}" for n in range(100)))
        view.focus()
        await pilot.press("G")
        assert view.render_line(9).text.startswith(" line 99")
        view.show("[/INST] \x1b[2J")
        await pilot.pause()
        assert view.render_line(0).text.startswith(" [/INST] \u241b[2J")
        assert view.render_line(1).text == " " * 40
        # more lines than are broken at once: the key waits for the others
        view.show("\n".join(f"line {n}" for n in range(5_000)))
        await pilot.press("G")
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert view.render_line(9).text.startswith(" line 4999")
