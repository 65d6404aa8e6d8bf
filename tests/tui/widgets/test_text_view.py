"""A long text is broken into lines that a screen can hold, and loses nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.app import App, ComposeResult

from tests.tui.hostile import HOSTILE
from tui.drawing.glyphs import UNICODE
from tui.widgets.text_view import TextView, wrapped


@given(st.text(max_size=300) | st.sampled_from(HOSTILE), st.integers(2, 80))
def test_no_line_is_too_wide_or_acts(text: str, cells: int) -> None:
    for line in wrapped(text, cells):
        assert cell_len(line) <= cells
        assert "\x1b" not in line


@given(st.text("ab 日c", max_size=200), st.integers(2, 40))
def test_nothing_is_lost(text: str, cells: int) -> None:
    assert "".join(wrapped(text, cells)) == text


def test_lines_break_after_words_where_they_can() -> None:
    assert wrapped("one two three", 8) == ["one two ", "three"]
    assert wrapped("a pneumonoultra", 8) == ["a pneumo", "noultra"]
    assert wrapped("日本語", 4) == ["日本", "語"]


def test_empty_lines_stay() -> None:
    assert wrapped("a\n\nb", 10) == ["a", "", "b"]


class _Viewer(App[None]):
    def compose(self) -> ComposeResult:
        yield TextView(UNICODE)


@pytest.mark.asyncio
async def test_another_text_begins_at_its_beginning() -> None:
    app = _Viewer()
    async with app.run_test(size=(40, 10)) as pilot:
        view = app.query_one(TextView)
        view.show("\n".join(f"line {n}" for n in range(100)))
        view.focus()
        await pilot.press("G")
        assert view.render_line(9).text.startswith(" line 99")
        view.show("[/INST] \x1b[2J")
        await pilot.pause()
        assert view.render_line(0).text.startswith(" [/INST] \u241b[2J")
        assert view.render_line(1).text == " " * 40
