"""What a cell shows is harmless and exactly as wide as the cell.

A long text is broken into lines that a screen can hold, and loses nothing. Columns
share the room that there is, and the least needed go first.
"""

from __future__ import annotations

import unicodedata
from itertools import islice
from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from store.printable import printable
from tests.tui.hostile import HOSTILE, MARKS
from tui.render.glyphs import UNICODE
from tui.render.layout import (
    COLUMN_GAP,
    MAX_TEXT_CHARS,
    Room,
    TableColumn,
    clip,
    fitted,
    middle_cut,
    one_line,
    wrapped,
    wrapped_lines,
)


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


def _lines(text: str, cells: int) -> list[str]:
    return [piece.text for piece in wrapped(text, cells)]


@given(st.text(max_size=300) | st.sampled_from(HOSTILE[:-1]), st.integers(2, 80))
def test_no_line_is_too_wide_or_acts(text: str, cells: int) -> None:
    for line in _lines(text, cells):
        assert cell_len(line) <= cells
        # spaces of other scripts are drawn as one
        assert all(sign.isprintable() or category(sign) == "Zs" for sign in line)
    for piece in wrapped(text, cells, is_hanging=True):
        assert piece.lead + cell_len(piece.text) <= cells


@given(st.text("ab 日c\u0301", max_size=200), st.integers(2, 40), st.integers(1, 99))
def test_nothing_is_lost(text: str, cells: int, times: int) -> None:
    assert "".join(_lines(text * times, cells)) == text * times
    hanging = wrapped(text * times, cells, is_hanging=True)
    assert "".join(piece.text for piece in hanging) == text * times


def test_an_indented_line_goes_on_below_its_first_word() -> None:
    pieces = wrapped("  one two three four\nfive six seven", 10, is_hanging=True)
    assert [" " * piece.lead + piece.text for piece in pieces] == [
        "  one two ",
        "  three ",
        "  four",
        "five six ",
        "seven",
    ]


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
    pieces = islice(wrapped(endless, 80), 50)
    assert [len(piece.text) for piece in pieces] == [40] * 50


TASK: TableColumn[str] = TableColumn(title="task", width=9, text=str)
KEY: TableColumn[str] = TableColumn(title="paper", width=10, text=str, grows=True)
COST: TableColumn[str] = TableColumn(
    title="cost", width=7, text=str, is_right=True, drops=2
)
WHEN: TableColumn[str] = TableColumn(
    title="when", width=6, text=str, is_right=True, drops=1
)
ALL = (TASK, KEY, COST, WHEN)


def _titles(width: int) -> list[str]:
    return [column.title for column in fitted(ALL, width)]


def test_what_is_needed_least_goes_first() -> None:
    assert _titles(38) == ["task", "paper", "cost", "when"]
    assert _titles(37) == ["task", "paper", "when"]
    assert _titles(28) == ["task", "paper"]


def test_what_must_stay_stays() -> None:
    assert _titles(3) == ["task", "paper"]


def test_one_column_takes_what_is_left() -> None:
    assert [column.width for column in fitted(ALL, 50)] == [9, 22, 7, 6]


@given(st.integers(21, 300))
def test_the_room_is_used_and_never_exceeded(width: int) -> None:
    found = fitted(ALL, width)
    assert (
        sum(column.width for column in found) + COLUMN_GAP * (len(found) - 1) == width
    )


def test_without_columns_there_is_nothing_to_fit() -> None:
    assert fitted((), 80) == []


def test_keys_of_items_are_cut_in_their_middle() -> None:
    cut = [middle_cut(f"PMC0000001/mcq_variant:{n}", 13) for n in (1, 2)]
    assert cut == ["PMC0…ariant:1", "PMC0…ariant:2"]
    assert middle_cut("PMC1", 8) == "PMC1    "
    assert middle_cut("ends with …", 11) == "ends with …"


@given(st.text(max_size=60), st.integers(0, 30))
def test_a_cut_middle_has_the_width_and_is_safe(text: str, cells: int) -> None:
    line = middle_cut(text, cells)
    assert cell_len(line) == cells
    assert printable(line) == line


@given(st.lists(st.text(max_size=200), max_size=4), st.integers(4, 12))
def test_wrapped_messages_use_no_more_lines_than_there_are(
    texts: list[str], most: int
) -> None:
    room = Room(width=20, height=most, glyphs=UNICODE)
    lines = wrapped_lines(texts, room, most).plain.split("\n")
    assert len(lines) <= most
    assert all(cell_len(line) <= 20 for line in lines)


def test_a_message_takes_the_lines_that_are_free() -> None:
    room = Room(width=10, height=4, glyphs=UNICODE)
    text = wrapped_lines(["one two three four", "five"], room, 4).plain
    assert text.split("\n") == ["one two", "three four", "five"]
    text = wrapped_lines(["one two three four", "five"], room, 2).plain
    assert text.split("\n") == ["one two t…", "five"]
