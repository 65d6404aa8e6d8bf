"""JSON is found in prose, and read as far as it goes where it breaks off."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tui.render.json_text import find_json

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=40)
@given(st.dictionaries(st.text(max_size=4), JSON, max_size=4))
def test_whole_json_is_found_whole(value: object) -> None:
    found = find_json(f"As you asked [1]:\n{json.dumps(value)}\nThat is all.")
    assert found is not None
    assert (found.value, found.broken_at) == (value, None)


@settings(max_examples=40)
@given(st.dictionaries(st.text(max_size=4), JSON, max_size=4), st.data())
def test_cut_json_says_where_and_keeps_what_was_said(
    value: object, data: st.DataObject
) -> None:
    text = json.dumps(value)
    cut = text[: data.draw(st.integers(1, len(text) - 1))]
    found = find_json(cut)
    assert found is not None
    assert found.broken_at is not None
    assert 0 < found.broken_at <= len(cut)
    assert isinstance(found.value, dict)


@given(st.text('{}[]",:1a\\ \n', max_size=60))
def test_anything_at_all_is_looked_at(text: str) -> None:
    found = find_json(text)
    assert found is None or found.broken_at is None or found.broken_at <= len(text)


@pytest.mark.parametrize(
    ("text", "value", "broken_at"),
    [
        ('{"a": 1, "b" 2}', {"a": 1}, 13),
        ('{"a": [1, {"b": "x, y', {"a": [1, {}]}, 16),
        ('see [1] {"a": 1', {}, 15),
        ("{a: 1}", {}, 1),
        ("[1, 2]", [1, 2], None),
    ],
)
def test_the_place_is_that_of_the_fault(
    text: str, value: object, broken_at: int | None
) -> None:
    found = find_json(text)
    assert found is not None
    assert (found.value, found.broken_at) == (value, broken_at)


@pytest.mark.parametrize("text", ["", "no brackets", "[" * 100_000])
def test_where_there_is_none_nothing_is_found(text: str) -> None:
    assert find_json(text) is None
