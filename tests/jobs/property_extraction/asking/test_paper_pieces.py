"""Papers cut into pieces that a prompt can hold."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from jobs.property_extraction.plan import PaperPiece, pieces
from jobs.property_extraction.tasks import choice_key, pair_key, paper_of, piece_key

TEXTS = st.lists(
    st.sampled_from(["word", "a", " ", ". ", "\n", "\n\n", "longerword"]), max_size=60
).map("".join)


def cut(text: str, most: int, overlap: int) -> list[str]:
    return [text[each.start : each.end] for each in pieces(text, most, overlap)]


def test_a_short_text_and_one_without_a_limit_are_whole() -> None:
    assert pieces("some text", 0, 0) == (PaperPiece(start=0, end=9),)
    assert pieces("some text", 9, 5) == (PaperPiece(start=0, end=9),)
    assert pieces("", 9, 5) == (PaperPiece(start=0, end=0),)


def test_a_piece_ends_with_a_paragraph_else_a_line_a_sentence_or_a_word() -> None:
    assert cut("one two\n\nthree. four\nfive six", 22, 0) == [
        "one two\n\n",
        "three. four\nfive six",
    ]
    assert cut("one two. three\nfour five", 17, 0) == ["one two. three\n", "four five"]
    assert cut("one two. three four", 14, 0) == ["one two. ", "three four"]
    assert cut("one two three four", 14, 0) == ["one two three ", "four"]
    assert cut("x" * 25, 10, 0) == ["x" * 10, "x" * 10, "x" * 5]


def test_pieces_overlap_from_the_beginning_of_a_word() -> None:
    assert cut("one two three four five six", 14, 6) == [
        "one two three ",
        "three four ",
        "four five six",
    ]


@given(TEXTS, st.integers(1, 40), st.data())
def test_every_character_is_in_a_piece_and_none_is_too_long(
    text: str, most: int, data: st.DataObject
) -> None:
    overlap = data.draw(st.integers(0, most - 1))
    found = pieces(text, most, overlap)
    assert found[0].start == 0
    assert found[-1].end == len(text)
    assert all(each.end - each.start <= most for each in found)
    for before, after in pairwise(found):
        assert before.start < after.start <= before.end < after.end
        assert before.end - after.start <= overlap


@given(st.text(max_size=8), st.none() | st.integers(1, 99))
def test_the_key_of_a_piece_says_which(refno: str, number: int | None) -> None:
    if number is not None or "#" not in refno:
        assert paper_of(piece_key(refno, number)) == (refno, number)


def test_pairs_whose_names_hold_arrows_have_keys_of_their_own() -> None:
    assert pair_key("a", "b") == "a => b"
    assert pair_key("a => b", "c") != pair_key("a", "b => c")
    assert choice_key("a", ["b", "c"]) != choice_key("a", ["b"])
