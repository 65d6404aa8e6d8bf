"""JSON is found in prose, and read as far as it goes where it breaks off.

Any JSON can be read as lines, and anything else as it is. A tree shows every field, and
what is wrong beside the field it is about.
"""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store.json_text import MOST, find_json, readable, reply_text, tree

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


LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=20)
FLATTEN_JSON = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(st.binary(max_size=200))
def test_anything_can_be_shown(body: bytes) -> None:
    readable(body)


@given(FLATTEN_JSON)
def test_every_text_is_in_it(value: object) -> None:
    shown = readable(json.dumps(value).encode())
    for text in _texts(value):
        assert all(line in shown for line in text.split("\n"))


def _texts(value: object) -> list[str]:
    match value:
        case dict():
            return [text for inner in value.values() for text in _texts(inner)]
        case list():
            return [text for inner in value for text in _texts(inner)]
        case str():
            return [value]
        case _:
            return []


def test_a_reply_is_shown_by_its_paths() -> None:
    body = {"choices": [{"message": {"content": "one\ntwo"}}], "usage": {"n": 3}}
    assert readable(json.dumps(body).encode()) == (
        "choices[0].message.content:\n    one\n    two\nusage.n: 3"
    )


def test_what_is_no_json_is_shown_as_it_came() -> None:
    assert readable(b"<html>502</html>") == "<html>502</html>"
    assert readable(b"\xff") == "\ufffd"


def test_a_very_deep_reply_is_shown_all_the_same() -> None:
    body = b"[" * 100_000 + b"]" * 100_000
    assert readable(body) == body.decode()


VALUE = {"items": [{"n": 1}, {"n": "many"}], "empty": [], "é": None}


@pytest.mark.parametrize(
    ("fault", "line"),
    [
        ("items.1.n: not a number", '      n  "many"  ✗ not a number'),
        ("items.0.m: is missing", "    [0]  ✗ is missing"),
        ("empty: too short", "empty  []  ✗ too short"),
    ],
)
def test_a_fault_stands_beside_its_field_or_what_that_is_missing_in(
    fault: str, line: str
) -> None:
    shown = tree(VALUE, fault=fault)
    assert [each for each in shown.split("\n") if "✗" in each] == [
        line.removeprefix("  ") if line.startswith("  ") else line
    ]


def test_a_fault_without_a_field_stands_nowhere() -> None:
    assert tree(VALUE, fault="the object: no") == tree(VALUE)
    assert tree("plain") == '"plain"'
    assert (tree({}), tree([])) == ("{}", "[]")


def test_a_tree_is_bounded() -> None:
    lines = tree(list(range(MOST + 5))).split("\n")
    assert len(lines) == MOST + 1
    deep: list[object] = []
    for _ in range(300):
        deep = [deep]
    assert tree(deep)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"choices": [{"message": {"content": "yes"}}], "id": "longer"}', "yes"),
        (b'{"id": "x", "answer": "no, never"}', "no, never"),
        (b"plain text", "plain text"),
        (b"[0.1, 0.2]", ""),
        (b"\xff", "\ufffd"),
    ],
)
def test_the_words_of_a_model_are_found_in_any_reply(body: bytes, said: str) -> None:
    assert reply_text(body).text == said


def test_what_surrounds_the_words_is_apart_from_them() -> None:
    reply = reply_text(b'{"a": "content", "b": [{"content": "abc"}]}')
    assert "…" in reply.around
    assert "abc" not in reply.around
    assert reply_text(b'{"content": "abc"}').around == ""
    assert reply_text(b"abc").around == ""
