"""A line shows both its texts, harmless and exactly as wide as its place.

A text that is drawn line by line, as changes come, looks as Textual draws it at once.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.app import App, ComposeResult
from textual.content import Content
from textual.widgets import Static

from tests.tui.hostile import HOSTILE
from tui.render.glyphs import UNICODE
from tui.widgets.panel import TextBlock, laid_out

TEXTS = st.text(max_size=100) | st.sampled_from(HOSTILE)


@given(TEXTS, TEXTS, st.integers(4, 120), st.sampled_from(" ─-"))
def test_it_fills_its_place(left: str, right: str, width: int, fill: str) -> None:
    shown = laid_out(left, right, width, fill)
    assert "\x1b" not in shown
    assert cell_len(shown) == width


@pytest.mark.parametrize(
    ("left", "right", "width", "fill", "shown"),
    [
        ("left", "right", 16, " ", " left     right "),
        ("a long text", "right", 16, " ", " a long…  right "),
        ("", "row 1", 12, "─", " ──── row 1 "),
        ("left", "", 10, "-", " left --- "),
    ],
)
def test_what_is_at_the_right_is_kept(
    left: str, right: str, width: int, fill: str, shown: str
) -> None:
    assert laid_out(left, right, width, fill) == shown


class _Both(App[None]):
    """A text block, and the same text in a widget of Textual."""

    CSS = "#a, #b { width: 30; height: 4; padding: 0 1; background: $panel; }"

    def compose(self) -> ComposeResult:
        self.block = TextBlock("a", UNICODE)
        self.static = Static(id="b", markup=False)
        yield self.block
        yield self.static


@pytest.mark.asyncio
async def test_a_text_looks_as_textual_draws_it() -> None:
    rng = random.Random(7)
    words = ["one", "two 漢", "│ three", "x" * 24, ""]
    styles = ["", "bold", "$accent", "reverse $error"]
    app = _Both()
    async with app.run_test(size=(40, 10)) as pilot:
        lines: list[Content] = []
        for _ in range(60):
            # most of them differ in a line; some are longer than the width
            line = Content.assemble(
                *(
                    (rng.choice(words), rng.choice(styles))
                    for _ in range(rng.randint(0, 3))
                )
            )
            at = rng.randrange(6)
            lines = [*lines[:at], line, *lines[at + 1 :]]
            text = Content("\n").join(lines)
            app.block.say(text)
            app.static.update(text)
            await pilot.pause()
            drawn = [
                [
                    [(s.text, s.style and s.style.color) for s in strip if s.text]
                    for strip in widget.render_lines(widget.size.region)
                ]
                for widget in (app.block, app.static)
            ]
            assert _cells(drawn[0]) == _cells(drawn[1])


def _cells(lines: list[list[tuple[str, object]]]) -> list[list[tuple[str, object]]]:
    """Each character with its colour; blanks have none."""
    return [
        [(sign, sign.strip() and colour) for text, colour in line for sign in text]
        for line in lines
    ]
