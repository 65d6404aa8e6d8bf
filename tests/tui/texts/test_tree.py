"""A tree shows every field, and what is wrong beside the field it is about."""

from __future__ import annotations

import pytest

from tui.render.json_text import MOST, reply_text, tree

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


def test_a_mark_is_put_into_the_words_and_nowhere_else() -> None:
    reply = reply_text(b'{"a": "content", "b": [{"content": "abc"}]}')
    assert reply.marked(1, "|") == {"a": "content", "b": [{"content": "a|bc"}]}
    assert reply_text(b"abc").marked(2, "|") == "ab|c"
