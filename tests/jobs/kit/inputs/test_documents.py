"""Raw pages become one text whose characters know their page."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.kit.inputs.documents import cleaned_document


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("e\ufb03cacy of \ufb02uids", "efficacy of fluids"),
        ("sub\u00adtle", "subtle"),
        ("it was ran-\r\ndomised", "it was randomised"),
        ("it was ran\x02domised", "it was randomised"),
        ("a double-blind trial, double-\nblind", "a double-blind trial, double-blind"),
        ("by Alder-\nBirch", "by Alder-Birch"),
        ("doi 10.5555/abc-\ndef", "doi 10.5555/abc-\ndef"),
        ("pages 12-\n19", "pages 12-\n19"),
        ("half \ud83d of one", "half ? of one"),
        ("a\u00a0b\x00\ufeff  \nc", "a b\nc"),
    ],
)
def test_what_typesetting_added_is_taken_away(raw: str, text: str) -> None:
    assert cleaned_document("a.txt", [raw]).text == text


def test_lines_that_pages_repeat_at_an_edge_are_left_out_and_others_stay() -> None:
    pages = [
        f"A title (Review)\nSame words\n{word} page\nmore {word}\nend {word}\n{n} of 4"
        for n, word in enumerate(("one", "two", "three", "four"), start=1)
    ]
    pages[1] = pages[1].replace("Same words", "Other words")
    found = cleaned_document("a.txt", pages).text
    assert "A title" not in found
    assert "of 4" not in found
    assert found.count("more") == found.count("end") == 4
    assert "Other words" in found
    assert "Same words" not in found
    # two pages are too few to tell a running title from text
    assert cleaned_document("a.txt", pages[:2]).text.count("A title") == 2


def test_a_word_that_a_page_break_parts_stands_on_the_first_page() -> None:
    found = cleaned_document("a.txt", ["The trial was ran-", "domised. Then it ended."])
    assert found.text == "The trial was randomised\n. Then it ended."
    assert found.page(found.text.index("randomised")) == 1
    assert found.page(found.text.index("Then")) == 2


@pytest.mark.parametrize("piece", ["a-\n", "a", "a-  ", ". ", "\n \t", "A-B"])
def test_no_text_takes_the_square_of_its_length(piece: str) -> None:
    # one that does would not end within the time that any test has
    assert cleaned_document("a.txt", [piece * 200_000]).starts == (0,)


@given(st.lists(st.text(alphabet="abC1 .-\n\r\x02\f\u00ad", max_size=40), min_size=1))
def test_every_page_begins_inside_the_text_and_cleaning_ends(pages: list[str]) -> None:
    found = cleaned_document("a.txt", pages)
    assert len(found.starts) == len(pages)
    assert list(found.starts) == sorted(found.starts)
    assert found.starts[-1] <= len(found.text)
    assert not set(found.text) & set("\r\x02\f\u00ad")
