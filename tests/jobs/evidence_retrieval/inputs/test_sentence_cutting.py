"""Cutting texts: where sentences end, where they do not, and that nothing is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.evidence_retrieval.posts import cut, spans

LIKELY = st.text(st.sampled_from("aB1 .!?\n\r\"'”»é\u2028\u00a0(x"), max_size=40)


def pieces(text: str) -> list[str]:
    return [text[span.start : span.end] for span in spans(text)]


@given(st.one_of(LIKELY, st.text(max_size=40)))
def test_joining_the_slices_with_what_lies_between_gives_the_text_back(
    text: str,
) -> None:
    rebuilt, end = "", 0
    for span in spans(text):
        between = text[end : span.start]
        assert not between.strip()
        rebuilt += between + text[span.start : span.end]
        end = span.end
    assert not text[end:].strip()
    assert rebuilt + text[end:] == text


@given(st.one_of(LIKELY, st.text(max_size=40)))
def test_no_sentence_is_blank_and_each_has_a_letter_if_any_has(text: str) -> None:
    found = pieces(text)
    assert all(piece == piece.strip() != "" for piece in found)
    assert bool(found) == bool(text.strip())
    with_letter = [any(map(str.isalpha, piece)) for piece in found]
    assert all(with_letter) or len(found) == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("Well... maybe. Really?! Yes.", ["Well...", "maybe.", "Really?!", "Yes."]),
        ('He said "no." She left.', ['He said "no."', "She left."]),
        ("Er sagt „Nein.“ Sie geht.", ["Er sagt „Nein.“", "Sie geht."]),
        ("One\nTwo.\r\n\r\nThree", ["One", "Two.", "Three"]),
        ("One\u2028Two", ["One", "Two"]),
        ("It took 7.5 hours, i.e. long.", ["It took 7.5 hours, i.e. long."]),
        ("It cost 1,250.00. Much.", ["It cost 1,250.00.", "Much."]),
        ("Dr. Ash and Mrs. Birch met.", ["Dr. Ash and Mrs. Birch met."]),
        ("J. Ash moved. So did I.", ["J. Ash moved.", "So did I."]),
        ("The U.S. is far. Yes.", ["The U.S. is far.", "Yes."]),
        ("Up at 4 a.m. again.", ["Up at 4 a.m. again."]),
        ("(Dr. Ash) said so.", ["(Dr. Ash) said so."]),
        ("See example.org. Or not.", ["See example.org.", "Or not."]),
        ("No! Mr! Yes.", ["No!", "Mr!", "Yes."]),
        ("I said no. He said etc. Fine.", ["I said no.", "He said etc.", "Fine."]),
        ("Fine. *** Then it rained.", ["Fine.", "*** Then it rained."]),
        ("Fine.\n***\nThen it rained.", ["Fine.\n***", "Then it rained."]),
        ("Help. ??? !!", ["Help. ??? !!"]),
        ("1. Boxes. 2. More boxes.", ["1. Boxes. 2.", "More boxes."]),
        ("???", ["???"]),
        ("12. 13.", ["12. 13."]),
        (" \n\t ", []),
        ("", []),
        ("שלום. מה שלומך?", ["שלום.", "מה שלומך?"]),
        ("😀 yes. 😀", ["😀 yes. 😀"]),
    ],
)
def test_where_sentences_end(text: str, expected: list[str]) -> None:
    assert pieces(text) == expected


def test_uids_count_from_zero_behind_the_posts_id() -> None:
    assert [(s.sid, s.uid, s.text) for s in cut("post_1", "A cat. A dog.")] == [
        (0, "post_1_0", "A cat."),
        (1, "post_1_1", "A dog."),
    ]
