"""What a reply took from a text is found in it, whatever either contains."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.sources.item_text import CLOSE, OPEN, item_text, marked

PAPER = "Carriers of CYP2C9*2 need\n  a “lower” dose. CYP2C9*2 and CYP2C9*21 differ."


@pytest.mark.parametrize(
    ("reply", "shown"),
    [
        ({"quote": "need a lower dose"}, PAPER),
        (
            {"quote": 'Need a "lower" dose.'},
            PAPER.replace("need\n  a “lower” dose.", "⟪need\n  a “lower” dose.⟫"),
        ),
        (
            ["CYP2C9*2"],
            PAPER.replace("CYP2C9*2 ", "⟪CYP2C9*2⟫ "),
        ),
        ("Carriers of CYP2C9*2 need", f"⟪{PAPER[:25]}⟫{PAPER[25:]}"),
        (
            ["CYP2C9*2", "Carriers of CYP2C9*2 need"],
            f"⟪{PAPER[:25]}⟫{PAPER[25:].replace('CYP2C9*2 ', '⟪CYP2C9*2⟫ ')}",
        ),
        ("b", PAPER),
        (None, PAPER),
    ],
)
def test_passages_are_marked_as_they_stand(reply: Any, shown: str) -> None:
    assert marked(PAPER, reply).text == shown


def test_what_was_found_is_counted() -> None:
    reply = {"a": {"quote": "lower dose"}, "b": ["CYP2C9*2", "CYP1"]}
    found = marked(PAPER, reply)
    assert found.about == (
        "0 of 1 quote found · 1 of 2 values found · not found: lower dose"
    )
    assert marked(PAPER, None).about == "the reply has no text to look up"


@given(
    st.text(max_size=200),
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=20),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=9), inner),
        max_leaves=9,
    ),
)
def test_marks_add_nothing_but_signs(text: str, reply: Any) -> None:
    shown = marked(text, reply).text
    signs = str.maketrans("", "", OPEN + CLOSE)
    assert shown.translate(signs) == text.translate(signs)
    assert shown.count(OPEN) - text.count(OPEN) == (
        shown.count(CLOSE) - text.count(CLOSE)
    )


@given(st.text("ab \n", min_size=5, max_size=60), st.data())
def test_a_quote_of_the_text_is_always_found(text: str, data: st.DataObject) -> None:
    begin = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(begin, len(text)))
    quote = text[begin:end].strip()
    found = marked(text, {"quote": quote})
    assert found.located_quotes == found.quotes


def test_the_text_of_an_item_is_the_longest_part_of_the_last_message() -> None:
    system = {"role": "system", "parts": ["x" * 99]}
    user = {"role": "user", "parts": ["Read:", "the paper", "?"]}
    assert item_text({"messages": [system, user]}) == "the paper"
    assert item_text({"query": "q", "texts": ["longer than that", "b"]}) == (
        "longer than that"
    )
    assert item_text({"messages": []}) == ""
    assert item_text(None) == ""
