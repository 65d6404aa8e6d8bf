"""A long text is broken into lines that a screen can hold, and loses nothing."""

from __future__ import annotations

from itertools import islice
from unicodedata import category

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.tui.hostile import HOSTILE
from tui.render.layout import MAX_TEXT_CHARS, wrapped


def _lines(text: str, cells: int) -> list[str]:
    return [piece.text for piece in wrapped(text, cells)]


@given(st.text(max_size=300) | st.sampled_from(HOSTILE[:-1]), st.integers(2, 80))
def test_no_line_is_too_wide_or_acts(text: str, cells: int) -> None:
    for line in _lines(text, cells):
        assert cell_len(line) <= cells
        # spaces of other scripts are drawn as one
        assert all(sign.isprintable() or category(sign) == "Zs" for sign in line)


@given(st.text("ab 日c\u0301", max_size=200), st.integers(2, 40), st.integers(1, 99))
def test_nothing_is_lost(text: str, cells: int, times: int) -> None:
    assert "".join(_lines(text * times, cells)) == text * times


@given(st.lists(st.text("a+- ", max_size=90), min_size=1, max_size=9))
def test_every_piece_knows_how_its_line_began(lines: list[str]) -> None:
    pieces = list(wrapped("\r\n".join(lines), 20))
    begun = [piece.first for piece in pieces]
    assert "".join(piece.text for piece in pieces) == "".join(lines)
    assert set(begun) == {line[:1] for line in lines}


def test_lines_break_after_words_where_they_can() -> None:
    assert _lines("one two three", 8) == ["one two ", "three"]
    assert _lines("a pneumonoultra", 8) == ["a pneumo", "noultra"]
    assert _lines("日本語", 4) == ["日本", "語"]


def test_empty_lines_stay() -> None:
    assert _lines("a\n\nb", 10) == ["a", "", "b"]
    assert _lines("", 10) == [""]


def test_what_is_not_shown_is_counted() -> None:
    *shown, last = _lines("x" * (MAX_TEXT_CHARS + 1_234), 1_000)
    assert "".join(shown) == "x" * MAX_TEXT_CHARS
    assert last == "… 1,234 more characters: w writes all of them"


def test_a_line_without_end_costs_what_is_looked_at() -> None:
    # a text that could not be read to its end here; see also the quick view of it
    endless = "日" * MAX_TEXT_CHARS
    assert [len(line) for line, _ in islice(wrapped(endless, 80), 50)] == [40] * 50
