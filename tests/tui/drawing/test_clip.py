"""What a cell shows is harmless and exactly as wide as the cell."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.tui.hostile import HOSTILE, MARKS
from tui.render.layout import clip, one_line


@given(st.text(max_size=200) | st.sampled_from(HOSTILE), st.integers(0, 60))
def test_nothing_acts_hides_or_overflows(text: str, cells: int) -> None:
    shown = clip(text, cells)
    assert cell_len(shown) == cells
    for character in shown:
        category = unicodedata.category(character)
        assert category not in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@given(st.text("abc 日🙂", max_size=30), st.integers(1, 30))
def test_a_cut_is_marked_and_only_a_cut(text: str, cells: int) -> None:
    shown = one_line(text, cells)
    assert (shown == text) == (cell_len(text) <= cells)
    assert shown == text or shown.endswith("…")


@pytest.mark.parametrize(
    ("text", "cells", "shown"),
    [
        ("title", 8, "title   "),
        ("title", 5, "title"),
        ("title", 4, "tit…"),
        ("日本語", 6, "日本語"),
        ("日本語", 5, "日本…"),
        ("日本語", 4, "日… "),
        ("a\nb", 5, "a␊b  "),
        ("[/INST]", 9, "[/INST]  "),
        ("anything", 0, ""),
    ],
)
def test_what_a_cell_holds(text: str, cells: int, shown: str) -> None:
    assert clip(text, cells) == shown


def test_figures_stand_at_the_right() -> None:
    assert clip("1.5 s", 8, is_right=True) == "   1.5 s"


class Counted(str):
    """Text that knows how much of it was looked at."""

    __slots__ = ("asked",)

    def __getitem__(self, key: object) -> str:
        assert isinstance(key, slice)
        self.asked = key.stop
        return str.__getitem__(self, key)


def test_of_a_long_line_only_the_beginning_is_looked_at() -> None:
    text = Counted("x" * 1_000_000)
    assert one_line(text, 40) == "x" * 39 + "…"
    assert text.asked < 1_000


def test_a_letter_carries_no_tower_of_marks() -> None:
    assert len(clip(MARKS, 10)) < 60
