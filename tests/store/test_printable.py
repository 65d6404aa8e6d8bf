"""Nothing a model wrote may act on a terminal, or hide in it."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.printable import clip, cut, display_width, one_line, printable

#: Characters that hide or act, besides those that Unicode classes as format or control.
HIDING = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufe0f\u180e"


@given(st.text(max_size=300))
def test_nothing_that_acts_or_hides_is_left(text: str) -> None:
    shown = printable(text).replace("\n", "")
    for character in shown:
        category = unicodedata.category(character)
        assert category not in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
        assert character not in HIDING


@given(st.text(st.characters(codec="utf-8"), max_size=300))
def test_it_can_always_be_encoded(text: str) -> None:
    printable(text).encode()


@given(st.text(max_size=100))
def test_doing_it_twice_changes_nothing_more(text: str) -> None:
    assert printable(printable(text)) == printable(text)


@given(st.text(max_size=500), st.integers(1, 50), st.integers(1, 50))
def test_lines_and_the_whole_are_bounded(text: str, limit: int, line: int) -> None:
    shown = printable(text, limit=limit, line=line)
    assert all(len(piece) <= line for piece in shown.split("\n"))
    assert len(shown) <= (limit + 2) * (line + 1)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, süß, 日本, 🙂", "plain, süß, 日本, 🙂"),
        ("a\tb", "a    b"),
        ("a\r\nb", "a\nb"),
        ("a\rb", "a\u240db"),
        ("\x1b]0;title\x07", "\u241b]0;title\u2407"),
        ("\x7f", "\u2421"),
        ("\x9b31m", "<009B>31m"),
        ("abc\u202etxt", "abc<202E>txt"),
        ("a\u200bb\ufeff", "a<200B>b<FEFF>"),
        ("\ud800", "<D800>"),
        ("", ""),
    ],
)
def test_what_stands_for_what(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_what_is_cut_is_marked() -> None:
    assert printable("a" * 30, line=10) == "a" * 9 + "…"
    assert printable("abcdef", limit=3) == "abc\n…"


@given(st.text(), st.integers(1, 40))
def test_a_word_takes_no_more_than_its_width(text: str, width: int) -> None:
    clipped = clip(text, width)
    assert display_width(clipped) <= width
    assert "\n" not in clipped
    whole = one_line(text)
    assert whole == clipped or (clipped[-1] == "…" and whole.startswith(clipped[:-1]))


def test_cells_are_counted_as_terminals_do() -> None:
    assert display_width("a長é\u0301") == 1 + 2 + 1
    assert unicodedata.category("\u0301") == "Mn"
    assert cut("長長長", 5) == "長長…"
    assert cut("長長長", 4) == "長…"
