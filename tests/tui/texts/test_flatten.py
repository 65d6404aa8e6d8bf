"""Any JSON can be read as lines, and anything else as it is."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from tui.render.json_text import readable

LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=20)
JSON = st.recursive(
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


@given(JSON)
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
