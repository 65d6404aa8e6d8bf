"""A line shows both its texts, harmless and exactly as wide as its place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.tui.hostile import HOSTILE
from tui.widgets.panel import laid_out

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
